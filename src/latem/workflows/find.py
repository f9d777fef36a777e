"""The pictures that fit a class, among as many as are stored: what `latem find` does."""

from __future__ import annotations

import csv
import io
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from latem.core.arrays import mapped_file
from latem.core.messages import first_few
from latem.core.paths import as_path, no_file
from latem.datasets.folder import read_features, read_images
from latem.embeddings.table_checks import as_python
from latem.inspection.image_index import ImageIndex
from latem.inspection.speakers import inner_model
from latem.inspection.stored_index import (
    BEST,
    RECALL,
    IndexMismatchError,
    KnownBest,
    StoredIndex,
    build_index,
    index_files,
    open_index,
)

INDEX_FROM = 200_000  # images; fewer are looked through as fast as one notices
_ASKED = 20  # classes that a new index is asked for
_COLUMNS = ("class", "place", "row", "image", "label", "score")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StoredImages:
    """Images in a file, with their names and labels where a dataset folder tells them.

    Attributes
    ----------
    path : path of the `.npy` file
    X : ndarray of shape (n_images, n_features)
        Mapped.
    names, labels : ndarray of shape (n_images,), or None
    """

    path: Path
    X: np.ndarray
    names: np.ndarray | None = None
    labels: np.ndarray | None = None


@dataclass(frozen=True)
class FoundImage:
    """An image that fits a class.

    Attributes
    ----------
    wanted : class name
    place : int
        1 is the best.
    row : int
        Number of the image, from 0.
    image, label : str or None
        Its name and its class, where a dataset tells them.
    score : float
    """

    wanted: Any
    place: int
    row: int
    image: str | None
    label: str | None
    score: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data: `class`, `place`, `row`, `image`, `label`, `score`."""
        return dict(zip(_COLUMNS, asdict(self).values(), strict=True))


def stored_images(source: str | PathLike[str]) -> StoredImages:
    """Images of a dataset folder, or of an `.npy` file of features.

    Parameters
    ----------
    source : path
    """
    path = as_path(source, "a dataset folder or a file of features")
    if path.is_dir():
        X = read_features(path / "features.npy")
        names, labels = read_images(path / "images.csv")
        if len(names) != len(X):
            raise ValueError(
                f"{path}: features.npy has {len(X)} rows but images.csv has {len(names)} lines "
                f"after its header; they must match one to one."
            )
        return StoredImages(path / "features.npy", X, names, labels)
    if not path.is_file():
        raise no_file(path, "dataset folder or file of features")
    X = read_features(path)
    if not len(X):
        raise ValueError(f"{path} holds no rows.")
    return StoredImages(path, X)


def image_index(model: Any, X: np.ndarray, *, use_index: bool | None = None) -> ImageIndex:
    """Images that classes are looked for in, by the index beside their file or without.

    Parameters
    ----------
    model : a fitted model
    X : ndarray of shape (n_images, n_features)
        An index can only be beside those of a memory-mapped `.npy` file.
    use_index : bool, optional
        Whether to use an index, which must be there then; by default one is used that is there,
        fits, and was found to miss little, if there are many images.
    """
    if use_index is False or (use_index is None and len(X) < INDEX_FROM):
        return ImageIndex(model, X)
    try:
        stored = _index_of(model, X)
    except (IndexMismatchError, ImportError) as error:
        if use_index:
            raise
        _log.warning("%s All images are looked through.", error)
        stored = None
    known = None if stored is None else stored.recall
    if use_index is None and known is not None and known < RECALL:
        _log.info("The index misses %.0f %%: all images are looked through.", 100 * (1 - known))
        stored = None  # which was told when it was made, too
    if use_index and stored is None:
        raise FileNotFoundError(
            "There is no index of these images for this model: make one by latem data index."
        )
    return ImageIndex(model, X, stored)


def _index_of(model: Any, X: np.ndarray) -> StoredIndex | None:
    path, scaler = mapped_file(X), _scaler_of(model)
    return None if path is None or scaler is None else open_index(path, X, scaler)


def _scaler_of(model: Any) -> Any:
    """How images are scaled that an index can hold; None if a model's scores need more."""
    inner = inner_model(model, "An index of images")
    pieces = inner.linear_pieces([inner.candidate_names("seen")[0]])
    return None if pieces is None else pieces[0]


