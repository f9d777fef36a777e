"""The dataset folder: a format a person can make by hand and a program can memory-map.

::

    birds/
      dataset.toml          name, licence, source, what the features are
      features.npy          (n_images, n_features); row i belongs to line i of images.csv
      images.csv            columns: image (path or name; may be empty), class
      embeddings/att.csv    first column `class`, then one column per dimension, or raw traits
      embeddings/att.traits.json  how raw traits became these numbers; only if they did
      splits/standard.toml  train, val, test: lists of classes; optional held_out: row numbers
"""

from __future__ import annotations

import csv
import logging
import sys
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from latem.core.memory import text_array
from latem.core.paths import as_path, no_folder
from latem.core.plain_json import parse_json
from latem.datasets.dataset import Split, ZeroShotDataset
from latem.embeddings.table import TABLE_SUFFIXES, ClassEmbeddings
from latem.embeddings.table_files import encoding_path
from latem.embeddings.traits import TraitEncoding

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_log = logging.getLogger(__name__)


def read_folder(path: str | PathLike[str]) -> ZeroShotDataset:
    """Dataset from a dataset folder; the features are memory-mapped, not read.

    Parameters
    ----------
    path : path of the folder

    Returns
    -------
    ZeroShotDataset
    """
    folder = as_path(path, "a dataset folder")
    if not folder.is_dir():
        raise no_folder(folder, "dataset folder")
    info = read_toml(folder / "dataset.toml")
    features = read_features(folder / "features.npy")
    images, labels = read_images(folder / "images.csv")
    if len(labels) != len(features):
        raise ValueError(
            f"{folder}: features.npy has {len(features)} rows but images.csv has {len(labels)} "
            f"lines after its header; they must match one to one."
        )
    tables = table_files(folder)
    splits = split_files(folder)
    check_twins(folder, tables)
    embeddings = {file.stem: read_table(file) for file in tables}
    notes = {file.stem: raw_notes(file, embeddings[file.stem]) for file in tables}
    dataset = ZeroShotDataset(
        features=features,
        labels=labels,
        embeddings=embeddings,
        splits={split.stem: read_split(split) for split in splits},
        images=images,
        name=str(info.get("name", folder.name)),
        info=info,
        table_notes={name: told for name, told in notes.items() if told},
    )
    _log.info("read the dataset folder %s: %r", folder, dataset)
    return dataset


def table_files(folder: Path) -> list[Path]:
    """Class tables of a dataset folder; hidden files and other kinds are left out."""
    files = sorted(folder.glob("embeddings/[!.]*"))
    return [file for file in files if file.suffix.lower() in TABLE_SUFFIXES]


