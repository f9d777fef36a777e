"""Bad input to the command line: a sentence, the right exit code, and nothing left behind."""

import shlex

import pytest
from bad_input.cases import check_message, every, given, untouched
from bad_input.recipes import RECIPES
from helpers import command


@pytest.fixture(autouse=True)
def no_server(monkeypatch):
    """A server that is about to run has refused nothing."""
    uvicorn = pytest.importorskip("uvicorn")
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: pytest.fail("the server runs"))


@every("command_line")
def test_refused(case, folder):
    if "needs" in case:
        pytest.importorskip(case["needs"])
    with given(case, folder, RECIPES), untouched(folder):
        run = command(*shlex.split(case["run"]), input=case.get("input"))
    assert run.exception is None or isinstance(run.exception, SystemExit), repr(run.exception)
    assert run.exit_code == case["exit"], run.output
    check_message(case, run.output)
