"""Looking into a model: which images each map likes best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latem.models.ranking import RankingModel
from latem.models.scoring import best_k


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


def top_images(
    model: RankingModel, X: Any, classes: Any = "unseen", *, n: int = 8
) -> list[list[TopImage]]:
    """Images that each map scores highest, for any of some classes (the paper's Figure 2).

    All pairs of image and class are ranked under each map W_k alone; an image that comes up for
    several classes is kept where it scores highest.

    Parameters
    ----------
    model : fitted LatEm, SJE, ALE or DeViSE
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
    if not isinstance(model, RankingModel):
        raise TypeError(f"Only models with maps have images per map, not {type(model).__name__}.")
    check_is_fitted(model)
    if n < 1:
        raise ValueError(f"n must be at least 1, but is {n}.")
    X = model._check_images(X)
    chosen = model._candidates(classes)
    best = np.empty((len(model.maps_), len(X)), model.dtype_)  # score of each image's best class
    named = np.empty(best.shape, np.intp)
    scorer = model._map_scorer(model.maps_, chosen.vectors, len(X))

    def work(rows: slice, features: np.ndarray) -> None:
        for k in range(len(model.maps_)):
            scores = scorer.map_scores(features, k)
            named[k, rows] = scores.argmax(axis=1)
            best[k, rows] = scores.max(axis=1)

    model._each_block(X, len(chosen.names), work)
    places = best_k(best, min(n, len(X)))
    return [
        [TopImage(int(row), chosen.names[named[k, row]], float(best[k, row])) for row in places[k]]
        for k in range(len(places))
    ]
