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
    patience : int, optional
        After how many scores in a row that are no better than the best so far training ends; by
        default never.

    Attributes
    ----------
    by_epoch : dict of int to float
        Mean per-class accuracy.
    """

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        classes: Any,
        epochs: Collection[int] | None = None,
        *,
        patience: int | None = None,
    ):
        self._X, self._y, self._classes, self._epochs = X, y, classes, epochs
        self._patience = patience
        self.by_epoch: dict[int, float] = {}

    def __call__(self, info: EpochInfo) -> bool:
        """Score the maps as they stand, if this epoch is wanted; True ends the training."""
        if self._epochs is not None and info.epoch not in self._epochs:
            return False
        named = info.predict(self._X, self._classes)
        self.by_epoch[info.epoch] = mean_class_accuracy(self._y, named)
        scores = list(self.by_epoch.values())
        since = len(scores) - 1 - scores.index(max(scores))
        return self._patience is not None and since >= self._patience


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

    def look(self, info: EpochInfo, history: dict[str, list]) -> bool:
        """Score the maps as they stand, and note the score in the training's history.

        True ends the training.
        """
        ends = self._scores(info)
        score = self._scores.by_epoch[info.epoch]
        history.setdefault("validation_score", []).append(score)
        if score > self._best:
            self._maps, self._best, self.epoch = info.maps(), score, info.epoch
        return ends

    def maps(self) -> np.ndarray:
        """Maps of the best epoch."""
        if self._maps is None:
            raise RuntimeError("No epoch has been looked at.")
        return self._maps
