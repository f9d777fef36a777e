"""The page on exports: its Python runs as it stands there."""

import re

import numpy as np
import pytest
from export_runs import gap
from helpers import REPOSITORY

import latem
from latem import ClassEmbeddings
from latem.export.onnx_file import export_onnx
from latem.export.translators import _TRANSLATORS

PAGE = (REPOSITORY / "docs" / "export.md").read_text(encoding="utf-8")


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    table = ClassEmbeddings([f"bird {i}" for i in range(8)], rng.random((8, 4)))
    y = np.repeat(table.names[:5], 6)
    X = np.repeat(table.vectors[:5], 6, axis=0) @ rng.normal(size=(4, 7)) + 0.1 * rng.normal(
        size=(30, 7)
    )
    return latem.ESZSL(table).fit(X.astype(np.float32), y), X


def test_the_page_runs(model, tmp_path, monkeypatch, capsys):
    fitted, X = model
    monkeypatch.chdir(tmp_path)
    export_onnx(fitted, "birds.onnx")
    np.save("features.npy", X)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        exec(compile(block, "export.md", "exec"), names)
    printed = capsys.readouterr().out
    assert all(repr(str(name)) in printed for name in np.unique(fitted.predict(X, "unseen")))
    new = ClassEmbeddings(["a", "b"], names["table"])
    expected = fitted.decision_function(X.astype(np.float32), new)
    assert gap(names["scores"], expected) < 1e-5


def test_the_page_s_translator_is_that_of_the_other_page(model, tmp_path, monkeypatch):
    from latem.models import model_rows

    monkeypatch.setattr(model_rows, "_ROWS", dict(model_rows._ROWS))
    monkeypatch.setattr("latem.export.translators._TRANSLATORS", dict(_TRANSLATORS))
    other = (REPOSITORY / "docs" / "adding-a-model.md").read_text(encoding="utf-8")
    names = {"__name__": "stranger"}
    exec(re.search(r"```python\n(.*?)```", other, re.S).group(1), names)
    exec(re.search(r"```\n(from latem.export import.*?)```", PAGE, re.S).group(1), names)
    fitted, X = model
    mean = names["NearestMean"](fitted.class_table_).fit(X, np.repeat(fitted.classes_, 6))
    assert export_onnx(mean, tmp_path / "m.onnx").difference < 1e-5


def test_every_option_of_the_page_exists():
    from helpers import command

    shown = command("export", "--help", env={"COLUMNS": "200"}).output
    for option in set(re.findall(r"--[a-z][a-z-]+", PAGE)) - {"--format", "--no-deps"}:
        assert option in shown, option
