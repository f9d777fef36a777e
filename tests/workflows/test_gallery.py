"""`latem gallery`: folders with pages by class, trait and map."""

import csv
import json

import numpy as np
import pytest
from helpers import save_pieces
from typer.testing import CliRunner

from latem import ClassEmbeddings, LatEm, Split, ZeroShotDataset, load_emoji, write_folder
from latem.cli import app


@pytest.fixture
def small():
    emoji = load_emoji()
    split = emoji.split()
    names = [*split.train[:30], *split.test[:6]]
    keep, table = emoji.rows(names), emoji.embeddings["att"].select(names)
    table = ClassEmbeddings(table.names, table.vectors, name="att", columns=table.columns)
    return ZeroShotDataset(
        emoji.features[keep].astype(np.float32), emoji.labels[keep], {"att": table},
        {"standard": Split(split.train[:24], split.train[24:30], split.test[:6])},
        emoji.images[keep], "Emoji <small>",
    )  # fmt: skip


def run(*arguments):
    return CliRunner().invoke(app, ["gallery", *map(str, arguments)])


def test_command(small, tmp_path):
    write_folder(small, tmp_path / "data")
    table = small.embeddings["att"]
    model = LatEm(table, n_maps=2, n_epochs=5, random_state=0).fit(*small.training())
    model.save(tmp_path / "m")
    out = tmp_path / "out"
    done = run(tmp_path / "m", tmp_path / "data", "--out", out, "--by", "map")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("2 maps; page: ")
    assert "latem: No pictures are shown" in done.stderr
    page = (out / "gallery.html").read_text()
    assert "Emoji &lt;small&gt;" in page
    assert page.count("<figure>") == 16
    assert "Wins most often for" in page
    assert "No pictures are shown" in page
    assert len((out / "images.csv").read_text().splitlines()) == 17
    assert "data:image" not in page  # there are features only

    done = run(tmp_path / "m", tmp_path / "data", "--out", out, "--images", 3)
    assert done.exit_code == 0, done.output
    with open(out / "images.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    by = [row["by"] for row in rows]
    n_traits = by.count("trait") // 3
    assert done.stdout.startswith(f"6 classes, {n_traits} traits, 2 maps; page: ")
    assert [by.count(kind) for kind in ("class", "map")] == [18, 6]
    assert {row["group"] for row in rows if row["by"] == "class"} == set(small.split().test)
    assert json.loads((out / "run.json").read_text())["command"] == "gallery"

    trait = table.columns[3]
    done = run(tmp_path / "m", tmp_path / "data", "--out", out, "--by", "trait", "--trait", trait)
    assert done.stdout.startswith("1 trait;")


def test_refusals(small, tmp_path):
    write_folder(small, tmp_path / "data")
    table = small.embeddings["att"]
    model = LatEm(table, n_maps=2, n_epochs=1, random_state=0)
    model.fit(*small.training()).save(tmp_path / "m")
    model.fit(small.features, small.labels).save(tmp_path / "knows")
    data = tmp_path / "data"
    for arguments, message in (
        ([tmp_path / "knows", data], "The model was fitted to"),
        (["nowhere", data], "There is no model file 'nowhere'"),
        ([tmp_path / "m", "nowhere"], "nowhere"),
        ([tmp_path / "m", data, "--split", "odd"], "no split 'odd'"),
        ([tmp_path / "m", data, "--pictures", "no"], "no folder no with"),
        ([tmp_path / "m", data, "--by", "size"], "by class, trait, map, not by 'size'"),
        ([tmp_path / "m", data, "--trait", "size"], "no trait 'size'"),
    ):
        done = run(*arguments, "--out", tmp_path / "o")
        assert done.exit_code == 1
        assert message in done.output
        assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("listed", [False, True])
def test_pictures_are_found_where_they_were_embedded_from(listed, tmp_path):
    from latem.features import embed_pictures

    names = ["ant", "bee", "cat"]
    for i, name in enumerate(names):
        save_pieces(tmp_path / "in" / name, 2, 2 * i)
    source = tmp_path / "in"
    if listed:
        rows = [f"{path.relative_to(source)},{path.parent.name}" for path in source.rglob("*.jpg")]
        source = source / "list.csv"
        source.write_text("\n".join(["image,class", *rows]))
    made = embed_pictures(source, tmp_path / "data", {"att": (names, np.eye(3))}, unseen=["cat"])
    model = LatEm(made.dataset.embeddings["att"], n_maps=1, n_epochs=1, random_state=0)
    model.fit(*made.dataset.training()).save(tmp_path / "m")
    out = tmp_path / "o"
    done = run(tmp_path / "m", tmp_path / "data", "--out", out)
    assert done.exit_code == 0, done.output
    assert "latem: Pictures are shown from" in done.stderr
    assert done.stdout.startswith("1 class;")  # one map is not shown, and columns are numbers
    page = (out / "gallery.html").read_text()
    assert page.count("data:image") == 2
    assert "What LatEm has learned" in page
    assert "pictures are not in" not in page
    done = run(tmp_path / "m", tmp_path / "data", "--out", out, "--by", "map")
    assert done.stdout.startswith("1 map;")
    next((tmp_path / "in" / "cat").iterdir()).unlink()
    run(tmp_path / "m", tmp_path / "data", "--out", out)
    assert "1 of 2 pictures are not in" in (out / "gallery.html").read_text()
