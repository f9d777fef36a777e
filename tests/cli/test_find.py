"""`latem find` and `latem data index`."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from latem import ESZSL, ClassEmbeddings, make_latent_world, write_folder
from latem.cli import app


def command(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("find")
    world = make_latent_world(n_images=10, random_state=0)
    att = world.embeddings["att"]
    named = ClassEmbeddings(att.names, att.vectors, name="att", columns=list("abcdefgh"))
    world = replace(world, embeddings={"att": named})
    write_folder(world, folder / "set")
    model = ESZSL(world.embeddings["att"], feature_scaling="l2").fit(*world.training())
    model.save(folder / "m.safetensors")
    return folder, world, model


def test_formats(made):
    folder, world, model = made
    name = world.split().test[0]
    rows, _ = model.rank_images(world.features, name, 4)
    files = (folder / "m.safetensors", folder / "set")
    run = command("find", *files, name, "--top", 4, "--format", "csv")
    assert run.exit_code == 0, run.output
    lines = list(csv.DictReader(io.StringIO(run.stdout)))
    assert [int(line["row"]) for line in lines] == rows.tolist()
    assert {line["class"] for line in lines} == {name}
    as_json = json.loads(command("find", *files, name, "--top", 4, "--format", "json").stdout)
    assert [line["row"] for line in as_json] == rows.tolist()
    table = command("find", *files, name, "--top", 4).stdout
    assert "score" in table
    run = command("find", *files, name, "--top", 4, "--out", folder / "found.csv")
    assert run.stdout == f"4 pictures are listed in {folder / 'found.csv'}.\n"
    assert (folder / "found.csv").read_text().splitlines()[1].split(",")[2] == str(rows[0])


def test_classes(made):
    folder, world, _ = made
    files = (folder / "m.safetensors", folder / "set" / "features.npy")

    def wanted(run):
        return {line["class"] for line in json.loads(run.stdout)}

    unseen = set(world.split().test)
    assert wanted(command("find", *files, "--format", "json", "--top", 1)) == unseen
    name = world.split().test[0]
    new = command("find", *files, "--like", name, "--as", "new", "--format", "json")
    assert wanted(new) == {"new"}
    both = command("find", *files, name, "--like", name, "--as", "new", "--format", "json")
    assert wanted(both) == {"new", name}
    rows = {
        one: [line["row"] for line in json.loads(both.stdout) if line["class"] == one]
        for one in ("new", name)
    }
    assert rows["new"] == rows[name]


def test_an_index(made):
    pytest.importorskip("usearch")
    folder, world, _ = made
    name, files = world.split().test[0], (folder / "m.safetensors", folder / "set")
    run = command("find", *files, name, "--index")
    assert run.exit_code == 1
    assert "make one by latem data index" in run.stderr
    run = command("data", "index", folder / "set", "--model", folder / "m.safetensors", "-q")
    assert run.exit_code == 0, run.output
    assert run.stdout.startswith(f"{folder / 'set' / 'features-directions.usearch'}: ")
    quick = command("find", *files, name, "--index", "--format", "csv")
    exact = command("find", *files, name, "--exact", "--format", "csv")
    assert quick.stdout == exact.stdout


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["--format", "xml"], "must be table, json or csv", 2),
        (["--out", "found.txt"], "must end in .csv or .json", 2),
        (["--out", "x.csv", "--format", "json"], "the ending of --out", 2),
        (["--most", "x"], "give", 2),
        (["nobody"], "no rows for 'nobody'", 1),
        (["--top", "0"], "0", 2),
    ],
)
def test_misuse(made, arguments, message, code):
    folder, _, _ = made
    run = command("find", folder / "m.safetensors", folder / "set", *arguments)
    assert run.exit_code == code
    assert message in " ".join(run.output.split())


def test_what_is_read_is_not_written_over(made):
    folder, _, _ = made
    run = command(
        "find", folder / "m.safetensors", folder / "set", "--out", folder / "set" / "images.csv"
    )
    assert run.exit_code == 1
    assert "is what is read" in run.stderr


def test_features_of_another_width(made, tmp_path):
    folder, _, _ = made
    np.save(tmp_path / "X.npy", np.zeros((3, 5), np.float32))
    run = command("find", folder / "m.safetensors", tmp_path / "X.npy")
    assert run.exit_code == 1
    assert "give features of the same encoder" in run.stderr
