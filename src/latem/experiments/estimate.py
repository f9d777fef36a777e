"""How long the same trainings would take with NumPy over whole matrices.

The reference is Algorithm 1 as one would write it down: every visit multiplies the image with all
maps, and every violation adds outer products to whole matrices. Its cost per visit is measured
here, for the sizes that occurred, and multiplied by the number of visits and violations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np

from latem.core.threads import single_threaded_blas

_REPEATS = 24


def reference_seconds(costs: Iterable[dict[str, Any]]) -> float:
    """Estimated time of some SGD trainings in plain NumPy, on one thread, in float32.

    Parameters
    ----------
    costs : iterable of dict
        The "cost" records of trainings: sizes, and per epoch the number of maps and the share of
        visits that violated the margin; "model" tells the pass over all classes from sampling.
    """
    total = 0.0
    with single_threaded_blas():
        for cost in costs:
            sizes = cost["n_features"], cost["n_dimensions"]
            n_classes = 2 if cost["model"] == "LatEm" else cost["n_classes"]
            for maps, rate in zip(cost["maps"], cost["violation_rate"], strict=True):
                visit, update = _visit_seconds(*sizes, n_classes, maps)
                total += cost["n_images"] * (visit + rate * update)
    return total


@cache
def _visit_seconds(
    n_features: int, n_dimensions: int, n_classes: int, n_maps: int
) -> tuple[float, float]:
    """Seconds for scoring one image, and for one update."""
    rng = np.random.default_rng(0)
    W = rng.standard_normal((n_maps, n_features, n_dimensions)).astype(np.float32)
    Y = rng.standard_normal((n_classes, n_dimensions)).astype(np.float32)
    X = rng.standard_normal((_REPEATS, n_features)).astype(np.float32)
    step = np.float32(1e-6)

    def visit(x: np.ndarray) -> None:
        (x @ W @ Y.T).argmax(axis=0)

    def update(x: np.ndarray) -> None:
        if n_maps == 1:
            W[0] += np.outer(step * x, Y[0] - Y[1])
        else:
            W[0] += np.outer(step * x, Y[0])
            W[-1] -= np.outer(step * x, Y[1])

    return _best(visit, X), _best(update, X)


def _best(task: Callable[[np.ndarray], None], X: np.ndarray) -> float:
    """Shortest mean time over some rounds."""
    times = []
    for _ in range(3):
        start = time.thread_time()
        for x in X:
            task(x)
        times.append((time.thread_time() - start) / len(X))
    return min(times)
