"""Training that looks at all classes on every visit: spaces and the pass over the images.

The counterpart of `latem.models.spaces` for SJE, ALE and DeViSE. `FullClassSpace` keeps
V_k = W_k Yᵀ, so that all scores of a block of images are one matrix product; `FullEmbeddingSpace`
keeps W_k, right when there are many more classes than dimensions or when W_kᵀ x itself is needed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import blas

from latem.models import full_kernels as kernels
from latem.models.spaces import check_shape, overflow_allowed
from latem.models.training import LONGEST_BLOCK, SHORTEST_BLOCK, Schedule
from latem.threads import single_threaded_blas

_LARGEST_GRAM = 4096  # classes
_USUAL_UPDATES, _SHORT_BLOCK = 48, 96
_LARGEST_BLOCK = 256 * 2**20  # bytes
RULES = {"worst": kernels.WORST, "first": kernels.FIRST, "all": kernels.ALL}


class FullClassSpace:
    """Maps seen through the training classes, V_k = W_k Yᵀ of shape (n_features, n_classes).

    Parameters
    ----------
    maps : ndarray of shape (n_maps, n_features, n_dimensions)
        Maps at the start of training.
    vectors : ndarray of shape (n_classes, n_dimensions)
    """

    form = "full class"

    def __init__(self, maps: np.ndarray, vectors: np.ndarray):
        self.start = maps
        self.vectors = vectors
        with single_threaded_blas():
            self.gram = _gram(vectors)
            self.products = maps @ vectors.T
        n_maps, n_features, n_dimensions = maps.shape
        self.steps = np.zeros((n_maps, len(vectors), n_features), maps.dtype)
        self._nothing = np.empty((n_maps, 0, n_dimensions), maps.dtype)

    def scores(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores (n_maps, n_visits, n_classes); nothing is projected."""
        with overflow_allowed():
            return X @ self.products, self._nothing

    def apply(
        self, X: np.ndarray, image: np.ndarray, moves: np.ndarray,
        A: np.ndarray, D: np.ndarray, step: np.floating,
    ) -> None:  # fmt: skip
        """Take a block's moves; see `latem.models.full_kernels`."""
        kernels.add_moves(X, image, moves, A, step, self.steps)
        gemm = blas.sgemm if X.dtype == np.float32 else blas.dgemm
        for k in np.unique(moves[:, 1]):
            chosen = moves[:, 1] == k
            images, changes = X[image[chosen]], D[chosen]
            # V_kᵀ += Dᵀ X in place: the transposes of C-ordered arrays are Fortran-ordered
            out = self.products[k].T
            gemm(1.0, changes.T, images.T, 1.0, out, trans_b=True, overwrite_c=True)

    def maps(self) -> np.ndarray:
        """Maps as they stand now, W_k = W_k⁰ + B_kᵀ Y (a copy)."""
        with single_threaded_blas(), overflow_allowed():
            return self.start + self.steps.transpose(0, 2, 1) @ self.vectors

    def keep(self, chosen: np.ndarray) -> None:
        """Drop every map that is not in `chosen` (a boolean mask)."""
        self.start, self.products, self.steps = (
            self.start[chosen], self.products[chosen], self.steps[chosen]
        )  # fmt: skip
        self._nothing = self._nothing[chosen]

    def state(self) -> dict[str, np.ndarray]:
        """Everything needed to continue to identical bytes."""
        return {"start": self.start, "products": self.products, "steps": self.steps}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from what `state` returned."""
        for name, now in self.state().items():
            check_shape(state[name], now.shape)
        self.start, self.products, self.steps = state["start"], state["products"], state["steps"]

    def __len__(self) -> int:
        return len(self.start)


class FullEmbeddingSpace:
    """Maps as plain matrices.

    Parameters
    ----------
    maps, vectors
        As for `FullClassSpace`; `maps` is changed in place.
    project : bool
        Whether the kernel needs the projected images W_kᵀ x.
    """

    form = "full embedding"

    def __init__(self, maps: np.ndarray, vectors: np.ndarray, *, project: bool = False):
        self.matrices = maps
        self.vectors = vectors
        self.project = project
        with single_threaded_blas():
            self.gram = _gram(vectors)

    def scores(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores (n_maps, n_visits, n_classes) and projected images, if they are needed."""
        with overflow_allowed():
            projected = X @ self.matrices
            scores = projected @ self.vectors.T
        return scores, projected if self.project else projected[:, :0]

    def apply(
        self, X: np.ndarray, image: np.ndarray, moves: np.ndarray,
        A: np.ndarray, D: np.ndarray, step: np.floating,
    ) -> None:  # fmt: skip
        """Take a block's moves; see `latem.models.full_kernels`."""
        with overflow_allowed():
            for k in np.unique(moves[:, 1]):
                chosen = moves[:, 1] == k
                self.matrices[k] += X[image[chosen]].T @ (step * (A[chosen] @ self.vectors))

    def maps(self) -> np.ndarray:
        """Maps as they stand now (a copy)."""
        return self.matrices.copy()

    def keep(self, chosen: np.ndarray) -> None:
        """Drop every map that is not in `chosen` (a boolean mask)."""
        self.matrices = self.matrices[chosen]

    def state(self) -> dict[str, np.ndarray]:
        """Everything needed to continue to identical bytes."""
        return {"matrices": self.matrices}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from what `state` returned."""
        check_shape(state["matrices"], self.matrices.shape)
        self.matrices = state["matrices"]

    def __len__(self) -> int:
        return len(self.matrices)


FullSpace = FullClassSpace | FullEmbeddingSpace


def full_form(n_classes: int, n_features: int, n_dimensions: int, n_maps: int) -> str:
    """Cheaper form for a problem: "class" or "embedding", by multiplications per visit."""
    of_class = n_classes * n_features
    of_embedding = n_dimensions * (n_features + n_classes)
    size = 8 * n_maps * of_class
    return "class" if of_class <= of_embedding and size <= 2 * 2**30 else "embedding"


def full_length(n_classes: int, n_maps: int, violation_rate: float) -> int:
    """Visits per block; any length gives the same result to rounding.

    The number of updates was found by measurement.
    """
    length = _USUAL_UPDATES / max(violation_rate, 0.05)
    fits = _LARGEST_BLOCK // (12 * n_classes * n_maps)
    return int(np.clip(min(length, fits), SHORTEST_BLOCK, LONGEST_BLOCK))


def full_epoch(
    space: FullSpace,
    load: Callable[[np.ndarray], np.ndarray],
    labels: np.ndarray,
    order: np.ndarray,
    draw: Callable[[int], np.ndarray],
    rule: int,
    weights: np.ndarray,
    schedule: Schedule,
    length: int,
    visits: np.ndarray,
    violations: np.ndarray,
) -> float:
    """One pass over `order` in blocks of `length` visits; returns the summed loss.

    Parameters
    ----------
    load : callable
        Scaled features of the images with the given row numbers.
    labels : ndarray of shape (n_samples,)
        Class numbers.
    draw : callable
        Random numbers of the next visits, (n_visits, n_classes) or (n_visits, 0).
    rule : int
        Which violators an update is made for.
    weights : ndarray of shape (n_classes,)
        Weight of an update by the number of draws it took.
    visits, violations : ndarray of shape (n_maps,)
        Counters by map, added to.
    """
    dtype = space.vectors.dtype
    n_classes, width = space.vectors.shape
    capacity = length * len(space)
    product = np.empty((length, length), dtype)
    moves = np.empty((capacity, 2), np.int64)
    A, D = np.empty((capacity, n_classes), dtype), np.empty((capacity, n_classes), dtype)
    embedded = not len(space.gram) or getattr(space, "project", False)
    E = np.empty((capacity + 1 if embedded else 0, width), dtype)
    step, margin = dtype.type(schedule.step), dtype.type(schedule.margin)
    known = length <= _SHORT_BLOCK  # then many visits update: all products are worth having
    counts = np.zeros((2, len(space)), np.int64)
    total = 0.0
    for first in range(0, len(order), length):
        rows = order[first : first + length]
        X = load(rows)
        scores, projected = space.scores(X)
        if known:
            np.matmul(X, X.T, out=product[: len(X), : len(X)])
        updated, n_moves, loss = kernels.settle_all(
            X, labels[rows], space.vectors, space.gram, scores, projected, draw(len(rows)),
            rule, weights, step, margin, product, known, moves, A, D, E, counts,
        )  # fmt: skip
        if n_moves:
            image = updated[moves[:n_moves, 0]]
            space.apply(X, image, moves[:n_moves], A[:n_moves], D[:n_moves], step)
        total += loss
    visits += counts[0]
    violations += counts[1]
    return total


def _gram(vectors: np.ndarray) -> np.ndarray:
    """Products of all class vectors, or an empty array if there are too many classes."""
    if len(vectors) > _LARGEST_GRAM:
        return np.empty((0, 0), vectors.dtype)
    return vectors @ vectors.T
