"""Keeping the maps of the best epoch, judged on classes that are not trained on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from latem.metrics import mean_class_accuracy
from latem.models.training import EpochInfo


class BestEpoch:
    """Scores held-out images after every epoch; of equals the earliest epoch is kept.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        True classes of the held-out images.
    predict : callable
        Classes that given maps predict for them.
    """

    def __init__(self, y: np.ndarray, predict: Callable[[np.ndarray], np.ndarray]):
        self._y, self._predict = y, predict
        self._maps: np.ndarray | None = None
        self._score = -1.0
        self.epoch = 0

    def look(self, info: EpochInfo, history: dict[str, list]) -> None:
        """Score the maps as they stand, and note the score in the training's history."""
        maps = info.maps()
        score = mean_class_accuracy(self._y, self._predict(maps))
        history.setdefault("validation_score", []).append(score)
        if score > self._score:
            self._maps, self._score, self.epoch = maps, score, info.epoch

    def maps(self) -> np.ndarray:
        """Maps of the best epoch."""
        if self._maps is None:
            raise RuntimeError("No epoch has been looked at.")
        return self._maps
