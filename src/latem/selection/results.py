"""What a search has tried: one record per candidate, or scikit-learn's dict of arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from latem.models.grid_edges import ends


@dataclass(frozen=True)
class Tried:
    """A candidate and its scores, one per fold; without folds there are none."""

    params: dict[str, Any]
    scores: list[float]

    @property
    def mean(self) -> float:
        """Mean score over the folds, 0 without any; NaN if one of them was not trained so far."""
        return float(np.mean(self.scores)) if self.scores else 0.0

    @property
    def merit(self) -> float:
        """The mean to compare candidates by; what was not trained so far is worse than all."""
        return -np.inf if np.isnan(self.mean) else self.mean


def as_arrays(tried: list[Tried]) -> dict[str, Any]:
    """`cv_results_` as scikit-learn's searches have it, and which values end their grids.

    >>> results = as_arrays([Tried({"C": 1}, [0.5, 0.7]), Tried({"C": 2}, [0.9, 0.7])])
    >>> results["mean_test_score"], results["rank_test_score"]
    (array([0.6, 0.8]), array([2, 1], dtype=int32))
    >>> results["param_C"]
    masked_array(data=[1, 2],
                 mask=False,
           fill_value=999999)
    """
    results: dict[str, Any] = {}
    names = sorted({name for one in tried for name in one.params})
    for name in names:
        values = [one.params.get(name) for one in tried]
        simple = all(isinstance(value, int | float | np.number) for value in values)
        column = np.ma.MaskedArray(
            np.empty(len(tried), object), mask=[name not in one.params for one in tried]
        )
        column.data[:] = values
        results[f"param_{name}"] = np.ma.MaskedArray(values) if simple else column
        last = [value for value, _ in ends(values).values()]
        results[f"edge_{name}"] = np.array([value in last for value in values], bool)
    results["params"] = [dict(one.params) for one in tried]
    n_folds = len(tried[0].scores) if tried else 0
    for i in range(n_folds):
        results[f"split{i}_test_score"] = np.array([one.scores[i] for one in tried])
    means = np.array([one.mean for one in tried])
    results["mean_test_score"] = means
    results["std_test_score"] = np.array(
        [float(np.std(one.scores)) if one.scores else 0.0 for one in tried]
    )
    merits = np.array([one.merit for one in tried])
    results["rank_test_score"] = rankdata(-merits, method="min").astype(np.int32)
    return results


def as_tried(results: dict[str, Any]) -> list[Tried]:
    """The records that `as_arrays` was given."""
    n_folds = sum(name.startswith("split") for name in results)
    folds = [results[f"split{i}_test_score"] for i in range(n_folds)]
    return [
        Tried(dict(params), [float(fold[row]) for fold in folds])
        for row, params in enumerate(results["params"])
    ]


def as_plain(
    tried: list[Tried], plain: Callable[[dict[str, Any]], dict[str, Any]]
) -> list[dict[str, Any]]:
    """The records as a file holds them: `plain` parameters, and None for NaN."""
    return [
        {"params": plain(one.params), "scores": [None if x != x else x for x in one.scores]}
        for one in tried
    ]


def from_plain(stored: list[dict[str, Any]]) -> list[Tried]:
    """The records that `as_plain` was given.

    >>> from_plain(as_plain([Tried({"C": 1}, [0.5, float("nan")])], dict))
    [Tried(params={'C': 1}, scores=[0.5, nan])]
    """
    return [
        Tried(dict(one["params"]), [np.nan if x is None else float(x) for x in one["scores"]])
        for one in stored
    ]
