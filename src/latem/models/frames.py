"""Scores with the names of the classes on them, as pandas has it."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from latem.core.slim import is_frame, needed

if TYPE_CHECKING:
    import pandas as pd


class FrameMixin(metaclass=ABCMeta):
    """Frames of scores, for anything that scores images and classes."""

    @abstractmethod
    def candidate_names(self, classes: Any = None) -> np.ndarray:
        """Names of the candidates, in the order of the columns of scores."""

    @abstractmethod
    def class_scores(self, X: Any, classes: Any = None) -> np.ndarray:
        """Scores with a column for every candidate."""

    @abstractmethod
    def predict_proba(self, X: Any, classes: Any = None) -> np.ndarray:
        """Probabilities of the classes."""

    def scores_frame(
        self, X: Any, classes: Any = None, *, probabilities: bool = False
    ) -> pd.DataFrame:
        """Scores of images and classes under the classes' names.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes may be the answer; see `decision_function`.
        probabilities : bool
            Whether to give `predict_proba` instead of scores.

        Returns
        -------
        DataFrame of shape (n_samples, n_classes)
            One column per candidate, also of two seen classes. Its index is that of `X` if `X`
            is a DataFrame.

        Examples
        --------
        >>> from latem import ESZSL, make_latent_world
        >>> world = make_latent_world(n_seen=20, n_images=6, random_state=0)
        >>> model = ESZSL(world.embeddings["att"]).fit(*world.training())
        >>> X, y = world.testing()
        >>> scores = model.scores_frame(X, "unseen")
        >>> bool((scores.idxmax(axis=1) == model.predict(X, "unseen")).all())
        True
        """
        if isinstance(classes, Iterator):
            classes = list(classes)
        ask = self.predict_proba if probabilities else self.class_scores
        pd = needed("pandas", "Frames of scores")
        names = pd.Index(self.candidate_names(classes), name="class")
        index = X.index if is_frame(X) else None
        if classes is None:
            classes = "seen"  # the same classes, also two of them with a column each
        return pd.DataFrame(ask(X, classes), index=index, columns=names)
