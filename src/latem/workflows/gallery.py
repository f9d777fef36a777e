"""A folder with galleries of what a model has learned: what `latem gallery` does."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from latem.core.run_folder import RunFolder
from latem.datasets.dataset import ZeroShotDataset
from latem.inspection.galleries import galleries_of
from latem.inspection.pictures import Pictures
from latem.models.checks import check_fits
from latem.report.page import write_gallery

_HEADER = ("by", "group", "place", "image", "class", "named", "score")


def make_gallery(
    model: Any,
    dataset: ZeroShotDataset,
    out: str | PathLike[str],
    split: str = "standard",
    *,
    by: Sequence[str] | None = None,
    traits: Sequence[str] | None = None,
    n: int = 8,
    pictures: Path | None = None,
    record: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Write `gallery.html`, and its images as `images.csv`, into a run folder.

    Parameters
    ----------
    model : a fitted model
    dataset : ZeroShotDataset
    out : path of the folder
    split : str
        Its test classes are shown.
    by, traits, n, pictures
        As for `latem.inspection.galleries.galleries_of`.
    record : dict, optional
        What else `run.json` should say.

    Returns
    -------
    list of dict
        The galleries, each with `by` and `groups`.
    """
    check_fits(model, dataset)
    galleries = galleries_of(
        model, dataset, split, by=by, traits=traits, n=n, pictures=pictures
    )  # fmt: skip
    note = Pictures(dataset, pictures).note(dataset.rows(dataset.split(split).test))
    rows = [
        [
            gallery["by"],
            group.get("title", group.get("number")),
            place,
            image["name"],
            image["class"],
            image.get("named", ""),
            image["score"],
        ]
        for gallery in galleries
        for group in gallery["groups"]
        for place, image in enumerate(group["images"], start=1)
    ]
    of = f" of {dataset.name}" if dataset.name else ""
    title = f"What {type(model).__name__} has learned: unseen classes{of}"
    notes = [note] if note else []
    with RunFolder(out) as folder:
        folder.write_table("images.csv", _HEADER, rows)
        write_gallery(galleries, folder.file("gallery.html"), title=title, notes=notes)
        folder.finish({"command": "gallery", **(record or {})})
    return galleries


def counted(galleries: Sequence[dict[str, Any]]) -> str:
    """How many classes, traits and maps are shown.

    >>> counted([{"by": "class", "groups": [{}, {}]}, {"by": "map", "groups": [{}]}])
    '2 classes, 1 map'
    """
    plural = {"class": "classes", "trait": "traits", "map": "maps"}
    counts = [(gallery["by"], len(gallery["groups"])) for gallery in galleries]
    return ", ".join(f"{n} {by if n == 1 else plural[by]}" for by, n in counts)
