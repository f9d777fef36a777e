"""Scaling of image features: fitted on training images, carried along with the model.

The paper's text says z-score; its authors' released code divides by the largest entry of the
z-scored training matrix as well, and the published step sizes belong to that scale ("zmax").
Every kind has one form, ``(x - shift) * scale``; for "l2" and "l2-centered" rows are divided by
their length before that. Rows are scaled block by block when they are used: no scaled copy of the
data exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from latem.core.arrays import unit_rows, widen

Scaling = Literal["zmax", "zscore", "l2", "l2-centered"]
SCALINGS: tuple[Scaling, ...] = ("zmax", "zscore", "l2", "l2-centered")
_ROWS = 256
_CACHED = 128


@dataclass(frozen=True)
class FeatureScaler:
    """Feature scaling with fixed statistics.

    Parameters
    ----------
    kind : {"zmax", "zscore", "l2", "l2-centered"} or None
        What is done to a row of features.
    shift, scale : ndarray of shape (n_features,), float64
        Subtracted from and multiplied with every row ("l2" and None: zeros and ones;
        "l2-centered": the mean of the rows after division by their lengths, and ones).
    """

    kind: Scaling | None
    shift: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, X: np.ndarray, kind: Scaling | None) -> FeatureScaler:
        """Take the statistics that `kind` needs from the training images.

        Constant features are centred and otherwise left alone.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.array([[0.0, 7.0], [2.0, 7.0]])
        >>> FeatureScaler.fit(X, "zscore").transform(X)
        array([[-1.,  0.],
               [ 1.,  0.]])
        """
        if kind in ("zscore", "zmax"):
            return cls.of_columns(kind, *_column_statistics(X), X.dtype)
        width = X.shape[1]
        shift = np.zeros(width)
        if kind == "l2-centered":
            for first in range(0, len(X), _ROWS):
                rows = np.array(X[first : first + _ROWS], dtype=np.float64)
                unit_rows(rows, in_place=True)
                shift += rows.sum(axis=0)
            shift /= len(X)
        return cls(kind, shift, np.ones(width))

    @classmethod
    def of_columns(
        cls,
        kind: Scaling | None,
        mean: np.ndarray,
        std: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        dtype: np.dtype,
    ) -> FeatureScaler:
        """Scaling by what is known of the columns of the training images.

        Parameters
        ----------
        kind : {"zmax", "zscore", "l2", "l2-centered"} or None
        mean, std, low, high : ndarray of shape (n_features,)
            Mean, standard deviation, smallest and largest value of each column; for "l2" and
            "l2-centered" after division of the images by their lengths.
        dtype : dtype
            Of the images.
        """
        shift, scale = np.zeros(len(mean)), np.ones(len(mean))
        if kind == "l2-centered":
            shift = mean
        if kind in ("zscore", "zmax"):
            constant = low == high
            shift, std = np.where(constant, low, mean), np.where(constant, 0.0, std)
            precise = np.result_type(dtype, np.float32)  # holds half precision exactly
            rounding = 10 * np.finfo(precise).eps * np.maximum(np.abs(low), np.abs(high))
            std[std <= rounding] = 1.0  # constant but for rounding
            scale = 1.0 / std
            if kind == "zmax":
                largest = ((high - shift) * scale).max()
                if largest > 0:
                    scale /= largest
            if scale.max() > np.finfo(np.float32).max:
                column = int(scale.argmax())
                raise ValueError(
                    f"Feature column {column} varies too little to standardise (between "
                    f"{low[column]:.3g} and {high[column]:.3g}); multiply the features by a "
                    f"constant first."
                )
        return cls(kind, shift, scale)

    def same(self, other: FeatureScaler) -> bool:
        """Whether another one scales alike, to the last bit."""
        return (
            self.kind == other.kind
            and np.array_equal(self.shift, other.shift)
            and np.array_equal(self.scale, other.scale)
        )

    def transform(self, X: np.ndarray, dtype: np.dtype | type | str | None = None) -> np.ndarray:
        """Scaled copy of some rows, in `dtype` (by default that of `X`, at least float32)."""
        out = np.empty(X.shape, np.result_type(X, np.float32) if dtype is None else dtype)
        work = np.result_type(X.dtype, out.dtype)
        for first in range(0, len(X), _CACHED):  # rows that stay in the near cache meanwhile
            part, target = X[first : first + _CACHED], out[first : first + _CACHED]
            rows = target if work == out.dtype else np.empty(part.shape, work)
            if part.dtype == np.float16 and rows.dtype == np.float32:
                widen(part, rows)
            else:
                rows[...] = part
            self._scale(rows)
            if rows is not target:
                target[...] = rows
        return out

    def load(self, X: np.ndarray, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Scaled copy of the rows with these numbers, in the first part of `out`."""
        out = out[: len(rows)]
        if X.dtype == out.dtype:
            np.take(X, rows, axis=0, out=out, mode="clip")  # "raise" would copy once more
            self._scale(out)
        elif X.dtype == np.float16 and out.dtype == np.float32:
            # many times as fast as NumPy's conversion
            from latem.models.sgd import kernels  # late: answering needs no compiler

            kernels.load_half(X.view(np.uint16), rows, out.view(np.uint32), out)
            self._scale(out)
        else:
            out[...] = self.transform(X[rows], out.dtype)
        return out

    def _scale(self, rows: np.ndarray) -> None:
        """Scale rows in place."""
        if self.kind in ("l2", "l2-centered"):
            unit_rows(rows, in_place=True)
        if self.kind == "l2-centered":
            rows -= self.shift.astype(rows.dtype)
        elif self.kind in ("zscore", "zmax"):
            rows -= self.shift.astype(rows.dtype)
            rows *= self.scale.astype(rows.dtype)


def _column_statistics(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean, standard deviation, smallest and largest value of each column, in float64."""
    n, width = X.shape
    total, squares = np.zeros(width), np.zeros(width)
    low, high = np.full(width, np.inf), np.full(width, -np.inf)
    blocks = [slice(i, i + _ROWS) for i in range(0, n, _ROWS)]
    with np.errstate(over="ignore", invalid="ignore"):  # reported below, by column
        for rows in blocks:
            block = np.asarray(X[rows], dtype=np.float64)
            total += block.sum(axis=0)
            np.minimum(low, block.min(axis=0), out=low)
            np.maximum(high, block.max(axis=0), out=high)
        mean = total / n
        constant = low == high
        mean[constant] = low[constant]
        for rows in blocks:
            block = X[rows] - mean
            squares += np.einsum("ij,ij->j", block, block)
        std = np.sqrt(squares / n)
    if not np.isfinite(std).all():
        column = int(np.flatnonzero(~np.isfinite(std))[0])
        raise ValueError(
            f"Feature column {column} holds values too large to standardise "
            f"(up to {high[column]:.3g}); divide the features by a constant first."
        )
    return mean, std, low, high
