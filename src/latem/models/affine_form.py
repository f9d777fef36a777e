"""Scores that are linear in the image, piece by piece: what many images are multiplied with.

For a class c, F(x, c) = Σ_g max_{i ∈ g} (z · v_i + b_i) with z the scaled image: one group of K
pieces for K maps, one piece alone where a score is linear, and sums of such groups for models that
are sums. A piece alone is added to all pieces of another group, which changes nothing but their
number: a committee of one model with K maps and of linear ones has K pieces.

Feature scaling is linear, too, but for the length of a row. So images are multiplied as they are
stored, and nothing but the few products is scaled: (x/‖x‖ - m) · v = (x · v)/‖x‖ - m · v and
((x - m) s) · v = (x - m) · (s v).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from latem.models.scaling import FeatureScaler

_LARGEST = 2**24  # numbers in the pieces of a form
_ROWS = 32  # of 1024 features, which are worked on while they are in the near cache
_SAFE = (1e-30, 1e30)  # squared lengths in single precision that have lost nothing


@dataclass(frozen=True, eq=False)
class AffineForm:
    """Scores of scaled images as sums, over groups, of the best of some linear pieces.

    Attributes
    ----------
    directions : ndarray of shape (n_classes, n_pieces, n_features)
    offsets : ndarray of shape (n_classes, n_pieces)
    groups : tuple of int
        Sizes of the groups; they add up to `n_pieces`.
    """

    directions: np.ndarray
    offsets: np.ndarray
    groups: tuple[int, ...]

    @classmethod
    def linear(cls, weights: np.ndarray, constants: np.ndarray | None = None) -> AffineForm:
        """The form of scores ``z @ weights + constants``.

        Parameters
        ----------
        weights : ndarray of shape (n_features, n_classes)
        constants : ndarray of shape (n_classes,), optional

        Examples
        --------
        >>> form = AffineForm.linear(np.eye(2), np.array([0.0, 10.0]))
        >>> form.scores(np.array([[1.0, 2.0]]))
        array([[ 1., 12.]])
        """
        offsets = np.zeros(weights.shape[1]) if constants is None else constants
        return cls(weights.T[:, None], offsets[:, None], (1,))

    @classmethod
    def best_of(cls, maps: np.ndarray, vectors: np.ndarray) -> AffineForm | None:
        """The form of max_k zᵀ W_k y; None if it would be too large.

        Parameters
        ----------
        maps : ndarray of shape (n_maps, n_features, n_dimensions)
        vectors : ndarray of shape (n_classes, n_dimensions)
        """
        if len(maps) * maps.shape[1] * len(vectors) > _LARGEST:
            return None
        directions = np.ascontiguousarray((maps @ vectors.T).transpose(2, 0, 1))
        return cls(directions, np.zeros(directions.shape[:2]), (len(maps),))

    @classmethod
    def sum_of(
        cls, forms: Sequence[AffineForm | None], factors: Sequence[float]
    ) -> AffineForm | None:
        """The form of a weighted sum; None if a part has none, or if it would be too large.

        Parameters
        ----------
        forms : sequence of AffineForm or None
        factors : sequence of float
            Not negative: the best piece stays the best.
        """
        known = [form for form in forms if form is not None]
        if len(known) < len(forms) or not known:
            return None
        n_pieces = sum(len(form.offsets[0]) for form in known)
        if len(known[0].offsets) * n_pieces * known[0].directions.shape[2] > _LARGEST:
            return None
        groups = [
            (factor * directions, factor * offsets)
            for form, factor in zip(known, factors, strict=True)
            for directions, offsets in form.parts()
        ]
        several = [group for group in groups if group[1].shape[1] > 1]
        alone = [group for group in groups if group[1].shape[1] == 1]
        first = several[:1] or [alone.pop()]
        directions, offsets = (
            part + sum(group[i] for group in alone) for i, part in enumerate(first[0])
        )
        groups = [(directions, offsets), *several[1:]]
        return cls(
            np.concatenate([group[0] for group in groups], axis=1),
            np.concatenate([group[1] for group in groups], axis=1),
            tuple(group[1].shape[1] for group in groups),
        )

    def parts(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Directions and offsets of every group."""
        ends = np.cumsum(self.groups)
        return [
            (self.directions[:, end - size : end], self.offsets[:, end - size : end])
            for size, end in zip(self.groups, ends, strict=True)
        ]

    def of(self, i: int) -> AffineForm:
        """The form of one of the classes, by its number."""
        return AffineForm(self.directions[i : i + 1], self.offsets[i : i + 1], self.groups)

    def one_group(self, most: int) -> AffineForm | None:
        """The same scores as the best of single pieces; None if it takes more than `most`.

        Sums of one piece of every group, of all ways to choose them, do it.
        """
        if np.prod(self.groups) > most:
            return None
        chosen = [list(one) for one in product(*(range(size) for size in self.groups))]
        starts = np.cumsum(self.groups) - self.groups
        places = np.array(chosen) + starts
        directions = self.directions[:, places].sum(axis=2)
        return AffineForm(directions, self.offsets[:, places].sum(axis=2), (len(places),))

    def scores(self, Z: np.ndarray) -> np.ndarray:
        """Scores of scaled images, of shape (n_images, n_classes)."""
        n_classes, n_pieces, _ = self.directions.shape
        products = self.directions.reshape(n_classes * n_pieces, -1) @ Z.T
        return self.combined(products.reshape(n_classes, n_pieces, -1) + self.offsets[:, :, None])

    def combined(self, pieces: np.ndarray) -> np.ndarray:
        """Scores from pieces of shape (n_classes, n_pieces, n_images): (n_images, n_classes)."""
        ends = np.cumsum(self.groups)
        best = [
            pieces[:, end - size : end].max(axis=1)
            for size, end in zip(self.groups, ends, strict=True)
        ]
        return sum(best[1:], start=best[0]).T


