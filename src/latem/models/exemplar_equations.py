"""EXEM's equations: class means in principal components, from which every prediction follows.

The mean image of a class is predicted from its vector a by kernel ridge regression on the seen
classes, with the kernel exp(-γ ‖a - b‖² / m²), m the median distance of two seen classes' vectors.
One set of principal components serves every (γ, α), and one decomposition of the kernel every α.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy import linalg

from latem.models.class_kernels import gaussian_kernel, kernel_ridge, median_distance
from latem.models.shared_images import SharedImages

_LEAST = 1e-3  # standard deviations are at least this share of the largest one


class ExemplarEquations:
    """What a prediction of exemplars for any (γ, α) needs, in float64.

    Parameters
    ----------
    images : SharedImages
    vectors : ndarray of shape (n_classes, n_dimensions)
    n_components : int
        Most principal components to keep.
    shrinkage : float or None
        None keeps the principal components as axes. A number turns them to those of the covariance
        within classes, and adds that share of its mean variance to all its variances.

    Attributes
    ----------
    components : ndarray of shape (n_features, n_kept)
        The axes.
    mean : ndarray of shape (n_features,)
        Images are compared as ``(x - mean) @ components``.
    means : ndarray of shape (n_classes, n_kept)
        Of the classes' images.
    spreads : ndarray of shape (n_kept,)
        Standard deviation along each axis within a class.
    """

    def __init__(
        self,
        images: SharedImages,
        vectors: np.ndarray,
        n_components: int,
        shrinkage: float | None = None,
    ):
        kept = slice(None, -n_components - 1, -1)  # from the largest on
        self.vectors, self.mean = vectors, images.principal.mean
        self.components, projected = images.along(kept)
        self.means = projected.means
        if shrinkage is None:
            spreads = projected.deviations()
        else:
            variances, turned = linalg.eigh(projected.within())
            variances = np.maximum(variances, 0)
            self.components, self.means = self.components @ turned, self.means @ turned
            mean = variances.sum() / max(
                len(variances), 1
            )  # images that are all alike have no axes
            spreads = np.sqrt(variances + shrinkage * mean)
        floor = _LEAST * spreads.max(initial=0)
        self.spreads = np.maximum(spreads, floor) if floor > 0 else np.ones_like(spreads)
        self._unit = median_distance(vectors) ** 2

    def rate(self, gamma: float) -> float:
        """γ / m²."""
        return gamma / self._unit

    def solve(self, gamma: float, alpha: float) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (n_classes, n_kept) and offset (n_kept,) for one pair of parameters."""
        kernel = gaussian_kernel(self.vectors, self.vectors, self.rate(gamma))
        return kernel_ridge(kernel, self.means, alpha)

    def grid_scores(
        self,
        images: np.ndarray,
        vectors: np.ndarray,
        gammas: Sequence[float],
        alphas: Sequence[float],
    ) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yield (i, j, scores of scaled images against `vectors`) for every pair of the grid.

        Axes are divided by their spreads, as in `EXEM` with "1NNs" or "whitened".
        """
        projected = (images - self.mean) @ self.components / self.spreads
        offset = self.means.mean(axis=0)
        for i, gamma in enumerate(gammas):
            values, basis = linalg.eigh(
                gaussian_kernel(self.vectors, self.vectors, self.rate(gamma))
            )
            left = gaussian_kernel(vectors, self.vectors, self.rate(gamma)) @ basis
            right = basis.T @ (self.means - offset)
            for j, alpha in enumerate(alphas):
                predicted = (left / (np.maximum(values, 0) + alpha)) @ right + offset
                exemplars = predicted / self.spreads
                yield i, j, 2 * projected @ exemplars.T - np.square(exemplars).sum(axis=1)
