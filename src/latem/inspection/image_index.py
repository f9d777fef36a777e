"""Many images, looked at again and again with a model: which fit a class, which are like another.

Images stay as they are stored, in memory or mapped from a file. They are looked through from
beginning to end, at memory speed for most models (`latem.models.retrieval`), or looked up in an
index beside their file (`latem.inspection.stored_index`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from latem.core.arrays import unit_rows
from latem.core.threads import single_threaded_blas
from latem.inspection.speakers import inner_model
from latem.inspection.stored_index import StoredIndex
from latem.models.retrieval import Rows, RowScorer, first_rows, one_class
from latem.models.scaling import FeatureScaler


class ImageIndex:
    """Images that are looked at again and again.

    Parameters
    ----------
    model : a fitted model
    X : array-like of shape (n_images, n_features)
        No copy of it is made if it is an array or a memory map.
    stored : StoredIndex, optional
        An index of these images, by which classes are looked up.

    Attributes
    ----------
    stored : StoredIndex or None

    Examples
    --------
    >>> from latem import ESZSL, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> model = ESZSL(world.embeddings["att"]).fit(*world.training())
    >>> X, y = world.testing()
    >>> index = ImageIndex(model, X)
    >>> rows, scores = index.best(y[0], 3)
    >>> bool((y[rows] == y[0]).all())
    True
    """

    def __init__(self, model: Any, X: Any, stored: StoredIndex | None = None):
        self._model = inner_model(model, "ImageIndex")
        self._X = X if isinstance(X, np.ndarray) else np.ascontiguousarray(X, np.float32)
        self.stored = stored
        # models without one scaling, such as fusions, compare images as they are
        self._scaler = getattr(self._model, "scaler_", _unscaled(self._X.shape[1]))

    def __len__(self) -> int:
        return len(self._X)

    def best(
        self, name: Any, k: int, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The images that fit one class best, as `rank_images` finds them.

        With an index, what it misses is missing here.

        Parameters
        ----------
        name : class name, or a ClassEmbeddings of one row
        k : int
            How many; at most as many as there are.
        rows : ndarray, optional
            Look among these rows only, which ascend.

        Returns
        -------
        rows : ndarray of shape (k,)
            Best first; of equals the first comes first.
        scores : ndarray of shape (k,)
        """
        _, best, scores = self.best_of_each(one_class(name), k, rows)
        return best[0], scores[0]

    def best_of_each(
        self, classes: Any, k: int, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same for some classes; images are looked through once for all of them.

        Parameters
        ----------
        classes
            As for `decision_function`.
        k : int
            How many for each; at most as many as there are.
        rows : ndarray, optional
            Look among these rows only, which ascend.

        Returns
        -------
        names : ndarray of shape (n_classes,)
        rows, scores : ndarray of shape (n_classes, k)
        """
        classes = self._model.settled(classes)
        names = self._model.candidate_names(classes)
        k = min(k, len(self._X) if rows is None else len(rows))
        if k == 0:
            empty = np.empty((len(names), 0))
            return names, empty.astype(np.int64), empty
        found = self._looked_up(classes, k, rows)
        if found is None:
            found = self._model.best_images(self._X, classes, k, rows=rows)
        return names, *found

    def _looked_up(
        self, classes: Any, k: int, rows: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Rows and scores by the index; None if it cannot tell."""
        pieces = None if self.stored is None else self._model.linear_pieces(classes)
        if self.stored is None or pieces is None or not self.stored.fits(pieces[0]):
            return None
        score, found = self._model.row_scorer(self._X, classes).score, []
        for i in range(len(pieces[1].offsets)):
            candidates = self.stored.candidates(pieces[1].of(i), k)
            if candidates is not None and rows is not None:
                places = np.minimum(np.searchsorted(rows, candidates), len(rows) - 1)
                candidates = candidates[rows[places] == candidates]
            if candidates is None or len(candidates) < k:
                return None
            found.append(first_rows(candidates, score(candidates)[:, i], k))
        return np.stack([one[0] for one in found]), np.stack([one[1] for one in found])

    def nearest(
        self, x: Any, k: int, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The images that are most like another one: by the angle between scaled features.

        Parameters
        ----------
        x : array-like of shape (n_features,)
        k : int
        rows : ndarray, optional
            Look among these rows only, which ascend.

        Returns
        -------
        rows : ndarray of shape (k,)
            Most alike first.
        likeness : ndarray of shape (k,)
            Cosines.
        """
        k = min(k, len(self._X) if rows is None else len(rows))
        if k == 0:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        image = unit_rows(self._scaler.transform(np.asarray(x)[None], np.float32))[0]

        def score(some: Rows) -> np.ndarray:
            features = self._scaler.transform(self._X[some], np.float32)
            with single_threaded_blas():
                return (unit_rows(features, in_place=True) @ image)[:, None]

        scorer = RowScorer(len(self._X), 1, score)
        best, likeness = scorer.best(k, rows, getattr(self._model, "n_threads", None))
        return best[0], np.clip(likeness[0], -1, 1)


def _unscaled(width: int) -> FeatureScaler:
    return FeatureScaler(None, np.zeros(width), np.ones(width))
