"""Problems, what training would refuse, and warnings, of dataset folders."""

import numpy as np
import pytest
from typer.testing import CliRunner

from latem import ClassEmbeddings, Split, ZeroShotDataset, read_folder, write_folder
from latem.cli.main import app
from latem.datasets import check_folder, describe, inspect_folder, write_split


@pytest.fixture
def folder(tmp_path):
    labels = np.repeat(["ant", "bee", "cat", "dog", "eel"], 3)
    rng = np.random.default_rng(0)
    dataset = ZeroShotDataset(
        features=rng.normal(size=(15, 4)).astype(np.float32),
        labels=labels,
        embeddings={"att": ClassEmbeddings(np.unique(labels), rng.normal(size=(5, 4)))},
        splits={"standard": Split(["ant", "bee"], ["cat"], ["dog", "eel"], [0])},
    )
    return write_folder(dataset, tmp_path / "d")


def run(folder):
    return CliRunner().invoke(app, ["data", "check", str(folder)])


def edit_table(folder, change):
    path = folder / "embeddings" / "att.csv"
    frame = ClassEmbeddings.read(path).to_frame()
    change(frame)
    frame.to_csv(path)


def make_zero(folder):
    edit_table(folder, lambda frame: frame.__setitem__(slice("bee", "bee"), 0.0))


def hold_out_all(folder):
    split = Split(["ant", "bee"], ["cat"], ["dog", "eel"], range(9))
    write_split(folder, "standard", split, replace=True)


def leave_one_class(folder):
    write_split(folder, "standard", Split(["ant"], [], ["dog", "eel"]), replace=True)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (make_zero, "the vectors of 'bee' are all zero"),
        (hold_out_all, "all 9 images of train and val classes are held out"),
        (leave_one_class, "only one class, 'ant', has images to learn from"),
    ],
)
def test_what_training_refuses_is_not_sound(folder, tmp_path, spoil, message):
    assert run(folder).exit_code == 0
    spoil(folder)
    done = run(folder)
    assert done.exit_code == 1
    assert message in done.output
    assert "is sound" not in done.output
    assert any(message in problem for problem in check_folder(folder))
    report = inspect_folder(folder)
    assert report.problems == []  # it can be read
    assert any(message in warning for warning in describe(read_folder(folder))["warnings"])
    options = ["--embedding", "att", "--out", str(tmp_path / "m"), "-q", "--model", "ESZSL"]
    trained = CliRunner().invoke(app, ["train", str(folder), *options])
    assert trained.exit_code == 1
    assert message in trained.stderr
    assert not (tmp_path / "m").exists()


def test_without_splits_all_images_are_looked_at(folder):
    (folder / "splits" / "standard.toml").unlink()
    assert check_folder(folder) == []
    (folder / "images.csv").write_text("image,class\n" + ",ant\n" * 15)
    assert any("images.csv: only one class, 'ant'" in told for told in check_folder(folder))


def test_warnings_are_no_problems(folder):
    def in_grams(frame):
        frame.iloc[:, 2] *= 4000

    edit_table(folder, in_grams)
    assert check_folder(folder) == []
    (warning,) = inspect_folder(folder).warnings
    done = run(folder)
    assert done.exit_code == 0
    assert f"warning: {warning}" in done.output.splitlines()
    assert done.output.splitlines()[-1] == f"{folder} is sound, but see the warnings."
    (told,) = describe(read_folder(folder))["warnings"]
    assert told.removeprefix("att") == warning.removeprefix(str(folder / "embeddings" / "att.csv"))


def test_a_class_that_is_held_out_whole(folder):
    split = Split(["ant", "bee"], ["cat"], ["dog", "eel"], [0, 1, 2])
    write_split(folder, "standard", split, replace=True)
    done = run(folder)
    assert done.exit_code == 0
    assert "all images of 'ant' are held out" in done.output


def test_folders_that_cannot_be_learned_from_can_be_written(folder, tmp_path):
    """Features that took long to make are not thrown away for a split that can be drawn again."""
    hold_out_all(folder)
    write_folder(read_folder(folder), tmp_path / "copy")
    assert check_folder(tmp_path / "copy") != []


def test_a_sound_folder(folder):
    report = inspect_folder(folder)
    assert (report.problems, report.obstacles, report.warnings) == ([], [], [])
    assert run(folder).output == f"{folder} is sound.\n"


@pytest.mark.parametrize("row", [10**20, 2**63, -1, 15])
def test_held_out_rows_of_any_size(folder, row):
    path = folder / "splits" / "standard.toml"
    path.write_text(path.read_text().replace("held_out = [\n  0\n]", f"held_out = [0, {row}]"))
    assert any(f"held_out rows {row} do not exist" in problem for problem in check_folder(folder))
    with pytest.raises(ValueError, match=f"holds out rows .{row}."):
        read_folder(folder)


def test_toml_that_is_nested_too_deeply(folder):
    (folder / "dataset.toml").write_text("name = " + "[" * 10_000)
    assert any("nested too deeply" in problem for problem in check_folder(folder))
    with pytest.raises(ValueError, match=r"dataset\.toml is not valid TOML: it is nested too"):
        read_folder(folder)


@pytest.mark.parametrize("name", ["/home/me/private.jpg", "../private.jpg", "C:\\private.jpg"])
def test_names_that_lead_out_of_the_folder_are_warned_of(folder, name):
    path = folder / "images.csv"
    assert inspect_folder(folder).warnings == []
    path.write_text(path.read_text().replace("\n,ant", f"\n{name},ant", 1))
    (warning,) = inspect_folder(folder).warnings
    assert "images.csv: 1 image names lead out of the folder" in warning
    assert repr(name) in warning
    result = run(folder)
    assert result.exit_code == 0
    assert "but see the warnings" in result.output
