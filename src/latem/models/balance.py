"""Balance between classes: scores of the same size for every class.

Under a bilinear map the scores of a class over the training images have the mean square yᵀ M y,
with M = Wᵀ E[x xᵀ] W. Where that is large, a class is named often, whatever the image. A model with
`balance_classes` divides each class vector by its root, in answers only; M is kept with the model,
so that classes described later are treated alike.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from latem.storage import FileFormatError

METRIC = "class_metric"  # in files


def balanced(vectors: np.ndarray, metric: np.ndarray) -> np.ndarray:
    """Class vectors divided by the root mean square of their scores; zeros stay."""
    squares = np.einsum("ij,ij->i", vectors @ metric, vectors)
    return vectors / root(squares)[:, None]


def root(squares: np.ndarray) -> np.ndarray:
    """Square roots to divide by: 1 where there is nothing to divide."""
    roots = np.sqrt(np.maximum(squares, 0))
    roots[roots == 0] = 1
    return roots


def read_metric(tensors: Mapping[str, np.ndarray], width: int) -> np.ndarray:
    """M from a file, if it is what it should be."""
    metric = tensors[METRIC]
    if metric.shape != (width, width) or not np.isfinite(metric).all():
        raise FileFormatError(f"{METRIC} of shape {metric.shape}, not a finite {(width, width)}")
    return metric.astype(np.float64)
