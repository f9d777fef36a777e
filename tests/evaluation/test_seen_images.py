"""A model is not measured on images that it has learned from."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import REPOSITORY
from typer.testing import CliRunner

import latem
from latem import ESZSL, HeldOutSearch, LateFusion, evaluate, make_latent_world, write_folder
from latem.cli.main import app
from latem.datasets import hold_out


@pytest.fixture(scope="module")
def world():
    made = make_latent_world(n_poses=1, n_unseen=5, n_images=10, random_state=0)
    return replace(made, splits={"standard": hold_out(made, made.split())})


def all_seen(world):
    """All images of seen classes, those held out included."""
    split = world.split()
    rows = world.rows(split.train + split.val)
    return world.features[rows], world.labels[rows]


def kinds(table):
    return [
        ESZSL(table),
        HeldOutSearch(ESZSL(table), {"gamma": [0.1, 1.0]}, cv=3, random_state=0),
        LateFusion([("a", ESZSL(table)), ("b", ESZSL(table, gamma=5.0))]),
    ]


@pytest.mark.parametrize("i", [0, 1, 2])
def test_held_out_images_must_not_have_been_learned(world, i):
    model = kinds(world.embeddings["att"])[i].fit(*all_seen(world))
    n = len(world.split().held_out)
    with pytest.raises(ValueError, match=f"was fitted to {n} of the {n} held-out images") as told:
        evaluate(model, world, generalized=True)
    assert "fit it to dataset.training('standard')" in str(told.value)
    evaluate(model, world)  # unseen classes alone: the held-out images have no part in it
    model.fit(*world.training())
    evaluate(model, world, generalized=True)


def test_a_single_image_is_enough(world):
    X, y = world.training()
    row = world.split().held_out[3]
    X, y = np.vstack([X, world.features[row]]), np.append(y, world.labels[row])
    with pytest.raises(ValueError, match="fitted to 1 of the"):
        evaluate(ESZSL(world.embeddings["att"]).fit(X, y), world, generalized=True)


def test_equal_images_in_both_parts_are_no_fault_of_the_model(world):
    features = world.features.copy()
    split = world.split()
    for row in split.held_out[:4]:
        mates = np.setdiff1d(world.rows([world.labels[row]]), split.held_out)
        features[row] = features[mates[0]]
    odd = replace(world, features=features)
    model = ESZSL(odd.embeddings["att"]).fit(*odd.training())
    assert evaluate(model, odd, generalized=True).generalized.n_seen_images == len(split.held_out)


def test_test_images_under_another_name(world):
    """Classes tell of test classes that were learned, but not if their images were relabelled."""
    X, y = world.training()
    X_test, _ = world.testing()
    X, y = np.vstack([X, X_test[:7]]), np.append(y, [y[0]] * 7)
    with pytest.raises(ValueError, match="fitted to 7 of the .* test images"):
        evaluate(ESZSL(world.embeddings["att"]).fit(X, y), world)


def test_precision_does_not_hide_them(world):
    half = replace(world, features=world.features.astype(np.float16))
    X, y = all_seen(half)
    model = ESZSL(half.embeddings["att"]).fit(X.astype(np.float64), y)
    with pytest.raises(ValueError, match="held-out images"):
        evaluate(model, half, generalized=True)


def test_without_a_record_nothing_is_said(world):
    model = ESZSL(world.embeddings["att"])
    model.records_training = False
    model.fit(*all_seen(world))
    assert evaluate(model, world, generalized=True).generalized is not None
    old = latem.load(REPOSITORY / "tests" / "data" / "files" / "late_fusion.safetensors")
    assert old.training_rows() is None


def test_the_command_says_it_in_one_sentence(world, tmp_path):
    write_folder(world, tmp_path / "d")
    model = ESZSL(world.embeddings["att"]).fit(*all_seen(world))
    model.save(tmp_path / "m")
    done = CliRunner().invoke(
        app, ["evaluate", str(tmp_path / "m"), str(tmp_path / "d"), "--generalized"]
    )
    assert done.exit_code == 1
    assert "held-out images of split 'standard'" in done.stderr
    assert done.stdout == ""
