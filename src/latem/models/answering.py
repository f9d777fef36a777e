"""From images to answers one can trust, and from pictures to images: for every model.

Answers use all that a model has learned about itself: the penalty on seen classes where pictures
are named among seen and unseen ones, the temperature, and what counts as none of these. Pictures
are encoded in batches that depend on nothing but their order, so the same list has the same
answers, to the last bit, at every door.
"""

from __future__ import annotations

import os
from abc import ABCMeta
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latem.core.threads import resolve_threads
from latem.metrics.calibration import LogSum
from latem.models.answer_columns import AnswerColumns
from latem.models.answers import VERDICTS, Answer, Answers
from latem.models.probabilities import ProbabilityMixin
from latem.models.scoring import BestSoFar, Parts

BATCH = 32  # pictures that are encoded together
EVEN = 0.5  # probability below which a name is doubtful
USUAL = 0.92  # of the pictures of candidates are not called none of these
_AHEAD = 2 * BATCH  # pictures that are decoded in advance


class AnsweringMixin(ProbabilityMixin, metaclass=ABCMeta):
    """`answer` and `name_pictures`, for anything that scores images and classes."""

    encoder_: Any

    def answer(
        self,
        X: Any,
        classes: Any = "unseen",
        *,
        top: int = 5,
        seen_penalty: float | None = None,
        false_accept_rate: float | None = None,
    ) -> Answers:
        """Names of images with probabilities, and "none of these".

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes may be the answer; see `decision_function`. Unlike there, None are the
            unseen ones.
        top : int
            How many names to give, at most as many as there are candidates.
        seen_penalty : float, optional
            γ of calibrated stacking: subtracted from the scores of seen classes, which models
            prefer. By default `seen_penalty_`, if the model has one and candidates are seen and
            unseen classes; 0 switches it off.
        false_accept_rate : float, optional
            Share of outsiders that may be named; the other images are doubtful, or none of these:
            see `Answer.verdict`. By default the one chosen in training; 1 names every image.

        Returns
        -------
        Answers
        """
        how = Asked(self, classes, top, seen_penalty, false_accept_rate)
        return Answers(how.answers(X, [f"image {i}" for i in range(len(X))]))

    def name_pictures(
        self,
        pictures: Iterable[Any],
        classes: Any = "unseen",
        *,
        top: int = 5,
        seen_penalty: float | None = None,
        false_accept_rate: float | None = None,
        encoder_options: Mapping[str, Any] | None = None,
    ) -> Answers:
        """Name pictures, if the model knows the encoder that made its features.

        Parameters
        ----------
        pictures : iterable of paths, bytes, binary files, PIL images or uint8 arrays
        classes, top, seen_penalty, false_accept_rate
            As for `answer`.
        encoder_options : mapping, optional
            Options for the encoder, such as a local weight file.

        Returns
        -------
        Answers
            One for each picture, in their order; a picture that cannot be read has an `error`.
        """
        how = Asked(self, classes, top, seen_penalty, false_accept_rate)
        batches = how.batches(pictures, encoder_options)
        return Answers([answer for answers, _ in batches for answer in answers])


