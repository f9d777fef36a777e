"""Asking for the names of a whole album, and what is answered. The arithmetic is in `album.py`.

Answers of an album are *transductive*: each depends on all other pictures of the album, so the same
picture may be named otherwise in another one. They say so wherever they are shown or written, and
the answer that the model gives to the picture alone stands beside each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np

from latem.core.messages import first_few, hint_of
from latem.core.slim import is_frame, needed
from latem.models.album import fit_album, model_log_probabilities
from latem.models.answering import Asked
from latem.models.answers import COLUMNS, NAMED, NONE, Answer, Answers
from latem.models.scoring import best_k

if TYPE_CHECKING:
    import pandas as pd

TRANSDUCTIVE, BY_HAND, ALONE = "transductive", "by hand", "alone"
ALBUM_COLUMNS = (*COLUMNS, "mode", "alone")


@dataclass(frozen=True)
class AlbumAnswer(Answer):
    """A picture of an album and its best classes.

    The attributes of `Answer` are those of the album, except for `scores`, which are the model's
    own, and `strangeness`, which concerns the picture alone.

    Attributes
    ----------
    alone : class name or None
        What the model calls the picture without the album; None if it cannot be read.
    mode : {"transductive", "by hand", "alone"}
        Whether the name follows from the album, was given, or is the model's own.
    """

    alone: Any = None
    mode: str = TRANSDUCTIVE

    def rows(self) -> list[tuple[Any, ...]]:
        """As lines of a table, one for each name, with the entries of `ALBUM_COLUMNS`."""
        return [(*row, self.mode, self.alone) for row in super().rows()]

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        alone = self.alone.item() if isinstance(self.alone, np.generic) else self.alone
        return {**super().to_dict(), "mode": self.mode, "alone": alone}


class AlbumAnswers(Answers):
    """Answers about the pictures of an album, which depend on each other (transductive).

    Parameters
    ----------
    answers : sequence of AlbumAnswer
    probabilities : DataFrame of shape (n_pictures, n_classes)
    shares : Series of shape (n_classes,)
    likeness : float

    Attributes
    ----------
    probabilities : DataFrame of shape (n_pictures, n_classes)
        Of all candidates, under their names; NaN for pictures that cannot be read.
    shares : Series of shape (n_classes,)
        Share of each class in the album, without pictures that are none of these.
    likeness : float
        Mean likeness (cosine) of two pictures of the same name: what the album goes by. Near 0
        the pictures of a class do not resemble each other, and the answers are the model's own.
    """

    columns: ClassVar[tuple[str, ...]] = ALBUM_COLUMNS
    probabilities: pd.DataFrame
    shares: pd.Series
    likeness: float

    def __init__(
        self,
        answers: Sequence[Answer],
        probabilities: pd.DataFrame,
        shares: pd.Series,
        likeness: float,
    ):
        super().__init__(answers)
        self.probabilities, self.shares, self.likeness = probabilities, shares, likeness

    @overload
    def __getitem__(self, place: int) -> Answer: ...

    @overload
    def __getitem__(self, place: slice) -> AlbumAnswers: ...

    def __getitem__(self, place: int | slice) -> Answer | AlbumAnswers:
        if not isinstance(place, slice):
            return super().__getitem__(place)
        rows = list(range(len(self)))[place]
        part = self.probabilities.take(rows)
        return AlbumAnswers([self[row] for row in rows], part, self.shares, self.likeness)

    @property
    def inductive(self) -> np.ndarray:
        """What the model calls each picture alone, of shape (n_pictures,)."""
        return np.array([getattr(answer, "alone", None) for answer in self], dtype=object)

    @property
    def n_changed(self) -> int:
        """How many first names are other ones than the model's own."""
        return sum(
            answer.names[0] != alone
            for answer, alone in zip(self, self.inductive, strict=True)
            if answer.names
        )

    def __repr__(self) -> str:
        return f"Album (transductive: answers depend on each other). {super().__repr__()}"


class CorrectedAnswers(Answers):
    """Answers about pictures, each named alone, some of them by hand; of `AlbumAnswer`."""

    columns: ClassVar[tuple[str, ...]] = ALBUM_COLUMNS


