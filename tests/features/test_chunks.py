"""Vectors of many pictures: interruptions, threads, overlap."""

import json
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from broken_pictures import BROKEN
from helpers import left_over, on_small_disk, save_pieces

from latem.datasets import read_folder
from latem.features import Encoder, Preprocessing, embed_pictures, load_encoder


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("efficientnet-lite0")


class Interrupt:
    """Progress that stops the run once so many pictures are done."""

    def __init__(self, limit):
        self.limit = limit

    def __call__(self, done, total):
        if done >= self.limit:
            raise KeyboardInterrupt


@pytest.fixture
def many(tmp_path):
    """72 pictures, a few of them broken: five chunks of two batches of eight."""
    for i, name in enumerate(("ant", "bee", "cat")):
        save_pieces(tmp_path / "many" / name, 24, 24 * i)
    for place in ("ant/photo 003.jpg", "cat/photo 070.jpg"):
        (tmp_path / "many" / place).write_text("no picture")
    table = {"att": (["ant", "bee", "cat"], np.eye(3))}
    return {"source": tmp_path / "many", "tables": table, "unseen": ["bee"], "batch_size": 8}


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr("latem.features.chunks.N_BATCHES", 2)


@pytest.mark.usefixtures("small_chunks")
def test_an_interrupted_run_continues_to_the_same_bytes(many, encoder, tmp_path):
    whole = embed_pictures(out=tmp_path / "whole", encoder=encoder, **many)
    out = tmp_path / "out"
    for limit in (20, 40, 60):
        with pytest.raises(KeyboardInterrupt):
            embed_pictures(out=out, encoder=encoder, progress=Interrupt(limit), **many)
        assert not out.exists()
    seen = []
    made = embed_pictures(
        out=out, encoder=encoder, progress=lambda done, total: seen.append((done, total)), **many
    )
    assert made.n_reused == 48
    assert seen == [(48, 72), (56, 72), (64, 72), (72, 72)]
    assert made.skipped == whole.skipped
    for name in ("features.npy", "images.csv", "skipped.csv", "splits/standard.toml"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert left_over(tmp_path) == []


@pytest.mark.usefixtures("small_chunks")
def test_what_changes_during_an_interruption_is_noticed(many, encoder, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        embed_pictures(out=tmp_path / "out", encoder=encoder, progress=Interrupt(64), **many)
    shutil.copy(many["source"] / "cat" / "photo 050.jpg", many["source"] / "ant" / "photo 003.jpg")
    damaged = sorted((tmp_path / ".out.embedding").iterdir())[1]
    damaged.write_bytes(damaged.read_bytes()[:100])
    made = embed_pictures(out=tmp_path / "out", encoder=encoder, **many)
    assert made.n_reused == 16  # of 48: one chunk holds the changed picture, one was damaged
    assert len(made.dataset.features) == 71
    expected = encoder.encode([many["source"] / image for image in made.dataset.images])
    np.testing.assert_array_equal(made.dataset.features, expected)


def test_two_runs_at_once_do_not_meet(many, encoder, tmp_path):
    tried = []

    def try_too(done, total):
        if not tried:
            with pytest.raises(BlockingIOError, match="Another run is making .*out"):
                embed_pictures(out=tmp_path / "out", encoder=encoder, **many)
            tried.append(done)

    made = embed_pictures(out=tmp_path / "out", encoder=encoder, progress=try_too, **many)
    assert tried
    assert len(made.dataset.features) == 70
    assert left_over(tmp_path) == []


def test_numbers_do_not_depend_on_threads_or_batches(many, tmp_path):
    made = [
        embed_pictures(out=tmp_path / f"{n}", n_threads=n, **{**many, "batch_size": size})
        for n, size in ((1, 8), (4, 5))
    ]
    np.testing.assert_array_equal(made[0].dataset.features, made[1].dataset.features)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
def test_kill_9_and_continue(tmp_path, encoder):
    names = ("ant", "bee", "cat")
    for i, name in enumerate(names):
        save_pieces(tmp_path / "in" / name, 60, 60 * i)
    (tmp_path / "in" / "bee" / "photo 090.jpg").write_bytes(BROKEN["cut.jpg"][0])
    (tmp_path / "att.csv").write_text("class,x\nant,1\nbee,2\ncat,3\n")
    out, work = tmp_path / "out", tmp_path / ".out.embedding"
    command = [
        *(sys.executable, "-m", "latem", "embed", "images", str(tmp_path / "in")),
        *("--table", str(tmp_path / "att.csv"), "--out", str(out), "--batch-size", "4"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 600
    while len(list(work.glob("[0-9]*"))) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not out.exists()
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=240)
    assert result.returncode == 0, result.stderr
    assert "pictures were already done by an interrupted run" in result.stdout
    assert "\x1b" not in result.stdout
    dataset = read_folder(out)
    assert len(dataset.features) == 179
    expected = encoder.encode([tmp_path / "in" / image for image in dataset.images])
    np.testing.assert_array_equal(dataset.features, expected)
    assert left_over(tmp_path) == []


@pytest.mark.parametrize(
    "size", ["900k", *(pytest.param(size, marks=pytest.mark.slow) for size in ("200k", "1200k"))]
)
def test_a_full_disk_is_told(tmp_path, size):
    save_pieces(tmp_path / "in" / "ant", 60)
    save_pieces(tmp_path / "in" / "bee", 60, 60)
    (tmp_path / "att.csv").write_text("class,x\nant,1\nbee,2\n")
    (tmp_path / "disk").mkdir()
    command = [
        *(sys.executable, "-m", "latem", "embed", "images", tmp_path / "in", "-q"),
        *("--table", tmp_path / "att.csv", "--out", tmp_path / "disk" / "out"),
        *("--batch-size", "2"),
    ]
    result = on_small_disk(tmp_path / "disk", size, command)
    assert result.returncode == 1, result.stderr
    assert result.stderr.startswith("latem: ")
    assert "cannot be written: " in result.stderr
    assert "No space left on device" in result.stderr
    assert len(result.stderr.splitlines()) == 1


class Sizes(Encoder):
    """Features of a picture are its mean colours; tells what happens when."""

    name = "sizes"
    n_features = 3
    preprocessing = Preprocessing(16, (0, 0, 0), (1, 1, 1))

    def __init__(self):
        self.n_prepared = 0
        self.lock = threading.Condition()
        self.overlapped = False

    def prepare(self, picture):
        with self.lock:
            self.n_prepared += 1
            self.lock.notify_all()
        return super().prepare(picture)

    def encode_batch(self, batch):
        with self.lock:  # wait until a picture of the next batch is being decoded
            self.overlapped |= self.lock.wait_for(lambda: self.n_prepared > len(batch), timeout=120)
        return batch.mean(axis=(1, 2)).astype(np.float32)


def test_decoding_goes_on_while_the_encoder_works(many, tmp_path):
    encoder = Sizes()
    made = embed_pictures(out=tmp_path / "out", encoder=encoder, n_threads=1, **many)
    assert encoder.overlapped
    assert made.dataset.features.shape == (70, 3)
    assert json.loads(made.dataset.info["encoder_spec"])["name"] == "sizes"


def test_numbers_that_are_not_finite_stop_the_run(many, tmp_path):
    encoder = Sizes()
    encoder.encode_batch = lambda batch: np.full((len(batch), 3), np.nan, np.float32)
    with pytest.raises(ValueError, match="'sizes' gave numbers that are not finite .*ant/photo"):
        embed_pictures(out=tmp_path / "out", encoder=encoder, **many)
    assert not (tmp_path / "out").exists()
