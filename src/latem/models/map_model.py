"""Models whose scores are F(x, y) = max_k xᵀ W_k y: `LatEm`, the bilinear models, `ESZSL`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from latem.models.affine_form import AffineForm
from latem.models.class_view import Candidates
from latem.models.score_terms import ScoreTerms, map_terms
from latem.models.scoring import MapScorer, Parts
from latem.models.table_model import TableClassifier


class MapModel(TableClassifier):
    """Base of models that score by bilinear maps."""

    _in_parts = True

    @abstractmethod
    def bilinear_maps(self) -> np.ndarray:
        """The maps W_k, of shape (n_maps, n_features, n_dimensions)."""

    def map_scorer(self, chosen: Candidates) -> MapScorer:
        """Scorer of images against some candidates; kept for the next call with the same ones."""
        maps = self.bilinear_maps()

        def make() -> MapScorer:
            return MapScorer(maps, chosen.vectors, by_direction=self.by_direction)

        return chosen.prepared(getattr(self, self._learned), self.by_direction, make)

    def _block_scorer(self, chosen: Candidates) -> Callable[[np.ndarray], np.ndarray]:
        return self.map_scorer(chosen).scores

    def _parts_scorer(self, chosen: Candidates) -> Callable[[np.ndarray], Parts]:
        return self.map_scorer(chosen).parts

    def affine_form(self, chosen: Candidates) -> AffineForm | None:
        """The scores as pieces that are linear in the image; None if directions are compared."""
        if self.by_direction:
            return None
        return AffineForm.best_of(self.bilinear_maps(), chosen.vectors)

    def score_terms(self, features: np.ndarray, chosen: Candidates) -> ScoreTerms:
        """What the scores of an image are sums of, see `TableClassifier.score_terms`."""
        maps, view = self.bilinear_maps(), self.class_view_
        return map_terms(maps, view, features, chosen, by_direction=self.by_direction)

    def latent_map(self, X: Any, classes: Any = None, *, per_class: bool = False) -> np.ndarray:
        """Which map won.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes may be the answer; see `decision_function`.
        per_class : bool
            Whether to tell it for every class instead of just for the predicted one.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) if `per_class`
            Numbers of maps, the argmax of max_k xᵀ W_k y.
        """
        X = self.check_width(X)
        chosen = self.class_view_.candidates(classes)
        scorer = self.map_scorer(chosen)
        winners = np.empty((len(X), len(chosen)) if per_class else (len(X),), np.intp)

        def work(rows: slice, features: np.ndarray) -> None:
            scores, winner = scorer.winners(features)
            if per_class:
                winners[rows] = winner
            else:
                best = scores.argmax(axis=1)[:, None]
                winners[rows] = np.take_along_axis(winner, best, axis=1)[:, 0]

        self.each_block(X, len(chosen), work)
        return winners


def read_only(array: np.ndarray) -> np.ndarray:
    """The array, protected: scorers that are kept between calls rely on it."""
    array.flags.writeable = False
    return array
