"""Which images a model has learned from: a short hash of every row, kept in the model.

An image that a model has seen in training is no test of it. Splits keep such images apart by row
number, but a saved model does not know which rows it was fitted to, and once measured on its own
training images it looks better than it is. The record tells: 8 bytes per image, taken from the
features as they were given, before scaling.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

_BLOCK = 64  # rows that are read at once, and stay in the near cache while they are hashed
_N_BYTES = 8  # of SHA-256, which recent processors compute by themselves


def row_hashes(X: np.ndarray) -> np.ndarray:
    """Hash of every row, of shape (n_rows,) and type uint64.

    Numbers are compared as float32: the same values in half, single and double precision, in any
    memory layout, have the same hash.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        May be a memory map, which is read in blocks.

    Examples
    --------
    >>> X = np.array([[0.5, 1.0], [2.0, 3.0]])
    >>> bool((row_hashes(X) == row_hashes(X.astype(np.float16))).all())
    True
    """
    parts = []
    for first in range(0, len(X), _BLOCK):
        with np.errstate(over="ignore"):  # a number beyond float32 is as good as any other
            block = np.asarray(X[first : first + _BLOCK]).astype("<f4", order="C")
        block += np.float32(0)  # -0.0 becomes 0.0
        parts.append(b"".join(hashlib.sha256(row).digest()[:_N_BYTES] for row in block))
    return np.frombuffer(b"".join(parts), "<u8").astype(np.uint64)


class TrainingRecord(BaseEstimator):
    """What every model remembers of the images it was fitted to.

    Attributes
    ----------
    training_digest_ : str or None
        Digest of the set of training images, in hexadecimal digits. It depends neither on their
        order nor on their precision. None if it is not known: before `fit`, in models from files
        of earlier versions, and with ``records_training = False``.
    records_training : bool
        Set to False before `fit` to keep no record; clones take it over.
    """

    records_training: bool = True
    training_rows_: np.ndarray

    @property
    def training_digest_(self) -> str | None:
        """Digest of the set of training images; None if it is not known."""
        rows = self.training_rows()
        if rows is None:
            return None
        return hashlib.blake2b(rows.astype("<u8").tobytes(), digest_size=16).hexdigest()

    def training_rows(self) -> np.ndarray | None:
        """Hashes of the images that were learned from, sorted; see `row_hashes`.

        Returns
        -------
        ndarray of uint64, or None if they are not known
        """
        return vars(self).get("training_rows_")

    def record_training(self, X: np.ndarray, *, more: bool = False) -> None:
        """Remember images that were learned from; with `more`, besides those of earlier calls."""
        earlier = self.training_rows() if more else np.empty(0, np.uint64)
        if earlier is None or not self.records_training:
            if hasattr(self, "training_rows_"):
                del self.training_rows_  # a part of the images would be no record
            return
        self.training_rows_ = np.union1d(earlier, row_hashes(X))

    def pack_training(self) -> dict[str, np.ndarray]:
        """The record as arrays for the model file."""
        rows = self.training_rows()
        return {} if rows is None else {"training.rows": rows}

    def unpack_training(self, tensors: dict[str, np.ndarray]) -> None:
        """Take back what `pack_training` gave; files of earlier versions have nothing."""
        rows = tensors.get("training.rows")
        if rows is None:
            return
        if rows.dtype != np.uint64 or rows.ndim != 1 or (rows[1:] <= rows[:-1]).any():
            raise ValueError("its record of training images is not a sorted list of hashes")
        self.training_rows_ = rows

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()
        if not self.records_training:
            copy.records_training = False
        return copy


def joint_rows(models: list[Any]) -> np.ndarray | None:
    """Hashes of the images that any of some models has learned from; None if one is not known."""
    records = [model.training_rows() for model in models]
    if any(rows is None for rows in records):
        return None
    return np.unique(np.concatenate(records))
