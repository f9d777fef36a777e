"""Grids of closed forms against fits one by one."""

import numpy as np
import pytest
from sklearn.base import clone

from latem import ESZSL, EXEM, LatEm, make_latent_world
from latem.models.folds import class_folds
from latem.selection.closed_forms import (
    GAMMAS,
    LAMS,
    exemplar_accuracy,
    fold_images,
    map_accuracy,
)
from latem.selection.folds import FoldData

KERNEL = {"class_kernel": 0.7, "center_classes": True, "balance_classes": True}
SCALED = {"feature_scaling": "l2-centered"}


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_seen=15, n_images=5, noise=1.5, random_state=0)


@pytest.fixture(scope="module")
def fold(world):
    X, y = world.training()
    out, candidates = class_folds(y, 3, 0, "Test")[0]
    return FoldData(X[~out], y[~out], X[out], y[out], candidates)


def by_hand(model, fold):
    """Accuracy of one model that is fitted to the fold."""
    fitted = clone(model).set_params(dtype="float64").fit(fold.X, fold.y)
    return fitted.score(fold.X_out, fold.y_out, fold.candidates)


@pytest.mark.parametrize(
    "options",
    [{}, {"center_classes": True}, {"balance_classes": True}, KERNEL, KERNEL | SCALED,
     {"normalize_classes": False, "feature_scaling": None}],
)  # fmt: skip
def test_maps_are_scored_as_if_solved_one_by_one(world, fold, options):
    model = ESZSL(world.embeddings["att"], **options)
    found = map_accuracy(model, fold)
    assert found.shape == (len(GAMMAS), len(LAMS))
    expected = [[by_hand(model.set_params(gamma=g, lam=s), fold) for s in LAMS] for g in GAMMAS]
    np.testing.assert_allclose(found, expected)
    assert found.min() < found.max()


def test_a_ranked_map_is_scored_by_what_it_starts_from(world, fold):
    options = {"center_classes": True, "balance_classes": True, **SCALED}
    ranked = LatEm(world.embeddings["att"], start="eszsl", init_scale=0.0, n_maps=1, **options)
    closed = ESZSL(world.embeddings["att"], **options)
    np.testing.assert_array_equal(map_accuracy(ranked, fold), map_accuracy(closed, fold))


@pytest.mark.parametrize(
    "options",
    [{}, {"center_classes": True}, {"n_components": 3}, {"neighbour": "whitened"},
     {"neighbour": "whitened", "center_classes": True, "shrinkage": 0.1, "n_components": 9}],
)  # fmt: skip
def test_exemplars_are_scored_as_if_predicted_one_by_one(world, fold, options):
    gammas, alphas = [2.0**-4, 0.5, 16.0], [0.001, 0.1, 10.0]
    model = EXEM(world.embeddings["att"], **options)
    found = exemplar_accuracy(model, fold, fold_images(model, fold), gammas, alphas)
    expected = [
        [by_hand(model.set_params(gamma=gamma, alpha=alpha), fold) for alpha in alphas]
        for gamma in gammas
    ]
    np.testing.assert_allclose(found, expected)
    assert found.min() < found.max()


def test_images_can_be_shared_by_models_that_scale_them_alike(world, fold):
    table = world.embeddings["att"]
    images = fold_images(ESZSL(table, **SCALED), fold)
    for model in (ESZSL(table, **SCALED), ESZSL(table, **KERNEL, **SCALED)):
        np.testing.assert_array_equal(map_accuracy(model, fold, images), map_accuracy(model, fold))
    exem = EXEM(table, neighbour="whitened")
    np.testing.assert_array_equal(
        exemplar_accuracy(exem, fold, images, [0.25], [0.1]),
        exemplar_accuracy(exem, fold, fold_images(exem, fold), [0.25], [0.1]),
    )


def test_models_and_images_are_left_alone(world, fold):
    model = ESZSL(world.embeddings["att"], dtype="float32")
    before = fold.X.copy()
    map_accuracy(model, fold)
    assert model.dtype == "float32"
    assert not hasattr(model, "classes_")
    np.testing.assert_array_equal(fold.X, before)
