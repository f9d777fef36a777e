"""Likenesses of classes, and what is predicted from them, against plain sums."""

from functools import partial

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from latem.models.class_kernels import (
    class_means,
    class_variances,
    gaussian_kernel,
    kernel_ridge,
    median_distance,
    quadratic_kernel,
)


@pytest.fixture
def tables():
    rng = np.random.default_rng(0)
    return rng.normal(size=(4, 3)), rng.normal(size=(6, 3))


def test_likenesses_are_plain_sums(tables):
    new, seen = tables
    near, products = gaussian_kernel(new, seen, 0.3), quadratic_kernel(new, seen)
    for i, a in enumerate(new):
        for j, b in enumerate(seen):
            assert near[i, j] == pytest.approx(np.exp(-0.3 * sum((a - b) ** 2)), abs=1e-8)
            assert products[i, j] == pytest.approx((1 + sum(a * b)) ** 2, abs=1e-8)


@pytest.mark.parametrize("likeness", [partial(gaussian_kernel, rate=0.5), quadratic_kernel])
def test_classes_that_are_equally_like_every_seen_class_are_equal(tables, likeness):
    new, seen = tables
    wide = np.column_stack([seen, np.zeros((6, 9))])
    one, two = np.zeros((2, 1, 12))
    one[:, :3] = two[:, :3] = new[:1] / 3
    one[:, 3:] = 0.1  # the same length in another direction that no seen class has
    two[:, 3] = 0.3
    np.testing.assert_array_equal(likeness(one, wide), likeness(two, wide))


def test_median_distance():
    assert median_distance(np.array([[0.0, 0], [3, 4], [0, 1]])) == pytest.approx(np.sqrt(18))
    assert median_distance(np.array([[0.0, 0], [0, 0], [3, 4]])) == 5  # zeros do not count
    assert median_distance(np.ones((3, 2))) == 1


def test_ridge_regression_is_scikit_learn_s(tables):
    new, seen = tables
    targets = np.random.default_rng(1).normal(size=(6, 2)) + 4
    coefficients, offset = kernel_ridge(quadratic_kernel(seen, seen), targets, 0.3)
    theirs = KernelRidge(alpha=0.3, kernel="poly", degree=2, gamma=1, coef0=1)
    theirs.fit(seen, targets - targets.mean(axis=0))
    np.testing.assert_allclose(
        quadratic_kernel(new, seen) @ coefficients + offset,
        theirs.predict(new) + targets.mean(axis=0),
        atol=1e-7,
    )


def test_means_and_variances_are_those_of_each_class():
    rng = np.random.default_rng(2)
    X, codes = rng.normal(size=(12, 3)), np.array([0, 1, 2] * 3 + [1] * 3)
    means = class_means(X, codes, 3)
    variances = class_variances(X, codes, means)
    for c in range(3):
        np.testing.assert_allclose(means[c], X[codes == c].mean(axis=0))
        np.testing.assert_allclose(variances[c], X[codes == c].var(axis=0))
