"""A model and a dataset to look at: classes, images, what fits a class, what an image is like.

The explorer of `latem serve` shows this, and nothing in it needs a server.
"""

from __future__ import annotations

import threading
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from latem.core.arrays import unit_rows
from latem.datasets.dataset import ZeroShotDataset
from latem.embeddings.table_checks import as_python
from latem.inspection.galleries import galleries_of, kinds_for
from latem.inspection.image_index import ImageIndex
from latem.inspection.pictures import Pictures
from latem.models.checks import check_fits
from latem.report.names import label, pictograph
from latem.workflows.find import image_index

AMONG = ("unseen", "seen", "all")


class Explorer:
    """A fitted model beside the dataset it is looked at with.

    Parameters
    ----------
    model : a fitted model
    dataset : ZeroShotDataset or None
        Without one there are classes only.
    split : str
        Its held-out images do not count as training images, and its test classes are measured.
    pictures : path or None
        Folder that image names are relative to.
    """

    def __init__(
        self,
        model: Any,
        dataset: ZeroShotDataset | None = None,
        split: str = "standard",
        pictures: Path | None = None,
    ):
        self.model, self.dataset, self.split = model, dataset, split
        self.pictures = None if dataset is None else Pictures(dataset, pictures)
        self._lock = threading.Lock()
        if dataset is not None:
            check_fits(model, dataset)

    @cached_property
    def about(self) -> dict[str, Any] | None:
        """What the dataset is; None without one."""
        if self.dataset is None or self.pictures is None:
            return None
        return {
            "name": self.dataset.name,
            "n_images": len(self.dataset.features),
            "n_classes": len(self.dataset.classes),
            "split": self.split,
            "has_pictures": any(
                self.pictures.path(int(rows[0])) for rows in self._rows_by_class.values()
            ),
            "note": self.pictures.note(np.arange(len(self.dataset.features))),
        }

    # -- classes ------------------------------------------------------------------------------

    def classes(self) -> list[dict[str, Any]]:
        """Every class that the model knows: `name`, `label`, `symbol`, `seen`, `n_images`, …"""
        seen = set(self.model.classes_.tolist())
        return [
            {**self.card(name), "seen": name in seen, "invented": False, "n_images": n}
            for name, n in (
                (name, len(self._rows_by_class.get(name, ())))
                for name in self.model.candidate_names("all").tolist()
            )
        ]

    def card(self, name: Any) -> dict[str, Any]:
        """How a class is shown: `name`, `label`, `symbol`, and the row of a typical `picture`."""
        name = as_python(name)
        rows = self.rows(name=name)
        symbol = pictograph(name)
        if len(rows) and not symbol and self.pictures is not None:
            symbol = pictograph(self.pictures.name(int(rows[0])))
        return {
            "name": name,
            "label": label(name),
            "symbol": symbol,
            "picture": self._typical.get(name),
        }

    @cached_property
    def _rows_by_class(self) -> dict[Any, np.ndarray]:
        if self.dataset is None:
            return {}
        names, codes = np.unique(self.dataset.labels, return_inverse=True)
        order = np.argsort(codes, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(codes))[:-1])
        return dict(zip(names.tolist(), parts, strict=True))

    @cached_property
    def _typical(self) -> dict[Any, int]:
        """Of each class the row whose features are nearest to the mean of the class."""
        if self.dataset is None or self.pictures is None:
            return {}
        found = {}
        for name, rows in self._rows_by_class.items():
            features = unit_rows(np.array(self.dataset.features[rows], np.float32))
            row = int(rows[int((features @ features.mean(axis=0)).argmax())])
            if self.pictures.path(row) is not None:
                found[name] = row
        return found

    # -- images -------------------------------------------------------------------------------

    def image(self, row: int) -> dict[str, Any]:
        """How an image is shown: `row`, `class`, `label`, `symbol`, `name`, `picture`."""
        assert self.dataset is not None
        assert self.pictures is not None
        name = as_python(self.dataset.labels[row])
        return {
            "row": int(row),
            "class": name,
            "label": label(name),
            "symbol": pictograph(name, self.pictures.name(row)),
            "name": self.pictures.name(row),
            "picture": self.pictures.path(row) is not None,
        }

    def rows(self, among: str = "all", name: Any = None) -> np.ndarray:
        """Rows of unseen, seen or all classes, or of one class, in order."""
        if self.dataset is None:
            return np.empty(0, np.intp)
        if name is not None:
            return self._rows_by_class.get(name, np.empty(0, np.intp))
        if among not in AMONG:
            raise ValueError(f"among must be {', '.join(AMONG)}, not {among!r}.")
        return self._rows_of[among]

    @cached_property
    def _rows_of(self) -> dict[str, np.ndarray]:
        assert self.dataset is not None
        seen = np.isin(self.dataset.labels, self.model.classes_)
        parts = {"seen": seen, "unseen": ~seen, "all": np.ones(len(seen), bool)}
        return {part: np.flatnonzero(flags) for part, flags in parts.items()}

    def features(self, row: int) -> np.ndarray:
        """Features of an image, of shape (n_features,)."""
        if self.dataset is None:
            raise ValueError("There is no dataset here, so images have no row numbers.")
        if not 0 <= row < len(self.dataset.features):
            raise ValueError(
                f"The dataset has rows 0 to {len(self.dataset.features) - 1}, not {row}."
            )
        return np.asarray(self.dataset.features[row], np.float32)

    @property
    def index(self) -> ImageIndex:
        """All images of the dataset, with the index beside their file if they are many."""
        with self._lock:
            return self._index

    @cached_property
    def _index(self) -> ImageIndex:
        assert self.dataset is not None
        return image_index(self.model, self.dataset.features)

    def find(self, wanted: Any, k: int, among: str = "all") -> list[dict[str, Any]]:
        """The images that fit a class best, each with its `score`.

        Parameters
        ----------
        wanted : class name, or a ClassEmbeddings of one row
        k : int
        among : {"unseen", "seen", "all"}
            Images of which classes to look at.
        """
        if self.dataset is None:
            return []
        rows, scores = self.index.best(wanted, k, self.rows(among))
        return [
            {**self.image(row), "score": score}
            for row, score in zip(rows.tolist(), scores.tolist(), strict=True)
        ]

    def neighbours(self, x: Any, n: int, *, besides: int | None = None) -> list[dict[str, Any]]:
        """The training images that are most like one, each with its `likeness`, a cosine.

        Parameters
        ----------
        x : array-like of shape (n_features,)
        n : int
        besides : int, optional
            A row that is left out.
        """
        if self.dataset is None:
            return []
        rows = self.training_rows
        rows, likeness = self.index.nearest(x, n, rows[rows != besides])
        return [
            {**self.image(row), "likeness": value}
            for row, value in zip(rows.tolist(), likeness.tolist(), strict=True)
        ]

    @cached_property
    def training_rows(self) -> np.ndarray:
        """Rows of seen classes, without those that the split holds out."""
        assert self.dataset is not None
        rows = self.rows("seen")
        split = self.dataset.splits.get(self.split)
        return rows if split is None else rows[~np.isin(rows, split.held_out)]

    # -- what the model has learned -----------------------------------------------------------

    def gallery(self, by: str, n: int = 8) -> dict[str, Any]:
        """The gallery by class, trait or map, and which of these `kinds` there are."""
        if self.dataset is None or self.pictures is None:
            raise ValueError("A gallery shows images of a dataset: start the server with one.")
        kinds = kinds_for(self.model)
        if by not in kinds:
            raise ValueError(
                f"This model has galleries by {', '.join(kinds)}, not by {by}: by trait needs "
                f"named traits, by map several maps."
            )
        (found,) = galleries_of(
            self.model, self.dataset, self.split, by=[by], n=n, pictures=self.pictures.folder
        )
        groups = [self._group(by, group) for group in found["groups"]]
        return {
            **{"kinds": kinds, "by": by, "title": found["title"], "caption": found["caption"]},
            "groups": groups,
        }

    def _group(self, by: str, group: dict[str, Any]) -> dict[str, Any]:
        title = group.get("title", f"map {group.get('number')}")
        images = [
            {
                **self.image(image["row"]),
                "named": image.get("named", ""),
                "named_label": label(image.get("named", "")),
                "score": image["score"],
                "fits": image.get("fits"),
                "note": image.get("note", ""),
            }
            for image in group["images"]
        ]
        return {
            "title": title,
            "label": label(title) if by == "class" else title,
            "share": group.get("share"),
            "notes": group["notes"],
            "images": images,
        }
