"""What a reproduction starts from: the user's dataset folders and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np

from latem.core.messages import first_few
from latem.datasets import read_folder
from latem.datasets.dataset import ZeroShotDataset
from latem.experiments.five_splits import is_random, with_five_splits
from latem.experiments.tables import STANDARD, PaperDataset, PaperTable


@dataclass
class Found:
    """Datasets of the paper, as far as they are here.

    Attributes
    ----------
    datasets : dict of str to ZeroShotDataset
        By the paper's key, with five splits each.
    places : dict of str to path
        Their folders.
    absent : dict of str to str
        Why each of the others is missing.
    notes : list of str
        What the report should say about them.
    """

    datasets: dict[str, ZeroShotDataset] = field(default_factory=dict)
    places: dict[str, Path] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def find_datasets(
    data: Path,
    folders: Mapping[str, str | PathLike[str]],
    tables: Mapping[str, PaperTable],
    paper: Mapping[str, PaperDataset],
) -> Found:
    """Read the datasets that some tables need.

    Parameters
    ----------
    data : path
        Folder of dataset folders.
    folders : dict of str to path
        Folders of datasets that lie elsewhere, by key.
    tables : dict of str to PaperTable
    paper : dict of str to PaperDataset
    """
    unknown = [key for key in folders if key not in paper]
    if unknown:
        raise ValueError(
            f"The paper has no dataset {first_few(unknown)}; it has {', '.join(paper)}."
        )
    found = Found()
    for key in _needed(tables, paper):
        entry = paper[key]
        names = [str(folders[key])] if key in folders else [str(data / n) for n in entry.folders]
        places = [Path(name) for name in names if (Path(name) / "dataset.toml").is_file()]
        if not places:
            if key in folders:
                raise FileNotFoundError(f"{folders[key]} is not a dataset folder.")
            found.absent[key] = f"no {key} in {data} (looked for {', '.join(entry.folders)})"
            continue
        dataset = read_folder(places[0])
        reason = _unsuitable(dataset)
        if reason:
            found.absent[key] = f"{key} in {places[0]} {reason}"
            continue
        found.places[key] = places[0]
        found.datasets[key], notes = with_five_splits(dataset)
        found.notes += [f"{key}: {note}." for note in notes]
    return found


def _needed(tables: Mapping[str, PaperTable], paper: Mapping[str, PaperDataset]) -> list[str]:
    """Keys of the datasets that some tables name, in the paper's order."""
    named = {column.dataset for table in tables.values() for column in table.columns}
    named |= {str(t.more["dataset"]) for t in tables.values() if "dataset" in t.more}
    if any(table.kind == "statistics" for table in tables.values()):
        named |= set(paper)
    return [key for key in paper if key in named]


def _unsuitable(dataset: ZeroShotDataset) -> str:
    """Why the paper's protocol cannot be run on a dataset; empty if it can."""
    if STANDARD not in dataset.splits:
        return f"has no split {STANDARD!r}"
    for name, split in dataset.splits.items():
        if name != STANDARD and not is_random(name):
            continue
        for part, classes in (("train", split.train), ("val", split.val), ("test", split.test)):
            if len(np.unique(dataset.labels[dataset.rows(classes)])) < 2:
                return f"has fewer than two {part} classes with images in its split {name!r}"
    return ""


def picture_folders(
    places: Mapping[str, Path], given: Mapping[str, str | PathLike[str]]
) -> dict[str, Path]:
    """Folders of pictures: as given, in the dataset folder, or thumbnails beside it.

    Parameters
    ----------
    places : dict of str to path
        Dataset folders.
    given : dict of str to path
        Folders of pictures that the user names.
    """
    found = {}
    for key, place in places.items():
        if key in given:
            if not Path(given[key]).is_dir():
                raise FileNotFoundError(f"There is no folder {given[key]} with pictures of {key}.")
            found[key] = Path(given[key])
            continue
        for folder in (place / "images", place.with_name(f"{place.name}_thumbs")):
            if folder.is_dir():
                found[key] = folder
                break
    return found
