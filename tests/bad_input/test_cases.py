"""The catalogue itself: how many cases there are, that each wants something, that each can fail."""

import subprocess
import sys

import pytest
from bad_input.cases import (
    DOORS,
    HERE,
    check_message,
    given,
    name_of,
    read_cases,
    sayings,
    untouched,
)
from bad_input.recipes import RECIPES
from broken_pictures import BROKEN

OUTCOME = {"api": "raises", "command_line": "exit", "files": "raises", "server": "status"}


def test_a_command_counts_the_cases():
    run = subprocess.run(
        [sys.executable, HERE / "cases.py"], capture_output=True, text=True, check=True
    )
    counts = {line.split(maxsplit=1)[1]: int(line.split()[0]) for line in run.stdout.splitlines()}
    assert counts.pop("in all") == sum(counts.values()) >= 250
    assert set(counts) == set(DOORS)
    assert min(counts.values()) >= 100


@pytest.mark.parametrize("door", DOORS)
def test_every_case_wants_a_message_of_its_own_and_an_outcome(door):
    for case in read_cases(door):
        assert sayings(case), name_of(case)
        for says in sayings(case):
            fixed = says.replace("...", "")
            assert len(fixed) >= 12, f"{name_of(case)}: {says!r} would fit too many messages"
        assert case[OUTCOME[door]], name_of(case)
    assert {case["exit"] for case in read_cases("command_line")} == {1, 2}


@pytest.mark.parametrize("door", DOORS)
def test_no_case_is_there_twice(door):
    seen = [{**case, "name": None} for case in read_cases(door)]
    assert [case for i, case in enumerate(seen) if case in seen[:i]] == []


def test_every_recipe_is_used():
    used = {
        recipe for door in DOORS for case in read_cases(door)
        for recipe in case.get("made", {}).values()
    }  # fmt: skip
    listed_elsewhere = {f"picture {name}" for name in BROKEN}
    assert set(RECIPES) - listed_elsewhere - used == set()


@pytest.mark.parametrize(
    "said",
    [
        "There is no folder 'there'.",
        "There is no file 'here'.\nTraceback (most recent call last):",
        "There is no file 'here'. <object at 0x7f00deadbeef>",
        "There is no file 'here'. [Errno 2]",
        "There is no file 'here'." + 2000 * "x",
    ],
)
def test_a_poor_message_fails(said):
    case = {"says": "There is no file '...'."}
    check_message(case, "latem: There is no\n  file 'here'.")
    with pytest.raises(AssertionError):
        check_message(case, said)


def test_one_of_several_wordings_is_enough_and_another_is_not():
    case = {"says": ["Missing argument 'model'.", "Missing argument 'MODEL'."]}
    check_message(case, "latem: Missing argument 'MODEL'.")
    with pytest.raises(AssertionError):
        check_message(case, "latem: Missing argument 'DATASET'.")


DOINGS = {
    "new": lambda file: file.with_name(".file.tmp").touch(),
    "changed": lambda file: file.write_text("mind"),
    "removed": lambda file: file.unlink(),
    "renamed": lambda file: file.rename(file.parent.parent / "other"),
    "a folder": lambda file: file.with_name("folder").mkdir(),
}


@pytest.mark.parametrize("do", DOINGS.values(), ids=DOINGS)
def test_whatever_is_left_behind_fails(do, tmp_path):
    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / "file"
    file.write_text("mine")
    with pytest.raises(AssertionError, match="was left|was changed"), untouched(tmp_path):
        do(file)


def test_files_of_a_case_are_removed_afterwards(tmp_path):
    case = {"given": {"a/b.txt": "text"}, "made": {"c": "nothing"}}
    with given(case, tmp_path, RECIPES):
        assert (tmp_path / "a" / "b.txt").read_text() == "text"
        assert (tmp_path / "c").read_bytes() == b""
    assert list(tmp_path.iterdir()) == []
