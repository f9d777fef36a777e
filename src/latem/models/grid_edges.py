"""Chosen values at the end of what was tried: a better one may lie beyond.

A parameter counts if its grid is a row of at least three numbers; None among them ("do without")
stands outside the row. A value is at the end only if there is a next number beyond it: below a
count of 1 or a penalty of 0 there is none. And it must be better than everything inside the grid:
where an inner value does as well, accuracy has levelled off, and nothing beckons beyond.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from latem.core.validation import check_params

_FEWEST = 3  # numbers in a grid that has a middle


class GridEdgeWarning(UserWarning):
    """A search has chosen the lowest or the highest value of a grid."""


@dataclass(frozen=True)
class Edge:
    """A chosen value at the end of its grid.

    Attributes
    ----------
    name : str
        The parameter.
    value
        What was chosen.
    end : {"lowest", "highest"}
    further
        What to try next.
    """

    name: str
    value: Any
    end: str
    further: Any


def ends(values: Sequence[Any]) -> dict[str, tuple[Any, Any]]:
    """The ends of a grid that one could go beyond: end → (value there, next value).

    Next values follow the ratio of the last two, or their difference where there is no ratio.

    >>> ends([0.01, 0.1, 1.0])
    {'lowest': (0.01, 0.001), 'highest': (1.0, 10.0)}
    >>> ends([1, 2, 4, 8])
    {'highest': (8, 16)}
    >>> ends([0.0, 0.5, 1.0])
    {'highest': (1.0, 2.0)}
    >>> ends(["first", "all"]), ends([5, 10])
    ({}, {})
    """
    given = [value for value in values if value is not None]
    if not all(isinstance(value, Real) and not isinstance(value, bool) for value in given):
        return {}
    row = sorted(set(given))
    if len(row) < _FEWEST:
        return {}
    found = {}
    for end, last, before in (("lowest", row[0], row[1]), ("highest", row[-1], row[-2])):
        further = _next(last, before, whole=all(isinstance(one, Integral) for one in row))
        if further != last and (further > 0 or row[0] < 0):
            found[end] = (last, further)
    return found


def _next(last: Any, before: Any, *, whole: bool) -> Any:
    """The number that follows two others, with as few digits as they have."""
    beyond = last * (last / before) if last * before > 0 else last + (last - before)
    if whole:
        return int(beyond) if beyond >= 1 or last < 1 else 1
    return float(f"{beyond:.3g}")


def edges_in_list(
    params: Sequence[Mapping[str, Any]], scores: Sequence[float], best: int
) -> list[Edge]:
    """Edges of the best of some candidates, each with its parameters and its score."""
    found: list[Edge] = []
    for name, value in params[best].items():
        elsewhere = [score for one, score in zip(params, scores, strict=True) if one[name] != value]
        if elsewhere and max(elsewhere) < scores[best]:
            found += _edge(name, value, [one[name] for one in params])
    return found


def edges_in_array(
    scores: np.ndarray, axes: Mapping[str, Sequence[Any]], best: Sequence[int]
) -> list[Edge]:
    """Edges of the best cell of an array of scores, which has an axis for every parameter."""
    found = []
    for axis, (name, values) in enumerate(axes.items()):
        elsewhere = np.delete(scores, best[axis], axis=axis)
        if elsewhere.size and elsewhere.max() < scores[tuple(best)]:
            found += _edge(name, values[best[axis]], values)
    return found


def _edge(name: str, value: Any, values: Sequence[Any]) -> list[Edge]:
    at = {last: (end, further) for end, (last, further) in ends(values).items()}
    return [Edge(name, value, *at[value])] if value in at else []


def allowed_edges(model: BaseEstimator, edges: Sequence[Edge]) -> list[Edge]:
    """Those edges beyond which the model takes values."""

    def is_allowed(edge: Edge) -> bool:
        try:
            check_params(clone(model).set_params(**{edge.name: edge.further}))
        except ValueError:
            return False
        return True

    return [edge for edge in edges if is_allowed(edge)]


def as_dict(edges: Sequence[Edge]) -> dict[str, str]:
    """Which end each parameter is at, by name."""
    return {edge.name: edge.end for edge in edges}


def warn_of_edges(owner: str, edges: Sequence[Edge]) -> None:
    """Say in one sentence what was chosen at an end, and what to try next; nothing without any."""
    if not edges:
        return
    chosen = ", ".join(f"{edge.name}={edge.value:g} ({edge.end})" for edge in edges)
    further = " and ".join(f"{edge.name}={edge.further:g}" for edge in edges)
    warnings.warn(
        f"{owner} did best at the end of what was tried: {chosen}; a better value may lie beyond, "
        f"so try {further}, too.",
        GridEdgeWarning,
        stacklevel=4,
    )
