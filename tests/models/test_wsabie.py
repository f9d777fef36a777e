"""WSABIE against its algorithm in plain NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

import latem
from latem import WSABIE, make_latent_world
from latem.models.wsabie import shorten_columns


@parametrize_with_checks([WSABIE(random_state=0), WSABIE(max_norm=2.0, rank=3, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def plain_epoch(X, y, Y, U, V, order, keys, step, margin):
    """WARP as published: draw rivals until one violates, weigh the step by the rank's estimate."""
    C = len(Y)
    violations, loss = 0, 0.0
    for n, key in zip(order, keys, strict=True):
        x, true = X[n], Y[y[n]]
        rivals = [c for c in np.argsort(key) if c != y[n]]
        for draws, c in enumerate(rivals, start=1):
            image = U @ x
            hinge = margin + image @ (V @ Y[c]) - image @ (V @ true)
            if hinge > 0:
                weight = sum(1 / i for i in range(1, (C - 1) // draws + 1))
                difference = true - Y[c]
                toward = V @ difference
                V += step * weight * np.outer(image, difference)
                U += step * weight * np.outer(toward, x)
                violations += 1
                loss += weight * hinge
                break
    return violations, loss


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 9999), st.integers(2, 7), st.integers(1, 5), st.integers(1, 4),
    st.sampled_from([None, 0.5, 5.0]),
)  # fmt: skip
def test_training_is_the_published_algorithm(seed, n_classes, width, rank, max_norm):
    rng = np.random.default_rng(seed)
    y = np.arange(40) % n_classes
    X, Y = rng.normal(size=(40, 6)), rng.normal(size=(n_classes, width))
    U, V = rng.normal(size=(rank, 6)), rng.normal(size=(rank, width))
    visits = [(rng.permutation(40), rng.random((40, n_classes))) for _ in range(3)]
    script = iter(visits)

    class Scripted(WSABIE):
        def __init__(self):
            super().__init__(
                (range(n_classes), Y), rank=rank, learning_rate=0.05, n_epochs=3,
                max_norm=max_norm, feature_scaling=None, normalize_classes=False, dtype="float64",
            )  # fmt: skip

        def _initial_maps(self, seed, n_features, n_dimensions):
            return U.copy(), V.copy()

        def _visits(self, rng, n_samples):
            order, keys = next(script)
            rows = iter(keys)
            return order, lambda n, c: np.array([next(rows) for _ in range(n)])

    model = Scripted().fit(X, y)
    losses = []
    for order, keys in visits:
        _, loss = plain_epoch(X, y, Y, U, V, order, keys, 0.05, 1.0)
        losses.append(loss / 40)
        for matrix in (U, V) if max_norm else ():
            for column in matrix.T:
                column *= min(1, max_norm / np.linalg.norm(column))
    np.testing.assert_allclose(model.image_map_, U, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(model.class_map_, V, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(model.history_["mean_loss"], losses, rtol=1e-8, atol=1e-8)
    expected = (X @ U.T) @ (V @ Y.T)
    names = list(range(n_classes))
    np.testing.assert_allclose(model.decision_function(X, names), expected, atol=1e-8)


def test_blocks_of_images_make_no_difference(monkeypatch):
    world = make_latent_world(n_poses=1, n_images=10, random_state=0)
    X, y = world.training()
    model = WSABIE(world.embeddings["att"], rank=4, n_epochs=3, random_state=0)
    whole = model.fit(X, y).image_map_
    monkeypatch.setattr("latem.models.wsabie._BLOCK", 7)
    np.testing.assert_array_equal(model.fit(X, y).image_map_, whole)


def test_enough_rank_names_every_image_and_too_little_does_not():
    world = make_latent_world(n_poses=1, n_images=10, random_state=0)
    scores = [
        WSABIE(world.embeddings["att"], rank=rank, random_state=0)
        .fit(*world.training())
        .score(*world.testing())
        for rank in (1, 8)
    ]
    assert scores[0] < 0.7
    assert scores[1] == 1.0


def test_columns_are_shortened_only_if_too_long():
    matrix = np.array([[3.0, 0.0, 0.1], [4.0, 0.0, 0.0]])
    shorten_columns(matrix, 1.0)
    np.testing.assert_allclose(matrix, [[0.6, 0, 0.1], [0.8, 0, 0]])


def test_files_and_errors(tmp_path):
    world = make_latent_world(n_poses=1, n_images=4, random_state=0)
    X, y = world.training()
    model = WSABIE(world.embeddings["att"], rank=3, n_epochs=2, random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    np.testing.assert_array_equal(
        again.decision_function(X, "all"), model.decision_function(X, "all")
    )
    assert again.history_ == model.history_
    with pytest.raises(ValueError, match="diverged in epoch"):
        WSABIE(world.embeddings["att"], learning_rate=1e38).fit(X, y)
    with pytest.raises(ValueError, match="'rank' parameter of WSABIE"):
        WSABIE(rank=0).fit(X, y)
