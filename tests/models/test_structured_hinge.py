"""Crammer and Singer's classifiers: at the minimum, and told if not."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from latem.models.structured_hinge import TOLERANCE, fit_structured


def problem(seed, n=60, width=4, n_classes=5):
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    X = rng.normal(size=(n, width)) + rng.normal(size=(n_classes, width))[codes]
    margins = rng.uniform(0.2, 2, size=(n_classes, n_classes))
    np.fill_diagonal(margins, 0)
    return X, codes, margins


def objective(W, X, codes, margins, lam):
    total = 0.0
    for x, y in zip(X, codes, strict=True):
        rivals = [margins[c, y] + (W[:, c] - W[:, y]) @ x for c in range(len(margins)) if c != y]
        total += max(0.0, *rivals) ** 2
    return total / len(X) + lam / 2 * np.sum(W**2)


@pytest.mark.parametrize("lam", [0.01, 1.0])
@pytest.mark.parametrize("shape", [(60, 4), (12, 30)])
def test_it_is_the_minimum(lam, shape):
    X, codes, margins = problem(0, *shape)
    found, n_iter = fit_structured(X, codes, margins, lam=lam, max_iter=10**5)
    assert n_iter >= 1
    least = objective(found, X, codes, margins, lam)
    rng = np.random.default_rng(1)
    for size in (1, 1e-1, 3e-2):
        for _ in range(10):
            other = found + size * rng.normal(size=found.shape)
            assert objective(other, X, codes, margins, lam) > least * (1 - TOLERANCE)
    shorter = objective(0.9 * found, X, codes, margins, lam)
    longer = objective(1.1 * found, X, codes, margins, lam)
    assert least < min(shorter, longer)


def test_margins_that_differ_are_kept_by_one_image_each():
    """Three images on three axes and hardly a penalty: every pair gets the lead it should have."""
    margins = np.array([[0, 1.0, 2.0], [1.0, 0, 3.0], [2.0, 3.0, 0]])
    X = np.eye(3)
    W, _ = fit_structured(X, np.arange(3), margins, lam=1e-5, max_iter=10**5)
    lead = np.diag(X @ W)[:, None] - X @ W
    assert (lead >= margins - 0.01).all()


def test_images_of_zeros_and_single_classes_are_no_trouble():
    X, codes, margins = problem(2)
    X[7] = 0
    W, _ = fit_structured(X, codes, margins, lam=0.1, max_iter=1000)
    without, _ = fit_structured(
        np.delete(X, 7, axis=0), np.delete(codes, 7), margins, lam=0.1 * 60 / 59, max_iter=1000
    )
    np.testing.assert_allclose(W, without, atol=0.02)  # it cannot move any classifier
    W, n_iter = fit_structured(X, 0 * codes, np.zeros((1, 1)), lam=0.1, max_iter=10)
    assert (W == 0).all()
    assert n_iter == 1


def test_too_few_passes_are_told():
    X, codes, margins = problem(3)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 rounds.* raise max_iter"):
        *_, n_iter = fit_structured(X, codes, margins, lam=1e-6, max_iter=2)
    assert n_iter == 2
