"""Reports on one's own model: pages, folders, and the command."""

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from helpers import save_pieces
from page_reader import TAGS, Reader
from typer.testing import CliRunner

from latem import (
    ESZSL,
    EXEM,
    ClassEmbeddings,
    Committee,
    LateFusion,
    LatEm,
    Split,
    ZeroShotDataset,
    make_latent_world,
    write_folder,
)
from latem.cli import app
from latem.datasets import hold_out
from latem.evaluation import evaluate
from latem.workflows.evaluate_report import page_path, report_evaluation


@pytest.fixture(scope="module")
def world():
    world = make_latent_world(
        n_poses=1, n_seen=14, n_unseen=6, n_dimensions=8, n_images=10, noise=1.5, random_state=0
    )
    return replace(world, splits={"standard": hold_out(world, world.split())})


@pytest.fixture(scope="module")
def model(world):
    return ESZSL(world.embeddings["att"]).fit(*world.training())


def read(path):
    text = path.read_text(encoding="utf-8")
    reader = Reader(text)
    assert not set(reader.tags) - TAGS
    assert not re.search(r"https?://|<script", text)
    return text, reader.text.replace("\N{NO-BREAK SPACE}", " ")


def test_all_that_the_split_allows(world, model, tmp_path):
    result = report_evaluation(model, world, tmp_path / "a.html")
    expected = evaluate(model, world, generalized=True, calibrate=True)
    assert result == expected
    text, words = read(tmp_path / "a.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html"]
    found = result.generalized
    for number in (result.top_1, found.stacked.harmonic, found.plain.seen, found.ausuc):
        assert f"{100 * number:.1f} %" in words
    assert text.count("<svg") == 3
    assert f"γ = {found.gamma:.3g}, H {found.stacked.harmonic:.1%}" in text
    assert f"T = {result.probabilities.test.temperature:.3g}, error" in text
    worst = result.scored.top_confusions(1).iloc[0]
    assert f"{worst['true']} was named {worst['named']} {worst['count']} times" in words
    assert "No pictures are shown" in words
    assert "Best pictures" not in words
    told = words[words.index("What to do next", words.index("How sure it is")) :]
    assert f"--seen-penalty {found.gamma:.3g}" in told
    assert "It has learned from 14 classes only" in told
    report_evaluation(model, world, tmp_path / "b.html")
    assert (tmp_path / "b.html").read_text() == text


def test_what_the_split_does_not_allow_is_said(world, tmp_path):
    split = replace(world.split(), train=world.split().train + world.split().val, val=())
    bare = replace(world, splits={"standard": replace(split, held_out=())})
    model = ESZSL(bare.embeddings["att"])
    result = report_evaluation(model, bare, tmp_path / "a.html")
    assert result.generalized is None
    assert result.probabilities is None
    text, words = read(tmp_path / "a.html")
    assert "holds out no images of seen classes" in words
    assert "latem embed images --held-out 0.2" in words
    assert "images of 0 val classes; it needs at least 2" in words
    assert "<svg" not in text
    with pytest.raises(ValueError, match="holds out no images of seen classes"):
        report_evaluation(model, bare, tmp_path / "b.html", generalized=True)
    assert not (tmp_path / "b.html").exists()


def test_what_is_not_asked_for_is_left_out(world, model, tmp_path):
    result = report_evaluation(
        model, world, tmp_path / "a.html", generalized=False, calibrate=False
    )
    assert (result.generalized, result.probabilities) == (None, None)
    _, words = read(tmp_path / "a.html")
    assert "together" not in words
    assert "How sure it is" not in words


