"""Ranking SGD, epoch by epoch: Algorithm 1 with pruning, callbacks and checkpoints.

Random numbers are drawn here, never in a kernel. Each epoch has a stream of its own, derived
from the seed and the epoch's number, so a training that continues draws what it would have
drawn without the interruption.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from latem.models import kernels
from latem.models.spaces import PairSpace, Space

_START, _EPOCH, _MORE = 0, 1, 2
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
        Returns a copy of the current maps, to score held-out classes with.
    """

    epoch: int
    n_epochs: int
    violation_rate: float
    mean_loss: float
    map_usage: np.ndarray
    n_maps: int
    maps: Callable[[], np.ndarray] = field(repr=False)


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


@dataclass(frozen=True)
class Schedule:
    """The fixed settings of a training."""

    step: float
    margin: float
    n_epochs: int
    prune_below: float | None = None
    prune_every: int = 5
    prune_count: str = "violations"


def random_maps(seed: int, shape: tuple[int, int, int], scale: float, dtype: Any) -> np.ndarray:
    """Initial maps: zero mean, standard deviation scale/√d_x (Sec. 5)."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(_START,))))
    n_maps, n_features, n_dimensions = shape
    maps = np.empty(shape, dtype)
    for k in range(n_maps):
        maps[k] = rng.standard_normal((n_features, n_dimensions)) * (scale / np.sqrt(n_features))
    return maps


def epoch_generator(seed: int, epoch: int) -> np.random.Generator:
    """The epoch's own stream of random numbers."""
    key = (_EPOCH, epoch)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def random_visits(
    seed: int, epoch: int, labels: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """One epoch's order of images, and for each a rival class other than its own.

    Returns
    -------
    order : ndarray of shape (n_samples,)
    rivals : ndarray of shape (n_samples,)
        Class number for the image at the same place of `order`.
    """
    rng = epoch_generator(seed, epoch)
    order = rng.permutation(len(labels))
    rivals = rng.integers(0, n_classes - 1, len(labels))
    rivals += rivals >= labels[order]
    return order, rivals


def more_rivals(seed: int, epoch: int, true: np.ndarray, n_classes: int, n_more: int) -> np.ndarray:
    """Further rivals for the visits of an epoch, from a stream of their own.

    Parameters
    ----------
    true : ndarray of shape (n_samples,)
        Class numbers of the images in the order of their visits.
    n_more : int

    Returns
    -------
    ndarray of shape (n_samples, n_more)
    """
    key = (_MORE, epoch)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
    rivals = rng.integers(0, n_classes - 1, (len(true), n_more))
    rivals += rivals >= true[:, None]
    return rivals


def block_length(n_classes: int, n_maps: int, violation_rate: float) -> int:
    """Visits per block: long enough to move the maps rarely, short enough to correct few scores.

    The factor was found by measurement; any length gives the same result to rounding.
    """
    length = 3.0 * np.sqrt(n_classes * n_maps / max(violation_rate, 1e-9))
    return int(np.clip(length, SHORTEST_BLOCK, LONGEST_BLOCK))


RunEpoch = Callable[[int, float, np.ndarray, np.ndarray], float]


def train(
    space: Space,
    run_epoch: RunEpoch,
    n_samples: int,
    schedule: Schedule,
    progress: Progress,
    callback: Callback | None,
    after_epoch: Callable[[EpochInfo], None],
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
        )
        progress.stopped = bool(callback(info)) if callback is not None else False
        after_epoch(info)


def diverged(epoch: int, step: float) -> ValueError:
    """Error for a training whose maps are no longer finite."""
    return ValueError(
        f"Training diverged in epoch {epoch}: the maps are no longer finite. Use a smaller "
        f"learning_rate (it is {step:g}) or a feature_scaling."
    )


def sampled_epoch(
    space: PairSpace,
    load: Callable[[np.ndarray], np.ndarray],
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
        Scaled features of the images with the given row numbers.
    labels : ndarray of shape (n_samples,)
        Class numbers, rows of the space's class vectors.
    order, rivals
        See `random_visits`.
    """
    total = 0.0
    classes = np.stack([labels[order], rivals], axis=1)
    winners = np.empty((length, 2), np.int64)
    product = np.empty((length, length), space.vectors.dtype)
    number = space.vectors.dtype.type
    step, margin = number(schedule.step), number(schedule.margin)
    for first in range(0, len(order), length):
        rows = order[first : first + length]
        X = load(rows)
        block = classes[first : first + length]
        scores = space.scores(X, block)
        won = winners[: len(rows)]
        n_updates, loss = kernels.settle(
            X,
            block,
            space.vectors,
            space.gram,
            scores,
            step,
            margin,
            product,
            won,
            visits,
            violations,
        )
        if n_updates:
            space.apply(X, block, won, step)
        total += loss
    return total


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
