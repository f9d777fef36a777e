"""How closed forms do on a fold, for whole grids of their parameters at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from latem.metrics import mean_class_accuracy
from latem.models.normal_equations import NormalEquations
from latem.models.shared_images import SharedImages
from latem.selection.folds import FoldData

GAMMAS, LAMS = 10.0 ** np.arange(-3, 5), 10.0 ** np.arange(-2, 3)  # of ESZSL


def fold_images(model: Any, fold: FoldData) -> SharedImages:
    """The images of a fold to learn from, scaled as by this unfitted model."""
    exact = _prepared(model, fold)
    return SharedImages(fold.X, exact.class_codes(fold.y), len(exact.classes_), exact.scaler_)


def map_accuracy(
    model: Any,
    fold: FoldData,
    images: SharedImages | None = None,
    *,
    gammas: np.ndarray = GAMMAS,
    lams: np.ndarray = LAMS,
) -> np.ndarray:
    """Accuracy of ESZSL's map on the held-out images, for all pairs of penalties.

    Parameters
    ----------
    model : unfitted ESZSL, or LatEm that starts from it
        Says how images and classes are prepared, and whether classes are balanced.
    fold : FoldData
    images : SharedImages, optional
        As `fold_images` gives them.
    gammas, lams : ndarray
        Penalties.

    Returns
    -------
    ndarray of shape (n_gammas, n_lams)
    """
    exact = _prepared(model, fold)
    images = fold_images(model, fold) if images is None else images
    equations = NormalEquations(images.sums, exact.class_view_.training())
    held_out = exact.scaler_.transform(fold.X_out, np.float64)
    candidates = exact.class_view_.candidates(fold.candidates)
    grid = equations.grid_scores(
        held_out, candidates.vectors, gammas, lams, balanced=exact.balance_classes
    )
    return _accuracy(grid, (len(gammas), len(lams)), candidates.names, fold.y_out)


def exemplar_accuracy(
    model: Any,
    fold: FoldData,
    images: SharedImages,
    gammas: Sequence[float],
    alphas: Sequence[float],
) -> np.ndarray:
    """Accuracy of predicted exemplars on the held-out images, for all pairs of parameters.

    Parameters
    ----------
    model : unfitted EXEM, with neighbours "1NNs" or "whitened"
    fold : FoldData
    images : SharedImages
        As `fold_images` gives them.
    gammas, alphas : sequence of float

    Returns
    -------
    ndarray of shape (n_gammas, n_alphas)
    """
    exact = _prepared(model, fold)
    equations = exact.equations(images)
    held_out = exact.scaler_.transform(fold.X_out, np.float64)
    candidates = exact.class_view_.candidates(fold.candidates)
    grid = equations.grid_scores(held_out, candidates.vectors, gammas, alphas)
    return _accuracy(grid, (len(gammas), len(alphas)), candidates.names, fold.y_out)


def _prepared(model: Any, fold: FoldData) -> Any:
    exact = clone(model).set_params(dtype="float64")
    exact.prepare(fold.X, fold.y)
    return exact


def _accuracy(
    grid: Iterable[tuple[int, int, np.ndarray]],
    shape: tuple[int, int],
    names: np.ndarray,
    y: np.ndarray,
) -> np.ndarray:
    accuracy = np.empty(shape)
    for i, j, scores in grid:
        accuracy[i, j] = mean_class_accuracy(y, names[scores.argmax(axis=1)])
    return accuracy
