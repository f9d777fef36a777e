"""Naming a whole album of pictures together, with a model that remembers its encoder.

All pictures are encoded before the first is named, because each answer depends on all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from latem.core.paths import no_file
from latem.core.slim import needed
from latem.datasets.picture_files import find_pictures
from latem.models.album_answers import (
    AlbumAnswer,
    AlbumAnswers,
    CorrectedAnswers,
    album_answers,
    checked_labels,
    corrected_answers,
    expected_shares,
)
from latem.models.answering import Asked
from latem.models.answers import Answer
from latem.models.base import ZeroShotClassifier
from latem.models.checks import check_is_model


def name_album(
    model: ZeroShotClassifier,
    pictures: Iterable[Any],
    classes: Any = "unseen",
    *,
    labels: Mapping[int, Any] | None = None,
    expected_share: float | Mapping[Any, float] | None = None,
    top: int = 5,
    seen_penalty: float | None = None,
    false_accept_rate: float | None = None,
    encoder_options: Mapping[str, Any] | None = None,
    progress: Callable[[int], None] | None = None,
) -> AlbumAnswers:
    """Name the pictures of an album together: transductive.

    Parameters
    ----------
    model : fitted model that knows its encoder
    pictures : iterable of paths, bytes, binary files, PIL images or uint8 arrays
    classes, expected_share, top, seen_penalty, false_accept_rate
        As for the models' `predict_album`.
    labels : mapping, optional
        Names of some pictures, by their places in `pictures`.
    encoder_options : mapping, optional
        Options for the encoder, such as a local weight file.
    progress : callable, optional
        Called with the number of pictures encoded.

    Returns
    -------
    AlbumAnswers
        One for each picture, in their order; a picture that cannot be read has an `error`.
    """
    check_is_model(model, "name_album")
    asked = Asked(model, classes, top, seen_penalty, false_accept_rate)
    owner = type(model).__name__
    if isinstance(pictures, str | bytes | PathLike):
        raise TypeError("name_album needs a list of pictures; write [picture].")
    pictures = list(pictures)
    known_by = pictures if all(isinstance(one, str | PathLike) for one in pictures) else None
    checked_labels(labels, len(pictures), asked.names, owner, known_by)  # before the long work
    expected_shares(expected_share, asked.names, owner)
    alone = []
    features: list[np.ndarray] = []
    for answers, X in asked.batches(pictures, encoder_options):
        alone += answers
        features.append(X)
        if progress is not None:
            progress(len(alone))
    return named_together(
        asked,
        features,
        [one.picture for one in alone],
        [one.error for one in alone],
        labels,
        expected_share,
    )


def named_together(
    asked: Asked,
    features: Sequence[np.ndarray],
    pictures: Sequence[str],
    errors: Sequence[str],
    labels: Mapping[int, Any] | None = None,
    expected_share: float | Mapping[Any, float] | None = None,
) -> AlbumAnswers:
    """Answers about an album whose pictures are encoded already: transductive.

    Parameters
    ----------
    asked : Asked
    features : sequence of ndarray
        Blocks of features, or features, of the pictures that can be read, in their order.
    pictures, errors : sequences of str
        Names of all pictures, and why each cannot be read; empty if it can.
    labels, expected_share
        As for `name_album`.
    """
    readable = [place for place, error in enumerate(errors) if not error]
    if not readable:
        pd = needed("pandas", "Albums")
        return AlbumAnswers(
            _merged(pictures, errors, ()),
            pd.DataFrame(np.nan, index=range(len(pictures)), columns=asked.names),
            pd.Series(np.nan, index=asked.names, name="share"),
            np.nan,
        )
    found = album_answers(
        asked,
        np.vstack(features),
        [pictures[place] for place in readable],
        _by_row(labels, readable),
        expected_share,
    )
    probabilities = found.probabilities.set_axis(readable).reindex(range(len(pictures)))
    merged = _merged(pictures, errors, found)
    return AlbumAnswers(merged, probabilities, found.shares, found.likeness)


def named_one_by_one(
    asked: Asked,
    features: Sequence[np.ndarray],
    pictures: Sequence[str],
    errors: Sequence[str],
    labels: Mapping[int, Any] | None = None,
) -> CorrectedAnswers:
    """Answers about pictures that are encoded already, each alone, but for names given by hand.

    Parameters
    ----------
    asked, features, pictures, errors, labels
        As for `named_together`.
    """
    readable = [place for place, error in enumerate(errors) if not error]
    found: Iterable[Answer] = ()
    if readable:
        names = [pictures[place] for place in readable]
        found = corrected_answers(asked, np.vstack(features), names, _by_row(labels, readable))
    return CorrectedAnswers(_merged(pictures, errors, found))


def _by_row(labels: Mapping[int, Any] | None, readable: Sequence[int]) -> dict[int, Any]:
    """Labels by the rows of the pictures that can be read."""
    row_of = {place: row for row, place in enumerate(readable)}
    return {row_of[place]: name for place, name in (labels or {}).items() if place in row_of}


def _merged(
    pictures: Sequence[str], errors: Sequence[str], found: Iterable[Answer]
) -> list[Answer]:
    """Answers about all pictures, those that cannot be read included."""
    named = iter(found)
    return [
        AlbumAnswer(picture, [], [], error=error) if error else next(named)
        for picture, error in zip(pictures, errors, strict=True)
    ]


def read_labels(
    path: str | PathLike[str], pictures: Sequence[str | PathLike[str]]
) -> dict[int, str]:
    """Names given by hand, by the places of pictures in a list.

    Parameters
    ----------
    path : path
        A CSV file with the columns `image` (path, from the CSV's own folder) and `class`.
    pictures : sequence of paths
    """
    path = Path(path)
    if path.suffix.lower() != ".csv":
        raise ValueError(f"{path} is no list of labels: give a .csv file with image and class.")
    if not path.is_file():
        raise no_file(path, "list of labels")
    places: dict[str, list[int]] = {}
    for place, picture in enumerate(pictures):
        places.setdefault(os.path.realpath(picture), []).append(place)
    found: dict[int, str] = {}
    for labelled in find_pictures(path)[0]:
        key = os.path.realpath(labelled.path)
        if key not in places:
            raise ValueError(
                f"{path} has a label for {labelled.image!r}, which is none of the "
                f"{len(pictures)} pictures of the album; paths start at the folder of the list."
            )
        for place in places[key]:
            if found.setdefault(place, labelled.label) != labelled.label:
                raise ValueError(
                    f"{path} calls {labelled.image!r} both {found[place]!r} and "
                    f"{labelled.label!r}; leave one of the lines."
                )
    return found
