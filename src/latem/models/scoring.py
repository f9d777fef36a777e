"""Scores of many images against many classes: F(x, y) = max_k xᵀ W_k y (equation 4).

With V_k = W_k Yᵀ computed once for the candidates, an image costs K·d_x·C; with W_k as it is, the
projections W_kᵀ x of all maps are compared with the class vectors in one product, at
K·d_y·(d_x + C). `MapScorer` takes what is cheaper for an image. Images come in blocks of rows, so
nothing of size images × classes × maps is ever held for more than a block; very many classes come
in parts (`class_parts`), so that a block of images is long enough for the products to be quick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from latem.core.arrays import unit_rows
from latem.core.threads import single_threaded_blas

Parts = Iterator[tuple[slice, np.ndarray]]  # slices of the classes, and their scores
Keep = Callable[[slice, Parts], None]  # what is done with the scores of a slice of the images

_LARGEST_PRODUCTS = 64 * 2**20  # they are kept between calls
_LARGEST_BLOCK = 4 * 2**20
_FEW_ROWS = 64
_MOST_ROWS = 512  # more of them no longer fit the near caches, and a product takes longer
_LEAST_ROWS = 16
_WIDEST = 16384  # classes that are scored together
_PART = 4096  # classes in a part, where there are more, at most
_PART_ROWS = 512
_FEW_BEST = 16  # that are taken one after the other
_FEW_BETTER = 8  # times k classes of a part that are better than the k-th so far


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

    def parts(self, X: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Best score over the maps, part of the classes by part; see `class_parts`.

        A part's array is good until the next one is asked for.
        """
        whole, n_maps = class_parts(self._n_classes), len(self.maps)
        if len(whole) == 1:
            yield whole[0], self.scores(X)
            return
        sides = [X] * n_maps if self._products is not None else self._projected(X)
        best = np.empty((len(X), _PART), np.result_type(X, self._vectors_t))
        other = np.empty_like(best)
        for columns in whole:
            width = columns.stop - columns.start
            for k, side in enumerate(sides):
                against = self._vectors_t if self._products is None else self._products[k]
                into = (best if k == 0 else other).reshape(-1)[: len(X) * width]
                found = into.reshape(len(X), width)
                np.matmul(side, against[:, columns], out=found)
                if k == 0:
                    top = found
                else:
                    np.maximum(top, found, out=top)
            yield columns, top

    def _projected(self, X: np.ndarray) -> list[np.ndarray]:
        found = [X @ one for one in self.maps]
        return [unit_rows(one, in_place=True) for one in found] if self.by_direction else found

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


