"""The folder in which snippets run."""

import contextlib
import os
import shutil
import time

import matplotlib
import pytest
from matplotlib import pyplot
from pages import workspace

from latem.core.atomic import lock
from latem.export import translators
from latem.models import model_rows


@pytest.fixture(scope="session")
def built(tmp_path_factory, cache):
    """The folder, once for all processes that share the tests."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent
    with open(place / "pages.lock", "a") as file:
        while True:  # the first process builds, the others wait
            with contextlib.suppress(BlockingIOError):
                lock(file.fileno())
                break
            time.sleep(0.1)
        if not (place / "pages.done").exists():
            (place / "pages").mkdir()
            workspace.build(place / "pages")
            (place / "pages.done").touch()
    return place / "pages"


@pytest.fixture
def folder(built, tmp_path, monkeypatch):
    """A copy of it as the current folder; models that a page registers are forgotten."""
    matplotlib.use("Agg")
    shutil.copytree(built, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(model_rows, "_ROWS", dict(model_rows._ROWS))
    monkeypatch.setattr(translators, "_TRANSLATORS", dict(translators._TRANSLATORS))
    yield tmp_path / "work"
    pyplot.close("all")
