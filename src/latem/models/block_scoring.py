"""Scoring of images block by block, for models with one class table.

Blocks are scaled, scored and looked at in several threads; what is done with their scores
(names, the best k, all of them) differs. Rows of a file are scored where they lie, if scores are
linear in the image (`latem.models.affine_form`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latem.core.arrays import all_finite
from latem.core.threads import run_all, single_threaded_blas
from latem.models.affine_form import AffineForm, CompiledForm, can_be_compiled
from latem.models.bad_rows import bad_rows, check_finite
from latem.models.class_view import Candidates, ClassView
from latem.models.inputs import InputChecks
from latem.models.lazy import on_blocks
from latem.models.retrieval import MANY, Rows, RowScorer
from latem.models.scaling import FeatureScaler
from latem.models.scoring import BestSoFar, Keep, Parts, row_blocks


class BlockScoring(InputChecks):
    """Scores of images against candidates, in bounded memory."""

    n_threads: int | None
    class_view_: ClassView
    dtype_: str
    scaler_: FeatureScaler
    _in_parts: bool = False  # whether very many classes are scored part by part

    @abstractmethod
    def _block_scorer(self, chosen: Candidates) -> Callable[[np.ndarray], np.ndarray]:
        """Function from a block of scaled features to scores of shape (n_rows, n_classes)."""

    def block_scorer(self, chosen: Candidates) -> Callable[[np.ndarray], np.ndarray]:
        """Function from a block of scaled features to scores of shape (n_rows, n_classes).

        Parameters
        ----------
        chosen : Candidates
            As `class_view_.candidates` gives them.
        """
        return self._block_scorer(chosen)

    def affine_form(self, chosen: Candidates) -> AffineForm | None:
        """The scores as pieces that are linear in the scaled image, or None if they are not.

        Images are found faster where there are such pieces, see `latem.models.affine_form`.

        Parameters
        ----------
        chosen : Candidates
            As `class_view_.candidates` gives them.
        """
        return None

    # -- answers ------------------------------------------------------------------------------

    @on_blocks
    def decision_function(self, X: Any, classes: Any = None) -> np.ndarray:
        """Compatibility of images and classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes : None, "seen", "unseen", "all", list of names, class table, or a list of these
            Which classes to score: those seen in training (None or "seen"), the others in the
            class table ("unseen"), all of them, some by name, or those of a new table that has the
            same columns. A list may mix these, such as ``["unseen", "zebra", new_table]``; in it,
            a name of the class table is that class, even if it reads like a group or a file.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Larger is more compatible. As everywhere in scikit-learn, with `classes=None` and
            exactly two seen classes this is instead the difference of the two, of shape
            (n_samples,); name the classes to get both columns.
        """
        X = self.check_width(X)
        chosen = self.class_view_.candidates(classes)
        scores = np.empty((len(X), len(chosen)), self.dtype_)

        def keep(rows: slice, parts: Parts) -> None:
            for columns, block in parts:
                scores[rows, columns] = block

        self._each_scored(X, chosen, keep)
        if classes is None and len(chosen) == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def _best(self, X: Any, k: int, classes: Any) -> tuple[np.ndarray, np.ndarray]:
        X = self.check_width(X)
        chosen = self.class_view_.candidates(classes)
        self._check_k(k, len(chosen))
        places = np.empty((len(X), k), np.intp)
        scores = np.empty((len(X), k), self.dtype_)

        def keep(rows: slice, parts: Parts) -> None:
            best = BestSoFar(k)
            for columns, block in parts:
                best.add(columns.start, block)
            places[rows], scores[rows] = best.places, best.scores

        self._each_scored(X, chosen, keep)
        return chosen.names[places], scores

    def each_scored(
        self,
        X: Any,
        classes: Any,
        keep: Keep,
    ) -> None:
        """Call `keep(rows, parts)` for blocks of images, see `ZeroShotClassifier.each_scored`."""
        self._each_scored(self.check_width(X), self.class_view_.candidates(classes), keep)

    def _each_scored(self, X: np.ndarray, chosen: Candidates, keep: Keep) -> None:
        """The same of checked images and candidates, with scores that are finite."""

        def checked(rows: slice, parts: Parts) -> None:
            def looked_at() -> Parts:
                for columns, block in parts:
                    self._check_scores(rows, block)
                    yield columns, block

            keep(rows, looked_at())

        self._score_blocks(X, chosen, checked)

    def _check_scores(self, rows: slice, block: np.ndarray) -> None:
        """Refuse scores that are not finite."""
        if all_finite(block):
            return
        raise bad_rows(
            f"{type(self).__name__} got scores that are not finite among rows FIRST to LAST: "
            f"features or class vectors are too large or too small for {self.dtype_}. Scale them "
            f"by a constant, or use dtype='float64'.",
            rows.start,
            rows.stop - 1,
        )

    # -- scoring ------------------------------------------------------------------------------

    def row_scorer(self, X: Any, classes: Any) -> RowScorer:
        """What scores some rows of many images.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes to score; see `decision_function`.
        """
        X = self.check_width(X)
        chosen = self.class_view_.candidates(classes)
        score, owner = self._scorer_of_rows(X, chosen), type(self).__name__
        return RowScorer(len(X), len(chosen), score, lambda: check_finite(X, owner))

    def linear_pieces(self, classes: Any) -> tuple[FeatureScaler, AffineForm] | None:
        """How images are scaled, and scores as linear pieces of that; None if they are none.

        Parameters
        ----------
        classes
            Which classes; see `decision_function`.
        """
        check_is_fitted(self)
        with single_threaded_blas():
            form = self.affine_form(self.class_view_.candidates(classes))
        return None if form is None else (self.scaler_, form)

    def _scorer_of_rows(self, X: np.ndarray, chosen: Candidates) -> Callable[[Rows], np.ndarray]:
        def score(rows: Rows) -> np.ndarray:
            if isinstance(rows, slice):
                images, piece = X, rows
            else:
                images, piece = X[rows], slice(0, len(rows))
            check_finite(images[piece], type(self).__name__)
            scores = np.empty((piece.stop - piece.start, len(chosen)), self.dtype_)

            def keep(where: slice, parts: Parts) -> None:
                for columns, block in parts:
                    self._check_scores(where, block)
                    scores[:, columns] = block

            self._score_blocks(images, chosen, keep, [piece])
            return scores

        if X.size < MANY or not can_be_compiled(X, self.dtype_):
            return score
        with single_threaded_blas():
            form = self.affine_form(chosen)
        if form is None:
            return score
        compiled = CompiledForm(form, self.scaler_, X)

        def scan(rows: Rows) -> np.ndarray:
            rows = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            scores, odd = compiled(rows)
            if odd.any():
                scores[odd] = score(rows[odd])
            return scores

        return scan

    def each_block(
        self,
        X: np.ndarray,
        n_classes: int,
        work: Callable[[slice, np.ndarray], None],
        blocks: list[slice] | None = None,
        *,
        in_parts: bool = False,
    ) -> None:
        """Call `work(rows, features)` for blocks of scaled rows, in several threads.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            As `check_width` gives it.
        n_classes : int
            Columns of the scores that will be made of a block, which decide its length.
        work : callable
        blocks : list of slice, optional
            These blocks instead of all.
        in_parts : bool
            Whether only some of very many columns will be made at a time.
        """

        def task(rows: slice) -> None:
            with np.errstate(over="ignore", invalid="ignore"):
                features = self.scaler_.transform(X[rows], self.dtype_)
            if not all_finite(features):
                check_finite(X, type(self).__name__)
                raise bad_rows(
                    f"{type(self).__name__} got features among rows FIRST to LAST that are too "
                    f"large to scale; they are far from what the model was trained on.",
                    rows.start,
                    rows.stop - 1,
                )
            work(rows, features)

        if blocks is None:
            blocks = row_blocks(len(X), n_classes, in_parts=in_parts)
        run_all(task, blocks, self.n_threads)

    def _parts_scorer(self, chosen: Candidates) -> Callable[[np.ndarray], Parts]:
        """Function from a block of scaled features to its scores, part of the classes by part."""
        score, whole = self._block_scorer(chosen), slice(0, len(chosen))

        def parts(X: np.ndarray) -> Parts:
            yield whole, score(X)

        return parts

    def _score_blocks(
        self,
        X: np.ndarray,
        chosen: Candidates,
        keep: Keep,
        blocks: list[slice] | None = None,
    ) -> None:
        """Call `keep(rows, parts)` for blocks of rows, in several threads.

        Parts are pairs of a slice of the classes and their scores, which are good until the next
        part is asked for.
        """
        with single_threaded_blas():  # what is done to class vectors must not depend on threads
            score = self._parts_scorer(chosen)

            def work(rows: slice, features: np.ndarray) -> None:
                with np.errstate(over="ignore", invalid="ignore"):  # reported by _check_scores
                    keep(rows, score(features))

            self.each_block(X, len(chosen), work, blocks, in_parts=self._in_parts)
