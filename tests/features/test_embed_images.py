"""`latem embed images`: from pictures to a dataset folder, as a user runs it."""

import csv
import shutil
import sys
import unicodedata

import numpy as np
import pytest
from broken_pictures import BROKEN
from helpers import SHARED, left_over, save_pieces
from typer.testing import CliRunner

import latem
from latem.cli import app
from latem.datasets import check_folder, read_folder
from latem.features import (
    embed_pictures,
    encoder_spec,
    find_pictures,
    load_encoder,
)
from latem.features.efficientnet import EfficientNetLite0

DATA = SHARED
CLASSES = ("Ant Bear", "bee", "cat", "Dödö", "emu")


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("efficientnet-lite0")


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
    with pytest.raises(ValueError, match="val_share and held_out from 0 to below 1"):
        classes(10, val_share=1.5)


def test_a_table_name_that_no_file_can_have_is_refused_at_once(pictures, encoder, tmp_path):
    with pytest.raises(ValueError, match="'a/b' cannot be the name"):
        embed_pictures(pictures, tmp_path / "out", {"a/b": tmp_path / "traits.csv"})
    assert left_over(tmp_path) == []


def test_work_left_by_a_run_killed_when_all_was_done_is_removed(pictures):
    result, out = embed(pictures)
    assert result.exit_code == 0, result.output
    work = out.with_name(f".{out.name}.embedding")
    work.mkdir()
    (work / "00000.safetensors").touch()
    result, _ = embed(pictures)
    assert result.exit_code == 1
    assert "exists already; name a new folder" in result.output
    assert left_over(out.parent) == []


def test_pictures_held_out_for_the_generalised_setting(pictures):
    result, out = embed(pictures, "--held-out", 0.34)
    assert result.exit_code == 0, result.output
    assert "3 held-out pictures" in result.output
    dataset = read_folder(out)
    held = dataset.labels[list(dataset.split().held_out)]
    assert sorted(held) == sorted(CLASSES[i] for i in (0, 1, 3))
    assert len(dataset.training()[1]) == 6
    assert check_folder(out) == []


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
    assert (
        "'att' has no rows for 'anT bear', 'yeti' (for 'anT bear', did you mean 'Ant Bear'?)"
        in message
    )
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
        ("\n", "holds no unseen classes"),
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


def test_a_list_with_semicolons(pictures):
    rows = [f"{name}/photo {10 * i:03d}.jpg;{name}" for i, name in enumerate(CLASSES[:3])]
    (pictures / "list.csv").write_text("\n".join(["image;class", *rows]), encoding="utf-8")
    found, skipped = find_pictures(pictures / "list.csv")
    assert [picture.label for picture in found] == list(CLASSES[:3])
    assert not skipped


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


def test_an_interruption_on_the_command_line(pictures, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(EfficientNetLite0, "encode_batch", interrupt)
        result, out = embed(pictures)
    assert result.exit_code == 130
    assert "the same command continues" in result.output
    assert not out.exists()
    assert embed(pictures)[0].exit_code == 0


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
