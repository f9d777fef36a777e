"""A kernel on the class side: a class is known by how much it is like each of the seen ones.

A class vector y is replaced by φ(y) = k(y) K^(-1/2), where k(y) are its similarities to the seen
classes, exp(-‖y - s‖² / 2w²), and K those of the seen classes among themselves (Nyström's features;
Williams and Seeger, NIPS 2000). Scores stay bilinear, xᵀ W φ(y), so every engine works on φ as it
does on y; and x can be compatible with classes in a way that is not linear in their traits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latem.models.class_kernels import gaussian_kernel

_LEAST = 1e-8  # share of the largest eigenvalue from which a direction counts


@dataclass(frozen=True, eq=False)
class ClassKernel:
    """φ, made of the seen classes.

    Attributes
    ----------
    anchors : ndarray of shape (n_seen, n_dimensions)
        Vectors of the seen classes.
    width : float
        w: the larger, the nearer to a linear model.
    whitener : ndarray of shape (n_seen, n_features)
        K^(-1/2), without directions that do not occur.
    """

    anchors: np.ndarray
    width: float
    whitener: np.ndarray

    @classmethod
    def of(cls, anchors: np.ndarray, width: float) -> ClassKernel:
        """Kernel with these vectors of seen classes.

        Parameters
        ----------
        anchors : ndarray of shape (n_seen, n_dimensions)
        width : float

        Examples
        --------
        >>> kernel = ClassKernel.of(np.eye(3), 1.0)
        >>> features = kernel(np.eye(3))
        >>> bool(np.allclose(features @ features.T, kernel.similarities(np.eye(3))))
        True
        """
        anchors = np.asarray(anchors, np.float64)
        values, directions = np.linalg.eigh(gaussian_kernel(anchors, anchors, _rate(width)))
        kept = values > _LEAST * values.max()
        return cls(anchors, width, directions[:, kept] / np.sqrt(values[kept]))

    @property
    def rate(self) -> float:
        """1 / 2w², by which squared distances are multiplied."""
        return _rate(self.width)

    def similarities(self, vectors: np.ndarray) -> np.ndarray:
        """k(y) of class vectors, of shape (n_classes, n_seen), between 0 and 1."""
        return gaussian_kernel(np.asarray(vectors, np.float64), self.anchors, self.rate)

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """φ(y) of class vectors, of shape (n_classes, n_features)."""
        return self.similarities(vectors) @ self.whitener


def _rate(width: float) -> float:
    return 1 / (2 * width**2)
