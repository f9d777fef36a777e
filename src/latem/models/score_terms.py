"""What a score is a sum of: the traits of a class, or its likeness to the seen classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latem.core.arrays import unit_rows
from latem.models.class_view import Candidates, ClassView


class ScoreTerms(NamedTuple):
    """One image's scores, term by term.

    Attributes
    ----------
    columns : list of str
        Dimensions of the class table, or seen classes ("like a zebra").
    terms : ndarray of shape (n_classes, n_columns)
        They add up to the scores.
    slopes : ndarray of shape (n_classes, n_columns)
        By how much a score grows with the column, for as much as it varies among the candidates:
        positive where the image speaks for more of what the column stands for, negative where it
        speaks for less.
    by_map : ndarray of shape (n_maps, n_classes), or None
        Scores by each map, of a model that has maps.
    """

    columns: list[str]
    terms: np.ndarray
    slopes: np.ndarray
    by_map: np.ndarray | None = None


def map_terms(
    maps: np.ndarray,
    view: ClassView,
    features: np.ndarray,
    chosen: Candidates,
    *,
    by_direction: bool = False,
) -> ScoreTerms:
    """Terms of max_k xᵀ W_k y; the map that scores a class best speaks for it.

    Parameters
    ----------
    maps : ndarray of shape (n_maps, n_features, width)
    view : ClassView
    features : ndarray of shape (n_features,), float64
        One scaled image.
    chosen : Candidates
        Of this view.
    by_direction : bool
        Whether projected images are compared by direction only.
    """
    columns, loadings, basis = view.terms(chosen)
    projected = features @ maps.astype(np.float64)  # (n_maps, width)
    projected = (unit_rows(projected) if by_direction else projected) @ basis
    by_map = projected @ loadings.T
    factors = projected[by_map.argmax(axis=0)]
    return ScoreTerms(columns, factors * loadings, factors * loadings.std(axis=0), by_map)
