"""Answers about many images, column by column: what files of millions of answers are written from.

An `Answer` is an object for people; a million of them take seconds and gigabytes. The same content
as arrays takes neither, and every `Answer` is made from these arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from latem.models.answers import NONE, VERDICTS, Answer


@dataclass(frozen=True, eq=False)
class AnswerColumns:
    """Answers about some images.

    Attributes
    ----------
    names : ndarray of shape (n_classes,)
        The candidates.
    places : ndarray of shape (n_samples, top)
        Numbers of the best of them, best first.
    scores : ndarray of shape (n_samples, top), float64
    probabilities : ndarray of shape (n_samples, top), float64, or None
    strangeness : ndarray of shape (n_samples,), float64, or None
    verdicts : ndarray of shape (n_samples,), or None
        Numbers in `VERDICTS`.
    """

    names: np.ndarray
    places: np.ndarray
    scores: np.ndarray
    probabilities: np.ndarray | None = None
    strangeness: np.ndarray | None = None
    verdicts: np.ndarray | None = None

    @classmethod
    def joined(cls, parts: Sequence[AnswerColumns]) -> AnswerColumns:
        """Answers to the same question, one after the other."""

        def all_of(name: str) -> np.ndarray | None:
            return None if getattr(parts[0], name) is None else _all(parts, name)

        return cls(
            parts[0].names,
            _all(parts, "places"),
            _all(parts, "scores"),
            all_of("probabilities"),
            all_of("strangeness"),
            all_of("verdicts"),
        )

    def __len__(self) -> int:
        return len(self.places)

    def count(self, verdict: str) -> int:
        """Number of images with a verdict."""
        if self.verdicts is None:
            return 0
        return int((self.verdicts == VERDICTS.index(verdict)).sum())

    @property
    def n_none(self) -> int:
        """Number of images that are none of these."""
        return self.count(NONE)

    def answers(self, pictures: Sequence[str]) -> list[Answer]:
        """As objects, with what the images are known by."""
        sure: Any = repeat(None) if self.probabilities is None else self.probabilities.tolist()
        strange: Any = repeat(None) if self.strangeness is None else self.strangeness.tolist()
        parts = zip(
            pictures,
            self.names[self.places].tolist(),
            self.scores.tolist(),
            sure,
            self._verdicts(),
            strange,
            strict=False,  # what is not known is repeated for ever
        )
        return [Answer(*one) for one in parts]

    def _verdicts(self) -> Iterator[str | None]:
        if self.verdicts is None:
            return repeat(None)
        return (VERDICTS[i] for i in self.verdicts.tolist())

    def rows(self, pictures: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Lines of a table, a line for each name, as `Answer.rows` has them."""
        top = self.places.shape[1]
        n_lines = len(self) * top

        def each(values: Any) -> list[Any]:
            """One value for all lines of an image."""
            return [value for value in values for _ in range(top)]

        nothing: list[Any] = [None] * n_lines
        sure, strange = self.probabilities, self.strangeness
        return zip(
            each(pictures),
            list(range(1, top + 1)) * len(self),
            self.names[self.places.ravel()].tolist(),
            nothing if sure is None else sure.ravel().tolist(),
            self.scores.ravel().tolist(),
            nothing if self.verdicts is None else each(self._verdicts()),
            nothing if strange is None else each(strange.tolist()),
            nothing,
            strict=True,
        )


def _all(parts: Sequence[AnswerColumns], name: str) -> np.ndarray:
    return np.concatenate([getattr(one, name) for one in parts])
