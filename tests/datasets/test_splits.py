"""Other val classes and held-out images for the unseen classes that a person chose."""

import os
from dataclasses import replace

import numpy as np
import pytest
from helpers import left_over
from typer.testing import CliRunner

from latem import Split, make_latent_world, read_folder, redraw_seen, write_folder
from latem.cli.main import app
from latem.datasets import write_split
from latem.datasets.splits import draw_val


@pytest.fixture(scope="module")
def world():
    made = make_latent_world(n_poses=1, n_seen=10, n_unseen=3, n_images=5, random_state=0)
    split = made.split()
    hand_made = Split(split.train + split.val, (), split.test, (4, 9))
    return replace(made, splits={"standard": hand_made})


@pytest.fixture
def folder(world, tmp_path):
    return write_folder(world, tmp_path / "d")


def run(*arguments):
    return CliRunner().invoke(app, ["data", "split", *map(str, arguments)])


def test_unseen_classes_stay(world):
    old = world.split()
    new = redraw_seen(world, n_val=4, held_out=0.4)
    assert new.test == old.test
    assert len(new.val) == 4
    assert set(new.train + new.val) == set(old.train)
    assert len(new.held_out) == 2 * len(old.train)
    assert new == redraw_seen(world, n_val=4, held_out=0.4)
    assert new != redraw_seen(world, n_val=4, held_out=0.4, seed=1)


def test_what_is_not_asked_for_stays(world):
    old = world.split()
    val_only = redraw_seen(world, n_val=3)
    assert val_only.held_out == old.held_out
    held_only = redraw_seen(world, val_only, held_out=0.2)
    assert (held_only.train, held_only.val) == (val_only.train, val_only.val)
    assert len(held_only.held_out) == len(old.train)
    assert redraw_seen(world, held_out=0).held_out == ()
    assert redraw_seen(world, val_only, n_val=0).val == ()


def test_val_classes_have_images(world):
    """A class of the split without images stays in train, where it does no harm."""
    bare = world.split().train[0]
    keep = world.labels != bare
    smaller = replace(
        world,
        features=world.features[keep],
        labels=world.labels[keep],
        images=None,
        splits={"standard": replace(world.split(), held_out=())},
    )
    new = redraw_seen(smaller, n_val=len(world.split().train) - 2)
    assert bare in new.train
    assert len(new.train) == 2


def test_refusals(world):
    with pytest.raises(ValueError, match="drawn from 10 seen classes .* ask for 0 to 9, not 10"):
        redraw_seen(world, n_val=10)
    with pytest.raises(ValueError, match="share from 0 to below 1, but is 1.5"):
        redraw_seen(world, held_out=1.5)
    with pytest.raises(ValueError, match="no split 'other'"):
        redraw_seen(world, "other", n_val=2)
    with pytest.raises(ValueError, match="not -1"):
        draw_val(["a", "b"], -1)


def test_writing_refuses_to_write_over_a_split(world, folder):
    new = redraw_seen(world, n_val=2)
    before = (folder / "splits" / "standard.toml").read_bytes()
    with pytest.raises(FileExistsError, match="already has a split 'standard'"):
        write_split(folder, "standard", new)
    assert (folder / "splits" / "standard.toml").read_bytes() == before
    write_split(folder, "standard", new, replace=True)
    assert read_folder(folder).split() == new


def test_the_command_adds_a_split(world, folder):
    before = (folder / "splits" / "standard.toml").read_bytes()
    features = os.stat(folder / "features.npy").st_mtime_ns
    done = run(
        folder, "--keep-unseen", "standard", "--val", 4, "--held-out", 0.2, "--name", "second"
    )
    assert done.exit_code == 0, done.output
    assert "6 train, 4 val and 3 test classes, 10 held-out images" in done.output
    found = read_folder(folder).split("second")
    assert found == redraw_seen(world, n_val=4, held_out=0.2)
    assert (folder / "splits" / "standard.toml").read_bytes() == before
    assert os.stat(folder / "features.npy").st_mtime_ns == features
    assert left_over(folder / "splits") == []


def test_drawing_splits_goes_on_after_an_interruption(folder):
    sizes = ("--sizes", "6,3,4", "--n", 3, "--held-out", 0.2)
    assert run(folder, *sizes).exit_code == 0
    drawn = {file.name: file.read_bytes() for file in (folder / "splits").iterdir()}
    assert len(drawn) == 4
    (folder / "splits" / "random2.toml").unlink()
    done = run(folder, *sizes)
    assert done.exit_code == 0, done.output
    assert {file.name: file.read_bytes() for file in (folder / "splits").iterdir()} == drawn
    assert "random2.toml" in done.output
    assert "random1.toml" not in done.output

    refused = run(folder, *sizes)
    assert refused.exit_code == 1
    assert "already has splits ['random1', 'random2', 'random3']; give another" in refused.output
    (folder / "splits" / "random2.toml").unlink()
    refused = run(folder, *sizes, "--seed", 1)  # other splits than those that are there
    assert refused.exit_code == 1
    assert "already has splits ['random1', 'random3']; give another" in refused.output
    assert not (folder / "splits" / "random2.toml").exists()


def test_the_command_replaces_only_when_told(world, folder):
    before = (folder / "splits" / "standard.toml").read_bytes()
    for refused, reason in (
        (["--val", 2], "--name"),
        (["--val", 2, "--name", "standard"], "already has a split 'standard'"),
        (["--name", "x"], "Nothing would change"),
        (["--val", 99, "--replace"], "not 99"),
        (["--val", 2, "--name", "../x"], "cannot be the name"),
    ):
        done = run(folder, "--keep-unseen", "standard", *refused)
        assert done.exit_code == 1
        assert reason in done.output
    assert (folder / "splits" / "standard.toml").read_bytes() == before
    assert [file.name for file in (folder / "splits").iterdir()] == ["standard.toml"]
    assert run(folder, "--keep-unseen", "standard", "--val", 2, "--replace").exit_code == 0
    assert read_folder(folder).split() == redraw_seen(world, n_val=2)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--sizes", "2,1,2", "--keep-unseen", "standard"],
        ["--sizes", "2,1,2", "--val", "3"],
        ["--sizes", "2,1,2", "--replace"],
        ["--keep-unseen", "standard", "--val", "2", "--n", "3"],
    ],
)
def test_options_that_do_not_go_together(folder, options):
    done = run(folder, *options)
    assert done.exit_code == 2
    assert len(read_folder(folder).splits) == 1


def test_a_model_of_the_old_split_is_not_measured_on_images_it_knows(world):
    """Held out now, learned from before."""
    from latem import ESZSL, evaluate

    model = ESZSL(world.embeddings["att"]).fit(*world.training())
    new = redraw_seen(world, n_val=3, held_out=0.4)
    n = len(np.setdiff1d(new.held_out, world.split().held_out))
    with pytest.raises(ValueError, match=f"fitted to {n} of the {len(new.held_out)} held-out"):
        evaluate(model, world, new, generalized=True)
