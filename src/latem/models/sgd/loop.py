"""Ranking SGD, epoch by epoch: Algorithm 1 with pruning, callbacks and checkpoints.

The loop knows nothing of how an epoch visits its images, nor of what is trained: both are given
to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

SHORTEST_BLOCK, LONGEST_BLOCK = 16, 512


@dataclass(frozen=True)
class EpochInfo:
    """What a callback learns after each epoch.

    Attributes
    ----------
    epoch : int
        Number of this epoch, from 1.
    n_epochs : int
        Epoch after which this training ends.
    violation_rate : float
        Share of visits that violated the margin.
    mean_loss : float
        Mean of max(0, margin + F(x, rival) - F(x, true)) over the visits.
    map_usage : ndarray of shape (n_maps,)
        Share of this epoch's visits whose true class was scored best by each map.
    n_maps : int
        Maps left after this epoch (pruning may have dropped some).
    maps : callable
        Returns a copy of the current maps.
    predict : callable
        ``predict(X, classes)`` names images as a model with the current maps would.
    """

    epoch: int
    n_epochs: int
    violation_rate: float
    mean_loss: float
    map_usage: np.ndarray
    n_maps: int
    maps: Callable[[], np.ndarray] = field(repr=False)
    predict: Callable[[Any, Any], np.ndarray] = field(repr=False)


Callback = Callable[[EpochInfo], Any]


@dataclass
class Progress:
    """Where a training stands, apart from the maps.

    `visits` and `violations` count, over all epochs so far, how often each remaining map
    scored the true class best: on every visit, and on those that violated the margin.
    """

    seed: int
    visits: np.ndarray
    violations: np.ndarray
    epoch: int = 0
    stopped: bool = False
    history: dict[str, list] = field(
        default_factory=lambda: {
            "violation_rate": [], "mean_loss": [], "n_maps": [], "map_usage": []
        }
    )  # fmt: skip

    @classmethod
    def new(cls, seed: int, n_maps: int) -> Progress:
        """Progress of a training that has not begun."""
        return cls(seed, np.zeros(n_maps, np.int64), np.zeros(n_maps, np.int64))


class Space(Protocol):
    """What the training loop and checkpoints need of any space."""

    form: str
    vectors: np.ndarray

    def maps(self) -> np.ndarray:
        """Maps as they stand now (a copy)."""

    def keep(self, chosen: np.ndarray) -> None:
        """Drop every map that is not in `chosen` (a boolean mask)."""

    def state(self) -> dict[str, np.ndarray]:
        """Everything needed to continue to identical bytes."""

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from what `state` returned."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Schedule:
    """The fixed settings of a training."""

    step: float
    margin: float
    n_epochs: int
    prune_below: float | None = None
    prune_every: int = 5
    prune_count: str = "violations"


Load = Callable[[np.ndarray, np.ndarray], np.ndarray]  # scaled features of rows, in an array
RunEpoch = Callable[[int, float, np.ndarray, np.ndarray], float]


def train(
    space: Space,
    run_epoch: RunEpoch,
    n_samples: int,
    schedule: Schedule,
    progress: Progress,
    callback: Callback | None,
    after_epoch: Callable[[EpochInfo], None],
    predict: Callable[[np.ndarray, Any, Any], np.ndarray],
) -> None:
    """Run epochs until `schedule.n_epochs`, or until `callback` returns True.

    Parameters
    ----------
    space : one of the spaces
        Holds the maps; changed in place, as is `progress`.
    run_epoch : callable
        Visits all images once. It is given the epoch's number, the violation rate of the one
        before (1 in the beginning), and counters of visits and violations by map to add to; it
        returns the summed loss.
    n_samples : int
        Number of images.
    callback, after_epoch : callable
        Called after each epoch, in this order: the user's, and what keeps the training's state.
    predict : callable
        ``predict(maps, X, classes)`` names images by given maps.
    """
    while progress.epoch < schedule.n_epochs and not progress.stopped:
        epoch = progress.epoch + 1
        visits = np.zeros_like(progress.visits)
        violations = np.zeros_like(progress.violations)
        rates = progress.history["violation_rate"]
        loss = run_epoch(epoch, rates[-1] if rates else 1.0, visits, violations)
        if not np.isfinite(loss):
            raise diverged(epoch, schedule.step)
        progress.visits += visits
        progress.violations += violations
        progress.epoch = epoch
        usage = visits / n_samples
        _prune(space, schedule, progress)
        record = progress.history
        record["violation_rate"].append(float(violations.sum() / n_samples))
        record["mean_loss"].append(loss / n_samples)
        record["n_maps"].append(len(progress.visits))
        record["map_usage"].append(usage.tolist())
        info = EpochInfo(
            epoch=epoch,
            n_epochs=schedule.n_epochs,
            violation_rate=record["violation_rate"][-1],
            mean_loss=record["mean_loss"][-1],
            map_usage=usage,
            n_maps=len(progress.visits),
            maps=space.maps,
            predict=lambda X, classes: predict(space.maps(), X, classes),
        )
        progress.stopped = bool(callback(info)) if callback is not None else False
        after_epoch(info)


def diverged(epoch: int, step: float) -> ValueError:
    """Error for a training whose maps are no longer finite."""
    return ValueError(
        f"Training diverged in epoch {epoch}: the maps are no longer finite. Use a smaller "
        f"learning_rate (it is {step:g}) or a feature_scaling."
    )


def _prune(space: Space, schedule: Schedule, progress: Progress) -> None:
    """Drop maps that were chosen for too small a share of the counts so far (Sec. 4)."""
    if schedule.prune_below is None or progress.epoch % schedule.prune_every:
        return
    counts = progress.violations if schedule.prune_count == "violations" else progress.visits
    if not counts.sum():
        return
    keep = counts >= schedule.prune_below * counts.sum()
    keep[counts.argmax()] = True
    if not keep.all():
        space.keep(keep)
        progress.visits = progress.visits[keep]
        progress.violations = progress.violations[keep]
