"""`latem embed images`: from pictures to a dataset folder, as a user runs it."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets
from test_pictures import BROKEN
from typer.testing import CliRunner

import latem
from latem.cli import app
from latem.datasets import check_folder, read_folder
from latem.features import (
    Encoder,
    Preprocessing,
    embed_pictures,
    encoder_spec,
    load_encoder,
    read_picture,
)

PHOTOS = Path(sklearn.datasets.__file__).parent / "images"
DATA = Path(os.environ.get("LATEM_DATA", Path(__file__).parents[2] / "shared" / "data"))
CLASSES = ("Ant Bear", "bee", "cat", "Dödö", "emu")


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LATEM_CACHE", str(tmp_path_factory.mktemp("cache") / "latem"))
        yield


@pytest.fixture(scope="module")
def encoder(cache):
    return load_encoder("efficientnet-lite0")


def save_pieces(folder, n, first=0):
    """Pieces of two real photos, all different, as small JPEG files."""
    folder.mkdir(parents=True, exist_ok=True)
    photos = [read_picture(PHOTOS / name) for name in ("china.jpg", "flower.jpg")]
    for i in range(first, first + n):
        left, top = 7 * i % 400, 5 * i % 200
        piece = photos[i % 2].crop((left, top, left + 200, top + 160 + i % 40))
        piece.save(folder / f"photo {i:03d}.jpg")


@pytest.fixture
def pictures(tmp_path):
    for i, name in enumerate(CLASSES[:4]):
        save_pieces(tmp_path / "in" / name, 3, 10 * i)
    rows = "".join(f"{name},{i},{i * i}\n" for i, name in enumerate(CLASSES, start=1))
    (tmp_path / "traits.csv").write_text(f"class,one,two\n{rows}", encoding="utf-8")
    (tmp_path / "unseen.txt").write_text("cat\n")
    return tmp_path / "in"


def run(*arguments):
    return CliRunner().invoke(app, ["embed", "images", *map(str, arguments)])


def embed(pictures, *more, unseen=True):
    """The command on the fixture's files; its result and where the dataset should be."""
    root = pictures.parent
    arguments = ["--table", f"att={root / 'traits.csv'}", "--out", root / "out", "--quiet"]
    if unseen:
        arguments += ["--unseen", root / "unseen.txt"]
    return run(pictures, *arguments, *more), root / "out"


def left_over(root):
    return sorted(path.name for path in root.iterdir() if path.name.startswith("."))


def test_from_pictures_to_a_sound_dataset(pictures, encoder):
    result, out = embed(pictures)
    assert result.exit_code == 0, result.output
    assert "12 images × 1280 features, 4 classes, embeddings: att" in result.output
    assert "split standard: 2 train, 1 val and 1 test classes" in result.output
    assert check_folder(out) == []
    dataset = read_folder(out)
    assert dataset.images[0] == "Ant Bear/photo 000.jpg"
    assert dataset.labels.tolist() == sorted([*CLASSES[:4]] * 3)
    expected = encoder.encode([pictures / image for image in dataset.images])
    np.testing.assert_array_equal(dataset.features, expected)
    assert dataset.split().test == ("cat",)
    assert "emu" in dataset.embeddings["att"]
    assert encoder_spec(dataset) == encoder.spec
    assert dataset.info["pictures"] == str(pictures)
    assert sorted(path.name for path in out.iterdir()) == [
        "dataset.toml", "embeddings", "features.npy", "images.csv", "splits",
    ]  # fmt: skip
    assert left_over(out.parent) == []


def test_the_dataset_can_be_learned_from(pictures, tmp_path):
    embed(pictures)
    dataset = read_folder(tmp_path / "out")
    X, y = dataset.training()
    model = latem.ESZSL(dataset.embeddings["att"]).fit(X, y)
    assert set(model.predict(dataset.testing()[0], classes="unseen")) <= {"cat", "emu"}


def test_val_classes_are_drawn_by_seed(pictures, encoder, tmp_path):
    table = {"att": tmp_path / "traits.csv"}

    def classes(number, **options):
        out = tmp_path / f"out{number}"
        made = embed_pictures(pictures, out, table, encoder=encoder, unseen=["cat"], **options)
        return made.dataset.split().train, made.dataset.split().val

    assert classes(0) == classes(1, seed=0, val_share=0.33)
    assert len({classes(2 + seed, seed=seed)[1] for seed in range(6)}) > 1
    assert classes(8, val_share=0) == (("Ant Bear", "Dödö", "bee"), ())
    train, val = classes(9, val_share=0.99)
    assert (len(train), len(val)) == (1, 2)
    with pytest.raises(ValueError, match="val_share from 0 to below 1"):
        classes(10, val_share=1.5)


