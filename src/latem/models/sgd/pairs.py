"""Where the maps live during training: two exact forms of the same algorithm.

`PairClassSpace` keeps V_k = W_k Yᵀ, one row per training class: a visit costs 2·K·d_x however wide
the class vectors are, and an update touches C rows. `PairEmbeddingSpace` keeps W_k itself and never
builds anything of size C²: right when there are many more classes than embedding dimensions.
Both are driven block by block (see `latem.models.sgd.kernels`) and agree to rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from latem.core.arrays import aligned, aligned_empty
from latem.core.threads import run_all, single_threaded_blas
from latem.models.sgd.loop import LONGEST_BLOCK, SHORTEST_BLOCK, Load, RunEpoch, Schedule
from latem.models.sgd.team import ClassRows, Epoch

_LARGEST_CLASS_SPACE = 2 * 2**30


class PairClassSpace:
    """Maps seen through the training classes.

    Parameters
    ----------
    maps : ndarray of shape (n_maps, n_features, n_dimensions)
        Maps at the start of training.
    vectors : ndarray of shape (n_classes, n_dimensions)
        Class vectors of the training classes.
    n_threads : int or None
        Threads over classes; the result does not depend on it.
    """

    form = "class"

    def __init__(self, maps: np.ndarray, vectors: np.ndarray, n_threads: int | None = None):
        self.start = maps
        self.vectors = vectors
        self.n_threads = n_threads
        n_maps, n_features, _ = maps.shape
        self.rows = aligned_empty((len(vectors), n_maps, n_features), maps.dtype)
        self.steps = aligned_empty(self.rows.shape, maps.dtype)
        self.steps[...] = 0
        with single_threaded_blas():
            self.gram = vectors @ vectors.T
            for k in range(n_maps):
                self.rows[:, k] = vectors @ maps[k].T

    def epoch(
        self, load: Load, classes: np.ndarray, order: np.ndarray, schedule: Schedule, length: int,
        visits: np.ndarray, violations: np.ndarray,
    ) -> float:  # fmt: skip
        """Visit images in blocks, see `pair_epoch`."""
        on = ClassRows(self.rows, self.steps, self.vectors, self.gram)
        one = Epoch(on, load, classes, order, schedule, length, visits, violations)
        return one.run(on.team_size(len(order), self.n_threads))

    def maps(self) -> np.ndarray:
        """Maps as they stand now, W_k = W_k⁰ + B_kᵀ Y (a copy)."""
        maps = self.start.copy()
        with single_threaded_blas(), overflow_allowed():
            for k in range(len(maps)):
                maps[k] += self.steps[:, k].T @ self.vectors
        return maps

    def keep(self, chosen: np.ndarray) -> None:
        """Drop every map that is not in `chosen` (a boolean mask)."""
        self.start = self.start[chosen]
        self.rows, self.steps = aligned(self.rows[:, chosen]), aligned(self.steps[:, chosen])

    def state(self) -> dict[str, np.ndarray]:
        """Everything needed to continue to identical bytes."""
        return {"start": self.start, "rows": self.rows, "steps": self.steps}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from what `state` returned, perhaps with fewer maps than now."""
        n_maps = len(state["start"])
        check_shape(state["start"], (n_maps, *self.start.shape[1:]))
        for name in ("rows", "steps"):
            check_shape(state[name], (len(self.vectors), n_maps, self.start.shape[1]))
        self.start = state["start"]
        self.rows, self.steps = aligned(state["rows"]), aligned(state["steps"])

    def __len__(self) -> int:
        return len(self.start)


