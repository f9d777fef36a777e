"""GFZSL against SciPy's densities and scikit-learn's regressions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils.estimator_checks import parametrize_with_checks

import latem
from latem import GFZSL, FileFormatError, make_latent_world
from latem.core import storage

EXACT = {"feature_scaling": None, "normalize_classes": False, "dtype": "float64"}


@parametrize_with_checks([GFZSL()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_images=8, noise=0.5, random_state=0)


def problem(seed, n_classes=6, width=3):
    """Images with unequal numbers per class."""
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(n_classes + 2, width)) + 1
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 30)])
    X = rng.normal(size=(len(y), 4)) + rng.normal(size=(n_classes, 4))[y] + 2
    return X, y, S


def plain_scores(X, y, S, alpha, variance_alpha, prior_images):
    """One Gaussian for every class and dimension."""
    n_seen = y.max() + 1
    scores = np.zeros((len(X), len(S)))
    for j in range(X.shape[1]):
        column = X[:, j]
        means = np.array([column[y == c].mean() for c in range(n_seen)])
        common = np.mean([(x - means[c]) ** 2 for x, c in zip(column, y, strict=True)])
        logarithms = np.zeros(n_seen)
        for c in range(n_seen):
            squares = np.sum((column[y == c] - means[c]) ** 2) + prior_images * common
            logarithms[c] = np.log(squares / (np.sum(y == c) + prior_images))
        predicted = []
        for values, penalty in ((means, alpha), (logarithms, variance_alpha)):
            ridge = KernelRidge(alpha=penalty, kernel="poly", degree=2, gamma=1, coef0=1)
            ridge.fit(S[:n_seen], values - values.mean())
            predicted.append(ridge.predict(S) + values.mean())
        for k, (mean, logarithm) in enumerate(zip(*predicted, strict=True)):
            density = norm(mean, np.exp(logarithm / 2)).logpdf(column)
            scores[:, k] += density + np.log(2 * np.pi) / 2
    return scores


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 999),
    st.sampled_from([0.1, 1.0]),
    st.sampled_from([1.0, 100.0]),
    st.sampled_from([0.5, 10.0]),
    st.sampled_from([2, 3, 9]),
)
def test_scores_are_the_definition(seed, alpha, variance_alpha, prior_images, width):
    X, y, S = problem(seed, width=width)
    options = {"alpha": alpha, "variance_alpha": variance_alpha, "prior_images": prior_images}
    model = GFZSL((range(8), S), **options, **EXACT).fit(X, y)
    expected = plain_scores(X, y, S, **options)
    np.testing.assert_allclose(model.decision_function(X, "all"), expected, rtol=1e-6, atol=1e-6)


def test_the_scale_of_features_adds_the_same_to_every_score():
    X, y, S = problem(1)
    one = GFZSL((range(8), S), **EXACT).fit(X, y).decision_function(X, "all")
    scales = np.array([1, 10, 0.1, 3])
    X = X * scales - 7
    two = GFZSL((range(8), S), **EXACT).fit(X, y).decision_function(X, "all")
    np.testing.assert_allclose(two + np.log(scales).sum(), one, atol=1e-6)


def test_large_penalties_give_all_classes_the_same_variances():
    X, y, S = problem(2)
    model = GFZSL((range(8), S), variance_alpha=1e12, **EXACT).fit(X, y)
    scores = model.decision_function(X, "all")
    differences = scores - scores[:, :1]
    design = np.column_stack([X, np.ones(len(X))])
    rest = differences - design @ np.linalg.lstsq(design, differences, rcond=None)[0]
    np.testing.assert_allclose(rest, 0, atol=1e-6)  # linear: what is quadratic is the same for all


@pytest.mark.parametrize("X", [np.ones((6, 3)), np.array([[0, 0, 1.0], [1, 0, 1]] * 3)])
def test_features_that_do_not_vary_are_no_trouble(X):
    model = GFZSL().fit(X, [0, 1, 0, 1, 0, 1])
    scores = model.decision_function(X, [0, 1])
    assert np.isfinite(scores).all()
    if X[:, 0].any() and not X[:, 1].any():
        assert (scores.argmax(axis=1) == [0, 1, 0, 1, 0, 1]).all()


def test_a_world_and_its_file(world, tmp_path):
    X, y = world.training()
    model = GFZSL(world.embeddings["att"]).fit(X, y)
    assert model.score(*world.testing()) > 0.7
    model.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    np.testing.assert_array_equal(
        again.decision_function(X, "all"), model.decision_function(X, "all")
    )


def test_parameters_are_chosen_on_held_out_classes(world):
    search = latem.HeldOutSearch(GFZSL(world.embeddings["att"]), cv=list(world.split().val))
    search.fit(*world.training())
    assert set(search.best_params_) == {"alpha", "variance_alpha"}
    assert search.score(*world.testing()) > 0.7


def test_variances_too_large_to_compute_with_are_refused():
    X, y, S = problem(0)
    model = GFZSL((range(8), S), variance_alpha=1e-9, **EXACT).fit(X, y)
    with pytest.raises(ValueError, match="GFZSL got scores that are not finite"):
        model.decision_function(X, {"far": [1e4, -1e4, 1e4]})


@pytest.mark.parametrize(
    ("tensor", "change"),
    [
        ("mean_coef", lambda t: t[:, :-1]),
        ("mean_offset", lambda t: t[:-1]),
        ("variance_coef", lambda t: t * np.nan),
        ("variance_offset", lambda t: t.astype("float64")),
    ],
)
def test_damaged_files(tensor, change, tmp_path):
    X, y, S = problem(0)
    tensors, meta = GFZSL((range(8), S)).fit(X, y).pack()
    tensors[tensor] = np.ascontiguousarray(change(tensors[tensor]))
    storage.write_file(tmp_path / "m", "model", tensors, meta)
    with pytest.raises(FileFormatError, match=f"damaged: {tensor}"):
        latem.load(tmp_path / "m")


@pytest.mark.parametrize("name", ["alpha", "variance_alpha", "prior_images"])
def test_bad_parameters(name):
    X, y, _ = problem(0)
    with pytest.raises(ValueError, match=f"'{name}' parameter of GFZSL"):
        GFZSL(**{name: 0}).fit(X, y)