class AlbumMixin:
    """`predict_album`, for anything that answers."""

    def predict_album(
        self,
        X: Any,
        classes: Any = None,
        *,
        labels: Mapping[int, Any] | None = None,
        expected_share: float | Mapping[Any, float] | None = None,
        top: int = 5,
        seen_penalty: float | None = None,
        false_accept_rate: float | None = None,
    ) -> AlbumAnswers:
        """Name the pictures of an album together: transductive.

        Pictures that resemble each other tend to get the same name, and classes that do not
        occur get few. Each answer depends on all pictures, so measure it as transductive, and do
        not compare it with models that see one picture at a time.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes may be the answer; see `decision_function`. Unlike there, None are the
            unseen ones. They need not all occur.
        labels : mapping, optional
            Names of some pictures, by row number. These keep their names, and pictures like them
            follow.
        expected_share : float or mapping, optional
            What is known of the album: the share of the classes that occur in it, such as 0.2,
            or the shares of pictures by class name. Classes that are not named divide the rest
            evenly. By default both are learned.
        top, seen_penalty, false_accept_rate
            As for `answer`. Pictures that are none of these do not count for the others.

        Returns
        -------
        AlbumAnswers

        Examples
        --------
        >>> from latem import ESZSL, make_latent_world
        >>> world = make_latent_world(n_poses=1, noise=1.0, random_state=0)
        >>> model = ESZSL(world.embeddings["att"]).fit(*world.training())
        >>> X, y = world.testing()
        >>> album = model.predict_album(X)
        >>> bool((album.names == y).mean() > (album.inductive == y).mean())
        True
        """
        asked = Asked(self, classes, top, seen_penalty, false_accept_rate)
        return album_answers(
            asked, X, [f"image {i}" for i in range(len(X))], labels, expected_share
        )


def album_answers(
    asked: Asked,
    X: Any,
    pictures: Sequence[str],
    labels: Mapping[int, Any] | None = None,
    expected_share: float | Mapping[Any, float] | None = None,
) -> AlbumAnswers:
    """Answers about the images of an album, known by these texts.

    Parameters
    ----------
    asked : Asked
        What is asked, and of which model.
    X : array-like of shape (n_samples, n_features)
    pictures : sequence of str
    labels, expected_share
        As for `AlbumMixin.predict_album`.

    Returns
    -------
    AlbumAnswers
    """
    owner = type(asked.model).__name__
    known = checked_labels(labels, len(pictures), asked.names, owner)
    shares, occupancy = expected_shares(expected_share, asked.names, owner)
    plain = asked.model.class_scores(X, asked.classes)
    scores = plain - asked.penalty * asked.seen if asked.penalty else plain
    strangeness = asked.strangeness(X, plain)
    counted = np.ones(len(scores), bool)
    if strangeness is not None:
        counted = np.array([v != NONE for v in asked.verdicts(strangeness, None)], bool)
    temperature = getattr(asked.model, "temperature_", None)
    fit = fit_album(
        np.asarray(X),
        model_log_probabilities(scores, temperature),
        counted=counted,
        labels=known,
        shares=shares,
        occupancy=occupancy,
    )
    best = best_k(fit.probabilities, asked.top)
    found = np.take_along_axis(fit.probabilities, best, axis=1).astype(np.float64)
    nothing: list[Any] = [None] * len(scores)
    verdicts, strange = nothing, nothing
    if strangeness is not None:
        strange, verdicts = strangeness.tolist(), list(asked.verdicts(strangeness, found[:, 0]))
        for row in known:
            verdicts[row] = NAMED
    modes = [BY_HAND if row in known else TRANSDUCTIVE for row in range(len(scores))]
    columns = (
        pictures,
        asked.names[best].tolist(),
        np.take_along_axis(scores, best, axis=1).astype(np.float64).tolist(),
        nothing if temperature is None else found.tolist(),
        verdicts,
        strange,
        asked.names[scores.argmax(axis=1)].tolist(),
        modes,
    )
    answers = [
        AlbumAnswer(picture, names, own, p, verdict, s, alone=alone, mode=mode)
        for picture, names, own, p, verdict, s, alone, mode in zip(*columns, strict=True)
    ]
    pd = needed("pandas", "Albums")
    index_of_classes = pd.Index(asked.names, name="class")
    index = X.index if is_frame(X) else None
    return AlbumAnswers(
        answers,
        pd.DataFrame(fit.probabilities, index=index, columns=index_of_classes),
        pd.Series(fit.shares, index=index_of_classes, name="share"),
        fit.likeness,
    )


