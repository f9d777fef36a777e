"""Images prepared once: the same order and scores as `rank_images`, the nearest by angle."""

import numpy as np
import pytest

from latem import DAP, ESZSL, Committee, LateFusion, LatEm, make_latent_world
from latem.inspection.image_index import ImageIndex


@pytest.fixture(scope="module")
def world():
    return make_latent_world(random_state=0)


def fitted(world, kind):
    table = world.embeddings["att"]
    model = {
        "ESZSL": lambda: ESZSL(table, feature_scaling="l2-centered"),
        "LatEm": lambda: LatEm(table, n_maps=3, n_epochs=3, random_state=0),
        "kernel": lambda: ESZSL(table, class_kernel=0.7),
        "Committee": lambda: Committee(table, random_state=0),
        "LateFusion": lambda: LateFusion([("a", ESZSL(table)), ("b", ESZSL(table, gamma=10))]),
        "DAP": lambda: DAP(table),
    }[kind]()
    return model.fit(*world.training())


@pytest.mark.parametrize("kind", ["ESZSL", "LatEm", "kernel", "Committee", "LateFusion", "DAP"])
def test_it_finds_what_the_model_finds(world, kind):
    model = fitted(world, kind)
    X, y = world.testing()
    index = ImageIndex(model, X)
    assert len(index) == len(X)
    for name in np.unique(y)[:3].tolist():
        rows, scores = model.rank_images(X, name)
        found, same = index.best(name, len(X))
        np.testing.assert_array_equal(found, rows)
        np.testing.assert_allclose(same, scores, rtol=1e-5, atol=1e-5)
    some = np.arange(3, 20)
    best, _ = index.best(y[0], 4, some)
    assert len(best) == 4
    assert np.isin(best, some).all()


def test_new_classes_are_found(world):
    model = fitted(world, "Committee")
    X, y = world.testing()
    table = world.embeddings["att"].select([y[0]])
    renamed = type(table)(["new"], table.vectors, columns=table.columns)
    index = ImageIndex(model, X)
    np.testing.assert_array_equal(index.best(renamed, 5)[0], index.best(y[0], 5)[0])


@pytest.mark.parametrize("kind", ["ESZSL", "LateFusion"])
def test_nearest_images(world, kind):
    model = fitted(world, kind)
    X, _ = world.testing()
    index = ImageIndex(model, X)
    rows, likeness = index.nearest(X[7], 5)
    assert rows[0] == 7
    assert likeness[0] == pytest.approx(1, abs=1e-6)
    assert (np.diff(likeness) <= 0).all()
    scaled = model.scaler_.transform(X, np.float64) if kind == "ESZSL" else X
    scaled = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    cosines = scaled @ scaled[7]
    np.testing.assert_array_equal(rows, np.argsort(-cosines, kind="stable")[:5])
    np.testing.assert_allclose(likeness, cosines[rows], atol=1e-5)
    others, _ = index.nearest(X[7], 3, np.delete(np.arange(len(X)), 7))
    assert 7 not in others
