"""Sums over images that come in blocks, from which closed forms follow; one pass makes them.

Means and products are kept about the mean of what was added up so far, and two sums are joined by
Chan, Golub and LeVeque's formula: nothing is lost to rounding where features are far from zero. The
scaling of features is a shift and a factor for each column (`latem.models.scaling`), so sums of the
images as they are give those of the scaled images; only division by length comes before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latem.core.arrays import unit_rows
from latem.models.training_record import row_hashes

_ROWS = 1024
_FLOATS = (np.float16, np.float32, np.float64)


@dataclass(frozen=True)
class RowSample:
    """The images with the smallest random numbers, and their labels.

    Every image has a number that depends on its place alone, so that the same images are drawn
    wherever blocks are read, and in whichever order.
    """

    size: int
    keys: np.ndarray
    places: np.ndarray
    X: np.ndarray
    y: np.ndarray

    @classmethod
    def of_block(cls, X: np.ndarray, y: np.ndarray, place: tuple[int, ...], size: int) -> RowSample:
        """Sample of a block; `place` is its own, and decides the random numbers."""
        keys = np.random.default_rng(place).random(len(X))
        rows = np.sort(np.argsort(keys, kind="stable")[:size])
        of_block = np.array([*place] + [0] * (2 - len(place)), np.int64)
        places = np.column_stack([np.tile(of_block, (len(rows), 1)), rows])
        return cls(size, keys[rows], places, np.asarray(X)[rows], y[rows])

    def __add__(self, other: RowSample) -> RowSample:
        keys = np.concatenate([self.keys, other.keys])
        places = np.concatenate([self.places, other.places])
        kept = np.argsort(keys, kind="stable")[: self.size]
        kept = kept[np.lexsort(places[kept].T[::-1])]  # in the order of the images
        X, y = np.concatenate([self.X, other.X]), np.concatenate([self.y, other.y])
        return RowSample(self.size, keys[kept], places[kept], X[kept], y[kept])


@dataclass(frozen=True)
class BlockSums:
    """What is known of some images.

    Attributes
    ----------
    n : int
        How many they are.
    mean : ndarray of shape (n_features,)
    scatter : ndarray of shape (n_features, n_features)
        Σ (x - mean)(x - mean)ᵀ.
    low, high : ndarray of shape (n_features,)
        Smallest and largest values.
    classes : ndarray of shape (n_classes,)
        Their labels, sorted.
    counts : ndarray of shape (n_classes,)
    by_class : ndarray of shape (n_classes, n_features)
        Σ (x - mean) over the images of each class.
    dtype : dtype
        Of the images.
    hashes : ndarray of uint64 or None
        Of the images, sorted; see `latem.models.training_record`.
    sample : RowSample or None
    """

    n: int
    mean: np.ndarray
    scatter: np.ndarray
    low: np.ndarray
    high: np.ndarray
    classes: np.ndarray
    counts: np.ndarray
    by_class: np.ndarray
    dtype: np.dtype
    hashes: np.ndarray | None
    sample: RowSample | None

    def __add__(self, other: BlockSums) -> BlockSums:
        if len(self.mean) != len(other.mean):
            raise ValueError(
                f"Blocks of images have {len(self.mean)} and {len(other.mean)} features; all must "
                f"have the same columns."
            )
        if (self.classes.dtype.kind == "U") != (other.classes.dtype.kind == "U"):
            raise TypeError("Labels are texts in some blocks of images and numbers in others.")
        n = self.n + other.n
        apart = other.mean - self.mean
        mean = self.mean + apart * (other.n / n)
        scatter = self.scatter + other.scatter
        scatter += np.outer(apart, apart * (self.n * other.n / n))
        classes = np.union1d(self.classes, other.classes)
        counts = np.zeros(len(classes), np.int64)
        by_class = np.zeros((len(classes), len(mean)))
        for part in (self, other):
            rows = np.searchsorted(classes, part.classes)
            counts[rows] += part.counts
            by_class[rows] += part.by_class + np.outer(part.counts, part.mean - mean)
        sample = None
        if self.sample is not None and other.sample is not None:
            sample = self.sample + other.sample
        hashes = None
        if self.hashes is not None and other.hashes is not None:
            hashes = np.union1d(self.hashes, other.hashes)
        return BlockSums(
            n,
            mean,
            scatter,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            classes,
            counts,
            by_class,
            np.result_type(self.dtype, other.dtype),
            hashes,
            sample,
        )


@dataclass(frozen=True)
class SumUp:
    """A task for `Blocks.total`: what is known of one block.

    Parameters
    ----------
    unit : bool
        Whether images are divided by their lengths before they are added up.
    sample : int
        Bytes that drawn images may take; 0 draws none.
    hashed : bool
        Whether images are remembered by their hashes.
    """

    unit: bool
    sample: int
    hashed: bool

    def __call__(self, X: np.ndarray, y: np.ndarray, place: tuple[int, ...]) -> BlockSums:
        """Sums of a block."""
        X, y = checked_block(X, y, place)
        classes, codes = np.unique(y, return_inverse=True)
        mean = np.zeros(X.shape[1])
        for rows in self._rows(X):
            mean += rows.sum(axis=0)
        mean /= len(X)
        scatter = np.zeros((X.shape[1], X.shape[1]))
        by_class = np.zeros((len(classes), X.shape[1]))
        low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
        for i, rows in enumerate(self._rows(X)):
            np.minimum(low, rows.min(axis=0), out=low)
            np.maximum(high, rows.max(axis=0), out=high)
            rows -= mean
            scatter += rows.T @ rows
            np.add.at(by_class, codes[i * _ROWS : (i + 1) * _ROWS], rows)
        size = self.sample // max(X.shape[1] * X.dtype.itemsize, 1)
        return BlockSums(
            len(X),
            mean,
            scatter,
            low,
            high,
            classes,
            np.bincount(codes, minlength=len(classes)),
            by_class,
            X.dtype,
            np.unique(row_hashes(X)) if self.hashed else None,
            RowSample.of_block(X, y, place, size) if self.sample else None,
        )

    def _rows(self, X: np.ndarray) -> Any:
        for first in range(0, len(X), _ROWS):
            rows = np.array(X[first : first + _ROWS], dtype=np.float64)
            yield unit_rows(rows, in_place=True) if self.unit else rows


def checked_block(
    X: np.ndarray, y: np.ndarray, place: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of a block, if they are what they should be."""
    where = f"block {'.'.join(map(str, place))} of the images"
    if X.ndim != 2 or y.ndim != 1 or len(X) != len(y):
        raise ValueError(
            f"In {where}, features have the shape {X.shape} and labels {y.shape}, not "
            f"(n_images, n_features) and (n_images,)."
        )
    if not len(X):
        raise ValueError(f"There is no image in {where}; leave empty blocks out.")
    if X.dtype not in _FLOATS:
        if X.dtype.kind not in "biuf":
            raise TypeError(f"Features must be numbers, but those in {where} are {X.dtype}.")
        X = X.astype(np.float64)
    for first in range(0, len(X), _ROWS):
        finite = np.isfinite(X[first : first + _ROWS])
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            raise ValueError(
                f"In {where}, row {first + row}, column {column} holds no finite number; drop such "
                f"rows or fill in finite values."
            )
    if y.dtype == object:
        if not all(isinstance(one, str) for one in y):
            raise TypeError(f"Labels in {where} are missing or of several types.")
        y = y.astype(str)
    if y.dtype.kind not in "Uiub":
        raise TypeError(f"Labels in {where} are {y.dtype}; give class names.")
    return X, y
