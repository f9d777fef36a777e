"""The images of one training, scaled when they are looked at: made for a fit and gone after it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from latem.core.arrays import read_at_random
from latem.core.memory import check_memory
from latem.models.balance import ImageMoment
from latem.models.normal_equations import NormalEquations
from latem.models.scaling import FeatureScaler
from latem.models.shared_images import SharedImages

Visits = Callable[[int], tuple[np.ndarray, Any]]


class ReadAhead:
    """A part of the images of a file, read in the order of the file before they are visited.

    Parameters
    ----------
    X : ndarray of shape (n_images, n_features)
        A memory map, for instance.
    size : int
        Images that are held at a time.
    """

    def __init__(self, X: np.ndarray, size: int):
        n_bytes = size * X.shape[1] * X.itemsize
        check_memory(n_bytes, f"Holding shuffle_buffer={size} images at a time")
        self._X, self._size = X, size
        self._rows = np.empty((size, X.shape[1]), X.dtype)
        self.begin(np.empty(0, np.intp))

    def begin(self, order: np.ndarray) -> None:
        """Say which images will be asked for, and in which order."""
        self._order, self._place = order, 0
        self._held = np.empty(0, np.intp)  # numbers of the images in `_rows`, ascending

    def next_rows(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the next images are: an array that holds them, and their places in it.

        Parameters
        ----------
        rows : ndarray of shape (n,)
            Numbers of the next images, as the order has them.

        Returns
        -------
        held : ndarray of shape (size, n_features)
        places : ndarray of shape (m,)
            Of the first of the images, as many as are held together.
        """
        left = self._place % self._size  # visits of this buffer so far
        if not left:
            self._fill()
        rows = rows[: self._size - left]
        self._place += len(rows)
        return self._rows, np.searchsorted(self._held, rows)

    def _fill(self) -> None:
        self._held = np.sort(self._order[self._place : self._place + self._size])
        breaks = np.flatnonzero(np.diff(self._held) != 1) + 1
        edges = [0, *breaks.tolist(), len(self._held)]
        for first, last in pairwise(edges):
            start = self._held[first]
            self._rows[first:last] = self._X[start : start + last - first]


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
    buffer : int or None
        Images that are read ahead and held in memory together, see `visiting_order`; None reads
        every image when it is visited.

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
        buffer: int | None = None,
    ):
        self.X, self.labels, self.vectors, self.scaler = X, labels, vectors, scaler
        self.partial = partial
        self.earlier: ImageMoment | None = None
        self.shared: SharedImages | None = None
        self._ahead: ReadAhead | None = None
        if buffer is not None and buffer < len(X):
            self._ahead = ReadAhead(X, buffer)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def n_classes(self) -> int:
        """Number of classes that are trained on."""
        return len(self.vectors)

    def visiting(self) -> AbstractContextManager[None]:
        """What holds while epochs go on: a file is read at random, unless it is read ahead."""
        return nullcontext() if self._ahead is not None else read_at_random(self.X)

    def announcing(self, visits: Visits) -> Visits:
        """Visits of the epoch of the given number, whose order `load` is then told.

        Parameters
        ----------
        visits : callable
            Order of the images in an epoch, and what else is drawn for it.
        """

        def of_epoch(epoch: int) -> tuple[np.ndarray, Any]:
            order, drawn = visits(epoch)
            if self._ahead is not None:
                self._ahead.begin(order)
            return order, drawn

        return of_epoch

    def load(self, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Scaled features of some rows, in the first part of `out`."""
        if self._ahead is None:
            return self.scaler.load(self.X, rows, out)
        done = 0
        while done < len(rows):
            held, places = self._ahead.next_rows(rows[done:])
            self.scaler.load(held, places, out[done:])
            done += len(places)
        return out[:done]

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