class PairEmbeddingSpace:
    """Maps as plain matrices, blocks of visits as matrix products.

    Parameters
    ----------
    maps, vectors
        As for `PairClassSpace`; `maps` is changed in place.
    n_threads : int or None
        Threads over maps; the result does not depend on it.
    """

    form = "embedding"

    def __init__(self, maps: np.ndarray, vectors: np.ndarray, n_threads: int | None = None):
        self.matrices = maps
        self.vectors = vectors
        self.gram = np.empty((0, 0), vectors.dtype)
        self.n_threads = n_threads

    def epoch(
        self, load: Load, classes: np.ndarray, order: np.ndarray, schedule: Schedule, length: int,
        visits: np.ndarray, violations: np.ndarray,
    ) -> float:  # fmt: skip
        """Visit images in blocks, see `pair_epoch`."""
        from latem.models.sgd import kernels  # late: answering needs no compiler

        total = 0.0
        number = self.vectors.dtype.type
        step, margin = number(schedule.step), number(schedule.margin)
        winners, updated = np.empty((length, 2), np.int64), np.empty(length, np.int64)
        product = np.empty((length, length), number)
        images = aligned_empty((length, self.matrices.shape[1]), number)
        for first in range(0, len(order), length):
            rows, block = order[first : first + length], classes[first : first + length]
            X, won = load(rows, images), winners[: len(rows)]
            scores = self.scores(X, block)
            n_updates, loss = kernels.walk_block(
                X, block, self.vectors, self.gram, scores, step, margin, product, won, updated,
                visits, violations,
            )  # fmt: skip
            if n_updates:
                self.apply(X, block, won, step)
            total += loss
        return total

    def scores(self, X: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Scores of a block's (true, rival) pairs, of shape (n_visits, 2, n_maps)."""
        from latem.models.sgd import kernels  # late: answering needs no compiler

        scores = np.empty((*classes.shape, len(self)), self.matrices.dtype)

        def project(k: int) -> None:
            with overflow_allowed():
                projected = X @ self.matrices[k]
            kernels.pair_scores(projected, self.vectors, classes, k, scores)

        run_all(project, range(len(self)), self.n_threads)
        return scores

    def apply(
        self, X: np.ndarray, classes: np.ndarray, winners: np.ndarray, step: np.floating
    ) -> None:
        """Take the steps of a settled block."""

        def update(k: int) -> None:
            up, down = winners[:, 0] == k, winners[:, 1] == k
            visits = np.flatnonzero(up | down)
            if not len(visits):
                return
            up, down = up[visits, None], down[visits, None]
            true, rival = classes[visits].T
            moves = up * self.vectors[true] - down * self.vectors[rival]
            moves *= step
            with overflow_allowed():
                self.matrices[k] += X[visits].T @ moves

        run_all(update, range(len(self)), self.n_threads)

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
        """Continue from what `state` returned, perhaps with fewer maps than now."""
        check_shape(state["matrices"], (len(state["matrices"]), *self.matrices.shape[1:]))
        self.matrices = state["matrices"]

    def __len__(self) -> int:
        return len(self.matrices)


PairSpace = PairClassSpace | PairEmbeddingSpace


def pair_form(n_classes: int, n_features: int, n_dimensions: int, n_maps: int) -> str:
    """Cheaper form for a problem: "class" or "embedding".

    An update costs C rows in class space, a visit costs K·d_y rows in embedding space; measured,
    the two meet near C = (K + 1)·d_y (`benchmarks/growth.py` has both along C). Class space
    must also fit comfortably into memory.
    """
    size = 4 * n_classes * (2 * n_maps * n_features + n_classes)
    cheaper = n_classes <= n_dimensions * (n_maps + 1)
    return "class" if cheaper and size <= _LARGEST_CLASS_SPACE else "embedding"


def pair_length(n_classes: int, n_maps: int, violation_rate: float) -> int:
    """Visits per block: long enough to move the maps rarely, short enough to correct few scores.

    The factor was found by measurement; any length gives the same result to rounding.
    """
    length = 3.0 * np.sqrt(n_classes * n_maps / max(violation_rate, 1e-9))
    return int(np.clip(length, SHORTEST_BLOCK, LONGEST_BLOCK))


def pair_epoch(
    space: PairSpace,
    load: Load,
    labels: np.ndarray,
    order: np.ndarray,
    rivals: np.ndarray,
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
        Class numbers, rows of the space's class vectors.
    order, rivals
        See `random_visits`.
    """
    classes = np.stack([labels[order], rivals], axis=1)
    return space.epoch(load, classes, order, schedule, length, visits, violations)


def pair_runner(
    space: PairSpace,
    load: Load,
    labels: np.ndarray,
    schedule: Schedule,
    visits: Callable[[int], tuple[np.ndarray, np.ndarray]],
) -> RunEpoch:
    """Function for the training loop that visits all images once, each with one rival.

    Parameters
    ----------
    space, load, labels, schedule
        See `pair_epoch`.
    visits : callable
        Order of the images and their rivals in the epoch of the given number.
    """

    def run(epoch: int, rate: float, counts: np.ndarray, violations: np.ndarray) -> float:
        order, rivals = visits(epoch)
        length = pair_length(len(space.vectors), len(space), rate)
        return pair_epoch(space, load, labels, order, rivals, schedule, length, counts, violations)

    return run


def overflow_allowed() -> np.errstate:
    """Divergence is reported once, by the training loop, not by every product."""
    return np.errstate(over="ignore", invalid="ignore")


def check_shape(array: np.ndarray, shape: tuple[int, ...]) -> None:
    """Refuse a stored array that does not belong to this training."""
    if array.shape != shape:
        raise ValueError(f"The stored training state has shape {array.shape}, not {shape}.")