def class_parts(n_classes: int) -> list[slice]:
    """Parts in which very many classes are scored; one part if there are no more than that.

    They are of equal length but for a multiple of 64, so that none is a narrow rest, which matrix
    libraries may round in another way.
    """
    if n_classes <= _WIDEST:
        return [slice(0, n_classes)]
    n_parts = -(-n_classes // _PART)
    width = -(-n_classes // (64 * n_parts)) * 64
    return [slice(i, min(i + width, n_classes)) for i in range(0, n_classes, width)]


def block_rows(n_classes: int, *, in_parts: bool = False) -> int:
    """Rows of a block, such that its scores fit a few megabytes; they depend on nothing else.

    They are a power of two, or one and a half times that: any two such numbers have small common
    multiples, so that longer pieces of rows can be cut where several kinds of blocks end.

    Parameters
    ----------
    n_classes : int
    in_parts : bool
        Whether very many classes are scored in parts.
    """
    if in_parts and n_classes > _WIDEST:
        return _PART_ROWS
    rows = min(max(_LARGEST_BLOCK // (8 * max(n_classes, 1)), _LEAST_ROWS), _MOST_ROWS)
    power = 1 << (rows.bit_length() - 1)
    return max(power, power * 3 // 2 if power * 3 // 2 <= rows else 0)


def row_blocks(n_samples: int, n_classes: int, *, in_parts: bool = False) -> list[slice]:
    """Blocks of rows, see `block_rows`."""
    rows = block_rows(n_classes, in_parts=in_parts)
    return [slice(first, min(first + rows, n_samples)) for first in range(0, n_samples, rows)]


def best_k(scores: np.ndarray, k: int) -> np.ndarray:
    """Columns of the k best scores of each row, best first; the first of equals comes first.

    A few of not too many are taken one after the other. Otherwise the k-th largest of the largest
    scores of some groups of columns is no more than the k-th best score, so only columns that
    reach it are sorted.
    """
    n_samples, n_classes = scores.shape
    if k == 1 or (k <= _FEW_BEST and n_classes <= _PART):
        places = _one_by_one(scores, k)
        rows = np.arange(n_samples)
        first, last = scores[rows, places[:, 0]], scores[rows, places[:, -1]]
        # NaN is taken first, and then of what is -inf again what was taken
        if not np.isnan(first).any() and (last > -np.inf).all():
            return places
    size = min(64, n_classes // (4 * k))
    if size > 1:
        n_groups = n_classes // size
        tops = scores[:, : n_groups * size].reshape(n_samples, size, n_groups).max(axis=1)
        tops.partition(n_groups - k, axis=1)
        reached = np.flatnonzero(scores >= tops[:, n_groups - k, None])
        rows, columns = np.divmod(reached, n_classes)
        first = np.searchsorted(rows, np.arange(n_samples + 1))
        if (np.diff(first) >= k).all():  # not if a score is NaN
            order = np.lexsort((-scores[rows, columns], rows))
            return np.asarray(columns[order[first[:-1, None] + np.arange(k)]])
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def _one_by_one(scores: np.ndarray, k: int) -> np.ndarray:
    """Columns of the k largest scores of each row, what is taken becoming -inf."""
    rows, places = np.arange(len(scores)), np.empty((len(scores), k), np.intp)
    left = scores
    for i in range(k):
        if i == 1:
            left = scores.copy()
        if i:
            left[rows, places[:, i - 1]] = -np.inf
        places[:, i] = left.argmax(axis=1)
    return places


class BestSoFar:
    """The k best classes of some images, whose scores come in parts of the classes.

    Parameters
    ----------
    k : int

    Attributes
    ----------
    places, scores : ndarray of shape (n_samples, k)
        Numbers of the classes, best first, the first of equals first; and their scores.
    """

    def __init__(self, k: int):
        self.k = k
        self.places: np.ndarray = np.empty((0, 0), np.intp)
        self.scores: np.ndarray = np.empty((0, 0))

    def add(self, first: int, block: np.ndarray) -> None:
        """Look at the scores of further classes, which come after those before.

        Parameters
        ----------
        first : int
            Number of the first of these classes.
        block : ndarray of shape (n_samples, n_classes)
        """
        if first == 0:
            self.places = best_k(block, min(self.k, block.shape[1]))
            self.scores = np.take_along_axis(block, self.places, axis=1)
            return
        rows = np.arange(len(block))
        if self.places.shape[1] < self.k:
            found = best_k(block, min(self.k, block.shape[1]))
        else:
            better = np.flatnonzero(block > self.scores[:, -1:])
            if not len(better):
                return
            counts = np.bincount(better // block.shape[1], minlength=len(block))
            rows = np.flatnonzero(counts)
            if counts.max() <= _FEW_BETTER * self.k:
                self._merge(rows, first, *_in_lines(block, better, counts[rows]))
                return
            block = block[rows]
            found = best_k(block, self.k)
        self._merge(rows, first, found, np.take_along_axis(block, found, axis=1))

    def _merge(self, rows: np.ndarray, first: int, found: np.ndarray, scores: np.ndarray) -> None:
        """Further classes of some rows beside the best so far."""
        scores = np.hstack([self.scores[rows], scores])
        places = np.hstack([self.places[rows], found + first])
        order = np.argsort(-scores, axis=1, kind="stable")[:, : self.k]
        scores = np.take_along_axis(scores, order, axis=1)
        places = np.take_along_axis(places, order, axis=1)
        if len(rows) == len(self.places):
            self.places, self.scores = places, scores
        else:
            self.places[rows], self.scores[rows] = places, scores


def _in_lines(
    block: np.ndarray, places: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Some entries of a block as lines of equal length: their columns, and the entries.

    `places` are those of the block laid flat, `counts` how many lie in each row that has any.
    What a line has too much is the least of all scores, which comes after all others.
    """
    lines = np.repeat(np.arange(len(counts)), counts)
    at = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    columns = np.zeros((len(counts), counts.max()), np.intp)
    scores = np.full(columns.shape, -np.inf, block.dtype)
    columns[lines, at] = places % block.shape[1]
    scores[lines, at] = block.reshape(-1)[places]
    return columns, scores
