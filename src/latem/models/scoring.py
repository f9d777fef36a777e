"""Scores of many images against many classes: F(x, y) = max_k xᵀ W_k y (equation 4).

The product xᵀ W_k y is cheapest from the left when there are few images and from the right when
there are few classes; `MapScorer` takes the cheaper order. Images come in blocks of rows, and
maps one after the other, so nothing of size images × classes × maps is ever held.
"""

from __future__ import annotations

import numpy as np

from latem.threads import single_threaded_blas

_LARGEST_PRODUCTS = 256 * 2**20
_LARGEST_BLOCK = 4 * 2**20


class MapScorer:
    """Scores blocks of images against fixed classes.

    Parameters
    ----------
    maps : ndarray of shape (n_maps, n_features, n_dimensions)
    vectors : ndarray of shape (n_classes, n_dimensions)
    n_samples : int
        How many images will be scored in all, to choose the cheaper order of products.
    """

    def __init__(self, maps: np.ndarray, vectors: np.ndarray, n_samples: int):
        self.n_classes = len(vectors)
        n_maps, n_features, n_dimensions = maps.shape
        left = n_samples * n_dimensions * (n_features + self.n_classes)
        right = n_features * self.n_classes * (n_dimensions + n_samples)
        size = n_maps * n_features * self.n_classes * maps.itemsize
        self.maps = maps
        self.vectors_t = vectors.T
        self.products: np.ndarray | None = None
        if right < left and size <= _LARGEST_PRODUCTS:
            with single_threaded_blas():
                self.products = maps @ self.vectors_t

    def map_scores(self, X: np.ndarray, k: int) -> np.ndarray:
        """Scores under one map alone, of shape (n_samples, n_classes)."""
        if self.products is not None:
            return X @ self.products[k]
        return (X @ self.maps[k]) @ self.vectors_t

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Best score over the maps, of shape (n_samples, n_classes)."""
        best = self.map_scores(X, 0)
        for k in range(1, len(self.maps)):
            np.maximum(best, self.map_scores(X, k), out=best)
        return best

    def winners(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Best score over the maps and the number of the map that gave it."""
        best = self.map_scores(X, 0)
        winner = np.zeros(best.shape, np.intp)
        for k in range(1, len(self.maps)):
            score = self.map_scores(X, k)
            better = score > best  # the first of equals wins
            best[better] = score[better]
            winner[better] = k
        return best, winner


class UnitMapScorer(MapScorer):
    """Scores by direction: F(x, y) = max_k (W_kᵀx / ‖W_kᵀx‖)ᵀ y."""

    def map_scores(self, X: np.ndarray, k: int) -> np.ndarray:
        """Scores under one map alone, of shape (n_samples, n_classes)."""
        projected = X @ self.maps[k]
        lengths = np.linalg.norm(projected, axis=1, keepdims=True)
        lengths[lengths == 0] = 1
        return (projected / lengths) @ self.vectors_t


def row_blocks(n_samples: int, n_classes: int) -> list[slice]:
    """Blocks of rows whose scores fit a few megabytes; they depend on nothing else."""
    rows = int(np.clip(_LARGEST_BLOCK // (8 * max(n_classes, 1)), 16, 4096))
    return [slice(first, min(first + rows, n_samples)) for first in range(0, n_samples, rows)]


def best_k(scores: np.ndarray, k: int) -> np.ndarray:
    """Columns of the k best scores of each row, best first; the first of equals comes first."""
    if k == 1:
        return scores.argmax(axis=1)[:, None]
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]
