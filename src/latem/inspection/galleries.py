"""Galleries: the images that fit a class, a trait or a map best, for `write_gallery`.

By class: of all unseen images those that score highest for each unseen class (`rank_images`), for
every model. By trait: those that show a trait most (`trait_scores`), for models with bilinear maps
and a class table whose columns have names. By map: those that one map alone scores highest
(`top_images`, the paper's Figure 2), for models with several maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latem.core.messages import first_few
from latem.datasets.dataset import ZeroShotDataset
from latem.inspection.maps import MapProfile, map_overlap, map_profiles, top_images, with_maps
from latem.inspection.pictures import Pictures
from latem.inspection.speakers import by_maps, inner_model
from latem.inspection.traits import (
    check_traits,
    distinct_traits,
    has_trait_names,
    trait_agreement,
    trait_scores,
)
from latem.models import model_rows
from latem.models.ranking import RankingModel
from latem.models.scoring import best_k

KINDS = ("class", "trait", "map")
N_TRAITS = 12
_NEAR = 0.3  # cosine from which two maps have something in common


def galleries_of(
    model: Any,
    dataset: ZeroShotDataset,
    split: str = "standard",
    *,
    by: Sequence[str] | None = None,
    traits: Sequence[str] | None = None,
    n: int = 8,
    pictures: Path | None = None,
) -> list[dict[str, Any]]:
    """What a model has learned, shown on a dataset's unseen images.

    Parameters
    ----------
    model : a fitted model
    dataset : ZeroShotDataset
    split : str
        Its test classes are named, and their images shown.
    by : sequence of {"class", "trait", "map"}, optional
        Which galleries; by default all that the model has, and maps only if it has several.
    traits : sequence of str, optional
        Which traits; by default up to 12 different ones whose scores agree best with the
        descriptions of the images' classes.
    n : int
        Images per class, trait or map.
    pictures : path, optional
        Folder that image names are relative to.

    Returns
    -------
    list of dict, one per gallery
    """
    inner_model(model, "galleries_of")
    if n < 1:
        raise ValueError(f"n must be at least 1, but is {n}.")
    odd = [kind for kind in by or () if kind not in KINDS]
    if odd:
        raise ValueError(f"Galleries are by {', '.join(KINDS)}, not by {first_few(odd)}.")
    shown = _Shown(model, dataset, split, Pictures(dataset, pictures), n)
    kinds = kinds_for(model) if by is None else [kind for kind in KINDS if kind in by]
    if traits is not None and "trait" not in kinds:
        kinds = [kind for kind in KINDS if kind in (*kinds, "trait")]
    make = {"class": shown.by_class, "map": shown.by_map}
    return [shown.by_trait(traits) if kind == "trait" else make[kind]() for kind in kinds]


def kinds_for(model: Any) -> list[str]:
    """Galleries that say something about a model: by class, by trait, by map."""
    inner = by_maps(model, "galleries_of")
    row = model_rows.row_of(inner)
    kinds = ["class"]
    if row is not None and row.maps is not None and has_trait_names(model):
        kinds.append("trait")
    if isinstance(inner, RankingModel) and len(inner.maps_) > 1:
        kinds.append("map")
    return kinds


class _Shown:
    """The unseen images of a split, and the galleries that are made of them."""

    def __init__(
        self, model: Any, dataset: ZeroShotDataset, split: str, pictures: Pictures, n: int
    ):
        check_is_fitted(model)
        self.rows = dataset.rows(dataset.split(split).test)
        if not len(self.rows):
            raise ValueError(f"Split {split!r} has no images of test classes to show.")
        learned = set(model.classes_.tolist())
        known = [name for name in dataset.split(split).test if name in learned]
        if known:
            raise ValueError(
                f"The model was fitted to {first_few(known)}, test classes of split {split!r}, "
                f"which are shown as unseen; fit it to dataset.training({split!r}) (latem train "
                f"--split {split})."
            )
        self.model, self.pictures, self.title = model, pictures, dataset.name
        self.X, self.y = dataset.features[self.rows], dataset.labels[self.rows]
        self.described = np.array(dataset.split(split).test)
        self.classes = np.unique(self.y)  # those that have images
        self.n = min(n, len(self.rows))

    def _image(self, place: int, **more: Any) -> dict[str, Any]:
        return self.pictures.image(int(self.rows[place]), **more)

    def by_class(self) -> dict[str, Any]:
        """The images that score highest for each class."""
        scores = self.model.class_scores(self.X, self.described)
        named = self.described[scores.argmax(axis=1)]
        groups = []
        for c, places in enumerate(best_k(scores.T, self.n)):
            own = self.y == self.described[c]
            images = [
                self._image(i, named=str(named[i]), score=float(scores[i, c]), fits=bool(own[i]))
                for i in places
            ]
            groups.append(
                {
                    "title": str(self.described[c]),
                    "images": images,
                    "notes": [_own_images(int(own[places].sum()), int(own.sum()), self.n)],
                }
            )
        return {
            "id": "by-class",
            "by": "class",
            "title": "Best pictures of each class",
            "caption": f"The {self.n} of {len(self.rows)} unseen images that score highest for "
            f"each of {len(self.described)} unseen classes, of whichever class they are.",
            "groups": groups,
        }

    def by_trait(self, traits: Sequence[str] | None) -> dict[str, Any]:
        """The images that show a trait most."""
        check_traits(self.model, list(traits or ()))
        scores = trait_scores(self.model, self.X, self.classes)
        agreement = trait_agreement(self.model, scores, self.y)
        chosen = (
            distinct_traits(self.model, agreement, self.classes, N_TRAITS)
            if traits is None
            else list(traits)
        )
        table = inner_model(self.model, "galleries_of").class_table_
        groups = []
        for trait in chosen:
            column = table.column_names().index(trait)
            values = table.vectors[table.positions(self.y), column]
            of_trait = scores[trait].to_numpy()
            images = [
                self._image(i, score=float(of_trait[i]), note=f"described as {values[i]:.3g}")
                for i in best_k(of_trait[None], self.n)[0]
            ]
            groups.append(
                {"title": trait, "images": images, "notes": [_agrees(agreement.get(trait))]}
            )
        which = (
            f"{len(chosen)} of {scores.shape[1]} traits whose scores agree best with the "
            f"descriptions of the images' classes, leaving out those that say the same"
            if traits is None
            else f"{len(chosen)} traits"
        )
        return {
            "id": "by-trait",
            "by": "trait",
            "title": "Pictures that show a trait",
            "caption": f"The {self.n} unseen images that score highest along a trait, for {which}. "
            f"The score is by how much an image would fit the average class better if the class "
            f"had more of the trait.",
            "groups": groups,
        }

    def by_map(self) -> dict[str, Any]:
        """The images that each map scores highest."""
        model = with_maps(self.model, "galleries_of")
        overlap = map_overlap(model)
        has_traits = has_trait_names(model)
        profiles = map_profiles(model, self.X, self.classes)
        groups = []
        best = top_images(model, self.X, self.classes, n=self.n)
        for images, profile in zip(best, profiles, strict=True):
            groups.append(
                {
                    "number": profile.number,
                    "share": profile.share,
                    "images": [
                        self._image(image.row, named=str(image.named), score=image.score)
                        for image in images
                    ],
                    "notes": _notes(profile, overlap, has_traits),
                }
            )
        return {
            "id": "maps",
            "by": "map",
            "title": "Images per map",
            "caption": f"The {self.n} unseen images that each map scores highest, for any of "
            f'{len(self.classes)} unseen classes; "named" is the class for which that map alone '
            f"scores the image highest.",
            "groups": groups,
        }


def _own_images(right: int, of: int, n: int) -> str:
    """How many of the best images are of the class itself."""
    if not of:
        return "No image is of this class."
    return f"{right} of these {n} are of this class, which has {of}."


def _agrees(correlation: float | None) -> str:
    """A trait's agreement with the descriptions, in a line."""
    if correlation is None:
        return "All these classes are described alike in this trait."
    return f"Correlation with the descriptions: {correlation:.2f}."


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
    nearest = int(others.argmax())
    if others[nearest] >= _NEAR:
        notes.append(f"Nearest to map {nearest} (cosine {others[nearest]:.2f}).")
    return notes
