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
import pandas as pd

from latem.datasets.picture_files import find_pictures
from latem.models.album_answers import (
    AlbumAnswer,
    AlbumAnswers,
    album_answers,
    checked_labels,
    expected_shares,
)
from latem.models.answering import Asked
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
    checked_labels(labels, len(pictures), asked.names, owner)  # before the long work
    expected_shares(expected_share, asked.names, owner)
    alone = []
    features: list[np.ndarray] = []
    for answers, X in asked.batches(pictures, encoder_options):
        alone += answers
        features.append(X)
        if progress is not None:
            progress(len(alone))
    readable = [place for place, answer in enumerate(alone) if not answer.error]
    if not readable:
        return AlbumAnswers(
            [AlbumAnswer(one.picture, [], [], error=one.error) for one in alone],
            pd.DataFrame(np.nan, index=range(len(alone)), columns=asked.names),
            pd.Series(np.nan, index=asked.names, name="share"),
            np.nan,
        )
    row_of = {place: row for row, place in enumerate(readable)}
    found = album_answers(
        asked,
        np.concatenate(features),
        [alone[place].picture for place in readable],
        {row_of[place]: name for place, name in (labels or {}).items() if place in row_of},
        expected_share,
    )
    named = iter(found)
    merged = [
        AlbumAnswer(one.picture, [], [], error=one.error) if one.error else next(named)
        for one in alone
    ]
    probabilities = found.probabilities.set_axis(readable).reindex(range(len(alone)))
    return AlbumAnswers(merged, probabilities, found.shares, found.likeness)


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
        raise FileNotFoundError(f"There is no list of labels {str(path)!r}.")
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
