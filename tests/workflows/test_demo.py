"""The demo: a table of models, a page with single answers and their reasons, a run folder."""

import csv
import json
import re

import numpy as np
import pytest
from few_emoji import few_emoji
from page_reader import TAGS, Reader
from typer.testing import CliRunner

import latem
from latem import explain_predictions
from latem.cli import app
from latem.workflows.demo import COMMITTEE, FILES, LATENT, ONE_MAP, PAGE, TUNED, run_demo
from latem.workflows.demo_answers import N_ANSWERS


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out, dataset, told = tmp_path_factory.mktemp("demo") / "run", few_emoji(), []
    result = run_demo(out, dataset=dataset, n_epochs=20, progress=lambda *step: told.append(step))
    return result, out, dataset, told


def words_of(out):
    text = (out / PAGE).read_text(encoding="utf-8")
    reader = Reader(text)
    assert not set(reader.tags) - TAGS
    assert len(reader.ids) == len(set(reader.ids))
    assert {address[1:] for address in reader.addresses} <= set(reader.ids)  # within the page only
    assert not re.search(r"https?://|<script|url\(", text)
    return reader.text.replace("\N{NO-BREAK SPACE}", " ")


def test_all_models_are_in_the_table_and_in_the_folder(demo):
    result, out, dataset, _ = demo
    names = [ONE_MAP, LATENT, TUNED, COMMITTEE]
    assert [score.name for score in result.scores] == ["chance", *names] == ["chance", *FILES]
    X, y = dataset.testing()
    for score in result.scores[1:]:
        model = latem.load(out / FILES[score.name])
        assert model.score(X, y, "unseen") == score.top_1
        assert score.top_5 >= score.top_1
    assert result.scores[-1].top_1 > 2 * result.scores[0].top_1  # better than guessing
    run = json.loads((out / "run.json").read_text())
    assert list(run["models"]) == names
    assert run["models"][COMMITTEE]["ranking__start_gamma"] > 0
    assert run["scores"]["chance"]["top_1"] == 1 / 6


def test_the_committee_is_the_one_that_latem_train_makes(demo):
    _, out, dataset, _ = demo
    latem.train(dataset, "text").save(out / "again.safetensors")
    again = out / "again.safetensors"
    assert again.read_bytes() == (out / FILES[COMMITTEE]).read_bytes()
    again.unlink()


def test_the_page_tells_every_answer(demo):
    result, out, dataset, _ = demo
    words = words_of(out)
    for score in result.scores:
        assert f"{score.name} {score.top_1:.1%}".replace("%", " %") in words
    model = latem.load(out / FILES[COMMITTEE])
    X, y = dataset.testing()
    named = model.predict(X, "unseen")
    for name in dataset.split().test:
        own = y == name
        assert f"{name} {(named[own] == name).sum()} of {own.sum()} right" in words
    sets = [image.rsplit(" ", 1)[1] for image in dataset.images[dataset.rows(np.unique(y))]]
    for right, source in zip(named == y, sets, strict=True):
        assert f"{'✓' if right else '✗'} {source}" in words
    with open(out / "predictions.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["named"] for row in rows] == named.tolist()
    assert all((row["rank_of_true"] == "1") == (row["true"] == row["named"]) for row in rows)


def test_reasons_are_parts_of_the_lead(demo):
    _, out, dataset, _ = demo
    model = latem.load(out / FILES[COMMITTEE])
    X, y = dataset.testing()
    answers = model.answer(X, "unseen", top=2)
    sure = np.array([answer.probabilities[0] for answer in answers])
    named = np.array([answer.names[0] for answer in answers])
    words = words_of(out)
    for right in (True, False):
        places = np.flatnonzero((named == y) == right)
        best = places[sure[places].argmax()]
        other = answers[best].names[1] if right else y[best]
        (why,) = explain_predictions(model, X[best : best + 1], [named[best], other])
        character = dataset.info["characters"][other]
        ahead = f"Ahead of {character} {other}" if right else "Ahead of the truth"
        assert f"{ahead} by {why.lead:.2f}, of which" in words
        likeness = why.contributions.filter(like="like ")
        name, value = likeness.abs().idxmax(), likeness[likeness.abs().idxmax()]
        seen = name.removeprefix("like ")
        shown = f"{value:+.2f}".replace("-", "−")
        assert f"like {dataset.info['characters'][seen]} {seen} {shown}" in words


def test_progress_is_told(demo):
    *_, told = demo
    titles = [title for title, *_ in told]
    assert {f"training {name}" for name in FILES} | {"explaining answers"} == set(titles)
    for title in set(titles):
        steps = [(done, total) for one, done, total in told if one == title]
        assert steps == sorted(steps)
        assert steps[-1][0] == steps[-1][1]
    assert 0 < titles.count("explaining answers") <= 2 * N_ANSWERS


def test_the_same_bytes_on_one_core(demo, tmp_path, monkeypatch):
    _, out, dataset, _ = demo
    monkeypatch.setattr("joblib.cpu_count", lambda: 1)
    run_demo(tmp_path / "run", dataset=dataset, n_epochs=20)
    assert len(list(out.iterdir())) == 9
    for file in sorted(out.iterdir()):
        assert (tmp_path / "run" / file.name).read_bytes() == file.read_bytes()


def test_it_can_be_run_again_in_its_folder_but_spares_others(demo, tmp_path, monkeypatch):
    _, out, dataset, _ = demo
    result = run_demo(out, dataset=dataset, n_epochs=20)
    assert len(result.samples) == 12
    monkeypatch.setattr("latem.workflows.demo.load_emoji", lambda: dataset)
    (tmp_path / "thesis.tex").write_text("precious")
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "not empty and holds no earlier run" in result.output.replace("\n", " ")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "thesis.tex")])
    assert result.exit_code == 1


def test_the_command_prints_the_table_and_samples(demo, tmp_path, monkeypatch):
    result, _, dataset, _ = demo
    monkeypatch.setattr("latem.workflows.demo.load_emoji", lambda: dataset)
    out = tmp_path / "run"
    printed = CliRunner().invoke(app, ["demo", "--out", str(out), "-q"])
    assert printed.exit_code == 0
    assert "\x1b" not in printed.stdout  # piped output is plain
    lines = printed.stdout.splitlines()
    table = json.loads((out / "run.json").read_text())["scores"]
    assert list(table) == [score.name for score in result.scores]
    for name, score in table.items():
        (line,) = (line for line in lines if line.startswith(f"│ {name} "))
        assert line.split("│")[2:4] == [f" {score['top_1']:5.1%} ", f" {score['top_5']:5.1%} "]
    assert sum(line.count(" ✓ ") + line.count("th ") for line in lines) > 0
    assert str(out / PAGE) in printed.stdout.replace("\n", "")


def test_an_interrupted_demo_can_be_run_again(tmp_path):
    dataset = few_emoji()

    def interrupt(title, *_):
        if title == f"training {ONE_MAP}":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_demo(tmp_path / "run", dataset=dataset, n_epochs=1, progress=interrupt)
    assert not (tmp_path / "run" / "run.json").exists()
    run_demo(tmp_path / "run", dataset=dataset, n_epochs=1)
    assert (tmp_path / "run" / "run.json").exists()
