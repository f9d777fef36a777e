"""SAE against SciPy's solver of Sylvester equations, and against its objective."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_sylvester
from sklearn.utils.estimator_checks import parametrize_with_checks

import latem
from latem import SAE, FileFormatError, make_latent_world
from latem.core import storage

EXACT = {"feature_scaling": None, "normalize_classes": False, "dtype": "float64"}


@parametrize_with_checks([SAE(), SAE(direction="semantic")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_images=8, noise=0.5, random_state=0)


def problem(seed, n_classes=5, width=3):
    """Images with unequal numbers per class."""
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(n_classes + 2, width)) + 1
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 35) ** 2 % n_classes])
    X = rng.normal(size=(len(y), 4)) + rng.normal(size=(n_classes, 4))[y] + 2
    return X, y, S


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 999),
    st.sampled_from([0.01, 1.0, 100.0]),
    st.sampled_from(["visual", "semantic"]),
    st.sampled_from([2, 3, 9]),
)
def test_scores_are_the_definition(seed, lam, direction, width):
    X, y, S = problem(seed, width=width)  # width 9: more dimensions than classes
    model = SAE((range(7), S), lam=lam, direction=direction, **EXACT).fit(X, y)
    columns = S[y].T  # one class vector per image
    W = solve_sylvester(columns @ columns.T, lam * X.T @ X, (1 + lam) * columns @ X)
    np.testing.assert_allclose(model.map_, W.T, atol=1e-6)
    expected = [
        [cosine(W @ x, s) if direction == "semantic" else cosine(x, W.T @ s) for s in S] for x in X
    ]
    np.testing.assert_allclose(model.decision_function(X, "all"), expected, atol=1e-6)


def test_no_other_map_has_a_smaller_loss():
    X, y, S = problem(1)
    lam = 0.7
    model = SAE((range(7), S), lam=lam, **EXACT).fit(X, y)

    def loss(W):
        back, there = X - S[y] @ W, X @ W.T - S[y]
        return np.square(back).sum() + lam * np.square(there).sum()

    rng, W = np.random.default_rng(0), model.map_.T
    for _ in range(50):
        other = W + 1e-3 * rng.normal(size=W.shape)
        assert loss(W) < loss(other)


def test_directions_in_which_nothing_differs_are_left_out():
    X, y, S = problem(2, width=9)
    X = np.column_stack([X, X[:, 0] - X[:, 1], np.zeros(len(X))])  # SciPy has no answer here
    model = SAE((range(7), S), **EXACT).fit(X, y)
    assert np.abs(model.map_).max() < 10
    assert not model.map_[-1].any()
    lam, columns, W = model.lam, S[y].T, model.map_.T
    left = columns @ columns.T @ W + lam * W @ X.T @ X
    np.testing.assert_allclose(left, (1 + lam) * columns @ X, atol=1e-9)


def test_images_that_are_all_zero_are_no_trouble():
    model = SAE().fit(np.zeros((6, 3)), [0, 1, 0, 1, 0, 1])
    np.testing.assert_array_equal(model.decision_function(np.ones((2, 3)), [0, 1]), 0)


def test_classes_that_differ_only_in_what_no_seen_class_has_are_equal():
    X, y, S = problem(3)
    S = np.column_stack([S, np.zeros((7, 3))])
    new = np.repeat(S[5:6], 3, axis=0)
    new[:, 3:] = np.eye(3)
    nothing = np.array([[0, 0, 0, 1.0, 1, 0]])
    table = (range(11), np.concatenate([S, new, nothing]))
    scores = SAE(table, feature_scaling=None, dtype="float64").fit(X, y).decision_function(X, "all")
    np.testing.assert_allclose(scores[:, 7:10], scores[:, [5, 5, 5]], atol=1e-14)
    np.testing.assert_array_equal(scores[:, 10], 0)


@pytest.mark.parametrize("direction", ["visual", "semantic"])
def test_a_world_and_its_file(world, direction, tmp_path):
    X, y = world.training()
    model = SAE(world.embeddings["att"], direction=direction).fit(X, y)
    assert model.score(*world.testing()) > 0.7
    model.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    assert again.direction == direction
    np.testing.assert_array_equal(
        again.decision_function(X, "all"), model.decision_function(X, "all")
    )


def test_lam_is_chosen_on_held_out_classes(world):
    search = latem.HeldOutSearch(SAE(world.embeddings["att"]), cv=list(world.split().val))
    search.fit(*world.training())
    assert set(search.best_params_) == {"lam"}
    assert search.score(*world.testing()) > 0.7


@pytest.mark.parametrize("change", [lambda t: t[:, :-1], lambda t: t * np.nan])
def test_damaged_files(change, tmp_path):
    X, y, S = problem(0)
    tensors, meta = SAE((range(7), S)).fit(X, y).pack()
    tensors["map"] = np.ascontiguousarray(change(tensors["map"]))
    storage.write_file(tmp_path / "m", "model", tensors, meta)
    with pytest.raises(FileFormatError, match="damaged: map"):
        latem.load(tmp_path / "m")


@pytest.mark.parametrize(("name", "value"), [("lam", 0), ("direction", "both")])
def test_bad_parameters(name, value):
    X, y, _ = problem(0)
    with pytest.raises(ValueError, match=f"'{name}' parameter of SAE"):
        SAE(**{name: value}).fit(X, y)
