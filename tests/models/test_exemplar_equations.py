"""EXEM's equations: plain formulas of covariances, and grids against single solutions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import empirical_covariance
from sklearn.kernel_ridge import KernelRidge

from latem import EXEM
from latem.models.exemplar_equations import ExemplarEquations
from latem.models.scaling import FeatureScaler
from latem.models.shared_images import SharedImages


def problem(seed, n_classes=6, width=4, n_features=5):
    """Images of classes of unequal size, two at least, and vectors of two classes more."""
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(n_classes + 2, width)) + 1
    y = np.concatenate([np.arange(n_classes).repeat(2), rng.integers(0, n_classes, 30)])
    mixed = rng.normal(size=(n_features, n_features))  # images vary along no axis alone
    X = rng.normal(size=(len(y), n_features)) @ mixed + rng.normal(size=(n_classes, n_features))[y]
    return X + 2, y, S


def plain(X, y):
    """Images that are not scaled."""
    return SharedImages(X, y, y.max() + 1, FeatureScaler.fit(X, None))


def plain_whitened(X, y, S, gamma, alpha, shrinkage, n_components):
    """Scores by the inverse of the shrunk covariance within classes, in principal components."""
    n_seen = y.max() + 1
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    X = X - X.mean(axis=0)
    S = S - S[:n_seen].mean(axis=0)
    S = S / np.linalg.norm(S, axis=1, keepdims=True)
    pairs = [np.linalg.norm(S[a] - S[b]) for a in range(n_seen) for b in range(a)]
    S = S / np.median(pairs)
    Z = X @ np.linalg.svd(X)[2][:n_components].T
    means = np.array([Z[y == c].mean(axis=0) for c in range(n_seen)])
    within = np.zeros((Z.shape[1], Z.shape[1]))
    for z, c in zip(Z, y, strict=True):
        within += np.outer(z - means[c], z - means[c]) / len(Z)
    within += shrinkage * np.trace(within) / len(within) * np.eye(len(within))
    D = np.linalg.inv(within)
    ridge = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma)
    exemplars = ridge.fit(S[:n_seen], means - means.mean(axis=0)).predict(S) + means.mean(axis=0)
    return np.array([[z @ D @ z - (z - v) @ D @ (z - v) for v in exemplars] for z in Z])


@settings(deadline=None, max_examples=20)
@given(
    st.integers(0, 999),
    st.sampled_from([2**-4, 1.0, 2**4]),
    st.sampled_from([0.01, 1.0]),
    st.sampled_from([0.01, 0.5, 1.0, 20.0]),
    st.sampled_from([1, 3, 500]),
)
def test_whitened_scores_are_the_definition(seed, gamma, alpha, shrinkage, n_components):
    X, y, S = problem(seed)
    model = EXEM(
        (range(8), S), gamma=gamma, alpha=alpha, neighbour="whitened", shrinkage=shrinkage,
        n_components=n_components, center_classes=True, dtype="float64",
    ).fit(X, y)  # fmt: skip
    expected = plain_whitened(X, y, S, gamma, alpha, shrinkage, n_components)
    size = np.abs(expected).max()
    np.testing.assert_allclose(model.decision_function(X, "all"), expected, atol=1e-7 * size)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 999), st.sampled_from([0.1, 1.0]), st.sampled_from([2, 5]))
def test_the_axes_are_those_of_the_covariance_within_classes(seed, shrinkage, n_components):
    X, y, S = problem(seed)
    found = ExemplarEquations(plain(X, y), S[:6], n_components, shrinkage)
    np.testing.assert_allclose(
        found.components.T @ found.components, np.eye(n_components), atol=1e-9
    )
    projected = (X - found.mean) @ found.components
    inner = projected - np.array([projected[y == c].mean(axis=0) for c in y])
    covariance = empirical_covariance(inner, assume_centered=True)
    variances = np.square(found.spreads) - shrinkage * np.trace(covariance) / n_components
    np.testing.assert_allclose(covariance, np.diag(variances), atol=1e-9 * covariance.max())
    np.testing.assert_allclose(found.means, [projected[y == c].mean(axis=0) for c in range(6)])


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 999), st.sampled_from([None, 0.3]), st.sampled_from([2, 500]))
def test_a_grid_gives_what_every_solution_gives(seed, shrinkage, n_components):
    X, y, S = problem(seed)
    equations = ExemplarEquations(plain(X, y), S[:6], n_components, shrinkage)
    gammas, alphas = [0.1, 2.0], [0.01, 0.1, 1.0]
    table = (range(8), S)
    options = {"feature_scaling": None, "normalize_classes": False, "dtype": "float64"}
    if shrinkage is not None:
        options |= {"neighbour": "whitened", "shrinkage": shrinkage}
    seen = []
    for i, j, scores in equations.grid_scores(X, S, gammas, alphas):
        model = EXEM(table, gamma=gammas[i], alpha=alphas[j], n_components=n_components, **options)
        expected = model.fit(X, y).decision_function(X, "all")
        np.testing.assert_allclose(scores, expected, atol=1e-7 * np.abs(expected).max())
        seen.append((i, j))
    assert seen == [(i, j) for i in range(2) for j in range(3)]


def test_images_without_spread_count_every_axis_alike():
    X, S = np.array([[1.0, 0], [0, 1.0], [3.0, 1.0]]), np.eye(3)
    for shrinkage in (None, 1.0):
        found = ExemplarEquations(plain(X, np.arange(3)), S, 9, shrinkage)
        np.testing.assert_array_equal(found.spreads, 1)


def test_more_shrinkage_comes_nearer_to_plain_distances():
    X, y, S = problem(3)

    def names(**options):
        return EXEM((range(8), S), dtype="float64", **options).fit(X, y).decision_function(X, "all")

    plain = names(neighbour="1NN").ravel()
    alike = [
        np.corrcoef(names(neighbour="whitened", shrinkage=s).ravel(), plain)[0, 1]
        for s in (0.01, 1.0, 1e6)
    ]
    assert alike[0] < alike[1] < alike[2]
    assert alike[2] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("value", [0, -1.0, "auto"])
def test_a_shrinkage_that_is_none(value):
    X, y, _ = problem(0)
    with pytest.raises(ValueError, match="'shrinkage' parameter of EXEM"):
        EXEM(shrinkage=value).fit(X, y)
