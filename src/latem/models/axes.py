"""Features in their principal axes, for models that learn many things from the same images."""

from __future__ import annotations

import numpy as np


class PrincipalAxes:
    """Centred features in their principal axes.

    Parameters
    ----------
    X : ndarray of shape (n, n_features), float64

    Attributes
    ----------
    Z : ndarray of shape (n, r)
    Q : ndarray of shape (n_features, r)
        Axes along which the features differ at all, ``Z = (X - mean) @ Q``.
    eigenvalues : ndarray of shape (r,)
        Squared lengths of the columns of Z, from smallest to largest.
    mean : ndarray of shape (n_features,)

    Examples
    --------
    >>> axes = PrincipalAxes(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> axes.mean, axes.eigenvalues
    (array([2., 5.]), array([2.]))
    """

    def __init__(self, X: np.ndarray):
        self.mean = X.mean(axis=0)
        centred = X - self.mean
        wide = X.shape[1] > X.shape[0]  # the smaller of the two matrices of products
        values, vectors = np.linalg.eigh(centred @ centred.T if wide else centred.T @ centred)
        kept = values > values.max(initial=0) * max(X.shape) * np.finfo(np.float64).eps
        self.eigenvalues, vectors = values[kept], vectors[:, kept]
        lengths = np.sqrt(self.eigenvalues)
        if wide:
            self.Z, self.Q = vectors * lengths, centred.T @ (vectors / lengths)
        else:
            self.Z, self.Q = centred @ vectors, vectors

    @classmethod
    def of_scatter(cls, total: np.ndarray, mean: np.ndarray, n: int) -> PrincipalAxes:
        """Principal axes without Z, of features that are known by their sums.

        Parameters
        ----------
        total : ndarray of shape (n_features, n_features)
            Σ (x - mean)(x - mean)ᵀ.
        mean : ndarray of shape (n_features,)
        n : int
            How many they are.
        """
        axes = cls.__new__(cls)
        values, vectors = np.linalg.eigh(total)
        kept = values > values.max(initial=0) * max(n, len(mean)) * np.finfo(np.float64).eps
        axes.mean, axes.eigenvalues, axes.Q = mean, values[kept], vectors[:, kept]
        return axes

    def back(self, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and intercepts for the features as they were given.

        Parameters
        ----------
        parameters : ndarray of shape (r + 1, n_targets)
            Coefficients for Z, and intercepts in the last row.
        """
        coefficients = self.Q @ parameters[:-1]
        return coefficients, parameters[-1] - self.mean @ coefficients
