"""Principal axes against a singular value decomposition."""

import numpy as np
import pytest

from latem.models.axes import PrincipalAxes


@pytest.mark.parametrize("shape", [(30, 4), (5, 12)])
def test_axes_are_those_of_the_singular_value_decomposition(shape):
    X = np.random.default_rng(0).normal(size=shape) + 3
    axes = PrincipalAxes(X)
    singular = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    rank = min(shape[0] - 1, shape[1])
    np.testing.assert_allclose(np.sqrt(axes.eigenvalues[::-1]), singular[:rank], atol=1e-9)
    np.testing.assert_allclose(axes.Q.T @ axes.Q, np.eye(rank), atol=1e-9)
    np.testing.assert_allclose(axes.Z, (X - X.mean(axis=0)) @ axes.Q, atol=1e-9)
    np.testing.assert_allclose(axes.Z @ axes.Q.T + axes.mean, X, atol=1e-9)


def test_coefficients_come_back_to_the_features_as_they_were_given():
    rng = np.random.default_rng(1)
    X, parameters = rng.normal(size=(20, 3)) - 5, rng.normal(size=(4, 2))
    axes = PrincipalAxes(X)
    coefficients, intercepts = axes.back(parameters)
    np.testing.assert_allclose(
        X @ coefficients + intercepts, axes.Z @ parameters[:-1] + parameters[-1], atol=1e-9
    )


def test_images_that_are_all_alike_have_no_axes():
    axes = PrincipalAxes(np.ones((4, 3)))
    assert axes.Z.shape == (4, 0)
    assert axes.Q.shape == (3, 0)
