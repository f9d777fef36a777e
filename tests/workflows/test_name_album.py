"""Naming a whole album of pictures, by function and by command."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from helpers import command

import latem
from latem.models.album_answers import ALBUM_COLUMNS
from latem.workflows.name_album import name_album, read_labels


@pytest.fixture(scope="module")
def model(trained):
    return latem.load(trained)


@pytest.fixture(scope="module")
def album(photos):
    """The eight pictures of both unseen classes."""
    return sorted((photos / "images").glob("yellow */*.jpg"))


def test_the_album_is_what_the_model_says_of_its_features(model, album):
    from latem.features import load_encoder

    X = load_encoder(model.encoder_).encode(album)
    found, direct = name_album(model, album), model.predict_album(X)
    assert [answer.picture for answer in found] == [str(path) for path in album]
    assert [a.names for a in found] == [a.names for a in direct]
    assert [a.verdict for a in found] == [a.verdict for a in direct]
    np.testing.assert_allclose(found.probabilities, direct.probabilities, atol=1e-4)


def test_pictures_that_cannot_be_read_are_left_out(model, album, tmp_path):
    broken = tmp_path / "broken.jpg"
    broken.write_text("no picture")
    done = []
    found = name_album(model, [broken, *album], labels={3: "yellow flower"}, progress=done.append)
    plain = name_album(model, album, labels={2: "yellow flower"})
    assert found[0].error
    assert found[0].to_dict()["mode"] == "transductive"
    assert [a.names for a in found[1:]] == [a.names for a in plain]
    assert found[3].mode == "by hand"
    assert found.probabilities.iloc[0].isna().all()
    assert done[-1] == 9
    nothing = name_album(model, [broken])
    assert len(nothing.errors) == len(nothing) == 1


def test_labels_are_checked_before_the_long_work(model, album):
    with pytest.raises(ValueError, match="row 8, but the album has the rows 0 to 7"):
        name_album(model, album, labels={8: "yellow flower"}, progress=pytest.fail)
    with pytest.raises(ValueError, match="expected_share=2"):
        name_album(model, album, expected_share=2, progress=pytest.fail)
    with pytest.raises(TypeError, match=r"write \[picture\]"):
        name_album(model, album[0])


def test_labels_of_a_list(tmp_path, album):
    listed = tmp_path / "labels.csv"
    listed.write_text(f"image,class\n{album[1]},yellow flower\n{album[4]},yellow temple\n")
    assert read_labels(listed, album) == {1: "yellow flower", 4: "yellow temple"}
    listed.write_text("image,class\nother.jpg,yellow flower\n")
    with pytest.raises(ValueError, match="'other.jpg', which is none of the 8 pictures"):
        read_labels(listed, album)
    listed.write_text(f"image,class\n{album[1]},yellow flower\n{album[1]},yellow temple\n")
    with pytest.raises(ValueError, match="both 'yellow flower' and 'yellow temple'"):
        read_labels(listed, album)
    with pytest.raises(FileNotFoundError, match="no list of labels"):
        read_labels(tmp_path / "none.csv", album)
    with pytest.raises(ValueError, match="no list of labels: give a .csv"):
        read_labels(tmp_path, album)


def test_the_command_says_that_answers_depend_on_each_other(trained, album, tmp_path):
    run = command("predict", trained, *album, "--album")
    assert run.exit_code == 0, run.output
    assert "album (transductive), among the 2 unseen classes" in run.stdout
    assert "answers depend on each other" in run.stderr
    quiet = command("predict", trained, *album, "--album", "-q")
    assert "album (transductive)" in quiet.stdout
    assert "depend" not in quiet.stderr
    plain = command("predict", trained, *album)
    assert "transductive" not in plain.output


def test_files_and_formats_say_so_too(trained, album, tmp_path):
    listed = tmp_path / "labels.csv"
    listed.write_text(f"image,class\n{album[0]},yellow temple\n")
    given = ("predict", trained, *album, "--album", "--labels", listed, "--expected-share", 1)
    run = command(*given, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(run.stdout)))
    assert tuple(rows[0]) == ALBUM_COLUMNS
    assert [row["mode"] for row in rows[:3]] == ["by hand", "by hand", "transductive"]
    assert rows[0]["class"] == "yellow temple"
    answers = json.loads(command(*given, "--format", "json").stdout)
    assert [one["mode"] for one in answers] == ["by hand"] + 7 * ["transductive"]
    for ending in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"answers.{ending}"
        run = command(*given, "--out", out)
        assert run.exit_code == 0, run.output
        assert "8 pictures are answered" in run.stdout
        if ending == "jsonl":
            assert [json.loads(line) for line in out.read_text().splitlines()] == answers
        else:
            frame = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
            assert tuple(frame.columns) == ALBUM_COLUMNS
            assert frame["class"].tolist() == [row["class"] for row in rows]
            assert frame["probability"].dtype == np.float64
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"labels.csv", *(f"answers.{e}" for e in ("csv", "jsonl", "parquet"))}


def test_unreadable_pictures_of_an_album(trained, album, tmp_path):
    broken = tmp_path / "broken.jpg"
    broken.write_text("no picture")
    out = tmp_path / "answers.csv"
    run = command("predict", trained, broken, *album, "--album", "--out", out)
    assert run.exit_code == 3
    assert "1 could not be read" in run.stdout
    assert pd.read_csv(out)["error"].notna().sum() == 1


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--labels", "labels.csv"], 2, "give --album too"),
        (["--expected-share", "0.5"], 2, "give --album too"),
        (["--album", "--explain"], 2, "Leave one of the two"),
        (["--album", "--labels", "nowhere.csv"], 1, "There is no list of labels"),
        (["--album", "--expected-share", "0"], 1, "expected_share=0.0"),
    ],
)
def test_misuse(trained, album, options, code, message):
    run = command("predict", trained, *album, *options)
    assert run.exit_code == code
    assert message in " ".join(run.output.replace("│", " ").split())
