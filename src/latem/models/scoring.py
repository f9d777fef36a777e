"""Scores of many images against many classes: F(x, y) = max_k xᵀ W_k y (equation 4).

With V_k = W_k Yᵀ computed once for the candidates, an image costs K·d_x·C; with W_k as it is, the
projections W_kᵀ x of all maps are compared with the class vectors in one product, at
K·d_y·(d_x + C). `MapScorer` takes what is cheaper for an image. Images come in blocks of rows, so
nothing of size images × classes × maps is ever held for more than a block.
"""

from __future__ import annotations

import numpy as np

from latem.core.arrays import unit_rows
from latem.core.threads import single_threaded_blas

_LARGEST_PRODUCTS = 64 * 2**20  # they are kept between calls
_LARGEST_BLOCK = 4 * 2**20
_FEW_ROWS = 64


class MapScorer:
    """Scores blocks of images against fixed classes.

    Parameters
    ----------
    maps : ndarray of shape (n_maps, n_features, n_dimensions)
    vectors : ndarray of shape (n_classes, n_dimensions)
    by_direction : bool
        Whether projected images are divided by their length: F(x, y) = max_k (W_kᵀx/‖W_kᵀx‖)ᵀ y.
    """

    def __init__(self, maps: np.ndarray, vectors: np.ndarray, *, by_direction: bool = False):
        n_maps, n_features, n_dimensions = maps.shape
        n_classes = len(vectors)
        by_products = n_features * n_classes <= n_dimensions * (n_features + n_classes)
        size = n_maps * n_features * n_classes * maps.itemsize
        self.maps = maps
        self.by_direction = by_direction
        self._n_classes = n_classes
        # two columns at least: a product with a single one may round equal rows differently
        self._vectors_t = np.repeat(vectors, 2, axis=0).T if n_classes == 1 else vectors.T
        self._products: np.ndarray | None = None
        if by_products and size <= _LARGEST_PRODUCTS and not by_direction:
            with single_threaded_blas():
                self._products = maps @ self._vectors_t

    def map_scores(self, X: np.ndarray, k: int) -> np.ndarray:
        """Scores under one map alone, of shape (n_samples, n_classes)."""
        if self._products is not None:
            return (X @ self._products[k])[:, : self._n_classes]
        projected = X @ self.maps[k]
        if self.by_direction:
            projected = unit_rows(projected, in_place=True)
        return (projected @ self._vectors_t)[:, : self._n_classes]

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Best score over the maps, of shape (n_samples, n_classes)."""
        if len(X) <= _FEW_ROWS and len(self.maps) > 1:
            return self._all_map_scores(X).max(axis=0)
        best = self.map_scores(X, 0)
        for k in range(1, len(self.maps)):
            np.maximum(best, self.map_scores(X, k), out=best)
        return best

    def _all_map_scores(self, X: np.ndarray) -> np.ndarray:
        """Scores under every map, (n_maps, n_samples, n_classes), reading class vectors once."""
        if self._products is not None:
            return (X @ self._products)[:, :, : self._n_classes]
        projected = (X @ self.maps).reshape(-1, self.maps.shape[2])
        if self.by_direction:
            projected = unit_rows(projected, in_place=True)
        scores = (projected @ self._vectors_t).reshape(len(self.maps), len(X), -1)
        return scores[:, :, : self._n_classes]

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


def row_blocks(n_samples: int, n_classes: int) -> list[slice]:
    """Blocks of rows whose scores fit a few megabytes; they depend on nothing else."""
    rows = min(max(_LARGEST_BLOCK // (8 * max(n_classes, 1)), 16), 4096)
    return [slice(first, min(first + rows, n_samples)) for first in range(0, n_samples, rows)]


def best_k(scores: np.ndarray, k: int) -> np.ndarray:
    """Columns of the k best scores of each row, best first; the first of equals comes first."""
    if k == 1:
        return scores.argmax(axis=1)[:, None]
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]
