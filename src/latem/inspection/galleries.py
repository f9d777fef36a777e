"""What each map has learned: the images, classes and attributes it likes best (Figure 2)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from latem.core.arrays import unit_rows
from latem.core.messages import first_few
from latem.datasets.dataset import ZeroShotDataset
from latem.inspection.explain import inner_model
from latem.models.ranking import RankingModel
from latem.models.scoring import best_k


@dataclass(frozen=True)
class TopImage:
    """An image that a map scores highly.

    Attributes
    ----------
    row : int
        Its row in the features.
    named : class name
        The class for which the map scores it highest.
    score : float
        xᵀ W_k y.
    """

    row: int
    named: Any
    score: float


@dataclass(frozen=True)
class MapProfile:
    """What a map does on some images.

    Attributes
    ----------
    number : int
    share : float
        Share of the images whose predicted class it scored best.
    classes : Series
        How often it won for each predicted class, most frequent first.
    attributes : Series
        Mean contribution of each dimension to the scores it won with, largest first.
    """

    number: int
    share: float
    classes: pd.Series
    attributes: pd.Series


def top_images(model: Any, X: Any, classes: Any = "unseen", *, n: int = 8) -> list[list[TopImage]]:
    """Images that each map scores highest, for any of some classes (the paper's Figure 2).

    All pairs of image and class are ranked under each map W_k alone; an image that comes up for
    several classes is kept where it scores highest.

    Parameters
    ----------
    model : fitted LatEm, SJE, ALE or DeViSE, or a search over one
    X : array-like of shape (n_samples, n_features)
    classes
        Which classes to consider; see `decision_function`.
    n : int
        Images per map, at most as many as there are.

    Returns
    -------
    list, one entry per map, of lists of TopImage, best first

    Examples
    --------
    >>> from latem import LatEm, make_latent_world, top_images
    >>> world = make_latent_world(random_state=0)
    >>> model = LatEm(world.embeddings["att"], n_maps=2, random_state=0).fit(*world.training())
    >>> X, y = world.testing()
    >>> [len(images) for images in top_images(model, X, n=5)]
    [5, 5]
    """
    model = _with_maps(model, "top_images")
    if n < 1:
        raise ValueError(f"n must be at least 1, but is {n}.")
    X = model.check_images(X)
    chosen = model.class_view_.candidates(classes)
    best = np.empty((len(model.maps_), len(X)), model.dtype_)  # score of each image's best class
    named = np.empty(best.shape, np.intp)
    scorer = model.map_scorer(chosen)

    def work(rows: slice, features: np.ndarray) -> None:
        for k in range(len(model.maps_)):
            scores = scorer.map_scores(features, k)
            named[k, rows] = scores.argmax(axis=1)
            best[k, rows] = scores.max(axis=1)

    model.each_block(X, len(chosen), work)
    places = best_k(best, min(n, len(X)))
    return [
        [TopImage(int(row), chosen.names[named[k, row]], float(best[k, row])) for row in places[k]]
        for k in range(len(places))
    ]


def map_profiles(model: Any, X: Any, classes: Any = "unseen") -> list[MapProfile]:
    """Which images, classes and attributes each map prefers.

    Parameters
    ----------
    model : fitted LatEm, SJE, ALE or DeViSE, or a search over one
    X : array-like of shape (n_samples, n_features)
    classes
        Which classes may be the answer; see `decision_function`.

    Returns
    -------
    list of MapProfile, one per map
    """
    model = _with_maps(model, "map_profiles")
    X = model.check_images(X)
    chosen = model.class_view_.candidates(classes)
    n_maps, _, n_dimensions = model.maps_.shape
    named = np.empty(len(X), np.intp)
    winner = np.empty(len(X), np.intp)
    scorer = model.map_scorer(chosen)
    sums = np.zeros((n_maps, n_dimensions))
    for first in range(0, len(X), 1024):
        rows = slice(first, min(first + 1024, len(X)))
        features = model.scaler_.transform(X[rows], model.dtype_)
        scores, winners = scorer.winners(features)
        named[rows] = scores.argmax(axis=1)
        winner[rows] = np.take_along_axis(winners, named[rows, None], axis=1)[:, 0]
        for k in range(n_maps):
            won = winner[rows] == k
            projected = features[won] @ model.maps_[k]
            if model.by_direction:
                projected = unit_rows(projected)
            terms = projected * chosen.vectors[named[rows][won]]
            sums[k] += terms.sum(axis=0, dtype=np.float64)
    columns = model.class_table_.column_names()
    profiles = []
    for k in range(n_maps):
        won = winner == k
        counts = pd.Series(chosen.names[named[won]]).value_counts(sort=True)
        mean = pd.Series(sums[k] / max(int(won.sum()), 1), index=columns)
        profiles.append(
            MapProfile(
                number=k,
                share=float(won.mean()),
                classes=counts.rename("images"),
                attributes=mean.sort_values(ascending=False, kind="stable"),
            )
        )
    return profiles


def map_overlap(model: Any) -> np.ndarray:
    """Cosines between the maps, of shape (n_maps, n_maps): 1 where two maps point the same way."""
    maps = _with_maps(model, "map_overlap").maps_
    flat = maps.reshape(len(maps), -1).astype(np.float64)
    flat = unit_rows(flat)
    return flat @ flat.T


def gallery_of(
    model: Any,
    dataset: ZeroShotDataset,
    split: str = "standard",
    *,
    n: int = 8,
    pictures: Path | None = None,
) -> dict[str, Any]:
    """What each map has learned, on a dataset's unseen images, for `latem.report.write_gallery`.

    Parameters
    ----------
    model : fitted LatEm, SJE, ALE or DeViSE, or a search over one
    dataset : ZeroShotDataset
    split : str
        Its test classes are named, and their images shown.
    n : int
        Images per map.
    pictures : path, optional
        Folder that image names are relative to.
    """
    shown_model = _with_maps(model, "gallery_of")
    rows = dataset.rows(dataset.split(split).test)
    if not len(rows):
        raise ValueError(f"Split {split!r} has no images of test classes to show.")
    learned = set(shown_model.classes_.tolist())
    known = [name for name in dataset.split(split).test if name in learned]
    if known:
        raise ValueError(
            f"The model was fitted to {first_few(known)}, test classes of split {split!r}, which "
            f"are shown as unseen; fit it to dataset.training({split!r})."
        )
    X, y = dataset.features[rows], dataset.labels[rows]
    classes = np.unique(y)
    overlap = map_overlap(model)
    has_traits = shown_model.class_table_.columns is not None
    maps = []
    both = zip(
        top_images(model, X, classes, n=n), map_profiles(model, X, classes), strict=True
    )  # fmt: skip
    for images, profile in both:
        shown = []
        for image in images:
            name = "" if dataset.images is None else str(dataset.images[rows[image.row]])
            path = picture_path(pictures, name)
            shown.append(
                {
                    "name": name,
                    "class": str(y[image.row]),
                    "named": str(image.named),
                    "score": image.score,
                    "path": path,
                }
            )
        maps.append(
            {
                "number": profile.number,
                "share": profile.share,
                "images": shown,
                "notes": _notes(profile, overlap, has_traits),
            }
        )
    return {
        "id": "maps",
        "title": dataset.name or "Images per map",
        "caption": f"The {min(n, len(rows))} unseen images that each map scores highest, for any "
        f'of {len(classes)} unseen classes; "named" is the class for which that map alone scores '
        f"the image highest.",
        "maps": maps,
    }


def picture_path(folder: Path | None, name: str) -> str | None:
    """Path of an image's picture, or None if there is none."""
    if folder is None or not name:
        return None
    path = folder / name
    try:
        return str(path) if path.is_file() else None
    except (OSError, ValueError):  # a name that no file can have
        return None


def _notes(profile: MapProfile, overlap: np.ndarray, named: bool) -> list[str]:
    """A map's profile in a few lines."""
    notes = []
    if len(profile.classes):
        most = [f"{name} ({count})" for name, count in profile.classes.head(4).items()]
        notes.append(f"Wins most often for {', '.join(most)}.")
    else:
        notes.append("Wins for no image here.")
    if named and len(profile.classes):
        notes.append(f"Relies most on {', '.join(map(str, profile.attributes.head(5).index))}.")
    others = overlap[profile.number].copy()
    others[profile.number] = -np.inf
    if len(others) > 1:
        nearest = int(others.argmax())
        notes.append(f"Nearest to map {nearest} (cosine {others[nearest]:.2f}).")
    return notes


def _with_maps(model: Any, user: str) -> RankingModel:
    model = inner_model(model, user)
    if not isinstance(model, RankingModel):
        raise TypeError(f"Only models with maps have images per map, not {type(model).__name__}.")
    return model
