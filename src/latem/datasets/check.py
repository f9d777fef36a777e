"""What is wrong with a dataset folder, line by line, and what is in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np

from latem.core.messages import first_few
from latem.core.paths import no_folder
from latem.datasets.dataset import Split, ZeroShotDataset
from latem.datasets.folder import (
    check_twins,
    raw_notes,
    read_features,
    read_images,
    read_split,
    read_table,
    read_toml,
    split_files,
    table_files,
)
from latem.datasets.learnable import (
    label_obstacles,
    split_obstacles,
    split_warnings,
    table_obstacles,
    table_warnings,
    without_images,
)
from latem.datasets.picture_files import leads_out


@dataclass
class FolderReport:
    """What there is to say about a dataset folder, one sentence each.

    Attributes
    ----------
    problems : list of str
        What cannot be read, or does not fit together.
    obstacles : list of str
        What can be read, but would be refused by training.
    warnings : list of str
        What works, but deserves a look.
    """

    problems: list[str] = field(default_factory=list)
    obstacles: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def check_folder(path: str | PathLike[str]) -> list[str]:
    """Problems of a dataset folder, one sentence each; an empty list means it is sound.

    Unlike `read_folder`, which stops at the first problem, this looks at every file. What training
    would refuse is a problem, too.

    Parameters
    ----------
    path : path of the folder

    Returns
    -------
    list of str
    """
    report = inspect_folder(path)
    return report.problems + report.obstacles


def inspect_folder(path: str | PathLike[str]) -> FolderReport:
    """Problems of a dataset folder, and warnings, which do not keep anyone from using it.

    Parameters
    ----------
    path : path of the folder
    """
    folder = Path(path)
    if not folder.is_dir():
        return FolderReport([str(no_folder(folder, "dataset folder"))])
    report = FolderReport()
    problems = report.problems

    def attempt(read, *arguments):  # type: ignore[no-untyped-def]
        try:
            return read(*arguments)
        except (OSError, ValueError, TypeError) as error:
            problems.append(str(error))
            return None

    attempt(read_toml, folder / "dataset.toml")
    features = attempt(read_features, folder / "features.npy")
    images = attempt(read_images, folder / "images.csv")
    if features is not None:
        problems += _feature_problems(folder / "features.npy", features)
    labels = None if images is None else images[1]
    if images is not None and (outside := [n for n in images[0].tolist() if leads_out(n)]):
        report.warnings.append(
            f"{folder / 'images.csv'}: {len(outside)} image names lead out of the folder of "
            f"pictures ({first_few(outside)}); galleries and reports show such pictures only if "
            f"--pictures names a folder that holds them."
        )
    if features is not None and labels is not None and len(features) != len(labels):
        problems.append(
            f"{folder}: features.npy has {len(features)} rows but images.csv has {len(labels)} "
            f"lines after its header; they must match one to one."
        )
    tables = {}
    attempt(check_twins, folder, table_files(folder))
    for file in table_files(folder):
        if (table := attempt(read_table, file)) is not None:
            tables[file] = table
    if not tables:
        problems.append(f"{folder / 'embeddings'} holds no readable class table.")
    splits = {}
    for file in split_files(folder):
        if (split := attempt(read_split, file)) is not None:
            splits[file] = split
    for file, split in splits.items():
        _look_at_split(report, file, split, labels)
    if labels is not None and not splits:
        report.obstacles += label_obstacles(folder / "images.csv", labels)
    described = {c for split in splits.values() for c in split.train + split.val + split.test}
    described |= set() if labels is None else set(labels.tolist())
    for file, table in tables.items():
        missing = sorted(described - set(table.names.tolist()))
        if missing:
            problems.append(f"{file} has no row for {first_few(missing)}.")
        report.obstacles += table_obstacles(file, table)
        report.warnings += [*raw_notes(file, table), *table_warnings(file, table)]
    return report


def _look_at_split(
    report: FolderReport, file: Path, split: Split, labels: np.ndarray | None
) -> None:
    problems = _split_problems(file, split, labels)
    report.problems += problems
    if labels is not None and not problems:  # or they would be told twice
        report.obstacles += split_obstacles(file, split, labels)
        report.warnings += split_warnings(file, split, labels)


def describe(dataset: ZeroShotDataset) -> dict:
    """Counts and sizes of a dataset, and warnings about its splits and class tables.

    Returns
    -------
    dict
        "images", "features", "dtype", "megabytes", "classes", "images_per_class" (smallest,
        median, largest), "embeddings" (name → dimensions), "splits" (name → counts) and
        "warnings".
    """
    _, counts = np.unique(dataset.labels, return_counts=True)
    features = dataset.features
    warnings: list[str] = []
    for name, table in dataset.embeddings.items():
        warnings += [*dataset.table_notes.get(name, ()), *table_obstacles(name, table)]
        warnings += table_warnings(name, table)
    splits = {}
    for name, split in dataset.splits.items():
        warnings += _split_problems(Path(name), split, dataset.labels)
        warnings += split_obstacles(name, split, dataset.labels)
        warnings += split_warnings(name, split, dataset.labels)
        seen = split.train + split.val
        splits[name] = {
            "train": len(split.train),
            "val": len(split.val),
            "test": len(split.test),
            "seen_images": len(dataset.rows(seen)) - len(split.held_out),
            "unseen_images": len(dataset.rows(split.test)),
            "held_out": len(split.held_out),
        }
    return {
        "images": len(features),
        "features": features.shape[1],
        "dtype": str(features.dtype),
        "megabytes": round(features.nbytes / 1e6, 1),
        "classes": len(counts),
        "images_per_class": [int(counts.min()), float(np.median(counts)), int(counts.max())],
        "embeddings": {name: table.n_dimensions for name, table in dataset.embeddings.items()},
        "splits": splits,
        "warnings": warnings,
    }


def _feature_problems(path: Path, features: np.ndarray) -> list[str]:
    for first in range(0, len(features), 1024):
        finite = np.isfinite(features[first : first + 1024])
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            return [f"{path}: row {first + row}, column {column} is not a finite number."]
    return []


def _split_problems(path: Path, split: Split, labels: np.ndarray | None) -> list[str]:
    problems = []
    if not split.train or not split.test:
        problems.append(f"{path}: a split needs train and test classes.")
    if labels is None:
        return problems
    problems += without_images(path, split, labels)
    if split.held_out:
        rows = range(len(labels))
        outside = [row for row in split.held_out if row not in rows]
        if outside:
            problems.append(
                f"{path}: held_out rows {first_few(outside)} do not exist; rows are "
                f"counted from 0 to {len(labels) - 1}."
            )
        inside = np.array([row for row in split.held_out if row in rows], dtype=np.int64)
        strange = inside[~np.isin(labels[inside], split.train + split.val)]
        if len(strange):
            problems.append(
                f"{path}: held-out rows {first_few(strange.tolist())} are not images of seen "
                f"classes."
            )
    return problems
