"""Where a dataset's pictures are, and what is said of those that are missing."""

from dataclasses import replace

import numpy as np
import pytest

from latem import make_latent_world
from latem.inspection.pictures import Pictures, picture_path, pictures_folder


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
