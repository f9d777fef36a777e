"""`ZeroShotDataset`: images of some classes, descriptions of more, and class-disjoint splits."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from latem.core.messages import first_few
from latem.core.plain_json import parse_json
from latem.datasets.features import with_encoder
from latem.embeddings.table import ClassEmbeddings


@dataclass(frozen=True)
class Split:
    """Class-disjoint division of a dataset.

    Attributes
    ----------
    train, val, test : tuple of class names
        Classes to learn from, to choose hyper-parameters on, and to be named unseen.
    held_out : tuple of int
        Row numbers of images of train and val classes that are kept for the generalised
        setting and never learned from.
    """

    train: tuple[Any, ...]
    val: tuple[Any, ...]
    test: tuple[Any, ...]
    held_out: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        owner: dict[Any, str] = {}
        for part in ("train", "val", "test"):
            if isinstance(getattr(self, part), str):
                raise TypeError(f"{part} must be a list of class names, not a single str.")
            names = tuple(getattr(self, part))
            object.__setattr__(self, part, names)
            for name in names:
                if not isinstance(name, Hashable):
                    raise TypeError(f"{part} must be a list of class names, but holds {name!r}.")
                if name in owner:
                    where = part if owner[name] == part else f"{owner[name]} and {part}"
                    raise ValueError(f"A split names class {name!r} twice, in {where}.")
                owner[name] = part
        rows = self.held_out
        if isinstance(rows, str) or any(
            isinstance(row, bool) or not isinstance(row, int | np.integer) for row in rows
        ):
            raise TypeError("held_out must be a list of row numbers.")
        if len(set(rows)) != len(rows):
            raise ValueError("held_out names a row twice.")
        object.__setattr__(self, "held_out", tuple(int(row) for row in rows))


def check_is_dataset(dataset: Any, user: str) -> None:
    """Refuse what is no dataset.

    Parameters
    ----------
    dataset : anything
    user : str
        Function that was given it.
    """
    if not isinstance(dataset, ZeroShotDataset):
        raise TypeError(
            f"{user} takes a ZeroShotDataset, not {type(dataset).__name__}; latem.read_folder "
            f"reads one from a folder."
        )


@dataclass(frozen=True)
class ZeroShotDataset:
    """Features and labels of images, class tables, and splits.

    Parameters
    ----------
    features : ndarray of shape (n_images, n_features)
        May be a memory map.
    labels : ndarray of shape (n_images,)
        Class names.
    embeddings : dict of str to ClassEmbeddings
        Class tables by name, such as "att"; each describes every class of the splits.
    splits : dict of str to Split
    images : ndarray of shape (n_images,), optional
        Path or name of each image.
    name : str
    info : dict
        Provenance: licence, source, what the features are.
    table_notes : dict of str to tuple of str
        What was done to a class table when it was read, in sentences, by its name.
    """

    features: np.ndarray
    labels: np.ndarray
    embeddings: Mapping[str, ClassEmbeddings]
    splits: Mapping[str, Split]
    images: np.ndarray | None = None
    name: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)
    table_notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", np.asarray(self.labels))
        if self.images is not None:
            object.__setattr__(self, "images", np.asarray(self.images))
        n = len(self.features)
        if self.features.ndim != 2:
            raise ValueError(f"Features must be images × features, not {self.features.shape}.")
        if len(self.labels) != n:
            raise ValueError(f"There are {n} rows of features but {len(self.labels)} labels.")
        if self.images is not None and len(self.images) != n:
            raise ValueError(f"There are {n} rows of features but {len(self.images)} image names.")
        known = set(self.labels.tolist())
        for table in self.embeddings.values():
            known |= set(table.names.tolist())
        for name, split in self.splits.items():
            odd = [c for c in split.train + split.val + split.test if c not in known]
            if odd:
                raise ValueError(
                    f"Split {name!r} names {first_few(odd)}, which have neither images nor a "
                    f"description; correct the names or take them out of the split."
                )
            outside = [row for row in split.held_out if not 0 <= row < n]
            if outside:
                raise ValueError(
                    f"Split {name!r} holds out rows {outside[:5]}, but rows go from 0 to {n - 1}."
                )

    def __repr__(self) -> str:
        title = f"{self.name!r}, " if self.name else ""
        return (
            f"ZeroShotDataset({title}{self.features.shape[0]} images × {self.features.shape[1]} "
            f"features, {len(self.classes)} classes, embeddings: {', '.join(self.embeddings)})"
        )

    @property
    def classes(self) -> np.ndarray:
        """Classes that have images, sorted."""
        return np.unique(self.labels)

    def split(self, name: str = "standard") -> Split:
        """Split by name."""
        if name not in self.splits:
            raise ValueError(
                f"The dataset has no split {name!r}; it has {', '.join(self.splits) or 'none'}"
                f"{'. Name one of them.' if self.splits else '; make one by latem data split.'}"
            )
        return self.splits[name]

    def rows(self, classes: Iterable[Any]) -> np.ndarray:
        """Row numbers of all images of some classes, in order."""
        return np.flatnonzero(np.isin(self.labels, list(classes)))

    @property
    def encoder(self) -> dict[str, Any] | None:
        """Spec of the encoder that made the features, where the dataset knows it."""
        return read_encoder(self.info)

    def all_images(self) -> tuple[np.ndarray, np.ndarray]:
        """Features and labels of every image, whatever the splits say."""
        return with_encoder(self.features, self.encoder), self.labels

    def _images_at(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features and labels of some rows; the features know their encoder."""
        return with_encoder(self.features[rows], self.encoder), self.labels[rows]

    def training(
        self, split: str = "standard", *, val: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Features and labels to learn from: the train classes and, if `val`, the val classes.

        Images held out for the generalised setting are left out.
        """
        chosen = self.split(split)
        rows = self.rows(chosen.train + chosen.val if val else chosen.train)
        rows = rows[~np.isin(rows, chosen.held_out)]
        return self._images_at(rows)

    def validation(self, split: str = "standard") -> tuple[np.ndarray, np.ndarray]:
        """Features and labels of the val classes, without held-out images."""
        chosen = self.split(split)
        rows = self.rows(chosen.val)
        rows = rows[~np.isin(rows, chosen.held_out)]
        return self._images_at(rows)

    def testing(self, split: str = "standard") -> tuple[np.ndarray, np.ndarray]:
        """Features and labels of the unseen (test) classes."""
        rows = self.rows(self.split(split).test)
        return self._images_at(rows)


def read_encoder(info: Mapping[str, Any]) -> dict[str, Any] | None:
    """Spec of an encoder from a dataset's provenance; None if it names none."""
    if "encoder_spec" not in info:
        return None
    try:
        spec = parse_json(info["encoder_spec"])
    except (TypeError, ValueError):
        spec = None
    if not isinstance(spec, dict) or not isinstance(spec.get("name"), str):
        raise ValueError(
            "encoder_spec in dataset.toml must be an encoder's spec as JSON, an object with its "
            "name; correct it, or delete the line."
        )
    return spec
