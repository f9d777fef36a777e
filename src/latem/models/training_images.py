"""The images of one training, scaled when they are looked at: made for a fit and gone after it."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from latem.models.balance import ImageMoment
from latem.models.normal_equations import NormalEquations
from latem.models.scaling import FeatureScaler
from latem.models.sgd.loop import LONGEST_BLOCK
from latem.models.shared_images import SharedImages


class TrainingImages:
    """Features, class numbers and class vectors that a training works with.

    Parameters
    ----------
    X : ndarray of shape (n_images, n_features)
    labels : ndarray of shape (n_images,)
        Class numbers, rows of `vectors`.
    vectors : ndarray of shape (n_classes, n_dimensions)
        Class vectors as training uses them, in the training's precision.
    scaler : FeatureScaler
    partial : bool
        Whether this is one of several calls that each bring some images.

    Attributes
    ----------
    earlier : ImageMoment or None
        Of the images that earlier calls brought.
    shared : SharedImages or None
        The same images, where others learn from them, too.
    """

    def __init__(
        self,
        X: np.ndarray,
        labels: np.ndarray,
        vectors: np.ndarray,
        scaler: FeatureScaler,
        *,
        partial: bool = False,
    ):
        self.X, self.labels, self.vectors, self.scaler = X, labels, vectors, scaler
        self.partial = partial
        self.earlier: ImageMoment | None = None
        self.shared: SharedImages | None = None
        self._buffer = np.empty((LONGEST_BLOCK, X.shape[1]), vectors.dtype)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def n_classes(self) -> int:
        """Number of classes that are trained on."""
        return len(self.vectors)

    def load(self, rows: np.ndarray) -> np.ndarray:
        """Scaled features of some rows, in a buffer that the next call uses again."""
        return self.scaler.load(self.X, rows, self._buffer)

    @cached_property
    def equations(self) -> NormalEquations:
        """What a closed form and the balance of classes need, from one pass over the images."""
        images = self.shared
        if images is None:
            images = SharedImages(self.X, self.labels, self.n_classes, self.scaler)
        return NormalEquations(images.sums, self.vectors.astype(np.float64))

    @property
    def moment(self) -> ImageMoment:
        """Σ x xᵀ over these images and the earlier ones."""
        now = self.equations.images
        return now if self.earlier is None else self.earlier + now

    def mean_lead(self, closed: np.ndarray) -> float:
        """By how much a map scores the true class above the mean of all, on average; 1 if never.

        Parameters
        ----------
        closed : ndarray of shape (n_features, n_dimensions)
        """
        vectors = self.vectors.astype(np.float64)
        targets = closed @ (vectors - vectors.mean(axis=0)).T  # (n_features, n_classes)
        total = 0.0
        for first in range(0, len(self.X), 1024):
            rows = self.scaler.transform(self.X[first : first + 1024], np.float64)
            labels = self.labels[first : first + 1024]
            total += float(np.einsum("ij,ji->", rows, targets[:, labels]))
        lead = total / len(self.X)
        return lead if lead > 0 else 1.0
