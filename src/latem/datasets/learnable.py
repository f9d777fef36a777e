"""Whether a dataset can be learned from: what training would refuse, and what deserves a look.

A folder may be readable, file by file, and still be of no use: no image left to learn from, a
class that nothing describes. `latem data check` and `latem train` say the same of such data,
because both ask here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from latem.core.messages import first_few
from latem.datasets.dataset import Split, ZeroShotDataset
from latem.embeddings.table import ClassEmbeddings

_FAR = 10.0  # times the typical spread of a table's columns: such a column is in another unit
_FEWEST_COLUMNS = 3  # so that most of them can be said to be alike


def learning_notes(
    dataset: ZeroShotDataset, split: str | None = "standard", embedding: str | None = None
) -> list[str]:
    """What deserves a look before a model is trained on a dataset, in sentences.

    Parameters
    ----------
    dataset : ZeroShotDataset
    split : str or None
        What will be learned from; None means all images.
    embedding : str, optional
        Name of the class table that will be learned with.

    Returns
    -------
    list of str

    Raises
    ------
    ValueError
        If nothing could be learned, with all reasons.
    """
    obstacles: list[str] = []
    notes: list[str] = []
    if split is None:
        obstacles += label_obstacles("The dataset", dataset.labels)
    else:
        name = f"Split {split!r}"
        obstacles += split_obstacles(name, dataset.split(split), dataset.labels)
        notes += without_images(name, dataset.split(split), dataset.labels)
        notes += split_warnings(name, dataset.split(split), dataset.labels)
    if embedding is not None:
        table, name = dataset.embeddings[embedding], f"Class table {embedding!r}"
        obstacles += table_obstacles(name, table)
        notes += [*dataset.table_notes.get(embedding, ()), *table_warnings(name, table)]
    if obstacles:
        raise ValueError(" ".join(obstacles))
    return notes


# -- splits -------------------------------------------------------------------------------------


def without_images(where: str | Path, split: Split, labels: np.ndarray) -> list[str]:
    """Classes of a split that have no images, part by part."""
    pictured = set(labels.tolist())
    told = []
    for part in ("train", "val", "test"):
        without = [name for name in getattr(split, part) if name not in pictured]
        if without:
            told.append(f"{where}: {part} classes without images: {first_few(without)}.")
    return told


def split_obstacles(where: str | Path, split: Split, labels: np.ndarray) -> list[str]:
    """Why nothing could be learned from the images of a split."""
    seen = np.isin(labels, split.train + split.val)
    left = seen & ~_held_out(split, labels)
    if seen.any() and not left.any():
        return [
            f"{where}: all {int(seen.sum())} images of train and val classes are held out, so none "
            f"are left to learn from; hold out fewer."
        ]
    return label_obstacles(where, labels[left])


def label_obstacles(where: str | Path, labels: np.ndarray) -> list[str]:
    """Why nothing could be learned from images with these labels."""
    found = np.unique(labels).tolist()
    if len(found) >= 2:
        return []
    have = f"only one class, {found[0]!r}, has" if found else "no class has"
    return [f"{where}: {have} images to learn from; a model needs at least 2 classes."]


def split_warnings(where: str | Path, split: Split, labels: np.ndarray) -> list[str]:
    """What training would take without a word although it is hardly meant."""
    held = _held_out(split, labels)
    lost = np.setdiff1d(labels[held], labels[~held])
    if not len(lost):
        return []
    return [
        f"{where}: all images of {first_few(lost.tolist())} are held out, so nothing is learned of "
        f"them."
    ]


def _held_out(split: Split, labels: np.ndarray) -> np.ndarray:
    """Which images a split holds out; rows that do not exist are left aside."""
    held = np.zeros(len(labels), bool)
    rows = np.array(split.held_out, np.intp)
    held[rows[(rows >= 0) & (rows < len(labels))]] = True
    return held


# -- class tables -------------------------------------------------------------------------------


def table_obstacles(where: str | Path, table: ClassEmbeddings) -> list[str]:
    """Why models would refuse a class table."""
    zero = table.names[~table.vectors.any(axis=1)].tolist()
    if not zero:
        return []
    return [
        f"{where}: the vectors of {first_few(zero)} are all zero, which describes nothing; "
        f"describe those classes, or leave them out."
    ]


def table_warnings(where: str | Path, table: ClassEmbeddings) -> list[str]:
    """Columns that outweigh the others, as numbers in another unit do."""
    if table.encoding is not None:  # its traits have been brought to one scale
        return []
    large = dominating_columns(table.vectors)
    if not len(large):
        return []
    names = first_few(np.array(table.column_names())[large].tolist())
    which = f"columns {names} vary" if len(large) > 1 else f"column {names} varies"
    return [
        f"{where}: {which} more than {_FAR:g} times as much as most, as numbers in another unit "
        f"do, and may decide alone which classes are alike; bring all to one scale by reading the "
        f"table as raw traits (--table of latem data convert and latem embed images, "
        f"ClassEmbeddings.from_traits in Python)."
    ]


def dominating_columns(vectors: np.ndarray) -> np.ndarray:
    """Numbers of the columns with far more spread than most, and a far wider range.

    Constant columns do not count. The range is asked for because a column that is zero for nearly
    every class has little spread and may still be in the same unit.

    Examples
    --------
    >>> dominating_columns(np.array([[0, 1, 900], [1, 1, 20], [1, 0, 5000]]))
    array([2])
    """
    spread, width = vectors.std(axis=0), np.ptp(vectors, axis=0)
    varied = width > 0
    if varied.sum() < _FEWEST_COLUMNS:
        return np.empty(0, np.intp)
    far = (spread > _FAR * np.median(spread[varied])) & (width > _FAR * np.median(width[varied]))
    return np.flatnonzero(far)
