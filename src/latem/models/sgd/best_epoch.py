"""Scores of held-out images after epochs of a training, and the maps of the best one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from latem.metrics import mean_class_accuracy
from latem.models.sgd.loop import EpochInfo


class EpochScores:
    """Callback that scores held-out images after some epochs.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Their true classes.
    classes : array-like
        The classes they are named among.
    epochs : collection of int, optional
        After which epochs; by default all.

    Attributes
    ----------
    by_epoch : dict of int to float
        Mean per-class accuracy.
    """

    def __init__(
        self, X: np.ndarray, y: np.ndarray, classes: Any, epochs: Collection[int] | None = None
    ):
        self._X, self._y, self._classes, self._epochs = X, y, classes, epochs
        self.by_epoch: dict[int, float] = {}

    def __call__(self, info: EpochInfo) -> None:
        """Score the maps as they stand, if this epoch is wanted."""
        if self._epochs is None or info.epoch in self._epochs:
            named = info.predict(self._X, self._classes)
            self.by_epoch[info.epoch] = mean_class_accuracy(self._y, named)


class BestEpoch:
    """Keeps the maps of the best epoch, judged on held-out images; of equals the earliest.

    Parameters
    ----------
    scores : EpochScores
        Of all epochs.
    """

    def __init__(self, scores: EpochScores):
        self._scores = scores
        self._maps: np.ndarray | None = None
        self._best = -1.0
        self.epoch = 0

    def look(self, info: EpochInfo, history: dict[str, list]) -> None:
        """Score the maps as they stand, and note the score in the training's history."""
        self._scores(info)
        score = self._scores.by_epoch[info.epoch]
        history.setdefault("validation_score", []).append(score)
        if score > self._best:
            self._maps, self._best, self.epoch = info.maps(), score, info.epoch

    def maps(self) -> np.ndarray:
        """Maps of the best epoch."""
        if self._maps is None:
            raise RuntimeError("No epoch has been looked at.")
        return self._maps