class Asked:
    """What is asked of a model, checked and looked up once.

    Parameters
    ----------
    model : a fitted model
    classes, top, seen_penalty, false_accept_rate
        As for `AnsweringMixin.answer`.

    Attributes
    ----------
    names : ndarray
        The candidates.
    penalty : float
        What is subtracted from the scores of seen ones.
    rate : float or None
        False-accept rate; None if the model cannot tell outsiders.
    limit : float
        Strangeness above which an image is none of these.
    n_scored : tuple of int
        How many classes are scored at a time: the candidates, and what they are compared with.
    """

    def __init__(
        self,
        model: Any,
        classes: Any = "unseen",
        top: int = 5,
        seen_penalty: float | None = None,
        false_accept_rate: float | None = None,
    ):
        check_is_fitted(model)
        self.model = model
        self.classes = model.settled("unseen" if classes is None else classes)
        self.names = model.candidate_names(self.classes)
        self.seen = np.isin(self.names, model.classes_)
        if isinstance(top, bool) or not isinstance(top, int | np.integer) or top < 1:
            raise ValueError(f"top must be a whole number of at least 1, not {top!r}.")
        self.top = min(int(top), len(self.names))
        mixed = self.seen.any() and not self.seen.all()
        if seen_penalty is None:
            seen_penalty = getattr(model, "seen_penalty_", 0.0) if mixed else 0.0
        self.penalty = _number(seen_penalty, "seen_penalty")
        self.rate, self.limit = None, 1.0
        self.n_scored: tuple[int, ...] = (len(self.names),)
        self._beside: Any = None
        if hasattr(model, "acceptance_"):
            chosen = model.acceptance_.false_accept_rate
            self.rate = chosen if false_accept_rate is None else false_accept_rate
            if not 0 <= _number(self.rate, "false_accept_rate") <= 1:
                raise ValueError(
                    f"false_accept_rate must be a share from 0 to 1, not {false_accept_rate!r}."
                )
            self.limit = max(self.rate, model.usual_strangeness(self.classes, USUAL))
            self._beside = model.beside(self.classes)
            self.n_scored += (len(self._beside.rivals),)
        elif false_accept_rate is not None and false_accept_rate != 1:
            raise ValueError(
                f"{type(model).__name__} does not know what outsiders look like, so it cannot "
                f"keep a false-accept rate: train it with latem.train (latem train), or call "
                f"latem.calibrate_answers."
            )

    def answers(self, X: Any, pictures: Sequence[str]) -> list[Answer]:
        """Answers about images, known by these texts."""
        return self.columns(X).answers(pictures)

    def columns(self, X: Any) -> AnswerColumns:
        """The same as arrays; memory is bounded beside them, however many classes there are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        model, n, features = self.model, len(X), np.asarray(X)
        temperature = getattr(model, "temperature_", None)
        places, scores = np.empty((n, self.top), np.intp), np.empty((n, self.top))
        sure = None if temperature is None else np.empty((n, self.top))
        strange = None if self.rate is None else np.empty(n)
        rivals = None if strange is None else model.energies_of_rivals(X, self._beside)

        def keep(rows: slice, parts: Parts) -> None:
            best, total, inside = BestSoFar(self.top), LogSum(), LogSum()
            for columns, plain in parts:
                some = plain - self.penalty * self.seen[columns] if self.penalty else plain
                best.add(columns.start, some)
                if temperature is not None:
                    total.add(some.astype(np.float64) / temperature)
                if strange is not None:
                    inside.add(model.energies(plain, self._beside.seen[columns]))
            places[rows], scores[rows] = best.places, best.scores
            if sure is not None and temperature is not None:
                sure[rows] = total.shares(best.scores.astype(np.float64) / temperature)
            if strange is not None:
                ahead = inside.value() if rivals is None else inside.value() - rivals[rows]
                strange[rows] = model.strangeness_at(
                    ahead, features[rows], self._beside, len(self.names)
                )

        model.each_scored(X, self.classes, keep)
        verdicts = None
        if strange is not None:
            verdicts = self._verdict_numbers(strange, None if sure is None else sure[:, 0])
        return AnswerColumns(self.names, places, scores, sure, strange, verdicts)

    def strangeness(self, X: Any, scores: np.ndarray) -> np.ndarray | None:
        """How strange images are, by the model's scores before any penalty; None if unknown."""
        if self.rate is None:
            return None
        return np.asarray(self.model.strangeness_of(X, self.classes, scores, self._beside))

    def verdicts(self, strangeness: np.ndarray, first: np.ndarray | None) -> list[str]:
        """Verdicts on images.

        Parameters
        ----------
        strangeness : ndarray of shape (n_samples,)
        first : ndarray of shape (n_samples,) or None
            Probabilities of their first names, if there are any.
        """
        return [VERDICTS[i] for i in self._verdict_numbers(strangeness, first)]

    def _verdict_numbers(self, strangeness: np.ndarray, first: np.ndarray | None) -> np.ndarray:
        assert self.rate is not None
        unsure = np.zeros(len(strangeness), bool) if first is None else first < EVEN
        doubtful = (strangeness > self.rate) | (unsure & (self.rate < 1))
        return np.where(strangeness > self.limit, 2, doubtful.astype(int))

    def batches(
        self,
        pictures: Iterable[Any],
        encoder_options: Mapping[str, Any] | None = None,
    ) -> Iterator[tuple[list[Answer], np.ndarray]]:
        """Answers batch by batch, and the features of the pictures that could be read.

        Only as many pictures are read as are needed for the next two batches.
        """
        from latem.features.chunks import Decoder
        from latem.features.encoders import load_encoder
        from latem.features.pictures import quiet_pillow

        if isinstance(pictures, str | bytes | PathLike):
            raise TypeError("name_pictures needs a list of pictures; write [picture].")
        if self.model.encoder_ is None:
            raise ValueError(
                "This model does not know which encoder made its features, so it cannot name "
                "pictures; train it on a dataset made by latem embed images."
            )
        encoder = load_encoder(self.model.encoder_, **dict(encoder_options or {}))
        waiting: list[str] = []

        def noted() -> Iterator[Any]:
            for number, picture in enumerate(pictures, start=1):
                waiting.append(_known_by(picture, number))
                yield picture

        with quiet_pillow(), Decoder(encoder, resolve_threads(None), _AHEAD) as decoder:
            batch: list[np.ndarray | str] = []
            for pixels in decoder.read(noted()):
                batch.append(pixels)
                if len(batch) == BATCH:
                    yield self._named(encoder, batch, [waiting.pop(0) for _ in batch])
                    batch = []
            if batch:
                yield self._named(encoder, batch, [waiting.pop(0) for _ in batch])

    def _named(
        self, encoder: Any, batch: list[np.ndarray | str], known_by: list[str]
    ) -> tuple[list[Answer], np.ndarray]:
        pixels = [part for part in batch if isinstance(part, np.ndarray)]
        X = np.empty((0, encoder.n_features), np.float32)
        found: Iterator[Answer] = iter(())
        if pixels:
            X = encoder.encode_batch(np.stack(pixels))
            readable = [
                text
                for text, part in zip(known_by, batch, strict=True)
                if not isinstance(part, str)
            ]
            found = iter(self.answers(X, readable))
        answers = [
            Answer(text, [], [], error=part) if isinstance(part, str) else next(found)
            for text, part in zip(known_by, batch, strict=True)
        ]
        return answers, X


def _known_by(picture: Any, number: int) -> str:
    """A path as it was given, a file by its name, anything else by its number."""
    if isinstance(picture, str | PathLike):
        return os.fsencode(picture).decode("utf-8", "replace")
    name = getattr(picture, "name", None) or getattr(picture, "filename", None)
    return name if isinstance(name, str) and name else f"picture {number}"


def _number(value: Any, name: str) -> float:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not np.isfinite(value):
        raise ValueError(f"{name} must be a finite number, not {value!r}.")
    return float(value)
