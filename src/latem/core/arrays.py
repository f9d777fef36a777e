"""Small computations on arrays that several rooms need."""

from __future__ import annotations

import numpy as np


def unit_rows(rows: np.ndarray, *, in_place: bool = False) -> np.ndarray:
    """Rows divided by their Euclidean lengths; rows of zeros stay.

    Numbers of any size are safe: rows are divided by their largest entry first, so that no square
    overflows or vanishes.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0], [1e200, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ],
           [1. , 0. ]])
    """
    largest = np.maximum(
        rows.max(axis=1, keepdims=True, initial=0), -rows.min(axis=1, keepdims=True, initial=0)
    )
    largest[largest == 0] = 1
    rows = np.divide(rows, largest, out=rows if in_place else None)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    lengths[lengths == 0] = 1
    rows /= lengths
    return rows


def settled(values: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Numbers rounded to ten digits after the point, in units of `scale`.

    What is equal but for rounding becomes equal, and what is zero but for rounding becomes zero:
    classes that a model cannot tell apart then get the same scores on every machine.

    >>> settled(np.array([0.1 + 0.2, 0.3, 1e-17]))
    array([0.3, 0.3, 0. ])
    """
    return np.round(values / scale, 10) * scale if scale > 0 else values
