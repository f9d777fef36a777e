"""The reference of the site has every public name and every command."""

import re
import sys

import pytest
from helpers import REPOSITORY, command

import latem

sys.path.insert(0, str(REPOSITORY / "docs" / "extensions"))
import command_line
import members

API = (REPOSITORY / "docs" / "api.rst").read_text(encoding="utf-8")


def test_every_public_name_is_in_the_reference_once():
    listed = re.findall(r"^   (\w+)$", API, re.M)
    assert sorted(listed) == sorted(set(latem.__all__) - {"__version__"})


def test_classes_and_functions_have_the_page_that_fits_them():
    for block in API.split(".. autosummary::")[1:]:
        for name in re.findall(r"^   (\w+)$", block, re.M):
            assert isinstance(getattr(latem, name), type) == (":template: class.rst" in block), name


def test_members_are_those_of_latem():
    shown = members.shown("LatEm")
    assert {"fit", "partial_fit", "decision_function"} <= set(shown)
    assert not {"predict_proba", "get_params", "set_fit_request", "pack"} & set(shown)
    common = members.shown("ZeroShotClassifier")
    assert {"predict", "predict_proba", "answer", "save", "with_classes"} <= {*common, *shown}
    assert "from_traits" in members.shown("ClassEmbeddings")
    assert members.kind("Explanation", "lead") == "property"
    assert members.kind("ClassEmbeddings", "from_traits") == "method"


def test_what_the_reference_leaves_out_exists():
    models = [
        getattr(latem, name) for name in latem.__all__ if isinstance(getattr(latem, name), type)
    ]
    models = [cls for cls in models if issubclass(cls, latem.ZeroShotClassifier)]
    unknown = {name for name in members.WITHIN if not any(hasattr(cls, name) for cls in models)}
    assert unknown == set()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    command_line.write(folder)
    return folder


def test_every_command_has_a_page(written):
    found = set()

    def walk(words):
        shown = command(*words, "--help", env={"COLUMNS": "200"}).output
        below = re.search(r"─ Commands ─(.*)", shown, re.S)
        names = re.findall(r"^│ ([a-z][a-z-]*)  ", below[1], re.M) if below else []
        for name in names:
            walk([*words, name])
        if not names:
            found.add("-".join(["latem", *words]))

    walk([])
    assert len(found) > 15
    assert {path.stem for path in written.glob("*.md")} == {*found, "index"}
    index = (written / "index.md").read_text(encoding="utf-8")
    assert all(f"]({name}.md)" in index and f"\n{name}\n" in index for name in found)


@pytest.mark.parametrize("name", command_line.commands())
def test_a_page_has_what_the_help_says(name, written):
    shown = command(*name.split()[1:], "--help", env={"COLUMNS": "200"}).output
    page = (written / f"{name.replace(' ', '-')}.md").read_text(encoding="utf-8")
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", shown)) - {"--help"}
    assert [option for option in sorted(options) if option not in page] == []
    (example,) = re.findall(r"Example: latem (\S+)", shown)
    assert f"latem {example}" in page
    assert not re.search(r"<class|typing\.|\[/?bold", page)


def test_defaults_are_told_in_words(written):
    page = (written / "latem-train.md").read_text(encoding="utf-8")
    assert "| `--out` `<path>` | Model file to write. Required. |" in page
    assert "Default: 0." in page.partition("`--seed`")[2].partition("\n")[0]
    assert "Default: `--calibrate`." in page
    assert "LatEm with `--preset`, `--maps`," in page
    assert "Default: True" not in page


def test_pages_that_did_not_change_stay_as_they_are(written):
    before = {path: path.stat().st_mtime_ns for path in written.iterdir()}
    command_line.write(written)
    assert {path: path.stat().st_mtime_ns for path in written.iterdir()} == before
