"""`latem describe`: a row that `predict --classes` reads."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from latem import ESZSL, ClassEmbeddings, ZeroShotDataset, write_folder
from latem.cli import app

RAW = pd.DataFrame(
    {"mass": ["12 g", "350 g", "9000 g"], "diet": ["seeds", "fish", "fish; seeds"]},
    index=["wren", "gull", "swan"],
)


def command(*arguments):
    return CliRunner().invoke(app, ["describe", *map(str, arguments)])


@pytest.fixture
def sources(tmp_path):
    """The same raw table as a file, in a dataset and in a model."""
    table = ClassEmbeddings.from_traits(RAW, name="att")
    RAW.to_csv(tmp_path / "raw.csv", index_label="class")
    X, y = np.random.default_rng(0).normal(size=(6, 4)), np.array(["wren", "gull", "swan"] * 2)
    numbers = ClassEmbeddings(table.names, np.eye(3), name="glo")
    write_folder(ZeroShotDataset(X, y, {"att": table, "glo": numbers}, {}), tmp_path / "data")
    model = ESZSL(table).fit(X, y)
    model.save(tmp_path / "m.safetensors")
    return tmp_path, model


@pytest.mark.parametrize(
    "source", [["raw.csv"], ["data", "--table", "att"], ["m.safetensors"]], ids=lambda s: s[0]
)
def test_from_a_model_a_dataset_or_a_table(source, sources):
    folder, model = sources
    out = folder / "new.csv"
    run = command(
        folder / source[0], *source[1:], "--like", "gull", "--set", "mass=40 g",
        "--most", "diet::seeds", "--as", "tern", "--out", out,
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    assert "'tern' is like 'gull', but mass 350 g → 40 g, diet fish → fish; seeds" in run.stderr
    assert run.stdout == ""
    assert out.read_text() == "class,mass,diet\ntern,40 g,fish; seeds\n"
    scores = model.decision_function(np.eye(4), out)
    row = pd.DataFrame([["40 g", "fish; seeds"]], ["tern"], ["mass", "diet"])
    np.testing.assert_array_equal(scores, model.decision_function(np.eye(4), row))


def test_printed_under_its_usual_name(sources):
    run = command(sources[0] / "raw.csv", "--like", "gull", "--set", "diet=seeds")
    assert run.exit_code == 0
    assert run.stdout == "class,mass,diet\nlike gull,350 g,seeds\n"


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["data", "--like", "gull"], "has the class tables 'att', 'glo'; name one", 1),
        (["data", "--table", "w2v", "--like", "gull"], "has no class table 'w2v'; it has 'att'", 1),
        (["raw.csv", "--table", "att", "--like", "gull"], "--table is for dataset folders", 1),
        (["data", "--table", "glo", "--like", "gull", "--most", "x"], "no column 'x'", 1),
        (["raw.csv", "--like", "gul"], "no rows for 'gul'; did you mean 'gull'?", 1),
        (["raw.csv", "--like", "gull", "--set", "mass"], "COLUMN=VALUE", 1),
        (["raw.csv", "--like", "gull", "--set", "diet=pizza"], "cannot be 'pizza'", 1),
        (["nowhere.csv", "--like", "gull"], "There is no class table", 1),
        (["nowhere", "--like", "gull"], "There is no model file", 1),
        (["raw.csv"], "Missing option '--like'", 2),
    ],
)
def test_misuse(arguments, message, code, sources, tmp_path):
    run = command(tmp_path / arguments[0], *arguments[1:], "--out", tmp_path / "out.csv")
    assert run.exit_code == code
    shown = "".join(letter for letter in run.output if letter not in "│\n ")
    assert message.replace(" ", "") in shown
    assert not (tmp_path / "out.csv").exists()
