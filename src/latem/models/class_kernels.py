"""What several models say about a class from how alike it is to the seen ones.

`EXEM` and `GFZSL` predict many numbers of a class at a time (where its images lie, how far they
spread) by kernel ridge regression on the seen classes, and `SynC` mixes the seen classes' own
classifiers. Likenesses are rounded (`latem.core.arrays.settled`), so that classes which are equally
like every seen class get equal answers.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.spatial.distance import cdist, pdist

from latem.core.arrays import settled


def gaussian_kernel(vectors: np.ndarray, seen: np.ndarray, rate: float) -> np.ndarray:
    """exp(-rate ‖a - b‖²) for class vectors a and those of the seen classes b.

    Parameters
    ----------
    vectors : ndarray of shape (n_classes, n_dimensions)
    seen : ndarray of shape (n_seen, n_dimensions)
    rate : float

    Returns
    -------
    ndarray of shape (n_classes, n_seen)
    """
    return settled(np.exp(-rate * cdist(vectors, seen, "sqeuclidean")))


def median_distance(vectors: np.ndarray) -> float:
    """Median distance of two of these vectors that differ, or 1 if all are alike.

    >>> median_distance(np.array([[0.0], [0.0], [3.0], [5.0]]))
    3.0
    """
    distances = pdist(vectors)
    apart = distances[distances > 0]
    return float(np.median(apart)) if len(apart) else 1.0


def quadratic_kernel(vectors: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """(1 + a·b)² for class vectors a and those of the seen classes b.

    Parameters
    ----------
    vectors : ndarray of shape (n_classes, n_dimensions)
    seen : ndarray of shape (n_seen, n_dimensions)

    Returns
    -------
    ndarray of shape (n_classes, n_seen)
    """
    longest = float(np.square(seen).sum(axis=1).max())
    return (1 + settled(vectors @ seen.T, longest)) ** 2


def kernel_ridge(
    kernel: np.ndarray, targets: np.ndarray, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """Ridge regression on likenesses to the seen classes, around the mean of the targets.

    Parameters
    ----------
    kernel : ndarray of shape (n_seen, n_seen)
    targets : ndarray of shape (n_seen, n_targets)
    alpha : float
        Ridge penalty, above zero.

    Returns
    -------
    coefficients : ndarray of shape (n_seen, n_targets)
    offset : ndarray of shape (n_targets,)
        A class with likenesses k is predicted to have ``k @ coefficients + offset``.
    """
    offset = targets.mean(axis=0)
    values, vectors = linalg.eigh(kernel)
    shrunk = (vectors.T @ (targets - offset)) / (np.maximum(values, 0) + alpha)[:, None]
    return vectors @ shrunk, offset


def class_means(features: np.ndarray, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Mean image of every class, of shape (n_classes, n_features)."""
    sums = np.zeros((n_classes, features.shape[1]))
    np.add.at(sums, codes, features)
    return sums / np.bincount(codes, minlength=n_classes)[:, None]


def class_variances(features: np.ndarray, codes: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Mean square of the images' differences from `means`, of shape (n_classes, n_features)."""
    return class_means(np.square(features - means[codes]), codes, len(means))
