"""Where the pictures of a dataset are."""

from __future__ import annotations

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
        missing = [n for n in names if n and picture_path(self.folder, n) is None]
        if not missing:
            return ""
        return (
            f"{len(missing)} of {len(names)} pictures are not in {self.folder} "
            f"({first_few(missing)}); the names of their classes stand in their places."
        )


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


def picture_path(folder: Path | None, name: str) -> str | None:
    """Path of an image's picture, or None if there is none."""
    if folder is None or not name:
        return None
    path = folder / name
    try:
        return str(path) if path.is_file() else None
    except (OSError, ValueError):  # a name that no file can have
        return None