def index_images(
    model: Any,
    source: str | PathLike[str],
    *,
    n_threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Path:
    """Make an index beside stored images, by which a model finds those that fit a class.

    The new index is asked for some of the model's classes, and its lists become as long as it takes
    to find nearly all of their best images; `ImageIndex.stored` tells how many it found.

    Parameters
    ----------
    model : a fitted model
        One index serves all models that divide images by their lengths; with other scalings it is
        for models that scale exactly like this one.
    source : path
        A dataset folder, or an `.npy` file of features.
    n_threads, progress
        As for `latem.inspection.stored_index.build_index`.

    Returns
    -------
    path of the index file
    """
    images, scaler = stored_images(source), _scaler_of(model)
    _check_width(model, images)
    if scaler is None:
        raise TypeError(
            f"{type(inner_model(model, 'index_images')).__name__} does not score images by a few "
            f"products, so there is no index for it: latem find looks through all images."
        )
    known = partial(_known_best, inner_model(model, "An index of images"), images.X)
    path = build_index(
        images.path, images.X, scaler, known=known, n_threads=n_threads, progress=progress
    )
    made = open_index(images.path, images.X, scaler)
    if made is not None and made.recall is not None and made.recall < RECALL:
        _log.warning(
            "%s finds only %.0f %% of the best %d images of a class, so it is not used unless it "
            "is asked for (use_index=True, latem find --index): all images are looked through.",
            path,
            100 * made.recall,
            BEST,
        )
    return path


def _known_best(model: Any, X: np.ndarray) -> KnownBest | None:
    """Some classes of a model, and their best images among all."""
    names = model.candidate_names("all")
    names = list(names[np.linspace(0, len(names) - 1, min(_ASKED, len(names))).astype(int)])
    pieces = model.linear_pieces(names)
    if pieces is None or len(X) == 0:
        return None
    rows = model.best_images(X, names, min(BEST, len(X)))[0]
    return KnownBest([pieces[1].of(i) for i in range(len(names))], rows)


def find_images(
    model: Any,
    source: str | PathLike[str],
    classes: Any = "unseen",
    *,
    k: int = 10,
    use_index: bool | None = None,
) -> list[FoundImage]:
    """The stored images that fit each of some classes best.

    Parameters
    ----------
    model : a fitted model
    source : path
        A dataset folder, or an `.npy` file of features.
    classes
        Which classes; see `decision_function`.
    k : int
        How many images for each.
    use_index : bool, optional
        Whether to look them up in the index beside the file, which is quick and may miss some, or
        to look through all images; by default the index is used if there is one that fits, and
        at least 200,000 images.

    Returns
    -------
    list of FoundImage
        Class by class, best first.
    """
    images = stored_images(source)
    _check_width(model, images)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k must be a whole number from 1 on, not {k!r}.")
    k = min(int(k), len(images.X))
    index = image_index(model, images.X, use_index=use_index)
    names, rows, scores = index.best_of_each(classes, k)
    return [
        FoundImage(
            as_python(name),
            place,
            row,
            None if images.names is None else str(images.names[row]),
            None if images.labels is None else str(images.labels[row]),
            score,
        )
        for name, of_class, with_scores in zip(names, rows, scores, strict=True)
        for place, (row, score) in enumerate(
            zip(of_class.tolist(), with_scores.tolist(), strict=True), start=1
        )
    ]


def _check_width(model: Any, images: StoredImages) -> None:
    if images.X.shape[1] != model.n_features_in_:
        raise ValueError(
            f"The model was trained on {model.n_features_in_} features, but the images of "
            f"{images.path} have {images.X.shape[1]}: give features of the same encoder."
        )


def found_text(found: Sequence[FoundImage], kind: str) -> str:
    """What was found as text for other programs.

    Parameters
    ----------
    found : sequence of FoundImage
    kind : {"csv", "json"}
    """
    lines = [one.to_dict() for one in found]
    if kind == "json":
        return json.dumps(lines, indent=2, ensure_ascii=False) + "\n"
    if kind != "csv":
        raise ValueError(f"What was found is written as csv or json, not {first_few([kind])}.")
    text = io.StringIO()
    table = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(lines)
    return text.getvalue()


def files_of(source: str | PathLike[str], model: Any) -> list[Path]:
    """Files that are read to find images: nothing may be written over them."""
    images, scaler = stored_images(source), _scaler_of(model)
    beside = [] if scaler is None else index_files(images.path, scaler)
    return [images.path, images.path.with_name("images.csv"), *beside]
