"""Weights of several models that answer together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from latem.metrics import mean_class_accuracy

_MOST_WEIGHTS = 20_000


def checked_weights(weights: Any, n: int, owner: str) -> np.ndarray:
    """Weights that add up to one; equal ones for None.

    Those that already do, but for rounding, stay as they are, bit by bit: weights go through
    files, twins and clones.

    Parameters
    ----------
    weights : sequence of float or None
        One per member, not negative.
    n : int
        Number of members.
    owner : str
        Whose members they are, for messages.
    """
    try:
        given = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    except (TypeError, ValueError):  # no numbers
        given = np.empty(0)
    if given.shape != (n,) or not np.isfinite(given).all() or given.min() < 0:
        raise ValueError(f"{owner} needs one weight per member, {n}, none negative; got {weights}.")
    if not given.sum():
        raise ValueError(f"{owner} needs at least one weight above zero.")
    total = given.sum()
    return given if abs(total - 1) <= n * np.finfo(float).eps else given / total


class HeldOutScores(NamedTuple):
    """How members score images of classes that none of them has seen.

    Attributes
    ----------
    scores : ndarray of shape (n_members, n_samples, n_classes)
    y : ndarray of shape (n_samples,)
        True classes.
    classes : ndarray of shape (n_classes,)
    """

    scores: np.ndarray
    y: np.ndarray
    classes: np.ndarray

    def accuracy(self, weights: np.ndarray) -> float:
        """Mean per-class accuracy of the members together."""
        places = np.tensordot(weights, self.scores, axes=1).argmax(axis=1)
        return mean_class_accuracy(self.y, self.classes[places])


def best_weights(folds: Sequence[HeldOutScores], *, steps: int, prior: float = 0.0) -> np.ndarray:
    """Weights by which members together name most held-out images rightly.

    All weights that are multiples of ``1 / steps`` and add up to one are tried; of equally good
    ones the most even counts, and of equally even ones the first by `simplex`, which gives the
    first members less.

    Parameters
    ----------
    folds : sequence of HeldOutScores
        At least one; the mean of their accuracies decides.
    steps : int
    prior : float
        How many classes equal weights count for: the best weights of n classes are drawn towards
        them by prior / (n + prior).

    Returns
    -------
    ndarray of shape (n_members,)
    """
    n_members = len(folds[0].scores)
    grid = simplex(n_members, steps)
    accuracy = [float(np.mean([fold.accuracy(weights) for fold in folds])) for weights in grid]
    most = max(accuracy)
    equals = [w for w, a in zip(grid, accuracy, strict=True) if a == most]
    best = min(equals, key=lambda w: int(np.square(np.rint(steps * w)).sum()))  # free of rounding
    share = prior / (sum(len(fold.classes) for fold in folds) + prior)
    return (1 - share) * best + share / n_members


def simplex(n: int, steps: int) -> list[np.ndarray]:
    """All weight vectors of length n whose entries are multiples of 1/steps and add up to 1."""
    if steps < 1:
        raise ValueError(f"steps must be at least 1, but is {steps}.")
    bars = itertools.combinations(range(steps + n - 1), n - 1)
    grid = []
    for bar in bars:
        edges = np.array([-1, *bar, steps + n - 1])
        grid.append((np.diff(edges) - 1) / steps)
        if len(grid) > _MOST_WEIGHTS:
            raise ValueError(
                f"{n} members and steps={steps} give too many weights to try; use fewer steps."
            )
    return grid
