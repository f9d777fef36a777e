"""ESZSL's normal equations: sums over the images from which every solution follows.

With images X (n × d_x), labels Y (n × C) and class vectors S (C × d_y), the single map is

    W = (XᵀX + γI)⁻¹ Xᵀ Y S (SᵀS + λI)⁻¹.

`ESZSL` is this map, `LatEm` may start from it, and both balance their classes by XᵀX.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from scipy import linalg

from latem.models.balance import ImageMoment, spreads
from latem.models.scaling import FeatureScaler

_ROWS = 1024


class ImageSums:
    """Sums over scaled images from which closed forms follow, in float64.

    Parameters
    ----------
    moment : ImageMoment
        XᵀX and the number of images.
    by_class : ndarray of shape (n_classes, n_features)
        Images added up by class.
    """

    def __init__(self, moment: ImageMoment, by_class: np.ndarray):
        self.moment, self.by_class = moment, by_class

    @classmethod
    def over(
        cls, X: np.ndarray, codes: np.ndarray, n_classes: int, scaler: FeatureScaler
    ) -> ImageSums:
        """Sums over images, from one pass.

        Parameters
        ----------
        X : ndarray of shape (n_images, n_features)
        codes : ndarray of shape (n_images,)
            Class numbers.
        n_classes : int
        scaler : FeatureScaler
            Scales the images block by block.
        """
        width = X.shape[1]
        total = np.zeros((width, width))
        by_class = np.zeros((n_classes, width))
        for first in range(0, len(X), _ROWS):
            rows = scaler.transform(X[first : first + _ROWS], np.float64)
            total += rows.T @ rows
            np.add.at(by_class, codes[first : first + _ROWS], rows)
        return cls(ImageMoment(total, len(X)), by_class)

    @cached_property
    def axes(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues of XᵀX, from smallest to largest, and its eigenvectors as columns."""
        values, vectors = linalg.eigh(self.moment.total)
        return values, vectors


class NormalEquations:
    """The products that a solution for any (γ, λ) needs, in float64.

    Parameters
    ----------
    sums : ImageSums
        Of the images.
    vectors : ndarray of shape (n_classes, n_dimensions)
    labels : {"01", "±1"}
        How labels are written as numbers.

    Attributes
    ----------
    sums : ImageSums
    classes : ndarray of shape (n_dimensions, n_dimensions)
        SᵀS.
    cross : ndarray of shape (n_features, n_dimensions)
        XᵀYS.
    """

    def __init__(self, sums: ImageSums, vectors: np.ndarray, labels: str = "01"):
        by_class = sums.by_class
        if labels == "±1":
            by_class = 2 * by_class - by_class.sum(axis=0)
        self.sums = sums
        self.classes = vectors.T @ vectors
        self.cross = by_class.T @ vectors

    @property
    def images(self) -> ImageMoment:
        """XᵀX and the number of images."""
        return self.sums.moment

    def solve(self, gamma: float, lam: float) -> np.ndarray:
        """The map for one pair of penalties."""
        left = self.images.total + gamma * np.eye(len(self.images.total))
        right = self.classes + lam * np.eye(len(self.classes))
        half = linalg.solve(left, self.cross, assume_a="pos")
        return linalg.solve(right, half.T, assume_a="pos").T

    def grid_scores(
        self,
        X: np.ndarray,
        vectors: np.ndarray,
        gammas: np.ndarray,
        lams: np.ndarray,
        *,
        balanced: bool = False,
    ) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yield (i, j, scores of X against `vectors`) for every pair of the grid.

        One eigendecomposition of XᵀX and one of SᵀS serve the whole grid. Balanced scores of a
        class are divided by their root mean square over the training images.
        """
        d, q = self.sums.axes
        e, r = linalg.eigh(self.classes)
        core = q.T @ self.cross @ r
        images, classes = X @ q, r.T @ vectors.T
        for i, gamma in enumerate(gammas):
            left = core / (d + gamma)[:, None]
            projected = images @ left
            squares = left.T @ (left * d[:, None]) if balanced else None
            for j, lam in enumerate(lams):
                scores = (projected / (e + lam)) @ classes
                if squares is not None:
                    scores /= spreads(classes.T, squares / np.outer(e + lam, e + lam))
                yield i, j, scores