def test_unreadable_pictures_are_listed_and_nothing_else_is_lost(pictures, encoder):
    for name, (content, _) in BROKEN.items():
        (pictures / "bee" / name).write_bytes(content)
    (pictures / "bee" / "gone.jpg").symlink_to("nowhere")
    (pictures / "lost.png").write_bytes(BROKEN["zeros.jpg"][0])
    (pictures / "empty class").mkdir()
    result, out = embed(pictures)
    assert result.exit_code == 0, result.output
    assert f"{len(BROKEN) + 3} left out" in result.output
    assert "and 1 more" in result.output
    dataset = read_folder(out)
    assert len(dataset.features) == 12
    expected = encoder.encode([pictures / image for image in dataset.images])
    np.testing.assert_array_equal(dataset.features, expected)
    with open(out / "skipped.csv", encoding="utf-8", newline="") as file:
        skipped = {line["image"]: line for line in csv.DictReader(file)}
    assert set(skipped) == {
        *(f"bee/{name}" for name in BROKEN), "bee/gone.jpg", "lost.png", "empty class",
    }  # fmt: skip
    assert skipped["bee/text.jpg"]["class"] == "bee"
    assert "not a picture" in skipped["bee/text.jpg"]["reason"]
    assert "too many pixels" in skipped["bee/bomb.png"]["reason"]
    assert check_folder(out) == []
    assert dataset.info["skipped"] == len(skipped)


def test_no_readable_picture_at_all(pictures):
    for path in pictures.glob("*/*"):
        path.write_text("no picture")
    result, out = embed(pictures)
    assert result.exit_code == 1
    assert "none of 12 pictures can be read" in result.output
    assert not out.exists()
    assert left_over(out.parent) == []


def test_a_class_without_readable_pictures(pictures):
    for name in ("bee", "cat"):
        for path in (pictures / name).iterdir():
            path.write_text("no picture")
    result, out = embed(pictures)
    assert result.exit_code == 0, result.output
    assert "Classes none of whose pictures can be read: 'bee', 'cat'" in result.output
    assert "No split is written" in result.output
    assert check_folder(out) == []


def test_classes_missing_from_the_table(pictures):
    save_pieces(pictures / "anT bear", 1)
    save_pieces(pictures / "yeti", 1)
    result, out = embed(pictures)
    assert result.exit_code == 1
    message = result.output.replace("\n", " ")
    assert "'att' has no rows for 'anT bear', 'yeti' (did you mean 'Ant Bear'?)" in message
    assert "--skip-unknown" in message
    assert not out.exists()
    assert left_over(out.parent) == []
    result, out = embed(pictures, "--skip-unknown")
    assert result.exit_code == 0, result.output
    assert "no class table describes them: 'anT bear', 'yeti'" in result.output
    assert len(read_folder(out).features) == 12
    assert "yeti/photo 000.jpg,yeti,no class table" in (out / "skipped.csv").read_text()


def test_unseen_classes(pictures):
    unseen = pictures.parent / "unseen.txt"
    unseen.write_text("cat\nemu\ncat\n")
    result, out = embed(pictures)
    assert result.exit_code == 0, result.output
    assert "without pictures to test on: 'emu'" in result.output
    assert read_folder(out).split().test == ("cat",)
    shutil.rmtree(out)
    result, out = embed(pictures, unseen=False)
    assert result.exit_code == 0, result.output
    assert "No split is written" in result.output
    assert read_folder(out).splits == {}
    shutil.rmtree(out)
    for names, message in (
        ("catt\n", "neither among the pictures nor in a class table: 'catt' (did you mean 'cat'?)"),
        ("\n".join(CLASSES), "Every class with pictures is named as unseen"),
        ("\n", "names no unseen classes"),
    ):
        unseen.write_text(names, encoding="utf-8")
        result, out = embed(pictures)
        assert result.exit_code == 1
        assert message in result.output.replace("\n", " ")
        assert not out.exists()


def test_decomposed_names_meet_composed_ones(pictures):
    """As on a Mac: the same letters, other characters."""
    (pictures / "Dödö").rename(pictures / unicodedata.normalize("NFD", "Dödö"))
    unseen = pictures.parent / "unseen.txt"
    unseen.write_text(unicodedata.normalize("NFD", "Dödö"), encoding="utf-8")
    result, out = embed(pictures)
    assert result.exit_code == 0, result.output
    assert read_folder(out).split().test == (unicodedata.normalize("NFC", "Dödö"),)


