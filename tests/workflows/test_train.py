"""Training from a dataset folder and naming pictures, by function and by command."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import latem
from latem import ClassEmbeddings, LatEmCV, Split, make_latent_world, write_folder
from latem.cli import app
from latem.features import read_picture
from latem.models import model_rows
from latem.workflows.name_pictures import name_pictures
from latem.workflows.train import check_kind, train_model


@pytest.fixture(scope="module")
def world():
    world = make_latent_world(n_seen=20, n_images=6, random_state=0)
    table = world.embeddings["att"]
    shifted = table.vectors - table.vectors.min()
    columns = [f"trait {i}" for i in range(8)]
    table = ClassEmbeddings(table.names, shifted, name="att", columns=columns)
    return replace(world, embeddings={"att": table})


def test_what_is_not_given_is_chosen_on_val_classes(world):
    done = train_model(world, "att", preset="paper", given={"n_epochs": 20})
    assert set(done.chosen) == {"n_maps", "learning_rate"}
    assert done.model.n_epochs == 20
    assert sorted(done.model.classes_) == sorted(world.split().train + world.split().val)
    assert done.unseen_score == done.model.score(*world.testing())
    given = {"n_maps": 3, "learning_rate": 0.1, "n_epochs": 5}
    told = train_model(world, "att", preset="paper", given=given)
    assert (told.chosen, told.held_out_score) == ({}, None)
    assert len(told.model.maps_) == 3


def test_tuned_is_the_usual_preset(world):
    done = train_model(world, "att")
    assert set(done.chosen) == {"start_gamma", "start_lam", "n_epochs"}
    search = LatEmCV(
        world.embeddings["att"], preset="tuned", cv=world.split().val, random_state=0
    ).fit(*world.training())
    np.testing.assert_array_equal(done.model.maps_, search.best_estimator_.maps_)
    told = train_model(world, "att", preset="tuned", given={"n_maps": 3, "learning_rate": 0.1})
    assert told.model.maps_.shape[0] == 3
    assert told.model.learning_rate == 0.1
    assert not np.allclose(told.model.maps_[0], told.model.maps_[1])


@pytest.mark.parametrize("kind", ["ESZSL", "SemanticOutputCodes", "ConSE"])
def test_baselines_too(world, kind):
    done = train_model(world, "att", kind=kind)
    assert type(done.model).__name__ == kind
    assert done.held_out_score > 0


def test_every_model_on_the_command_line_can_be_asked_for():
    offered = [row.name for row in model_rows.rows() if row.on_command_line]
    assert {"LatEm", "ESZSL", "DAP"} < set(offered)
    for name in offered:
        check_kind(name, None)


def test_without_a_split_all_images_are_learned_from(world):
    bare = replace(world, splits={})
    done = train_model(bare, "att", kind="ESZSL")
    assert "none are left to test" in done.notes[0]
    assert len(done.model.classes_) == len(world.classes)
    assert done.unseen_score is None


def test_splits_with_nearly_all_classes_for_val(world):
    train = world.split().train
    few = replace(world, splits={"standard": Split(train[:1], train[1:4], world.split().test)})
    assert train_model(few, "att", kind="ESZSL").held_out_score is not None


@pytest.mark.parametrize("kind", ["LatEm", "ESZSL", "SJE"])
def test_too_few_classes_to_choose_on(world, kind):
    split = world.split()
    few = replace(world, splits={"standard": Split(split.train[:2], (), split.test)})
    done = train_model(few, "att", kind=kind)
    assert (done.chosen, done.held_out_score) == ({}, None)
    assert "Fewer than 4 classes" in done.notes[0]
    assert done.unseen_score is not None
    if kind == "LatEm":
        assert done.model.start == "eszsl"


def test_bad_requests(world):
    with pytest.raises(ValueError, match="no model 'Latem'"):
        train_model(world, "att", kind="Latem")
    with pytest.raises(ValueError, match="no class table 'w2v'; it has 'att'"):
        train_model(world, "w2v")
    with pytest.raises(ValueError, match="ESZSL has no 'tuned'"):
        train_model(world, "att", kind="ESZSL", preset="tuned")
    with pytest.raises(ValueError, match="'tuned' sets 'margin' itself"):
        train_model(world, "att", given={"margin": 0.5})
    with pytest.raises(ValueError, match="presets paper, tuned; LatEm has no 'best'"):
        train_model(world, "att", preset="best")
    with pytest.raises(ValueError, match="ESZSL has no parameter 'n_maps'"):
        train_model(world, "att", kind="ESZSL", given={"n_maps": 2})
    with pytest.raises(ValueError, match="no split 'odd'"):
        train_model(world, "att", split="odd")
    table = world.embeddings["att"].select(world.embeddings["att"].names[:-1])
    with pytest.raises(ValueError, match="does not describe"):
        train_model(replace(world, embeddings={"att": table}), "att")
    model = train_model(world, "att", kind="ESZSL").model
    with pytest.raises(ValueError, match="does not know which encoder"):
        name_pictures(model, [])


# -- with a real encoder ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Twelve classes made of two real photos: pieces of a flower and of a temple in tints."""
    from PIL import Image
    from sklearn.datasets import load_sample_images

    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    pictures = dict(zip(("temple", "flower"), load_sample_images().images, strict=True))
    rows = {}
    for thing, picture in pictures.items():
        for tint, colour in (
            ("red", (1, 0.4, 0.4)), ("green", (0.4, 1, 0.4)), ("blue", (0.4, 0.4, 1)),
            ("dark", (0.4, 0.4, 0.4)), ("yellow", (1, 1, 0.3)), ("plain", (1, 1, 1)),
        ):  # fmt: skip
            name = f"{tint} {thing}"
            rows[name] = [*colour, thing == "temple", thing == "flower"]
            (folder / "images" / name).mkdir(parents=True)
            for i in range(4):
                top, left = rng.integers(0, 150, 2)
                piece = picture[top : top + 260, left : left + 300] * np.array(colour)
                Image.fromarray(piece.astype(np.uint8)).save(folder / "images" / name / f"{i}.jpg")
    header = "class,red,green,blue,temple,flower\n"
    lines = [f"{name}," + ",".join(str(float(v)) for v in row) for name, row in rows.items()]
    (folder / "traits.csv").write_text(header + "\n".join(lines) + "\n")
    (folder / "unseen.txt").write_text("yellow temple\nyellow flower\n")
    return folder


