"""What speaks for a model: the one a search has chosen, its maps, the terms of its scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latem.core.arrays import unit_rows
from latem.models import model_rows
from latem.models.checks import check_is_model
from latem.models.class_view import Candidates
from latem.models.committee import Committee
from latem.models.map_model import MapModel
from latem.models.score_terms import ScoreTerms, map_terms
from latem.models.table_model import TableClassifier


def inner_model(model: Any, user: str) -> Any:
    """The model itself, or what a search over parameters has chosen.

    Parameters
    ----------
    model : fitted model, or a fitted search over one, scikit-learn's included
    user : str
        Function that was given it, for messages.
    """
    inner = getattr(model, "best_estimator_", model)
    check_is_model(inner, user)
    check_is_fitted(model)
    return inner


def by_likeness(model: Any) -> bool:
    """Whether a model knows classes by a kernel: then seen classes speak, and no single trait."""
    return model.class_view_.kernel is not None


def by_maps(model: Any, user: str) -> Any:
    """What speaks by maps: a model, or of a committee the first member with maps over traits.

    Parameters
    ----------
    model : fitted model, or a fitted search over one
    user : str
        Function that was given it, for messages.
    """
    inner = inner_model(model, user)
    if not isinstance(inner, Committee):
        return inner
    members = [one for one in inner.models_ if isinstance(one, MapModel) and not by_likeness(one)]
    return members[0] if members else inner


def bilinear_maps(model: Any) -> np.ndarray:
    """Bilinear maps of a model, (n_maps, n_features, n_dimensions), in float64."""
    row = model_rows.row_of(model)
    if row is None or row.maps is None:
        having = ", ".join(row.name for row in model_rows.rows() if row.maps is not None)
        raise TypeError(
            f"{type(model).__name__} does not add up its scores over the dimensions of the class "
            f"vector; {having} do."
        )
    maps = getattr(model, row.maps).astype(np.float64)
    return maps if maps.ndim == 3 else maps[None]


def projected_images(model: Any, features: np.ndarray, maps: np.ndarray) -> np.ndarray:
    """W_kᵀ x for every map, of unit length where the model compares directions."""
    projected = features @ maps
    return unit_rows(projected) if model.by_direction else projected


def speaker(model: Any) -> Callable[[np.ndarray, Candidates], ScoreTerms]:
    """What tells the terms of a scaled image's scores; a model without them is refused."""
    row = model_rows.row_of(model)
    if row is not None and row.maps is not None:
        maps, view, by_direction = bilinear_maps(model), model.class_view_, model.by_direction
        return lambda image, chosen: map_terms(maps, view, image, chosen, by_direction=by_direction)
    if not explains(model):
        raise TypeError(
            f"{type(model).__name__} does not add up its scores over the dimensions of the class "
            f"vector or over seen classes; explanations are for {explained_models()}."
        )
    return model.score_terms


def explains(model: Any) -> bool:
    """Whether the answers of a model, not a search over one, can be explained."""
    row = model_rows.row_of(model)
    if row is not None and row.maps is not None:
        return True
    own = getattr(type(model), "score_terms", TableClassifier.score_terms)
    return own is not TableClassifier.score_terms


def explained_models() -> str:
    """Names of the models that can be explained."""
    return ", ".join(
        row.name
        for row in model_rows.rows()
        if row.maps is not None
        or (
            issubclass(row.load(), TableClassifier)
            and row.load().score_terms is not TableClassifier.score_terms
        )
    )
