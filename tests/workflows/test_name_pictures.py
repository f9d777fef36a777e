"""Naming pictures with a trained model, by function and by command."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import command

import latem
from latem.features import read_picture
from latem.workflows.name_pictures import name_pictures


def test_a_raw_photo_is_enough(photos, trained):
    folders = [photos / "images" / name for name in ("yellow temple", "yellow flower")]
    run = command("predict", trained, *folders, "--format", "json")
    assert run.exit_code == 0, run.output
    answers = json.loads(run.stdout)
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
    rows = list(csv.reader(io.StringIO(run.stdout)))
    assert rows[0] == [
        *("picture", "place", "class", "probability", "score", "verdict", "strangeness"), "error"
    ]  # fmt: skip
    assert [row[1] for row in rows[1:]] == ["1", "2", "3"]
    run = command("predict", trained, photo, "--classes", "seen", "--explain")
    assert run.exit_code == 0
    assert "runner-up" in run.output
    table = tmp_path / "new.csv"
    table.write_text(
        "class,red,green,blue,temple,flower\norange flower,1,0.7,0.2,0,1\nx,0,0,0,1,0\n"
    )
    run = command("predict", trained, photo, "--classes", table, "--format", "json")
    assert json.loads(run.stdout)[0]["classes"][0]["class"] == "orange flower"
    pd.read_csv(table).to_excel(tmp_path / "new.xlsx", index=False)
    again = command(
        "predict", trained, photo, "--classes", tmp_path / "new.xlsx", "--format", "json"
    )
    assert json.loads(again.stdout) == json.loads(run.stdout)
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
    scores = {c["class"]: c["score"] for c in json.loads(run.stdout)[0]["classes"]}
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
        one = json.loads(run.stdout)[0]["classes"]
        assert [c["score"] for c in one] == sorted((c["score"] for c in one), reverse=True)
        scores[gamma] = {c["class"]: c["score"] for c in one}
    seen = set(latem.load(trained).classes_.tolist())
    for name, score in scores[0].items():
        lowered = score - 0.5 if name in seen else score
        assert scores[0.5][name] == pytest.approx(lowered, abs=1e-5)
    assert not set(list(scores[100])[:2]) & seen
    chosen = latem.load(trained).seen_penalty_
    unasked = command("predict", trained, photo, "--classes", "all", "--top", 99,
                      "--format", "json")  # fmt: skip
    for one in json.loads(unasked.stdout)[0]["classes"]:
        lowered = scores[0][one["class"]] - chosen * (one["class"] in seen)
        assert one["score"] == pytest.approx(lowered, abs=1e-5)


def test_an_explanation_tells_of_the_penalty(photos, trained):
    photo = photos / "images" / "yellow flower" / "1.jpg"
    for penalty in ("0", "100"):
        run = command("predict", trained, photo, "--classes", "all", "--seen-penalty", penalty,
                      "--explain", "--format", "json", "--top", 2)  # fmt: skip
        one = json.loads(run.stdout)[0]
        why = one["explanation"]
        assert why["named"] == one["classes"][0]["class"]
        assert why["runner_up"] == one["classes"][1]["class"]
        assert why["score"] == pytest.approx(one["classes"][0]["score"], abs=1e-3)
        assert why["text"].startswith(why["named"])
    run = command("predict", trained, photo, "--classes", "yellow flower,red flower",
                  "--seen-penalty", 100, "--explain")  # fmt: skip
    assert "(penalty on seen classes)" in run.output
    assert "+100" in run.output


def test_unreadable_pictures_are_listed_and_the_rest_is_named(photos, trained, tmp_path):
    bad = tmp_path / "not a picture.jpg"
    bad.write_text("hello")
    good = photos / "images" / "yellow flower" / "1.jpg"
    run = command("predict", trained, bad, tmp_path / "no.jpg", good, "--format", "csv")
    assert run.exit_code == 3
    assert "not a picture.jpg" in run.stderr
    assert "no.jpg: there is no such file" in run.stderr
    rows = list(csv.DictReader(io.StringIO(run.stdout)))
    assert [bool(row["error"]) for row in rows] == [True, True, False, False]
    assert rows[2]["class"] == "yellow flower"


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
    named = [Path(row["picture"]).name for row in csv.DictReader(io.StringIO(run.stdout))]
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
        (["MODEL", "PHOTO", "--seen-penalty", "nan"], "must be a finite number, not nan", 1),
        (["MODEL", "PHOTO", "--false-accept-rate", "nan"], "--false-accept-rate", 2),
        (["MODEL", "PHOTO", "--false-accept-rate", "7"], "--false-accept-rate", 2),
        (["EMPTY", "PHOTO"], "is a folder, not a model file", 1),
        (["MODEL", "PHOTO", "--out", "a.csv", "--format", "json"], "--format is for what", 2),
        (["MODEL", "PHOTO", "--out", "answers.txt"], "must end in .csv, .jsonl, .parquet", 1),
        (["MODEL", "PHOTO", "--out", "answers.csv", "--explain"], "write a .jsonl file", 1),
    ],
)
def test_misuse(arguments, message, code, photos, trained, tmp_path):
    places = {
        "MODEL": trained, "PHOTO": photos / "images" / "yellow flower" / "1.jpg", "EMPTY": tmp_path
    }  # fmt: skip
    run = command("predict", *(places.get(argument, argument) for argument in arguments))
    assert run.exit_code == code
    assert message in " ".join(run.output.split())


def test_the_same_answers_at_both_doors(photos, trained, tmp_path):
    folder = photos / "images" / "yellow temple"
    bad = tmp_path / "bad.jpg"
    bad.write_text("no picture")
    paths = [*sorted(folder.iterdir()), bad]
    model = latem.load(trained)
    frame = model.name_pictures(paths, classes="all", top=3).to_frame()
    written = frame.to_csv(index=False, lineterminator="\n")
    by_command = command("predict", trained, folder, bad, "--classes", "all", "--top", 3,
                         "--format", "csv")  # fmt: skip
    assert by_command.stdout == written
    out = tmp_path / "answers.csv"
    run = command("predict", trained, folder, bad, "--classes", "all", "--top", 3, "--out", out)
    assert run.exit_code == 3
    assert out.read_text(encoding="utf-8") == written
    as_json = command("predict", trained, folder, bad, "--classes", "all", "--top", 3,
                      "--format", "json")  # fmt: skip
    assert json.loads(as_json.stdout) == model.name_pictures(paths, "all", top=3).to_dicts()


def test_python_and_the_command_line_train_the_same_bytes(photos, trained, tmp_path):
    data = trained.parent / "data"
    latem.train(data, kind="ESZSL").save(tmp_path / "m.safetensors")
    assert (tmp_path / "m.safetensors").read_bytes() == trained.read_bytes()


def test_kinds_of_pictures(photos, trained):
    from PIL import Image

    model = latem.load(trained)
    path = photos / "images" / "yellow flower" / "2.jpg"
    with open(path, "rb") as file, Image.open(path) as image:
        same = [path, str(path), path.read_bytes(), file, image, np.asarray(image)]
        answers = model.name_pictures(same)
        file.seek(0)
        alone = [model.name_pictures([one])[0] for one in same]
    assert len({tuple(answer.scores) for answer in alone}) == 1
    for answer in answers:  # in a batch, matrix libraries may round by the place of a row
        np.testing.assert_allclose(answer.scores, alone[0].scores, rtol=0, atol=1e-6)
    assert [answer.picture for answer in answers[2:3]] == ["picture 3"]
    assert answers[3].picture == str(path)
    broken = model.name_pictures([b"no picture", path, photos / "none.jpg"])
    assert [bool(answer.error) for answer in broken] == [True, False, True]
    assert broken.names.tolist()[0] is None
    with pytest.raises(TypeError, match=r"write \[picture\]"):
        model.name_pictures(path)
    with pytest.raises(TypeError, match="not int"):
        model.name_pictures([3])


def test_lists_and_standard_input(photos, trained, tmp_path):
    names = ["yellow flower/0.jpg", "yellow temple/1.jpg"]
    listed = photos / "images" / "some.csv"
    listed.write_text("image,place\n" + "\n".join(f"{name},here" for name in names))
    paths = "\n".join(str(photos / "images" / name) for name in names)
    try:
        by_list = command("predict", trained, listed, "--format", "csv")
        by_input = command("predict", trained, "-", "--format", "csv", input=paths + "\n\n")
    finally:
        listed.unlink()
    assert by_list.exit_code == 0, by_list.output
    assert by_list.stdout == by_input.stdout
    assert by_list.stdout.count("yellow flower/0.jpg") == 2
    nothing = command("predict", trained, "-", input="\n")
    assert (nothing.exit_code, nothing.stderr) == (1, "latem: No pictures are given.\n")
    (tmp_path / "odd.csv").write_text("picture\na.jpg\n")
    run = command("predict", trained, tmp_path / "odd.csv")
    assert run.exit_code == 1
    assert "needs the column 'image'" in " ".join(run.output.split())


def test_every_part_of_an_answer_can_be_switched_off(photos, trained):
    photo = photos / "images" / "yellow flower" / "1.jpg"
    run = command("predict", trained, photo, "--false-accept-rate", 1, "--format", "json")
    assert json.loads(run.stdout)[0]["verdict"] == "named"
    run = command("predict", trained, photo, "--false-accept-rate", 0, "--format", "json")
    assert json.loads(run.stdout)[0]["verdict"] != "named"
    run = command("predict", trained, photo, "--false-accept-rate", 0)
    assert "see --false-accept-rate" in " ".join(run.stderr.split())
    run = command("predict", trained, photo, "--false-accept-rate", 0, "-q")
    assert run.stderr == ""


def test_families_of_traits_from_a_table(photos, trained, tmp_path):
    photo = photos / "images" / "yellow flower" / "1.jpg"
    table = tmp_path / "groups.csv"
    table.write_text("trait,family\nred,colour\ngreen,colour\nblue,colour\n")
    run = command("predict", trained, photo, "--explain", "--groups", table, "--format", "json")
    assert run.exit_code == 0, run.output
    families = json.loads(run.stdout)[0]["explanation"]["families"]
    assert {family["name"] for family in families} == {"colour", "temple", "flower"}
    run = command("predict", trained, photo, "--groups", table)
    assert run.exit_code == 2


def test_one_candidate_is_answered_though_there_is_nothing_to_explain(photos, trained):
    photo = photos / "images" / "yellow flower" / "1.jpg"
    run = command("predict", trained, photo, "--classes", "yellow flower", "--explain")
    assert run.exit_code == 0, run.output
    assert "100%" in run.stdout


def test_a_warning_of_the_library_is_a_sentence_once(photos, trained, monkeypatch):
    import warnings

    from latem.models.table_model import TableClassifier

    plain = TableClassifier.settled

    def settled(self, classes):
        for _ in range(2):
            warnings.warn_explicit("A trait is new.", UserWarning, "table.py", 1)
        return plain(self, classes)

    monkeypatch.setattr(TableClassifier, "settled", settled)
    photo = photos / "images" / "yellow flower" / "1.jpg"
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        run = command("predict", trained, photo, "-q")
    assert run.stderr == "latem: A trait is new.\n"


def test_pictures_are_read_as_they_are_needed(photos, trained):
    """Far fewer pictures are held at once than there are."""
    path = photos / "images" / "yellow flower" / "1.jpg"
    model = latem.load(trained)
    taken = []

    def pictures():
        for i in range(400):
            taken.append(i)
            yield path

    from latem.models.answering import Asked

    first = next(Asked(model).batches(pictures()))
    assert len(first[0]) == 32
    assert len(taken) < 150
