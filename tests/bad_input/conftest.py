"""The working folder that all cases of the catalogue start from."""

import pytest
from bad_input import workspace


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The working folder; every case leaves it as it was."""
    return workspace.build(tmp_path_factory.mktemp("work"))


@pytest.fixture
def folder(built, monkeypatch):
    """The same as the current folder, where messages are not broken into lines."""
    monkeypatch.chdir(built)
    monkeypatch.setenv("COLUMNS", "500")
    return built