def test_a_list_instead_of_folders(pictures, encoder):
    lines = [
        "image,class",
        "in/bee/photo 011.jpg,cat",
        "in/none.jpg,bee",
        "in/bee/photo 010.jpg,bee",
    ]
    (pictures.parent / "list.csv").write_text("\n".join(lines))
    result, out = embed(pictures.parent / "list.csv")
    assert result.exit_code == 0, result.output
    assert "in/none.jpg: there is no such file" in result.output
    dataset = read_folder(out)
    assert dataset.labels.tolist() == ["cat", "bee"]
    expected = encoder.encode([pictures.parent / image for image in dataset.images])
    np.testing.assert_array_equal(dataset.features, expected)


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (("--encoder", "nonsense"), 1, "There is no encoder 'nonsense'"),
        (("--encoder", "none.onnx"), 1, "There is no weight file 'none.onnx'"),
        (("--size", "224"), 1, "'efficientnet-lite0' takes no option 'size'"),
        (("--mean", "1,2"), 2, "--mean must be three numbers R,G,B"),
        (("--std", "a,b,c"), 2, "--std must be three numbers R,G,B"),
        (("--batch-size", "0"), 2, "batch-size"),
        (("--nonsense",), 2, "--nonsense"),
        (("--table", "none.csv"), 1, "none.csv"),
    ],
)
def test_misuse(pictures, more, code, message):
    result, out = embed(pictures, *more)
    assert result.exit_code == code, result.output
    assert message in result.output.replace("\n", " ")
    assert not out.exists()
    assert left_over(out.parent) == []


def test_more_misuse(pictures, monkeypatch):
    root = pictures.parent
    assert run(pictures, "--out", root / "out").exit_code == 2  # no --table
    (root / "out").mkdir()
    result, _ = embed(pictures)
    assert (result.exit_code, "exists already" in result.output) == (1, True)
    (root / "out").rmdir()
    (root / "nothing").mkdir()
    result = run(root / "nothing", "--table", root / "traits.csv", "--out", root / "out")
    assert (result.exit_code, "holds no class folders" in result.output) == (1, True)
    monkeypatch.setitem(sys.modules, "torchvision", None)
    result, _ = embed(pictures, "--encoder", "googlenet")
    assert result.exit_code == 1
    assert "pip install 'latem[torch]'" in result.output


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


def test_numbers_do_not_depend_on_threads_or_batches(many, tmp_path):
    made = [
        embed_pictures(out=tmp_path / f"{n}", n_threads=n, **{**many, "batch_size": size})
        for n, size in ((1, 8), (4, 5))
    ]
    np.testing.assert_array_equal(made[0].dataset.features, made[1].dataset.features)


def test_an_interruption_on_the_command_line(pictures, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(latem.features.efficientnet.EfficientNetLite0, "encode_batch", interrupt)
        result, out = embed(pictures)
    assert result.exit_code == 130
    assert "The same command continues" in result.output
    assert not out.exists()
    assert embed(pictures)[0].exit_code == 0


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
    deadline = time.monotonic() + 120
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
    assert "pictures had been done by an interrupted run" in result.stdout
    assert "\x1b" not in result.stdout
    dataset = read_folder(out)
    assert len(dataset.features) == 179
    expected = encoder.encode([tmp_path / "in" / image for image in dataset.images])
    np.testing.assert_array_equal(dataset.features, expected)
    assert left_over(tmp_path) == []


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
            self.overlapped |= self.lock.wait_for(lambda: self.n_prepared > len(batch), timeout=20)
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


def test_own_photos_of_birds(tmp_path):
    folder = DATA / "cub_photos"
    if not (folder / "images").is_dir():
        pytest.skip(f"cub_photos is not under {DATA}; set LATEM_DATA to the folder that holds it")
    result = run(
        folder / "images", "--table", f"att={folder / 'traits.csv'}", "--unseen",
        folder / "unseen.txt", "--out", tmp_path / "birds", "--quiet",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(app, ["data", "check", str(tmp_path / "birds")])
    assert result.exit_code == 0, result.output
    dataset = read_folder(tmp_path / "birds")
    assert dataset.features.shape == (640, 1280)
    split = dataset.split()
    assert (len(split.train), len(split.val), len(split.test)) == (16, 8, 8)
    X, y = dataset.training()
    model = latem.ESZSL(dataset.embeddings["att"]).fit(X, y)
    assert model.score(*dataset.testing()) > 0.25  # chance: 0.125