def read_table(path: Path) -> ClassEmbeddings:
    """Class table of a dataset folder, with the encoding of raw traits that lies beside it.

    A table of numbers is taken as it is. One with words or gaps is a raw table of traits, and is
    read as `ClassEmbeddings.from_traits` does, unless an encoding says that it is encoded already.
    """
    beside = encoding_path(path)
    if not beside.is_file():
        try:
            return ClassEmbeddings.read(path)
        except ValueError:  # not all numbers: told in full by what reads it as it is
            return ClassEmbeddings.from_traits(path)
    try:
        table = ClassEmbeddings.read(path)
    except ValueError as error:
        raise ValueError(
            f"{error} {beside.name} says that {path.name} holds numbers made from raw traits; if "
            f"it holds the raw traits themselves, delete it."
        ) from None
    try:
        encoding = TraitEncoding.from_dict(parse_json(beside.read_bytes()))
        return ClassEmbeddings(
            table.names, table.vectors, name=table.name, columns=table.columns, encoding=encoding
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise ValueError(
            f"{beside} is damaged: it does not say how the columns of {path.name} were made from "
            f"raw traits; delete it, or make the dataset again."
        ) from None


def raw_notes(path: Path, table: ClassEmbeddings) -> tuple[str, ...]:
    """What `read_table` did to a raw table of traits, in sentences; nothing for other tables."""
    if table.encoding is None or encoding_path(path).is_file():
        return ()
    return (
        f"{path} holds raw traits, which are turned into numbers as --table does:",
        *table.encoding.notes,
    )


def check_twins(folder: Path, files: list[Path]) -> None:
    """Refuse files that differ in their endings only."""
    stems = [file.stem for file in files]
    twins = sorted({file.name for file in files if stems.count(file.stem) > 1})
    if twins:
        raise ValueError(f"{folder}: {', '.join(twins)} would have the same name; keep one.")


def split_files(folder: Path) -> list[Path]:
    """Splits of a dataset folder."""
    return sorted(folder.glob("splits/[!.]*.toml"))


def own_files(folder: Path) -> list[Path]:
    """Files that a dataset folder is made of."""
    parts = [folder / name for name in ("dataset.toml", "features.npy", "images.csv")]
    return [*parts, *table_files(folder), *split_files(folder)]


def read_toml(path: Path) -> dict[str, Any]:
    """Content of a TOML file of a dataset folder."""
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"A dataset folder needs {path.name}: {path} is missing. latem embed images makes a "
            f"dataset folder of pictures, latem data convert of other data."
        ) from None
    except IsADirectoryError:
        raise _is_folder(path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not valid TOML: {error}.") from None
    except RecursionError:
        raise ValueError(f"{path} is not valid TOML: it is nested too deeply.") from None


def why_unread(error: Exception) -> str:
    """Why NumPy does not read a file, without its advice to run what may be in it."""
    if "pickle" in str(error) or "Python objects" in str(error):
        return "it holds no plain numbers"
    if isinstance(error, ValueError | SyntaxError | TokenError) and "mmap" not in str(error):
        return "its header is damaged"
    return str(getattr(error, "strerror", None) or error).rstrip(".")


def read_features(path: Path) -> np.ndarray:
    """Memory map of `features.npy`."""
    try:
        features = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise FileNotFoundError(f"A dataset folder needs {path.name}: {path} is missing.") from None
    except Exception as error:  # NumPy raises many kinds for files that are cut or not its own
        raise ValueError(f"{path} is not a readable .npy array: {why_unread(error)}.") from None
    if not isinstance(features, np.ndarray):
        features.close()
        raise ValueError(f"{path} is an archive of arrays, not one .npy array.")
    if features.ndim != 2 or features.dtype.kind != "f" or features.shape[1] == 0:
        raise ValueError(
            f"{path} must hold floating-point numbers, images × features, not "
            f"{features.dtype} of shape {features.shape}."
        )
    return features


def read_images(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Image names and class names of `images.csv`."""
    images, labels = [], []
    try:
        for number, line in _csv_lines(path, ("image", "class")):
            if not line["class"]:
                raise ValueError(f"{path}, line {number}: the class is missing.")
            images.append(line["image"] or "")
            labels.append(line["class"])
    except FileNotFoundError:
        raise FileNotFoundError(f"A dataset folder needs {path.name}: {path} is missing.") from None
    return text_array(images, f"image names in {path}"), text_array(labels, f"classes in {path}")


def read_image_list(path: Path) -> list[str]:
    """Image names of a CSV file with the column `image`, and perhaps others."""
    return list(image_names(path))


def image_names(path: Path) -> Iterator[str]:
    """The same, line by line."""
    return (line["image"] or "" for _, line in _csv_lines(path, ("image",)))


def _csv_lines(path: Path, needed: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Lines of a CSV file after its header, by column, with their numbers."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            lines = csv.DictReader(file, delimiter=";" if "," not in first else ",")
            if not lines.fieldnames or not set(needed) <= set(lines.fieldnames):
                columns = " and ".join(map(repr, needed))
                raise ValueError(f"{path} needs the column{'s' * (len(needed) > 1)} {columns}.")
            for line in lines:
                if None in line:
                    raise ValueError(
                        f"{path}, line {lines.line_num}: too many cells; put names with commas "
                        f"into quotes."
                    )
                yield lines.line_num, line
    except IsADirectoryError:
        raise _is_folder(path) from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; save it as 'CSV UTF-8'.") from None
    except csv.Error as error:
        raise ValueError(f"{path}: {error}.") from None


def _is_folder(path: Path) -> ValueError:
    return ValueError(f"{path} is a folder, but must be a file.")


def read_split(path: Path) -> Split:
    """Split from a TOML file."""
    content = read_toml(path)
    odd = sorted(set(content) - {"train", "val", "test", "held_out"})
    if odd:
        raise ValueError(
            f"{path} has unknown entries {odd}; a split has train, val, test, held_out."
        )
    try:
        return Split(
            train=content["train"],
            val=content.get("val", ()),
            test=content["test"],
            held_out=content.get("held_out", ()),
        )
    except KeyError as error:
        raise ValueError(f"{path} lacks {error}: it needs lists of classes.") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None
