"""One fold of a search: its images, and how a candidate does on them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from latem.metrics import mean_class_accuracy
from latem.models.sgd.best_epoch import EpochScores
from latem.selection.results import Tried


class FoldData(NamedTuple):
    """The images of one fold: to fit to, and to score among the held-out classes."""

    X: np.ndarray
    y: np.ndarray
    X_out: np.ndarray
    y_out: np.ndarray
    candidates: np.ndarray


def fold_scores(
    candidate: Any, epochs: list[int] | None, fold: FoldData, patience: int | None = None
) -> list[float]:
    """Accuracy on the held-out images; one for each number of epochs, if there are several.

    With `patience`, training ends after so many of these numbers in a row without an improvement;
    the rest of them get NaN.
    """
    if epochs is None:
        candidate.fit(fold.X, fold.y)
        named = candidate.predict(fold.X_out, fold.candidates)
        return [mean_class_accuracy(fold.y_out, named)]
    candidate.set_params(n_epochs=max(epochs))
    scores = EpochScores(fold.X_out, fold.y_out, fold.candidates, epochs, patience=patience)
    candidate.fit(fold.X, fold.y, callback=scores)
    return [scores.by_epoch.get(n, np.nan) for n in epochs]


def list_tried(
    candidates: list[dict[str, Any]],
    epochs: list[int] | None,
    scores: list[list[float]],
    n_folds: int,
) -> list[Tried]:
    """Scores of every candidate and number of epochs, in the order of the grid."""
    tried = []
    for i, params in enumerate(candidates):
        by_fold = scores[i * n_folds : (i + 1) * n_folds]
        for j, n in enumerate(epochs or [None]):
            extra = {} if n is None else {"n_epochs": n}
            tried.append(Tried({**params, **extra}, [fold[j] for fold in by_fold]))
    return tried
