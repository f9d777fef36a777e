"""The answers that an evaluation looked at, image by image: what plots and reports are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from latem.metrics import confusion_matrix, top_confusions
from latem.metrics.calibration import class_codes, probabilities_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Scored:
    """Images of unseen classes, and how a model scored the unseen classes for them.

    Attributes
    ----------
    rows : ndarray of shape (n_images,)
        Rows of the images in the dataset.
    y : ndarray of shape (n_images,)
        Their true class names.
    classes : ndarray of shape (n_classes,)
        The candidates; some may have no images.
    scores : ndarray of shape (n_images, n_classes)
        As returned by `decision_function(X, classes)`.
    """

    rows: np.ndarray
    y: np.ndarray
    classes: np.ndarray
    scores: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"Scored({len(self)} images, {len(self.classes)} classes)"

    @cached_property
    def named(self) -> np.ndarray:
        """The class that each image was given."""
        return self.classes[self.scores.argmax(axis=1)]

    @property
    def right(self) -> np.ndarray:
        """Whether each image was given its own class."""
        return np.equal(self.named, self.y)

    @cached_property
    def codes(self) -> np.ndarray:
        """Column of each image's own class."""
        return class_codes(self.y, self.classes)

    @cached_property
    def ranks(self) -> np.ndarray:
        """Place of each image's own class among the candidates, from 1; of equals the best."""
        own = self.scores[np.arange(len(self)), self.codes]
        return (self.scores > own[:, None]).sum(axis=1) + 1

    def of_own(self, temperature: float = 1.0) -> np.ndarray:
        """Probability of each image's own class at a temperature."""
        probabilities = probabilities_of(self.scores, temperature)
        return probabilities[np.arange(len(self)), self.codes]

    def confidence(self, temperature: float = 1.0) -> np.ndarray:
        """Probability of each answer at a temperature."""
        return probabilities_of(self.scores, temperature).max(axis=1)

    def confusion(self) -> pd.DataFrame:
        """How often images of each class (row) were given each class (column)."""
        return confusion_matrix(self.y, self.named, self.classes)

    def top_confusions(self, n: int | None = 10) -> pd.DataFrame:
        """The most frequent wrong names; see `latem.metrics.top_confusions`."""
        return top_confusions(self.confusion(), n)

    def best_images(self, name: Any, k: int) -> np.ndarray:
        """Positions of the k images that score highest for a class, of whichever class they are.

        They are those of `model.rank_images`.
        """
        column = self.classes.tolist().index(name)
        return np.argsort(-self.scores[:, column], kind="stable")[:k]