class CompiledForm:
    """A form that scores rows of stored images, scaling and all, while they are read.

    Parameters
    ----------
    form : AffineForm
    scaler : FeatureScaler
    X : ndarray of shape (n_images, n_features), float16 or float32
        Stored images, in memory or mapped; rows must be contiguous.
    """

    def __init__(self, form: AffineForm, scaler: FeatureScaler, X: np.ndarray):
        from latem.models import scan_kernels  # late: answering needs no compiler

        self._form, self._kernels = form, scan_kernels
        self._X = np.asarray(X)
        directions, offsets = form.directions.astype(np.float64), form.offsets.astype(np.float64)
        self._by_length = scaler.kind in ("l2", "l2-centered")
        self._shift = np.empty(0, np.float32)
        if self._by_length:
            offsets = offsets - directions @ scaler.shift
        elif scaler.kind is not None:
            directions = directions * scaler.scale
            self._shift = scaler.shift.astype(np.float32)
        self._vectors = directions.reshape(-1, directions.shape[2]).astype(np.float32)
        self._offsets = offsets.astype(np.float32)
        self._room = threading.local()

    def __call__(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores of some rows, and which of them need another look.

        Parameters
        ----------
        rows : ndarray of shape (n,)
            Row numbers.

        Returns
        -------
        scores : ndarray of shape (n, n_classes)
        odd : ndarray of shape (n,)
            Whether a row holds numbers that are not finite, or lost digits here.
        """
        rows = np.ascontiguousarray(rows, np.int64)
        images, kernels = self._images(), self._kernels
        products = np.empty((len(self._vectors), len(rows)), np.float32)
        squares = np.empty(len(rows) if self._by_length else 0, np.float32)
        shared = (images, self._shift, self._vectors, products, squares)
        if self._X.dtype == np.float16:
            bits = images.view(np.uint32)
            kernels.scan_half(self._X.view(np.uint16), rows, bits, *shared)
        else:
            kernels.scan_single(self._X, rows, *shared)
        odd = ~np.isfinite(products[0])
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if self._by_length:
                odd |= ~((squares > _SAFE[0]) & (squares < _SAFE[1]))
                products /= np.sqrt(squares)
            pieces = products.reshape(*self._offsets.shape, -1)
            pieces += self._offsets[:, :, None]
            scores = self._form.combined(pieces)
        odd |= ~np.isfinite(scores).all(axis=1)
        return scores, odd

    def _images(self) -> np.ndarray:
        """Room for some images, one for each thread."""
        if not hasattr(self._room, "images"):
            n_features = self._vectors.shape[1]
            n_rows = max(_ROWS * 1024 // n_features // 2 * 2, 4)
            self._room.images = np.empty((n_rows, n_features), np.float32)
        return self._room.images


def can_be_compiled(X: Any, dtype: str) -> bool:
    """Whether stored images can be scanned as they are, for scores of this precision."""
    if not (X.dtype.isnative and X.flags.c_contiguous):
        return False
    if X.dtype.type not in (np.float16, np.float32) or dtype != "float32":
        return False
    try:
        import numba  # noqa: F401 - answering needs no compiler
    except ImportError:
        return False
    return True
