"""Logistic regressions against scikit-learn's, which minimise the same."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from latem.core.threads import single_threaded_blas
from latem.models.logistic import TOLERANCE, fit_binary, fit_softmax

SHAPES = pytest.mark.parametrize(("n", "d"), [(300, 12), (40, 90)])


def features(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / np.sqrt(d) + rng.normal(size=d)
    return X, rng


def both(rng, X, n_targets):
    """Targets that have something to do with the features, rare ones and frequent ones."""
    scores = X @ rng.normal(size=(X.shape[1], n_targets)) + rng.normal(size=(len(X), n_targets))
    return scores > np.quantile(scores, np.linspace(0.05, 0.95, n_targets), axis=0).diagonal()


def sklearn_fit(X, y, C):
    inner = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12)
    with single_threaded_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may find no better step so near the optimum
        inner.fit(X, y)
    return inner.coef_.T, inner.intercept_


def gradient_length(X, surplus, coefficients, C):
    """Length of each column's gradient, by the objective's definition."""
    gradient = np.vstack([C * X.T @ surplus + coefficients, C * surplus.sum(axis=0)])
    return np.linalg.norm(gradient, axis=0)


@SHAPES
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_binary_coefficients_are_scikit_learns(n, d, C):
    X, rng = features(n, d)
    targets = both(rng, X, 7)
    coefficients, intercepts, n_iter = fit_binary(X, targets, C=C, max_iter=1000)
    assert n_iter > 1
    for m in range(7):
        expected, intercept = sklearn_fit(X, targets[:, m], C)
        np.testing.assert_allclose(coefficients[:, m], expected[:, 0], atol=1e-8 * max(1, C))
        assert intercepts[m] == pytest.approx(intercept[0], abs=1e-8 * max(1, C))


@SHAPES
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_promised_tolerance_is_kept(n, d, C):
    X, rng = features(n, d, seed=1)
    targets = both(rng, X, 5)
    coefficients, intercepts, _ = fit_binary(X, targets, C=C, max_iter=1000)
    # in centred features, as the intercept's part depends on where zero is
    centred, at_mean = X - X.mean(axis=0), intercepts + X.mean(axis=0) @ coefficients
    chances = 1 / (1 + np.exp(-(centred @ coefficients + at_mean)))
    share = targets.mean(axis=0)
    start = gradient_length(centred, share - targets, 0 * coefficients, C)
    end = gradient_length(centred, chances - targets, coefficients, C)
    assert (end <= 1.01 * TOLERANCE * (start + C * n * share * (1 - share))).all()


@SHAPES
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3, 8])
def test_softmax_coefficients_are_scikit_learns(n, d, C, n_classes):
    X, rng = features(n, d, seed=2)
    codes = np.argmax(X @ rng.normal(size=(d, n_classes)) + rng.normal(size=(n, n_classes)), axis=1)
    codes[:n_classes] = np.arange(n_classes)
    coefficients, intercepts, _ = fit_softmax(X, codes, C=C, max_iter=1000)
    expected, free = sklearn_fit(X, codes, C)
    if n_classes == 2:  # scikit-learn keeps the second class's logit only
        expected, free = np.column_stack([0 * expected, expected]), np.append(0, free)
    np.testing.assert_allclose(coefficients, expected, atol=1e-8)
    np.testing.assert_allclose(intercepts, free, atol=1e-8)


def test_threads_and_neighbours_change_nothing_that_counts():
    X, rng = features(200, 10)
    targets = both(rng, X, 150)  # more than a block
    one, three = (fit_binary(X, targets, C=0.1, max_iter=1000, n_threads=n) for n in (1, 3))
    assert one[0].tobytes() == three[0].tobytes()
    alone = fit_binary(X, targets[:, 70:71], C=0.1, max_iter=1000)
    np.testing.assert_allclose(one[0][:, 70:71], alone[0], atol=1e-9)


def test_too_few_iterations_are_told():
    X, rng = features(100, 20)
    targets = both(rng, X, 3)
    with pytest.warns(ConvergenceWarning, match="3 of 3 .* max_iter=2 .* raise max_iter"):
        *_, n_iter = fit_binary(X, targets, C=1.0, max_iter=2)
    assert n_iter == 2
    with pytest.warns(ConvergenceWarning, match="1 of 1 .* max_iter=1 "):
        fit_softmax(X, np.arange(100) % 4, C=1.0, max_iter=1)


def test_features_that_say_nothing_leave_the_shares():
    targets = np.arange(40)[:, None] % 4 == 0
    for X in (np.ones((40, 3)), np.zeros((40, 60))):
        coefficients, intercepts, n_iter = fit_binary(X, targets, C=1.0, max_iter=100)
        assert (coefficients == 0).all()
        np.testing.assert_allclose(intercepts, np.log(1 / 3))
        assert n_iter == 1


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_badly_scaled_and_separable_problems_end(scale):
    X, _ = features(120, 8)
    X = scale * (X + 1000)  # far from zero, where single precision sees little
    targets = X[:, :1] > np.median(X[:, 0])
    coefficients, intercepts, n_iter = fit_binary(X, targets, C=1e3 / scale**2, max_iter=1000)
    assert n_iter < 1000
    assert (((X @ coefficients + intercepts) > 0) == targets).mean() > 0.9


def test_progress_counts_every_column_once():
    X, rng = features(100, 5)
    targets = both(rng, X, 70)
    calls = []
    fit_binary(X, targets, C=1.0, max_iter=1000, done=lambda: calls.append(1))
    assert len(calls) == 70
    calls.clear()
    *_, n_iter = fit_softmax(
        X, np.arange(100) % 3, C=1.0, max_iter=1000, done=lambda: calls.append(1)
    )
    assert len(calls) == n_iter
