"""Images that several closed forms learn from: what they have in common is computed once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import NamedTuple

import numpy as np

from latem.models.axes import PrincipalAxes
from latem.models.class_kernels import class_means, class_variances
from latem.models.normal_equations import ImageSums
from latem.models.scaling import FeatureScaler

_ROWS = 1024


class Scatter(NamedTuple):
    """Scaled images about their mean.

    `total` is Σ (x - mean)(x - mean)ᵀ; `by_class` has Σ (x - mean) of every class.
    """

    n: int
    mean: np.ndarray
    total: np.ndarray
    by_class: np.ndarray


class Projection(ABC):
    """Centred images along some axes, as far as their classes are concerned.

    Attributes
    ----------
    means : ndarray of shape (n_classes, n_axes)
        Of the classes' images.
    """

    means: np.ndarray

    @abstractmethod
    def deviations(self) -> np.ndarray:
        """Standard deviation along each axis within a class, the mean over classes."""

    @abstractmethod
    def within(self) -> np.ndarray:
        """Covariance within classes, of shape (n_axes, n_axes)."""


class SharedImages:
    """Training images with their sums and principal axes, each made when first asked for.

    Parameters
    ----------
    X : ndarray of shape (n_images, n_features)
    codes : ndarray of shape (n_images,)
        Class numbers.
    n_classes : int
    scaler : FeatureScaler
    """

    def __init__(self, X: np.ndarray, codes: np.ndarray, n_classes: int, scaler: FeatureScaler):
        self.X, self.codes, self.n_classes, self.scaler = X, codes, n_classes, scaler

    @property
    def counts(self) -> np.ndarray:
        """Number of images of each class."""
        return np.bincount(self.codes, minlength=self.n_classes)

    @cached_property
    def sums(self) -> ImageSums:
        """Σ x xᵀ, and images added up by class."""
        return ImageSums.over(self.X, self.codes, self.n_classes, self.scaler)

    @cached_property
    def scatter(self) -> Scatter:
        """Mean, products about it and sums by class about it, of the scaled images."""
        n, width = self.X.shape
        by_class, total = np.zeros((self.n_classes, width)), np.zeros((width, width))
        blocks = [slice(first, first + _ROWS) for first in range(0, n, _ROWS)]
        for rows in blocks:
            np.add.at(by_class, self.codes[rows], self.scaler.transform(self.X[rows], np.float64))
        mean = by_class.sum(axis=0) / n
        by_class -= np.outer(self.counts, mean)
        for rows in blocks:
            features = self.scaler.transform(self.X[rows], np.float64)
            features -= mean
            total += features.T @ features
        return Scatter(n, mean, total, by_class)

    @cached_property
    def principal(self) -> PrincipalAxes:
        """Scaled features in their principal axes."""
        return PrincipalAxes(self.scaler.transform(self.X, np.float64))

    def along(self, kept: slice) -> tuple[np.ndarray, Projection]:
        """Some of the principal axes, as columns, and the classes along them."""
        return self.principal.Q[:, kept], _Projected(
            self.principal.Z[:, kept], self.codes, self.n_classes
        )


class _Projected(Projection):
    def __init__(self, Z: np.ndarray, codes: np.ndarray, n_classes: int):
        self._Z, self._codes = Z, codes
        self.means = class_means(Z, codes, n_classes)

    def deviations(self) -> np.ndarray:
        return np.sqrt(class_variances(self._Z, self._codes, self.means)).mean(axis=0)

    def within(self) -> np.ndarray:
        inner = self._Z - self.means[self._codes]
        return inner.T @ inner / len(inner)
