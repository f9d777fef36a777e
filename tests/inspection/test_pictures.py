"""Where a dataset's pictures are, and what is said of those that are missing."""

from dataclasses import replace

import numpy as np
import pytest

from latem import make_latent_world
from latem.inspection.pictures import (
    Pictures,
    is_outside,
    outside_note,
    picture_path,
    pictures_folder,
    source_note,
)


@pytest.fixture
def world():
    world = make_latent_world(n_poses=1, n_seen=4, n_unseen=2, n_images=2, random_state=0)
    return replace(world, images=np.array([f"{i}.jpg" for i in range(len(world.labels))]))


def test_names_that_no_file_can_have(tmp_path):
    assert picture_path(tmp_path, "x" * 5000) is None
    assert picture_path(tmp_path, "nul\0") is None
    assert picture_path(None, "a") is None


def test_notes(world, tmp_path):
    rows = world.rows(world.split().test)
    assert "features only" in Pictures(world).note(rows)
    assert "features only" in Pictures(world, tmp_path / "nowhere").note(rows)
    assert "features only" in Pictures(replace(world, images=None), tmp_path).note(rows)
    names = [str(world.images[row]) for row in rows]
    for name in names[1:]:
        (tmp_path / name).touch()
    found = Pictures(world, tmp_path)
    assert found.note(rows).startswith(f"1 of 4 pictures are not in {tmp_path} ({names[0]!r})")
    (tmp_path / names[0]).touch()
    assert found.note(rows) == ""
    assert found.image(int(rows[0]), score=1.0) == {
        "row": int(rows[0]),
        "name": names[0],
        "class": str(world.labels[rows[0]]),
        "path": str(tmp_path / names[0]),
        "score": 1.0,
    }


def test_folders(world, tmp_path):
    assert pictures_folder(tmp_path, world) == tmp_path / "images"
    from_folder = replace(world, info={"pictures": str(tmp_path / "in")})
    assert pictures_folder(tmp_path, from_folder) == tmp_path / "in"
    from_list = replace(world, info={"pictures": str(tmp_path / "in" / "list.csv")})
    assert pictures_folder(tmp_path, from_list) == tmp_path / "in"
    (tmp_path / "images").mkdir()
    assert pictures_folder(tmp_path, from_folder) == tmp_path / "images"
    assert pictures_folder(tmp_path, from_folder, tmp_path) == tmp_path
    with pytest.raises(FileNotFoundError, match="no folder .*gone with pictures"):
        pictures_folder(tmp_path, world, tmp_path / "gone")


@pytest.fixture
def private(tmp_path):
    """A folder of pictures, and a photo beside it that is nobody's business."""
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "1.jpg").touch()
    (tmp_path / "private.jpg").touch()
    (tmp_path / "images" / "link.jpg").symlink_to(tmp_path / "private.jpg")
    (tmp_path / "images" / "up").symlink_to(tmp_path)
    (tmp_path / "images" / "same.jpg").symlink_to("1.jpg")
    (tmp_path / "images" / "circle.jpg").symlink_to("circle.jpg")
    return tmp_path


def test_nothing_outside_the_folder_is_shown(private):
    folder = private / "images"
    for name in ("../private.jpg", str(private / "private.jpg"), "link.jpg", "up/private.jpg"):
        assert is_outside(folder, name)
        assert picture_path(folder, name) is None
        assert picture_path(private, str(private / "private.jpg")) is not None
    for name in ("1.jpg", "same.jpg", "up/images/1.jpg", "../images/1.jpg", str(folder / "1.jpg")):
        assert picture_path(folder, name) == str(folder / name)
    for name in ("circle.jpg", "none.jpg", "x" * 5000):
        assert not is_outside(folder, name)
        assert picture_path(folder, name) is None


def test_a_folder_that_is_a_link_is_no_way_out(private):
    (private / "shown").symlink_to(private / "images")
    assert picture_path(private / "shown", "1.jpg") == str(private / "shown" / "1.jpg")


def test_what_was_left_out_is_told(world, private):
    names = np.array(["1.jpg", "../private.jpg", "gone.jpg", *world.images[3:]])
    rows = np.arange(3)
    note = Pictures(replace(world, images=names), private / "images").note(rows)
    assert note.startswith("1 of 3 pictures are left out, because their names lead out of ")
    assert "('../private.jpg'); to show them, name the folder" in note
    assert "1 of 3 pictures are not in" in note
    assert "('gone.jpg')" in note
    assert outside_note(None, ["../a"]) == ""
    assert outside_note(private, ["a", ""]) == ""


def test_a_folder_that_the_dataset_names_is_told(private):
    dataset = private / "images"
    assert source_note(dataset, dataset / "images", None) == ""
    assert source_note(dataset, private, private) == ""
    assert source_note(dataset, private / "gone", None) == ""
    note = source_note(dataset, private, None)
    assert note.startswith(f"Pictures are shown from {private}, which ")
