"""One-versus-rest classifiers against a general minimiser and against scikit-learn."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from latem.models import squared_hinge
from latem.models.squared_hinge import fit_one_versus_rest


def problem(seed, n=60, width=4, n_classes=4):
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    return rng.normal(size=(n, width)) + rng.normal(size=(n_classes, width))[codes] + 3, codes


def loss(parameters, X, targets, lam):
    w, b = parameters[:-1], parameters[-1]
    total = 0.0
    for x, t in zip(X, targets, strict=True):
        total += max(0.0, 1 - t * (w @ x + b)) ** 2
    return total / len(X) + lam / 2 * w @ w


@pytest.mark.parametrize("lam", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("shape", [(60, 4), (12, 30)])
def test_it_is_the_minimum(lam, shape):
    X, codes = problem(0, *shape)
    coefficients, intercepts, _ = fit_one_versus_rest(X, codes, lam=lam, max_iter=100)
    rng = np.random.default_rng(1)
    for c in range(4):
        targets = np.where(codes == c, 1, -1)
        found = np.append(coefficients[:, c], intercepts[c])
        least = loss(found, X, targets, lam)
        for size in (1e-1, 1e-2, 1e-3):
            for _ in range(5):
                other = found + size * rng.normal(size=len(found))
                assert loss(other, X, targets, lam) > least
        start = np.zeros(len(found))
        general = minimize(loss, start, args=(X, targets, lam), method="BFGS", tol=1e-9)
        assert least <= general.fun + 1e-9


def test_it_is_scikit_learn_s_without_the_penalty_on_its_intercept():
    X, codes = problem(2)
    X = X - X.mean(axis=0)
    lam, large = 0.02, 1e4  # a large constant feature makes its intercept nearly free
    coefficients, intercepts, _ = fit_one_versus_rest(X, codes, lam=lam, max_iter=100)
    theirs = LinearSVC(
        C=1 / (lam * len(X)), dual=False, tol=1e-10, max_iter=10**5, intercept_scaling=large
    ).fit(X, codes)
    np.testing.assert_allclose(coefficients.T, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(intercepts, theirs.intercept_, atol=1e-4)


def test_blocks_and_threads_change_nothing(monkeypatch):
    X, codes = problem(3)
    expected = fit_one_versus_rest(X, codes, lam=0.01, max_iter=100)
    monkeypatch.setattr(squared_hinge, "_BLOCK", 2)
    one = fit_one_versus_rest(X, codes, lam=0.01, max_iter=100, n_threads=1)
    two = fit_one_versus_rest(X, codes, lam=0.01, max_iter=100, n_threads=2)
    np.testing.assert_allclose(one[0], expected[0], atol=1e-5)
    np.testing.assert_array_equal(one[0], two[0])


def test_too_few_steps_are_told():
    X, codes = problem(4)
    with pytest.warns(
        ConvergenceWarning, match="4 of 4 classifiers did not converge in max_iter=1"
    ):
        *_, n_iter = fit_one_versus_rest(X, codes, lam=1e-6, max_iter=1)
    assert n_iter == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        *_, n_iter = fit_one_versus_rest(X, codes, lam=1e-6, max_iter=100)
    assert 1 < n_iter < 100


def test_images_that_are_all_alike_leave_the_intercepts():
    coefficients, intercepts, n_iter = fit_one_versus_rest(
        np.ones((6, 3)), np.array([0, 0, 0, 0, 1, 1]), lam=0.1, max_iter=10
    )
    np.testing.assert_array_equal(coefficients, 0)
    np.testing.assert_allclose(intercepts, [1 / 3, -1 / 3], atol=1e-6)
    assert n_iter >= 1
