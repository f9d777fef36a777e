"""Cases of the catalogue: how they are read, and what holds for every refusal.

A case has an input, which is also its name unless it has one, and what is said to it: `says` is a
part of the message that names what was given and what to do. `...` in it stands for anything, such
as the words of another library; a list has what versions of it say. What else a case has depends
on the door and is told in the door's file. How many cases there are:
`python tests/bad_input/cases.py`.
"""

import os
import re
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
DOORS = ("api", "command_line", "files", "server")
_LONGEST = 1200  # characters of a message
_RAW = (
    r"Traceback \(most recent call last\)",
    r"\bat 0x[0-9a-f]{6,}",  # a memory address
    r"^\s*File \".*\", line \d+",
    r"^(latem: )?'[^']*'$",  # a KeyError's text
    r"^(latem: )?\w*(Error|Exception)\b",
    r"<class '",
    r"object is not (subscriptable|iterable|callable)",
    r"\[Errno -?\d+\]",
    r"unexpected keyword argument",
)


def read_cases(door):
    """Cases of a door, in the order of its file."""
    with open(HERE / f"{door}.toml", "rb") as file:
        return tomllib.load(file)["case"]


def every(door):
    """Parameters of a test: the cases of a door, under their names."""
    return pytest.mark.parametrize("case", read_cases(door), ids=name_of)


def name_of(case):
    """Name of a case: its own, or the input."""
    parts = ("call", "run", "request", "json", "body", "form", "headers")
    return case.get("name") or " ".join(str(case[part]) for part in parts if part in case)


def sayings(case):
    """Parts of messages of which a case wants one: several if a library's versions differ."""
    return [case["says"]] if isinstance(case["says"], str) else case["says"]


def check_message(case, message):
    """The message is the one that is wanted, and one that can be shown to a person."""
    wanted = (
        ".*".join(re.escape(part) for part in one_line(says).split("...")) for says in sayings(case)
    )
    assert any(re.search(one, one_line(message)) for one in wanted), f"said instead:\n{message}"
    for raw in _RAW:
        assert not re.search(raw, message, re.MULTILINE), f"{raw} in:\n{message}"
    assert len(one_line(message)) <= _LONGEST, f"{len(message)} characters"


def one_line(text):
    """A text without line ends and repeated spaces, nor the frames that typer draws."""
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())


def snapshot(folder):
    """Every file, folder and link below a folder; a file that is written gets another time."""
    found = {}
    for root, folders, files in os.walk(folder):
        for name in folders + files:
            path = Path(root, name)
            status = path.lstat()
            if path.is_symlink():
                content = os.readlink(path)
            elif path.is_file():
                content = (status.st_size, status.st_mtime_ns, status.st_ino)
            else:
                content = ""
            found[str(path.relative_to(folder))] = (oct(status.st_mode), content)
    return found


@contextmanager
def untouched(folder):
    """Nothing below a folder is made, changed or removed, by whoever is called in the block."""
    before = snapshot(folder)
    yield
    after = snapshot(folder)
    assert {name for name in after if name not in before} == set(), "was left behind"
    assert {name for name in before if after.get(name) != before[name]} == set(), "was changed"


@contextmanager
def given(case, folder, recipes):
    """Write the files of a case, and remove them afterwards.

    `copy` has folders of the working folder that are copied first, and `without` what is then
    taken away; `given` has texts by the files' names, `made` has names of recipes.
    """
    texts, made = case.get("given", {}), case.get("made", {})
    before = set(os.listdir(folder))
    try:
        for name, source in case.get("copy", {}).items():
            shutil.copytree(folder / source, folder / name)
        for name in [*case.get("without", ()), *(name for name in made if "copy" in case)]:
            (folder / name).unlink(missing_ok=True)
        for name, text in texts.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        for name, recipe in made.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            recipes[recipe](folder / name)
        yield
    finally:
        for name in set(os.listdir(folder)) - before:
            path = folder / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


if __name__ == "__main__":
    for door in DOORS:
        print(f"{len(read_cases(door)):5} {door}")
    print(f"{sum(len(read_cases(door)) for door in DOORS):5} in all")