def corrected_answers(
    asked: Asked, X: Any, pictures: Sequence[str], labels: Mapping[int, Any] | None = None
) -> CorrectedAnswers:
    """Answers about images, each named alone, but for names that are given by hand.

    Parameters
    ----------
    asked : Asked
        What is asked, and of which model.
    X : array-like of shape (n_samples, n_features)
    pictures : sequence of str
    labels : mapping, optional
        Names of some pictures, by row number.
    """
    known = checked_labels(labels, len(pictures), asked.names, type(asked.model).__name__)
    scores = asked.model.class_scores(X, asked.classes) if known else None
    found = []
    for row, own in enumerate(asked.answers(X, list(pictures))):
        alone, mode = own.names[0], ALONE
        if row in known:
            assert scores is not None
            own = replace(
                own,
                names=[asked.names[known[row]].item()],
                scores=[float(scores[row, known[row]])],
                probabilities=None if own.probabilities is None else [1.0],
                verdict=None if own.verdict is None else NAMED,
            )
            mode = BY_HAND
        parts = {field.name: getattr(own, field.name) for field in fields(Answer)}
        found.append(AlbumAnswer(**parts, alone=alone, mode=mode))
    return CorrectedAnswers(found)


def checked_labels(
    labels: Mapping[int, Any] | None,
    n_samples: int,
    names: np.ndarray,
    owner: str,
    pictures: Sequence[Any] | None = None,
) -> dict[int, int]:
    """Class numbers by row number; raises for labels that fit no picture or no candidate.

    `pictures` are what the rows are known by, if that is no number.
    """
    if labels is None:
        return {}
    if not isinstance(labels, Mapping):
        raise TypeError(
            f"{owner} got labels of type {type(labels).__name__}; give a mapping from row numbers "
            f"to class names, such as {{0: {names.tolist()[0]!r}}}."
        )
    places = {name: place for place, name in enumerate(names.tolist())}
    found = {}
    for row, name in labels.items():
        if isinstance(row, bool) or not isinstance(row, int | np.integer):
            raise TypeError(f"{owner} got a label for {row!r}; rows are given by their numbers.")
        if not 0 <= row < n_samples:
            raise ValueError(
                f"{owner} got a label for row {row}, but the album has the rows 0 to "
                f"{n_samples - 1}."
            )
        plain = name.item() if isinstance(name, np.generic) else name
        if plain not in places:
            what = f"row {row}" if pictures is None else str(pictures[row])
            raise ValueError(
                f"{owner} got the label {plain!r} for {what}, which is none of the candidates "
                f"{first_few(list(places))}{hint_of([plain], places)}; name it among the classes "
                f"(classes=, on the command line --classes), or drop the label."
            )
        found[int(row)] = places[plain]
    return found


def expected_shares(
    expected: float | Mapping[Any, float] | None, names: np.ndarray, owner: str
) -> tuple[np.ndarray | None, float | None]:
    """Expected shares of the classes, or the share of classes that occur; raises for others."""
    if expected is None:
        return None, None
    if not isinstance(expected, Mapping):
        number = isinstance(expected, int | float | np.number) and not isinstance(expected, bool)
        if not number or not 0 < expected <= 1:
            raise ValueError(
                f"{owner} got expected_share={expected!r}; give the share of the classes that "
                f"occur, above 0 and at most 1, or shares by class name."
            )
        return None, float(expected)
    known = names.tolist()
    odd = [name for name in expected if name not in known]
    if odd:
        raise ValueError(
            f"{owner} got expected_share for {first_few(odd)}, which are none of the candidates "
            f"{first_few(known)}."
        )
    given = np.array([expected.get(name, np.nan) for name in known], np.float64)
    rest = np.isnan(given)
    total = np.nansum(given)
    if (
        (given[~rest] < 0).any()
        or not np.isfinite(total)
        or total <= 0
        or (rest.any() and total > 1)
    ):
        raise ValueError(
            f"{owner} got expected_share with the sum {total:g}; shares are at least 0, and "
            f"together at most 1, unless they name all {len(known)} candidates."
        )
    if rest.any():
        given[rest] = (1 - total) / rest.sum()
    return given / given.sum(), None
