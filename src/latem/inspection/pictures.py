"""Where the pictures of a dataset are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from latem.core.messages import first_few
from latem.datasets.dataset import ZeroShotDataset


@dataclass(frozen=True)
class Pictures:
    """The pictures of a dataset's images, as far as they are there.

    Parameters
    ----------
    dataset : ZeroShotDataset
    folder : path or None
        Folder that image names are relative to.
    """

    dataset: ZeroShotDataset
    folder: Path | None = None

    def name(self, row: int) -> str:
        """An image's name; empty if it has none."""
        return "" if self.dataset.images is None else str(self.dataset.images[row])

    def path(self, row: int) -> str | None:
        """Path of an image's picture, or None if there is none."""
        return picture_path(self.folder, self.name(row))

    def image(self, row: int, **more: Any) -> dict[str, Any]:
        """An image as galleries and reports show it: row, name, class, path, and what is given."""
        true = str(self.dataset.labels[row])
        return {"row": row, "name": self.name(row), "class": true, "path": self.path(row), **more}

    def note(self, rows: np.ndarray) -> str:
        """What to say about pictures that are missing among some rows; empty if none is."""
        names = [self.name(int(row)) for row in rows]
        if not any(names) or self.folder is None or not self.folder.is_dir():
            return (
                "No pictures are shown: the dataset holds features only, or its pictures are "
                "elsewhere (--pictures FOLDER on the command line)."
            )
        told = outside_note(self.folder, names)
        missing = [n for n in names if n and picture_path(self.folder, n) is None]
        if told:
            missing = [n for n in missing if not is_outside(self.folder, n)]
        if not missing:
            return told
        absent = (
            f"{len(missing)} of {len(names)} pictures are not in {self.folder} "
            f"({first_few(missing)}); the names of their classes stand in their places."
        )
        return f"{told} {absent}".strip()


def pictures_folder(
    folder: str | PathLike[str], dataset: ZeroShotDataset, given: Path | None = None
) -> Path:
    """Where the pictures of a dataset folder are: where it is said, or where they are likely.

    Parameters
    ----------
    folder : path
        The dataset folder.
    dataset : ZeroShotDataset
        What was read from it.
    given : path, optional
        It must exist.

    Returns
    -------
    Path
        The given folder, or the dataset's `images`, or the folder the pictures were embedded
        from. The latter two may not exist.
    """
    if given is not None:
        if not given.is_dir():
            raise FileNotFoundError(f"There is no folder {given} with pictures.")
        return given
    inside, info = Path(folder) / "images", dataset.info
    if inside.is_dir() or "pictures" not in info:
        return inside
    source = Path(str(info["pictures"]))
    return source.parent if source.suffix.lower() == ".csv" else source


def page_notes(
    folder: str | PathLike[str],
    dataset: ZeroShotDataset,
    rows: np.ndarray,
    pictures: Path,
    given: Path | None,
) -> list[str]:
    """What to say beside a page about the pictures that it shows, or does not show.

    Parameters
    ----------
    folder : path
        The dataset folder.
    dataset : ZeroShotDataset
    rows : ndarray of int
        Images that the page is about.
    pictures : Path
        What `pictures_folder` said.
    given : path or None
        The folder that the user named.
    """
    notes = source_note(folder, pictures, given), Pictures(dataset, pictures).note(rows)
    return [note for note in notes if note]


def source_note(folder: str | PathLike[str], pictures: Path, given: Path | None) -> str:
    """What to say if it was the dataset that named a folder of pictures outside itself.

    Parameters
    ----------
    folder : path
        The dataset folder.
    pictures : Path
        What `pictures_folder` said.
    given : path or None
        The folder that the user named.
    """
    inside = pictures.resolve().is_relative_to(Path(folder).resolve())
    if given is not None or inside or not pictures.is_dir():
        return ""
    return (
        f"Pictures are shown from {pictures}, which {Path(folder) / 'dataset.toml'} names; look "
        f"through the page before you pass it on, if the dataset is not your own."
    )


def picture_path(folder: Path | None, name: str) -> str | None:
    """Path of an image's picture, or None if there is none in the folder.

    A name comes from a dataset, perhaps a stranger's, and pictures end up in pages that are
    passed on. So nothing outside the folder is shown, whether an absolute name, a ".." or a link
    leads there.
    """
    if folder is None or not name or is_outside(folder, name):
        return None
    path = folder / name
    try:
        return str(path) if path.is_file() else None
    except (OSError, ValueError):  # a name that no file can have
        return None


def is_outside(folder: Path, name: str) -> bool:
    """Whether an image's name leads out of the folder of pictures, links followed."""
    try:
        return not (folder / name).resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # no file can have it, or a circle of links
        return False


def outside_note(folder: Path | None, names: Sequence[str]) -> str:
    """What to say about names that lead out of the folder of pictures; empty if none does."""
    outside = [] if folder is None else [n for n in names if n and is_outside(folder, n)]
    if not outside:
        return ""
    return (
        f"{len(outside)} of {len(names)} pictures are left out, because their names lead out of "
        f"{folder} ({first_few(outside)}); to show them, name the folder that holds them all "
        f"(--pictures FOLDER on the command line)."
    )
