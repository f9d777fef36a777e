"""Many images, prepared once for a model, so that any class can be looked up among them at once.

`rank_images` checks and scales all images every time it is asked. Here this is done when the index
is made; a class that is described anew, trait by trait, then finds its images while one watches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from latem.core.arrays import unit_rows
from latem.core.threads import run_all, single_threaded_blas
from latem.inspection.speakers import inner_model
from latem.models.scoring import row_blocks
from latem.models.table_model import TableClassifier


class ImageIndex:
    """Images that are looked at again and again.

    Parameters
    ----------
    model : a fitted model
    X : array-like of shape (n_images, n_features)
        Scaled images are kept in memory, at the model's precision.

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

    def __init__(self, model: Any, X: Any):
        self._model = inner_model(model, "ImageIndex")
        self._by_blocks = isinstance(self._model, TableClassifier)
        self._X = self._prepared(X)
        self._directions: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self._X)

    def scores(self, classes: Any) -> np.ndarray:
        """Scores of all images for some classes, of shape (n_images, n_classes).

        Parameters
        ----------
        classes
            As for `decision_function`.
        """
        if not self._by_blocks:
            return self._model.class_scores(self._X, classes)
        chosen = self._model.class_view_.candidates(classes)
        scores = np.empty((len(self._X), len(chosen)), self._model.dtype_)
        with single_threaded_blas():
            score = self._model.block_scorer(chosen)

            def work(rows: slice) -> None:
                scores[rows] = score(self._X[rows])

            run_all(work, row_blocks(len(self._X), len(chosen)), self._model.n_threads)
        return scores

    def best(
        self, name: Any, k: int, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The images that fit one class best, as `rank_images` finds them.

        Parameters
        ----------
        name : class name, or a ClassEmbeddings of one row
        k : int
            How many; at most as many as there are.
        rows : ndarray, optional
            Look among these rows only.

        Returns
        -------
        rows : ndarray of shape (k,)
            Best first; of equals the first comes first.
        scores : ndarray of shape (k,)
        """
        scores = self.scores([name])[:, 0]
        rows = np.arange(len(scores)) if rows is None else rows
        order = rows[np.argsort(-scores[rows], kind="stable")[:k]]
        return order, scores[order]

    def nearest(
        self, x: Any, k: int, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The images that are most like another one: by the angle between scaled features.

        Parameters
        ----------
        x : array-like of shape (n_features,)
        k : int
        rows : ndarray, optional
            Look among these rows only.

        Returns
        -------
        rows : ndarray of shape (k,)
            Most alike first.
        likeness : ndarray of shape (k,)
            Cosines.
        """
        image = self._prepared(np.asarray(x)[None])
        if self._directions is None:
            self._directions = unit_rows(np.array(self._X, np.float32))
        with single_threaded_blas():
            likeness = self._directions @ unit_rows(np.array(image, np.float32))[0]
        rows = np.arange(len(likeness)) if rows is None else rows
        order = rows[np.argsort(-likeness[rows], kind="stable")[:k]]
        return order, np.clip(likeness[order], -1, 1)

    def _prepared(self, X: Any) -> np.ndarray:
        """Images as they are scored: scaled, if one model alone scores them."""
        if not self._by_blocks:
            return np.ascontiguousarray(X, np.float32)
        return self._model.scaler_.transform(self._model.check_images(X), self._model.dtype_)
