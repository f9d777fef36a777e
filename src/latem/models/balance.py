"""Balance between classes: scores of the same size for every class.

Under a bilinear map the scores of a class over the training images have the mean square yᵀ M y,
with M = Wᵀ E[x xᵀ] W. Where that is large, a class is named often, whatever the image. A model with
`balance_classes` divides each class vector by its root, in answers only; M is kept with the model,
so that classes described later are treated alike. Of several maps, M is the mean.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from latem.storage import FileFormatError

METRIC = "class_metric"  # in files
_ROUNDING = 1e-5  # of scores, relative to the largest they could be; maps are in single precision


def spreads(vectors: np.ndarray, metric: np.ndarray) -> np.ndarray:
    """Root mean square of the scores of each class, or 1 where it is nothing but rounding.

    Parameters
    ----------
    vectors : ndarray of shape (n_classes, n_dimensions)
    metric : ndarray of shape (n_dimensions, n_dimensions)
    """
    squares = np.einsum("ij,ij->i", vectors @ metric, vectors)
    lengths = np.einsum("ij,ij->i", vectors, vectors)
    nothing = squares <= _ROUNDING**2 * lengths * np.trace(metric)
    return np.sqrt(np.where(nothing, 1.0, squares))


def read_metric(tensors: Mapping[str, np.ndarray], width: int) -> np.ndarray:
    """M from a file, if it is what it should be."""
    metric = tensors[METRIC]
    if metric.shape != (width, width) or not np.isfinite(metric).all():
        raise FileFormatError(f"{METRIC} of shape {metric.shape}, not a finite {(width, width)}")
    return metric.astype(np.float64)
