"""What each map has learned: the images, classes and attributes it likes best (Figure 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latem.core.arrays import unit_rows
from latem.core.slim import needed
from latem.inspection.speakers import by_maps
from latem.models.ranking import RankingModel
from latem.models.scoring import best_k

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TopImage:
    """An image that a map scores highly.

    Attributes
    ----------
    row : int
        Its row in the features.
    named : class name
        The class for which the map scores it highest.
    score : float
        xᵀ W_k y.
    """

    row: int
    named: Any
    score: float


@dataclass(frozen=True)
class MapProfile:
    """What a map does on some images.

    Attributes
    ----------
    number : int
    share : float
        Share of the images whose predicted class it scored best.
    classes : Series
        How often it won for each predicted class, most frequent first.
    attributes : Series
        Mean contribution of each dimension to the scores it won with, largest first.
    """

    number: int
    share: float
    classes: pd.Series
    attributes: pd.Series


def top_images(model: Any, X: Any, classes: Any = "unseen", *, n: int = 8) -> list[list[TopImage]]:
    """Images that each map scores highest, for any of some classes (the paper's Figure 2).

    All pairs of image and class are ranked under each map W_k alone; an image that comes up for
    several classes is kept where it scores highest.

    Parameters
    ----------
    model : fitted LatEm, SJE, ALE or DeViSE, or a search over one
    X : array-like of shape (n_samples, n_features)
    classes
        Which classes to consider; see `decision_function`.
    n : int
        Images per map, at most as many as there are.

    Returns
    -------
    list, one entry per map, of lists of TopImage, best first

    Examples
    --------
    >>> from latem import LatEm, make_latent_world, top_images
    >>> world = make_latent_world(random_state=0)
    >>> model = LatEm(world.embeddings["att"], n_maps=2, random_state=0).fit(*world.training())
    >>> X, y = world.testing()
    >>> [len(images) for images in top_images(model, X, n=5)]
    [5, 5]
    """
    model = with_maps(model, "top_images")
    if n < 1:
        raise ValueError(f"n must be at least 1, but is {n}.")
    X = model.check_images(X)
    chosen = model.class_view_.candidates(classes)
    best = np.empty((len(model.maps_), len(X)), model.dtype_)  # score of each image's best class
    named = np.empty(best.shape, np.intp)
    scorer = model.map_scorer(chosen)

    def work(rows: slice, features: np.ndarray) -> None:
        for k in range(len(model.maps_)):
            scores = scorer.map_scores(features, k)
            named[k, rows] = scores.argmax(axis=1)
            best[k, rows] = scores.max(axis=1)

    model.each_block(X, len(chosen), work)
    places = best_k(best, min(n, len(X)))
    return [
        [TopImage(int(row), chosen.names[named[k, row]], float(best[k, row])) for row in places[k]]
        for k in range(len(places))
    ]


def map_profiles(model: Any, X: Any, classes: Any = "unseen") -> list[MapProfile]:
    """Which images, classes and attributes each map prefers.

    Parameters
    ----------
    model : fitted LatEm, SJE, ALE or DeViSE, or a search over one
    X : array-like of shape (n_samples, n_features)
    classes
        Which classes may be the answer; see `decision_function`.

    Returns
    -------
    list of MapProfile, one per map
    """
    model = with_maps(model, "map_profiles")
    X = model.check_images(X)
    chosen = model.class_view_.candidates(classes)
    columns, loadings, basis = model.class_view_.terms(chosen)
    n_maps = len(model.maps_)
    named = np.empty(len(X), np.intp)
    winner = np.empty(len(X), np.intp)
    scorer = model.map_scorer(chosen)
    sums = np.zeros((n_maps, len(columns)))
    for first in range(0, len(X), 1024):
        rows = slice(first, min(first + 1024, len(X)))
        features = model.scaler_.transform(X[rows], model.dtype_)
        scores, winners = scorer.winners(features)
        named[rows] = scores.argmax(axis=1)
        winner[rows] = np.take_along_axis(winners, named[rows, None], axis=1)[:, 0]
        for k in range(n_maps):
            won = winner[rows] == k
            projected = features[won] @ model.maps_[k]
            if model.by_direction:
                projected = unit_rows(projected)
            terms = (projected @ basis) * loadings[named[rows][won]]
            sums[k] += terms.sum(axis=0, dtype=np.float64)
    pd = needed("pandas", "Profiles of maps")
    profiles = []
    for k in range(n_maps):
        won = winner == k
        counts = pd.Series(chosen.names[named[won]]).value_counts(sort=True)
        mean = pd.Series(sums[k] / max(int(won.sum()), 1), index=columns)
        profiles.append(
            MapProfile(
                number=k,
                share=float(won.mean()),
                classes=counts.rename("images"),
                attributes=mean.sort_values(ascending=False, kind="stable"),
            )
        )
    return profiles


def map_overlap(model: Any) -> np.ndarray:
    """Cosines between the maps, of shape (n_maps, n_maps): 1 where two maps point the same way."""
    maps = with_maps(model, "map_overlap").maps_
    flat = maps.reshape(len(maps), -1).astype(np.float64)
    flat = unit_rows(flat)
    return flat @ flat.T


def with_maps(model: Any, user: str) -> RankingModel:
    """A fitted model that has maps, or what a search over one has chosen."""
    model = by_maps(model, user)
    if not isinstance(model, RankingModel):
        raise TypeError(f"Only models with maps have images per map, not {type(model).__name__}.")
    check_is_fitted(model)
    return model
