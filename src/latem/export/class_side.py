"""Class side and scaling of a graph: what `ClassView` and `FeatureScaler` do, as nodes.

Class vectors are computed in double precision, as in the library, from a table in single
precision, which is what the graph is given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latem.export.graph import (
    Value,
    absolute,
    exp,
    settled,
    sqrt,
    square,
    squared_distances,
    unit_rows,
    where,
)
from latem.models.balance import ROUNDING
from latem.models.class_view import ClassView
from latem.models.scaling import FeatureScaler

_ROUNDING = 10 * float(np.finfo(np.float32).eps)  # of a table in single precision


@dataclass(frozen=True)
class Classes:
    """The candidates in a graph.

    Attributes
    ----------
    table : Value of shape (n_classes, n_dimensions), float32
        Their descriptions as they are given.
    seen : Value of shape (n_classes,) or (1,), bool
        Which of them were seen in training.
    """

    table: Value
    seen: Value

    def vectors(self, view: ClassView) -> Value:
        """Vectors by which images are compared, (n_classes, width), in double precision."""
        return _balanced(_as_vectors(self.table.astype(np.float64), view), view)


def _as_vectors(table: Value, view: ClassView) -> Value:
    vectors = table
    if view.centre is not None:
        vectors = table - view.centre
        rounding = _ROUNDING * absolute(table).max(-1)
        vectors = where(absolute(vectors).max(-1) > rounding, vectors, 0)  # else it is the centre
    if view.normalise:
        vectors = unit_rows(vectors)
    if view.kernel is None:
        return vectors
    kernel = view.kernel
    vectors = gaussian_kernel(vectors, kernel.anchors, kernel.rate) @ kernel.whitener
    return unit_rows(vectors) if view.normalise else vectors


def _balanced(vectors: Value, view: ClassView) -> Value:
    """Divided by the spread of their scores, as `latem.models.balance.spreads` has it."""
    if view.balance is None:
        return vectors
    squares = ((vectors @ view.balance) * vectors).sum(-1)
    least = ROUNDING**2 * float(np.trace(view.balance)) * square(vectors).sum(-1)
    return vectors / sqrt(where(squares > least, squares, 1))


def gaussian_kernel(vectors: Value, seen: np.ndarray, rate: float) -> Value:
    """exp(-rate ‖a - b‖²), as `latem.models.class_kernels` has it."""
    return settled(exp(-rate * squared_distances(vectors, seen)))


def scaled(features: Value, scaler: FeatureScaler) -> Value:
    """Images as a model uses them, in the type of `features`."""
    if scaler.kind in ("l2", "l2-centered"):
        features = unit_rows(features)
    if scaler.kind == "l2-centered":
        return features - scaler.shift
    if scaler.kind in ("zscore", "zmax"):
        return (features - scaler.shift) * scaler.scale
    return features