def test_a_folder(world, model, tmp_path):
    out = tmp_path / "out"
    result = report_evaluation(model, world, out)
    assert page_path(out) == out / "report.html"
    assert page_path("x.HTM").name == "x.HTM"
    assert (out / "report.html").is_file()
    with open(out / "classes.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["class"]: float(row["accuracy"]) for row in rows} == result.per_class
    with open(out / "predictions.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["named"] for row in rows] == result.scored.named.tolist()
    run = json.loads((out / "run.json").read_text())
    assert run["result"]["top_1"] == result.top_1
    report_evaluation(model, world, out)  # an earlier run is replaced


def test_nothing_is_left_of_a_refused_report(world, model, tmp_path):
    knows = ESZSL(world.embeddings["att"]).fit(*world.all_images())
    with pytest.raises(ValueError, match="test classes of split"):
        report_evaluation(knows, world, tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    with pytest.raises(FileExistsError, match="holds no earlier run"):
        report_evaluation(model, world, tmp_path / "mine")
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        report_evaluation(model, world, tmp_path / "nowhere" / "a.html")
    with pytest.raises(ValueError, match="n must be at least 1"):
        report_evaluation(model, world, tmp_path / "out", n=0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]


def test_trainings_have_a_curve_and_fusions_a_page(world, model, tmp_path):
    table = world.embeddings["att"]
    learned = LatEm(table, n_maps=2, n_epochs=3, random_state=0)
    report_evaluation(learned, world, tmp_path / "a.html")
    text, words = read(tmp_path / "a.html")
    assert "Epoch by epoch" in words
    assert text.count("<svg") == 4
    members = [("a", ESZSL(table)), ("b", ESZSL(table, gamma=10.0))]
    report_evaluation(LateFusion(members), world, tmp_path / "b.html")
    _, words = read(tmp_path / "b.html")
    assert "Epoch by epoch" not in words


def test_committees_have_the_curve_of_their_ranking(world, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(
        "latem.workflows.evaluate_report.advice",
        lambda result, learned: told.append(learned) or ["Nothing stands out."],
    )
    table = world.embeddings["att"]
    members = [("ranking", LatEm(n_epochs=2, balance_classes=True)), ("exemplars", EXEM())]
    for pair in (members, members[1:]):
        report_evaluation(Committee(table, pair, random_state=0), world, tmp_path / "a.html")
        _, words = read(tmp_path / "a.html")
        assert "Committee" in words
        assert ("Epoch by epoch" in words) == (pair is members)
    assert [learned.balanced for learned in told] == [True, False]
    assert told[0].table.names.tolist() == list(world.split().test)


@pytest.fixture
def photos(tmp_path):
    """Pieces of photos with features that are easy to learn, and hostile names."""
    rng = np.random.default_rng(0)
    names = [f"<b>class {i}</b>".replace("/", "∕") for i in range(10)]
    table = ClassEmbeddings(
        names, rng.normal(size=(10, 5)), name="att", columns=["<i>red</i>", "round", "x", "y", "z"]
    )
    labels = np.repeat(names, 4)
    features = np.repeat(table.vectors, 4, axis=0) + 1.2 * rng.normal(size=(40, 5))
    save_pieces(tmp_path / "pictures", 40)
    images = np.array([f"photo {i:03d}.jpg" for i in range(40)])
    split = Split(names[:4], names[4:6], names[6:])
    data = ZeroShotDataset(features, labels, {"att": table}, {"standard": split}, images, "<u>")
    data = replace(data, splits={"standard": hold_out(data, split, 0.25)})
    write_folder(data, tmp_path / "data")
    ESZSL(table).fit(*data.training()).save(tmp_path / "m")
    return data


def run(*arguments):
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def test_command_with_pictures(photos, tmp_path):
    arguments = [tmp_path / "m", tmp_path / "data", "--pictures", tmp_path / "pictures"]
    done = run(*arguments, "--html", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    assert "calibrated stacking" in done.output
    assert f"page: {tmp_path / 'page.html'}" in done.output
    text, words = read(tmp_path / "page.html")
    assert "Pictures of each class" in words
    assert "Best pictures of each class" in words
    assert "data:image/jpeg;base64," in text
    assert "<b>class" not in text.replace("&lt;b&gt;class", "")
    assert "pictures are not in" not in words
    for alt in re.findall(r"<img [^>]*>", text):
        assert 'alt="&lt;b&gt;class' in alt

    gone = photos.images[photos.rows(photos.split().test)[:2]]
    for name in gone:
        (tmp_path / "pictures" / str(name)).unlink()
    done = run(*arguments, "--html", tmp_path / "out", "--json", "-q")
    assert json.loads(done.stdout)["generalized"] is not None
    assert "latem: 2 of 16 pictures are not in" in done.stderr
    _, words = read(tmp_path / "out" / "report.html")
    assert "2 of 16 pictures are not in" in words


def test_command_refuses(photos, tmp_path):
    done = run(tmp_path / "m", tmp_path / "data", "--pictures", tmp_path / "pictures")
    assert done.exit_code == 1
    assert "give --html as well" in done.output
    done = run(tmp_path / "m", tmp_path / "data", "--html", tmp_path / "a.html", "--pictures", "no")
    assert done.exit_code == 1
    assert "There is no folder no with pictures" in done.output
    assert not (tmp_path / "a.html").exists()
