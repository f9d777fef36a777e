"""Options of commands and names of the library that the README and the docs speak of are there."""

import importlib
import importlib.util
import re

import pytest
from helpers import REPOSITORY
from typer.main import get_command

from latem.cli import app

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
TOOLS = [
    *(REPOSITORY / "benchmarks").glob("*.py"),
    *(REPOSITORY / "tools").glob("*.py"),
    *(REPOSITORY / "tests").glob("*/__main__.py"),
]
OF_OTHERS = {"--help", "--no-deps"}  # of typer, of pip


def options_of(command):
    """Options of a command and all commands below it."""
    own = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    return own.union(*map(options_of, getattr(command, "commands", {}).values()))


def options_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


def names_in(text):
    return set(re.findall(r"`latem((?:\.[A-Za-z_]\w*)+)[`(]", text))


def is_there(path):
    """Whether dotted names lead somewhere, modules that nobody has imported yet included."""
    found, place = importlib.import_module("latem"), "latem"
    for name in path.strip(".").split("."):
        place = f"{place}.{name}"
        if not hasattr(found, name) and importlib.util.find_spec(place) is None:
            return False
        found = getattr(found, name, None) or importlib.import_module(place)
    return True


@pytest.fixture(scope="module")
def known():
    tools = set().union(*(options_in(tool.read_text(encoding="utf-8")) for tool in TOOLS))
    return options_of(get_command(app)) | tools | OF_OTHERS


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_option_exists(path, known):
    assert not options_in(path.read_text(encoding="utf-8")) - known


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_name_exists(path):
    names = names_in(path.read_text(encoding="utf-8"))
    assert not [name for name in names if not is_there(name)]


def test_what_is_not_there_is_found():
    assert names_in("`latem.train`, `latem.core.threads.nothing()`, `latem train`") == {
        ".train",
        ".core.threads.nothing",
    }
    assert is_there(".train")
    assert is_there(".core.threads.single_threaded_blas")
    assert options_in("`--false-accept-rate 0.1`, a--b, `latem x --no-such`") == {
        "--false-accept-rate",
        "--no-such",
    }
    assert "--false-accept-rate" in options_of(get_command(app))
    assert "--no-such" not in options_of(get_command(app))
