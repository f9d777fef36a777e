"""The command line, run as a user runs it."""

import csv
import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import latem
from latem.cli import app
from latem.cli.demo import ordinal


def test_version_and_help():
    runner = CliRunner()
    result = runner.invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"latem {latem.__version__}\n")
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.output
    assert runner.invoke(app, ["demo", "--nonsense"]).exit_code == 2


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "run"
    command = [sys.executable, "-m", "latem", "demo", "--out", str(out), "--quiet"]
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=240)
    return result, out


@pytest.mark.slow
def test_demo_prints_scores_and_samples(demo):
    result, out = demo
    assert result.returncode == 0
    assert result.stderr == ""
    assert "\x1b" not in result.stdout  # piped output is plain
    assert "chance" in result.stdout
    assert "574 things" in result.stdout
    assert str(out) in result.stdout.replace("\n", "")


@pytest.mark.slow
def test_demo_leaves_a_complete_run_folder(demo):
    _, out = demo
    run = json.loads((out / "run.json").read_text())
    scores = run["scores"]
    assert scores["chance"]["top_1"] == 1 / 60
    assert scores["one map"]["top_1"] > 0.2
    assert scores["LatEm, 8 maps"]["top_1"] > scores["one map"]["top_1"]
    assert scores["committee"]["top_1"] > scores["LatEm, tuned preset"]["top_1"]
    assert scores["LatEm, tuned preset"]["top_1"] > scores["LatEm, 8 maps"]["top_1"]
    assert run["seed"] == 0
    assert run["versions"]["latem"] == latem.__version__
    X, y = latem.load_emoji().testing("standard")
    model = latem.load(out / "latem.safetensors")
    assert model.score(X, y, "unseen") == scores["LatEm, 8 maps"]["top_1"]
    model = latem.load(out / "committee.safetensors")
    assert model.score(X, y, "unseen") == scores["committee"]["top_1"]
    with open(out / "predictions.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["named"] for row in rows] == model.predict(X, "unseen").tolist()
    assert all((row["rank_of_true"] == "1") == (row["true"] == row["named"]) for row in rows)
    assert "LatEm, 8 maps" in (out / "report.md").read_text()
    assert "✓ named right" in (out / "index.html").read_text(encoding="utf-8")


def test_ordinals():
    numbers = [1, 2, 3, 4, 11, 12, 13, 21, 22, 60]
    expected = "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 60th"
    assert " ".join(map(ordinal, numbers)) == expected


def run_python(code):
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return result.stdout.split()


def test_import_is_light():
    heavy = ["numpy", "pandas", "sklearn", "numba", "pyarrow", "rich", "typer", "latem.models.base"]
    code = f"import sys, latem; print(*[m for m in {heavy} if m in sys.modules])"
    assert run_python(code) == []
    code = f"import sys, latem.cli; print(*[m for m in {heavy[:5]} if m in sys.modules])"
    assert run_python(code) == []


def test_public_names():
    for name in latem.__all__:
        assert getattr(latem, name) is not None
    assert dir(latem) == sorted(latem.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = latem.nonsense
    assert latem.datasets.load_emoji is latem.load_emoji
