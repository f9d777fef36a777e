"""Training that looks at all classes on every visit: spaces and the pass over the images.

The counterpart of `latem.models.sgd.pairs` for SJE, ALE and DeViSE. `DenseClassSpace` keeps
V_k = W_k Yᵀ, so that all scores of a block of images are one matrix product; `DenseEmbeddingSpace`
keeps W_k, right when there are many more classes than dimensions or when W_kᵀ x itself is needed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import blas

from latem.core.arrays import aligned_empty
from latem.core.threads import single_threaded_blas
from latem.models.sgd.loop import LONGEST_BLOCK, SHORTEST_BLOCK, Load, RunEpoch, Schedule
from latem.models.sgd.pairs import check_shape, overflow_allowed

_LARGEST_GRAM = 4096  # classes
_USUAL_UPDATES, _SHORT_BLOCK = 48, 96
_LARGEST_BLOCK = 256 * 2**20  # bytes
# names of the kernels' constants
RULES = {"worst": "WORST", "first": "FIRST", "all": "ALL", "drawn": "DRAWN", "hardest": "HARDEST"}


Draw = Callable[[int], np.ndarray]  # random numbers of the next visits


class DenseClassSpace:
    """Maps seen through the training classes, V_k = W_k Yᵀ of shape (n_features, n_classes).

    Parameters
    ----------
    maps : ndarray of shape (n_maps, n_features, n_dimensions)
        Maps at the start of training.
    vectors : ndarray of shape (n_classes, n_dimensions)
    average : bool
        Whether `maps` gives the mean of the iterates after all visits so far instead of the last.
        A step at time t (counted in epochs) is missing from the iterates before it, so the mean
        over T epochs is the last iterate less the sum of all steps times t/T.
    """

    form = "dense class"

    def __init__(self, maps: np.ndarray, vectors: np.ndarray, *, average: bool = False):
        self.start = maps
        self.vectors = vectors
        with single_threaded_blas():
            self.gram = _gram(vectors)
            self.products = maps @ vectors.T
        n_maps, self.n_features, n_dimensions = maps.shape
        self.steps = np.zeros((n_maps, len(vectors), self.n_features), maps.dtype)
        self.late = np.zeros(self.steps.shape if average else (0, 0, 0), maps.dtype)
        self.n_epochs = 0
        self._nothing = np.empty((n_maps, 0, n_dimensions), maps.dtype)

    def scores(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores (n_maps, n_visits, n_classes); nothing is projected."""
        with overflow_allowed():
            return X @ self.products, self._nothing

    def apply(
        self, X: np.ndarray, image: np.ndarray, moves: np.ndarray,
        A: np.ndarray, D: np.ndarray, step: np.floating, when: np.ndarray,
    ) -> None:  # fmt: skip
        """Take a block's moves; see `latem.models.sgd.dense_kernels`."""
        from latem.models.sgd import dense_kernels as kernels  # late: answering needs no compiler

        kernels.add_moves(X, image, moves, A, step, self.steps, when, self.late)
        gemm = blas.sgemm if X.dtype == np.float32 else blas.dgemm
        for k in (0,) if len(self) == 1 else np.unique(moves[:, 1]):
            if len(self) == 1 and 2 * len(image) > len(X):
                # nearly all images: cheaper with zeros for the others than with a copy of these
                images, changes = X, np.zeros((len(X), D.shape[1]), D.dtype)
                changes[image] = D
            else:
                chosen = moves[:, 1] == k
                images, changes = X[image[chosen]], D[chosen]
            # V_kᵀ += Dᵀ X in place: the transposes of C-ordered arrays are Fortran-ordered
            out = self.products[k].T
            gemm(1.0, changes.T, images.T, 1.0, out, trans_b=True, overwrite_c=True)

    def maps(self) -> np.ndarray:
        """Maps as they stand now, W_k = W_k⁰ + B_kᵀ Y (a copy)."""
        with single_threaded_blas(), overflow_allowed():
            steps = self.steps
            if len(self.late):
                steps = steps - self.late / max(self.n_epochs, 1)
            return self.start + steps.transpose(0, 2, 1) @ self.vectors

    def keep(self, chosen: np.ndarray) -> None:
        """Drop every map that is not in `chosen` (a boolean mask)."""
        self.start, self.products, self.steps = (
            self.start[chosen], self.products[chosen], self.steps[chosen]
        )  # fmt: skip
        self._nothing = self._nothing[chosen]
        self.late = self.late[chosen] if len(self.late) else self.late

    def state(self) -> dict[str, np.ndarray]:
        """Everything needed to continue to identical bytes."""
        return {
            "start": self.start,
            "products": self.products,
            "steps": self.steps,
            "late": self.late,
            "n_epochs": np.array([self.n_epochs]),
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from what `state` returned."""
        n_maps = len(state["start"])
        for name in ("start", "products", "steps", "late"):
            now = getattr(self, name)
            check_shape(state[name], (n_maps if len(now) else 0, *now.shape[1:]))
        self.start, self.products = state["start"], state["products"]
        self.steps, self.late = state["steps"], state["late"]
        self._nothing = self._nothing[:1].repeat(n_maps, axis=0)
        self.n_epochs = int(state["n_epochs"][0])

    def __len__(self) -> int:
        return len(self.start)


class DenseEmbeddingSpace:
    """Maps as plain matrices.

    Parameters
    ----------
    maps, vectors
        As for `DenseClassSpace`; `maps` is changed in place.
    project : bool
        Whether the kernel needs the projected images W_kᵀ x.
    average : bool
        As for `DenseClassSpace`.
    """

    form = "dense embedding"

    def __init__(
        self,
        maps: np.ndarray,
        vectors: np.ndarray,
        *,
        project: bool = False,
        average: bool = False,
    ):
        self.matrices = maps
        self.n_features = maps.shape[1]
        self.late = np.zeros(maps.shape if average else (0, 0, 0), maps.dtype)
        self.n_epochs = 0
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
        A: np.ndarray, D: np.ndarray, step: np.floating, when: np.ndarray,
    ) -> None:  # fmt: skip
        """Take a block's moves; see `latem.models.sgd.dense_kernels`."""
        with overflow_allowed():
            for k in np.unique(moves[:, 1]):
                chosen = moves[:, 1] == k
                images, targets = X[image[chosen]], step * (A[chosen] @ self.vectors)
                self.matrices[k] += images.T @ targets
                if len(self.late):
                    self.late[k] += images.T @ (when[image[chosen], None] * targets)

    def maps(self) -> np.ndarray:
        """Maps as they stand now, or their mean so far (a copy)."""
        if len(self.late):
            return self.matrices - self.late / max(self.n_epochs, 1)
        return self.matrices.copy()

    def keep(self, chosen: np.ndarray) -> None:
        """Drop every map that is not in `chosen` (a boolean mask)."""
        self.matrices = self.matrices[chosen]
        self.late = self.late[chosen] if len(self.late) else self.late

    def state(self) -> dict[str, np.ndarray]:
        """Everything needed to continue to identical bytes."""
        return {
            "matrices": self.matrices,
            "late": self.late,
            "n_epochs": np.array([self.n_epochs]),
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from what `state` returned."""
        n_maps = len(state["matrices"])
        for name in ("matrices", "late"):
            now = getattr(self, name)
            check_shape(state[name], (n_maps if len(now) else 0, *now.shape[1:]))
        self.matrices, self.late = state["matrices"], state["late"]
        self.n_epochs = int(state["n_epochs"][0])

    def __len__(self) -> int:
        return len(self.matrices)


DenseSpace = DenseClassSpace | DenseEmbeddingSpace


def dense_form(n_classes: int, n_features: int, n_dimensions: int, n_maps: int) -> str:
    """Cheaper form for a problem: "class" or "embedding", by multiplications per visit."""
    of_class = n_classes * n_features
    of_embedding = n_dimensions * (n_features + n_classes)
    size = 8 * n_maps * of_class
    return "class" if of_class <= of_embedding and size <= 2 * 2**30 else "embedding"


def dense_length(n_classes: int, n_maps: int, violation_rate: float) -> int:
    """Visits per block; any length gives the same result to rounding.

    The number of updates was found by measurement.
    """
    length = _USUAL_UPDATES / max(violation_rate, 0.05)
    fits = _LARGEST_BLOCK // (12 * n_classes * n_maps)
    length = 16 * (min(length, fits) // 16)  # matrix products like round sizes
    return int(np.clip(length, SHORTEST_BLOCK, LONGEST_BLOCK))


def dense_epoch(
    space: DenseSpace,
    load: Load,
    labels: np.ndarray,
    order: np.ndarray,
    draw: Draw,
    rule: str,
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
        Scaled features of the images with the given row numbers, in the given array.
    labels : ndarray of shape (n_samples,)
        Class numbers.
    draw : callable
        Random numbers of the next visits, (n_visits, n_classes) or (n_visits, 0).
    rule : str
        One of `RULES`: which violators an update is made for.
    weights : ndarray of shape (n_classes,)
        Weight of an update by the number of draws it took.
    visits, violations : ndarray of shape (n_maps,)
        Counters by map, added to.
    """
    from latem.models.sgd import dense_kernels as kernels  # late: answering needs no compiler

    number_of_rule = getattr(kernels, RULES[rule])
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
    images = aligned_empty((length, space.n_features), dtype)
    total = 0.0
    for first in range(0, len(order), length):
        rows = order[first : first + length]
        X = load(rows, images)
        scores, projected = space.scores(X)
        if known:  # each with the earlier ones: one triangle is enough
            rank_k = blas.ssyrk if dtype == np.float32 else blas.dsyrk
            product = rank_k(1.0, X.T, trans=True, lower=False).T
        updated, n_moves, loss = kernels.walk_dense_block(
            X, labels[rows], space.vectors, space.gram, scores, projected, draw(len(rows)),
            number_of_rule, weights, step, margin, product, known, moves, A, D, E, counts,
        )  # fmt: skip
        if n_moves:
            image = updated[moves[:n_moves, 0]]
            passed = np.arange(first, first + len(rows)) / len(order)
            when = (space.n_epochs + passed).astype(dtype)
            space.apply(X, image, moves[:n_moves], A[:n_moves], D[:n_moves], step, when)
        total += loss
    space.n_epochs += 1
    visits += counts[0]
    violations += counts[1]
    return total


def dense_runner(
    space: DenseSpace,
    load: Load,
    labels: np.ndarray,
    schedule: Schedule,
    rule: str,
    weights: np.ndarray,
    visits: Callable[[int], tuple[np.ndarray, Draw]],
) -> RunEpoch:
    """Function for the training loop that visits all images once, looking at all classes.

    Parameters
    ----------
    space, load, labels, schedule
        See `dense_epoch`.
    rule : str
        One of `RULES`: which violators an update is made for.
    weights : ndarray of shape (n_classes,)
        Weight of an update by the number of draws it took.
    visits : callable
        Order of the images, and what gives the random numbers of the next visits, in the epoch of
        the given number.
    """
    weights = weights.astype(space.vectors.dtype)

    def run(epoch: int, rate: float, counts: np.ndarray, violations: np.ndarray) -> float:
        order, draw = visits(epoch)
        length = dense_length(len(space.vectors), len(space), rate)
        return dense_epoch(
            space, load, labels, order, draw, rule, weights, schedule, length, counts,
            violations,
        )  # fmt: skip

    return run


def iter_rows(rows: np.ndarray) -> Callable[[int], np.ndarray]:
    """Function that gives the next rows, as many as asked for."""
    place = 0

    def following(n: int) -> np.ndarray:
        nonlocal place
        place += n
        return rows[place - n : place]

    return following


def _gram(vectors: np.ndarray) -> np.ndarray:
    """Products of all class vectors, or an empty array if there are too many classes."""
    if len(vectors) > _LARGEST_GRAM:
        return np.empty((0, 0), vectors.dtype)
    return vectors @ vectors.T