def command(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def trained(photos, tmp_path_factory):
    """The three commands of the README."""
    work = tmp_path_factory.mktemp("work")
    run = command(
        "embed", "images", photos / "images", "--table", f"att={photos / 'traits.csv'}",
        "--unseen", photos / "unseen.txt", "--out", work / "data",
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    run = command(
        "train", work / "data", "--embedding", "att", "--out", work / "m.safetensors",
        "--model", "ESZSL", "-q",
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    assert "on 2 unseen classes" in run.output
    return work / "m.safetensors"


def test_a_raw_photo_is_enough(photos, trained):
    folders = [photos / "images" / name for name in ("yellow temple", "yellow flower")]
    run = command("predict", trained, *folders, "--format", "json")
    assert run.exit_code == 0, run.output
    answers = json.loads(run.output)
    assert len(answers) == 8
    right = [a["classes"][0]["class"] == Path(a["picture"]).parent.name for a in answers]
    assert sum(right) >= 6
    assert all(len(answer["classes"]) == 2 for answer in answers)  # there are no more


def test_pictures_are_prepared_as_in_the_dataset(photos, trained):
    from latem.features import load_encoder

    model = latem.load(trained)
    paths = sorted((photos / "images" / "yellow flower").iterdir())
    X = load_encoder(model.encoder_).encode(paths)
    scores = model.decision_function(X, "unseen")
    for named, row in zip(name_pictures(model, paths), scores, strict=True):
        assert named.scores == pytest.approx(sorted(row, reverse=True), rel=1e-5)


def test_other_candidates_and_formats(photos, trained, tmp_path):
    photo = photos / "images" / "yellow flower" / "0.jpg"
    run = command("predict", trained, photo, "--classes", "all", "--top", 3, "--format", "csv")
    rows = list(csv.reader(io.StringIO(run.output)))
    assert rows[0] == ["picture", "place", "class", "score"]
    assert [row[1] for row in rows[1:]] == ["1", "2", "3"]
    run = command("predict", trained, photo, "--classes", "seen", "--explain")
    assert run.exit_code == 0
    assert "runner-up" in run.output
    table = tmp_path / "new.csv"
    table.write_text(
        "class,red,green,blue,temple,flower\norange flower,1,0.7,0.2,0,1\nx,0,0,0,1,0\n"
    )
    run = command("predict", trained, photo, "--classes", table, "--format", "json")
    assert json.loads(run.output)[0]["classes"][0]["class"] == "orange flower"
    pd.read_csv(table).to_excel(tmp_path / "new.xlsx", index=False)
    again = command(
        "predict", trained, photo, "--classes", tmp_path / "new.xlsx", "--format", "json"
    )
    assert json.loads(again.output) == json.loads(run.output)
    run = command("predict", trained, photo, "--classes", "blue temple, red flower", "--top", "1")
    assert "red flower" in run.output


def test_joined_candidates_and_a_class_like_another(photos, trained, tmp_path):
    photo = photos / "images" / "yellow flower" / "0.jpg"
    table = tmp_path / "new.csv"
    table.write_text("class,red,green,blue,temple,flower\nx,0,0,0,1,0\n")
    run = command("predict", trained, photo, "--classes", f"unseen,{table},red flower",
                  "--like", "red flower", "--set", "green=1", "--least", "blue", "--as", "amber",
                  "--top", 9, "--format", "json", "--explain")  # fmt: skip
    assert run.exit_code == 0, run.output
    scores = {c["class"]: c["score"] for c in json.loads(run.output)[0]["classes"]}
    assert set(scores) == {"yellow temple", "yellow flower", "x", "red flower", "amber"}
    assert scores["amber"] == pytest.approx(scores["yellow flower"], rel=1e-5)  # the same traits
    run = command("predict", trained, photo, "--set", "green=1")
    assert run.exit_code == 2
    run = command("predict", trained, photo, "--like", "red flower", "--set", "greem=1")
    assert run.exit_code == 1
    assert "did you mean 'green'" in " ".join(run.output.split())


def test_the_penalty_is_subtracted_from_seen_classes(photos, trained):
    photo = photos / "images" / "yellow flower" / "1.jpg"
    scores = {}
    for gamma in (0, 0.5, 100):
        run = command("predict", trained, photo, "--classes", "all", "--top", 99,
                      "--seen-penalty", gamma, "--format", "json")  # fmt: skip
        assert run.exit_code == 0, run.output
        one = json.loads(run.output)[0]["classes"]
        assert [c["score"] for c in one] == sorted((c["score"] for c in one), reverse=True)
        scores[gamma] = {c["class"]: c["score"] for c in one}
    seen = set(latem.load(trained).classes_.tolist())
    for name, score in scores[0].items():
        lowered = score - 0.5 if name in seen else score
        assert scores[0.5][name] == pytest.approx(lowered, abs=1e-5)
    assert not set(list(scores[100])[:2]) & seen
    run = command("predict", trained, photo, "--seen-penalty", 1, "--explain")
    assert run.exit_code == 1
    assert "ask for one or the other" in run.output


def test_unreadable_pictures_are_listed_and_the_rest_is_named(photos, trained, tmp_path):
    bad = tmp_path / "not a picture.jpg"
    bad.write_text("hello")
    good = photos / "images" / "yellow flower" / "1.jpg"
    run = command("predict", trained, bad, tmp_path / "no.jpg", good, "--format", "csv")
    assert run.exit_code == 1
    assert "not a picture.jpg" in run.output
    assert "no.jpg: there is no such file" in run.output
    assert "yellow flower" in run.output


def test_folders_are_walked_as_by_embed_images(photos, trained, tmp_path):
    photo = photos / "images" / "yellow flower" / "1.jpg"
    picture = read_picture(photo)
    (tmp_path / "in" / "deep.jpg").mkdir(parents=True)  # a folder
    for name in ("a.webp", "b.pgm", "deep.jpg/c.jp2", "d.jfif"):
        picture.save(tmp_path / "in" / name, "JPEG" if name == "d.jfif" else None)
    (tmp_path / "in" / "._a.jpg").write_text("left by another system")
    (tmp_path / "in" / "notes.txt").write_text("no picture")
    run = command("predict", trained, tmp_path / "in", "--format", "csv", "--top", 1)
    assert run.exit_code == 0, run.output
    named = [Path(row["picture"]).name for row in csv.DictReader(io.StringIO(run.output))]
    assert sorted(named) == ["a.webp", "b.pgm", "c.jp2", "d.jfif"]


def test_names_that_look_like_markup_are_shown_as_they_are(photos, trained, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    names = ["finch [/b]", "finch [male]", ":dog: cardinal"]
    table = tmp_path / "new.csv"
    rows = [f"{name},{i},0.7,0.2,0,1" for i, name in enumerate(names, start=1)]
    table.write_text("\n".join(["class,red,green,blue,temple,flower", *rows]))
    photo = tmp_path / "photo [copy] with a name of more than eighty letters, as cameras do.jpg"
    photo.write_bytes((photos / "images" / "yellow flower" / "1.jpg").read_bytes())
    run = command("predict", trained, photo, "--classes", table, "--explain")
    assert run.exit_code == 0, run.output
    shown = "".join(letter for letter in run.output if letter not in "│\n ")
    for name in (*names, photo.name):
        assert name.replace(" ", "") in shown


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["nowhere.model", "PHOTO"], "There is no model file 'nowhere.model'", 1),
        (["MODEL", "nowhere.jpg"], "nowhere.jpg: there is no such file", 1),
        (["MODEL", "PHOTO", "--classes", "unicorn"], "unicorn", 1),
        (["MODEL", "PHOTO", "--classes", " , "], "names no class", 1),
        (["MODEL", "PHOTO", "--format", "xml"], "--format must be table, json or csv", 2),
        (["MODEL", "EMPTY"], "the folder holds no pictures", 1),
        (["MODEL", "PHOTO", "--explain", "--format", "csv"], "do not fit into CSV", 2),
    ],
)
def test_misuse(arguments, message, code, photos, trained, tmp_path):
    places = {
        "MODEL": trained, "PHOTO": photos / "images" / "yellow flower" / "1.jpg", "EMPTY": tmp_path
    }  # fmt: skip
    run = command("predict", *(places.get(argument, argument) for argument in arguments))
    assert run.exit_code == code
    assert message in " ".join(run.output.split())


def test_training_commands_that_cannot_work(world, tmp_path, monkeypatch):
    write_folder(world, tmp_path / "data")
    data = tmp_path / "data"
    run = command("train", data, "--embedding", "att", "--out", tmp_path / "no" / "m")
    assert run.exit_code == 1
    assert "There is no folder" in run.output
    with monkeypatch.context() as patch:  # it is told before anything is trained
        patch.setattr("latem.workflows.train.train_model", None)
        run = command("train", data, "--embedding", "att", "--out", tmp_path, "--model", "ESZSL")
        assert run.exit_code == 1
        assert "is a folder; name a file" in run.output
    run = command("train", data, "--embedding", "glo", "--out", tmp_path / "m", "-q")
    assert run.exit_code == 1
    assert "no class table 'glo'" in run.output
    assert not (tmp_path / "m").exists()
    run = command(
        "train", data, "--embedding", "att", "--out", tmp_path / "m", "--maps", 2, "--step", 0.1,
        "--epochs", 3, "--preset", "paper", "-q",
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    assert "Chosen" not in run.output
    assert len(latem.load(tmp_path / "m").maps_) == 2
