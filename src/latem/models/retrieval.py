"""The images that fit a class best, among as many as there are.

Stored images are looked through block by block, in several threads: what is held is a block's
scores and the best rows so far. A model says how rows are scored (`row_scorer`); where its scores
are linear in the image, piece by piece, many rows are multiplied as they are stored, see
`latem.models.affine_form`.
"""

from __future__ import annotations

import threading
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latem.core.slim import is_frame
from latem.core.threads import run_all
from latem.embeddings.table import ClassEmbeddings, as_class_embeddings
from latem.models.affine_form import AffineForm
from latem.models.scaling import FeatureScaler
from latem.models.scoring import row_blocks

Rows = slice | np.ndarray
MANY = 2**22  # numbers in the images from which a scan is compiled


@dataclass(frozen=True, eq=False)
class RowScorer:
    """Scores of some rows among many images, for fixed classes.

    Attributes
    ----------
    n_rows, n_classes : int
    score : callable
        From a slice or an array of row numbers to scores of shape (n, n_classes).
    check : callable
        Raises what is to be said of the first bad row; called if `score` raised.
    """

    n_rows: int
    n_classes: int
    score: Callable[[Rows], np.ndarray]
    check: Callable[[], None] = lambda: None

    def best(
        self, k: int, rows: np.ndarray | None = None, n_threads: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k rows with the best scores for every class.

        Parameters
        ----------
        k : int
            At most the number of rows.
        rows : ndarray, optional
            Look among these row numbers only, which ascend.
        n_threads : int or None
            The result does not depend on it.

        Returns
        -------
        rows : ndarray of shape (n_classes, k)
            Best first; of equals the first comes first.
        scores : ndarray of shape (n_classes, k)
        """
        n = self.n_rows if rows is None else len(rows)
        pieces = row_blocks(n, self.n_classes)
        found = [_Best(k) for _ in range(self.n_classes)]

        def work(piece: slice) -> None:
            scores = self.score(piece if rows is None else rows[piece])
            numbers = np.arange(piece.start, piece.stop) if rows is None else rows[piece]
            for best, column in zip(found, scores.T, strict=True):
                best.add(numbers, column)

        try:
            run_all(work, pieces, n_threads)
        except ValueError:
            self.check()
            raise
        ranked = [one.ranked() for one in found]
        return np.stack([one[0] for one in ranked]), np.stack([one[1] for one in ranked])


class _Best:
    """The best rows so far, whatever order they come in."""

    def __init__(self, k: int):
        self._k, self._n = k, 0
        self._found: list[tuple[np.ndarray, np.ndarray]] = []
        self._least: float | None = None  # score of the k-th, once there are so many
        self._lock = threading.Lock()

    def add(self, rows: np.ndarray, scores: np.ndarray) -> None:
        """Take the best of a block's rows."""
        if self._least is not None:
            good = np.flatnonzero(scores >= self._least)
            if not len(good):
                return
            rows, scores = rows[good], scores[good]
        elif len(rows) > self._k:
            rows, scores = first_rows(rows, scores, self._k)
        with self._lock:
            self._found.append((rows.copy(), scores.copy()))
            self._n += len(rows)
            if self._n >= 2 * self._k + 64:  # a merge now and then: sorting is dear
                self._merge()

    def ranked(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and scores, best first."""
        self._merge()
        return self._found[0]

    def _merge(self) -> None:
        rows, scores = (np.concatenate(parts) for parts in zip(*self._found, strict=True))
        rows, scores = first_rows(rows, scores, self._k)
        self._found, self._n = [(rows, scores)], len(rows)
        if len(rows) == self._k:
            self._least = scores[-1]


def first_rows(rows: np.ndarray, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k best of some rows, best first; of equals the first row comes first.

    Parameters
    ----------
    rows, scores : ndarray of shape (n,)
    k : int

    Examples
    --------
    >>> rows, scores = first_rows(np.array([7, 3, 5]), np.array([1.0, 1.0, 2.0]), 2)
    >>> rows.tolist()
    [5, 3]
    """
    if len(scores) > 4 * k:
        good = scores >= np.partition(scores, -k)[-k]
        rows, scores = rows[good], scores[good]
    order = np.lexsort((rows, -scores))[:k]
    return rows[order], scores[order]


class RetrievalMixin(metaclass=ABCMeta):
    """The images that fit a class, for anything that scores images and classes."""

    @abstractmethod
    def candidate_names(self, classes: Any = None) -> np.ndarray:
        """Names of the candidates, in the order of the columns of scores."""

    @abstractmethod
    def class_scores(self, X: Any, classes: Any = None) -> np.ndarray:
        """Scores with a column for every candidate."""

    @abstractmethod
    def settled(self, classes: Any) -> Any:
        """A `classes` argument that means the same classes every time."""

    def row_scorer(self, X: Any, classes: Any) -> RowScorer:
        """What scores some rows of many images.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes to score; see `decision_function`.
        """
        X = X if is_frame(X) else np.asarray(X)
        images = X.iloc if is_frame(X) else X
        classes = self.settled(classes)
        names = self.candidate_names(classes)
        classes = "seen" if classes is None else classes
        return RowScorer(len(X), len(names), lambda rows: self.class_scores(images[rows], classes))

    def linear_pieces(self, classes: Any) -> tuple[FeatureScaler, AffineForm] | None:
        """How images are scaled, and scores as linear pieces of that; None if they are none.

        Parameters
        ----------
        classes
            Which classes; see `decision_function`.
        """
        return None

    def best_images(
        self, X: Any, classes: Any, k: int, *, rows: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The images most compatible with each of some classes.

        All images are looked at, and none is kept: `X` may be a memory map of any size.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes; see `decision_function`.
        k : int
            How many images for each.
        rows : array-like of int, optional
            Look among these rows of `X` only.

        Returns
        -------
        rows : ndarray of shape (n_classes, k)
            Row numbers in `X`, best first; of equals the first comes first.
        scores : ndarray of shape (n_classes, k)

        Examples
        --------
        >>> from latem import ESZSL, make_latent_world
        >>> world = make_latent_world(n_poses=1, random_state=0)
        >>> model = ESZSL(world.embeddings["att"]).fit(*world.training())
        >>> X, y = world.testing()
        >>> rows, scores = model.best_images(X, "unseen", 3)
        >>> bool((y[rows] == model.candidate_names("unseen")[:, None]).mean() > 0.8)
        True
        """
        check_is_fitted(self)
        scorer = self.row_scorer(X, classes)
        if rows is not None:
            rows = _checked_rows(rows, scorer.n_rows)
        _check_k(k, scorer.n_rows if rows is None else len(rows))
        return scorer.best(int(k), rows, getattr(self, "n_threads", None))

    def rank_images(self, X: Any, name: Any, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The images most compatible with one class, which may never have had an image.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            A memory map of any size will do: no copy of it is made.
        name : class name, or a class table of one row
            A class of the model's own table, or a new one with the same columns (a ClassEmbeddings,
            DataFrame or dict, or the path of a file).
        k : int, optional
            How many; all by default.

        Returns
        -------
        rows : ndarray of shape (k,)
            Row numbers in `X`, best first; of equals the first comes first.
        scores : ndarray of shape (k,)
        """
        check_is_fitted(self)
        scorer = self.row_scorer(X, one_class(name))
        k = scorer.n_rows if k is None else k
        _check_k(k, scorer.n_rows)
        rows, scores = scorer.best(int(k), None, getattr(self, "n_threads", None))
        return rows[0], scores[0]


def one_class(name: Any) -> Any:
    """A `classes` argument for one class.

    Parameters
    ----------
    name : class name, or a class table of one row
    """
    if isinstance(name, list | np.ndarray):
        raise TypeError("rank_images ranks images for one class: give its name, not a list.")
    if isinstance(name, ClassEmbeddings | Mapping | PathLike) or is_frame(name):
        table = as_class_embeddings(name)
        if len(table) != 1:
            raise ValueError(
                f"rank_images ranks images for one class, but the table has {len(table)}; "
                f"give one row of it."
            )
        return table
    return [name]


def _check_k(k: Any, n_images: int) -> None:
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise TypeError(f"k must be a whole number, not {k!r}.")
    if not 1 <= k <= n_images:
        raise ValueError(f"k must be between 1 and the number of images, {n_images}, but is {k}.")


def _checked_rows(rows: Any, n_rows: int) -> np.ndarray:
    """Row numbers, ascending, each once."""
    rows = np.asarray(rows)
    if rows.ndim != 1 or not (rows[1:] > rows[:-1]).all():
        rows = np.unique(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows):
        raise ValueError("rows must be row numbers, at least one.")
    if rows[0] < 0 or rows[-1] >= n_rows:
        raise ValueError(f"rows must be between 0 and {n_rows - 1}.")
    return rows.astype(np.int64, copy=False)
