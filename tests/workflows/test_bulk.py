"""Naming many pictures into a file: whole or not at all, and resumed after any interruption."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from helpers import left_over, save_pieces

import latem
from latem.workflows.bulk import Journal, name_in_bulk
from latem.workflows.name_pictures import name_pictures


class Stop(Exception):
    """Ends a run from its progress."""


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """150 pictures, two of them broken: five batches."""
    folder = tmp_path_factory.mktemp("many")
    save_pieces(folder, 150)
    (folder / "photo 003.jpg").write_text("no picture")
    (folder / "photo 070.jpg").unlink()
    paths = [folder / f"photo {i:03d}.jpg" for i in range(150)]
    return paths


@pytest.fixture(scope="module")
def model(trained):
    return latem.load(trained)


@pytest.fixture(scope="module")
def whole(model, many, tmp_path_factory):
    """The file of an undisturbed run."""
    out = tmp_path_factory.mktemp("whole") / "answers.csv"
    bulk = name_in_bulk(model, many, out)
    assert (bulk.n_pictures, bulk.n_unreadable, bulk.n_resumed) == (150, 2, 0)
    assert [file.name for file in out.parent.iterdir()] == ["answers.csv"]
    return out.read_bytes()


def stopped(model, many, out, after, **options):
    """A run that ends once so many pictures are done."""

    def progress(done, total):
        if done >= after:
            raise Stop

    with pytest.raises(Stop):
        name_in_bulk(model, many, out, progress=progress, **options)


def test_every_picture_has_its_answer(model, many, whole, tmp_path):
    answers = name_pictures(model, many)
    assert answers.to_frame().to_csv(index=False, lineterminator="\n").encode() == whole
    for suffix in (".jsonl", ".parquet"):
        out = tmp_path / f"answers{suffix}"
        name_in_bulk(model, many, out)
        if suffix == ".jsonl":
            told = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
            assert told == answers.to_dicts()
        else:
            found, wanted = pd.read_parquet(out), answers.to_frame()
            assert found["class"].fillna("").tolist() == wanted["class"].fillna("").tolist()
            np.testing.assert_array_equal(found["score"], wanted["score"])
            assert found["error"].notna().sum() == 2


def test_a_stopped_run_goes_on_to_the_same_bytes(model, many, whole, tmp_path):
    out = tmp_path / "answers.csv"
    for after in (1, 64, 100):
        stopped(model, many, out, after)
        assert not out.exists()
    seen = []
    bulk = name_in_bulk(model, many, out, progress=lambda done, total: seen.append(done))
    assert bulk.n_resumed == 128
    assert seen[0] == 128
    assert out.read_bytes() == whole
    assert left_over(tmp_path) == []


def test_an_answer_that_was_cut_short_is_asked_again(model, many, whole, tmp_path):
    out = tmp_path / "answers.csv"
    stopped(model, many, out, 96)
    journal = tmp_path / ".answers.csv.answers" / "journal.jsonl"
    content = journal.read_bytes()
    for cut in (len(content) - 1, len(content) * 2 // 3, 20, 0):
        journal.write_bytes(content[:cut])
        bulk = name_in_bulk(model, many, out)
        assert bulk.n_resumed < 96
        assert out.read_bytes() == whole
        journal.parent.mkdir()


def test_what_changes_meanwhile_is_noticed(model, many, tmp_path):
    out = tmp_path / "answers.csv"
    for change in ({"top": 1}, {"classes": "all"}, {"false_accept_rate": 0.5}, {"seen_penalty": 1}):
        stopped(model, many, out, 64)
        assert name_in_bulk(model, many, out, **change).n_resumed == 0
    stopped(model, many, out, 64)
    assert name_in_bulk(model, many[1:], out).n_resumed == 0
    stopped(model, many, out, 64)
    os.utime(many[5], ns=(1, 1))  # a picture that was edited
    assert name_in_bulk(model, many, out).n_resumed == 0


def test_an_earlier_file_stays_until_the_new_one_is_whole(model, many, tmp_path):
    out = tmp_path / "answers.csv"
    out.write_text("earlier")
    stopped(model, many, out, 64)
    assert out.read_text() == "earlier"


def test_two_runs_at_once_do_not_meet(model, many, tmp_path):
    out = tmp_path / "answers.csv"

    def progress(done, total):
        if done:
            with pytest.raises(BlockingIOError, match="Another run is writing"):
                name_in_bulk(model, many, out)
            raise Stop

    with pytest.raises(Stop):
        name_in_bulk(model, many, out, progress=progress)


def test_explanations_go_with_json(model, many, tmp_path):
    out = tmp_path / "answers.jsonl"
    name_in_bulk(model, many[:40], out, explain=True)
    told = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert told[3]["error"]
    assert told[0]["explanation"]["named"] == told[0]["classes"][0]["class"]
    with pytest.raises(ValueError, match="write a .jsonl file"):
        name_in_bulk(model, many[:4], tmp_path / "answers.csv", explain=True)


def test_no_pictures_and_odd_targets(model, tmp_path):
    assert name_in_bulk(model, [], tmp_path / "none.csv").n_pictures == 0
    assert (tmp_path / "none.csv").read_text().startswith("picture,")
    name_in_bulk(model, [], tmp_path / "none.parquet")
    assert len(pd.read_parquet(tmp_path / "none.parquet")) == 0
    with pytest.raises(ValueError, match="must end in"):
        name_in_bulk(model, [], tmp_path / "none.txt")
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        name_in_bulk(model, [], tmp_path / "no" / "a.csv")


def test_a_journal_of_another_question_is_begun_anew(tmp_path):
    path = tmp_path / "journal"
    Journal(path, "first")
    before = path.read_bytes()
    Journal(path, "second")
    assert path.read_bytes() != before


def test_kill_9_three_times(trained, many, whole, tmp_path):
    """By command, killed at three moments, ends in the bytes of an undisturbed run."""
    listed = tmp_path / "list.csv"
    listed.write_text("image\n" + "\n".join(str(path) for path in many) + "\n", encoding="utf-8")
    out = tmp_path / "answers.csv"
    journal = tmp_path / ".answers.csv.answers" / "journal.jsonl"
    line = [sys.executable, "-m", "latem", "predict", str(trained), str(listed), "--out", str(out)]
    for wanted in (1, 40, 80):
        with subprocess.Popen([*line, "-q"], stderr=subprocess.DEVNULL) as run:
            while run.poll() is None:
                if journal.is_file() and journal.read_bytes().count(b"\n") > wanted:
                    run.send_signal(signal.SIGKILL)
                    break
                time.sleep(0.01)
        assert not out.exists()
    done = subprocess.run([*line, "-q"], capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr  # two pictures cannot be read
    assert "by an earlier run" in done.stdout
    assert out.read_bytes() == whole


@pytest.mark.parametrize("names", [["nothere"], ["a.jpg", "b.jpg"]])
def test_what_is_not_there_replaces_no_answers(names, model, tmp_path):
    out = tmp_path / "answers.csv"
    out.write_text("of an earlier run")
    with pytest.raises(FileNotFoundError, match=r"no such file: .*(nothere|a\.jpg)"):
        name_in_bulk(model, [tmp_path / name for name in names], out)
    assert out.read_text() == "of an earlier run"
    assert [file.name for file in tmp_path.iterdir()] == ["answers.csv"]
