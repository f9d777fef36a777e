"""Attribute tables (`att`) from files.

Besides the tables that `ClassEmbeddings.read` opens: Excel sheets, the text files of Animals with
Attributes, and those of Caltech-UCSD Birds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from latem.core.text_files import read_utf8
from latem.embeddings.table import ClassEmbeddings


def read_attributes(
    path: str | PathLike[str],
    *,
    name: str | None = None,
    ordered: Mapping[str, Sequence[str]] | None = None,
) -> ClassEmbeddings:
    """Attribute table from a file or a folder, recognised by what it is.

    Parameters
    ----------
    path : path
        A CSV, TSV, Parquet or Excel file of classes × attributes, which may be a raw table of
        traits (see `ClassEmbeddings.from_traits`); or the folder of AwA
        (`predicate-matrix-continuous.txt`, `classes.txt`, `predicates.txt`) or of CUB
        (`attributes/class_attribute_labels_continuous.txt`, `classes.txt`).
    name : str, optional
        Name of the table; by default that of the file, or "att" for a folder.
    ordered : dict of column name to values, optional
        Values of ordered categories, from least to most.

    Returns
    -------
    ClassEmbeddings
    """
    path = Path(path)
    if path.is_dir():
        if (path / "predicate-matrix-continuous.txt").is_file():
            return read_awa(path, name=name or "att")
        if _cub_matrix(path) is not None:
            return read_cub(path, name=name or "att")
        raise ValueError(
            f"{path} is not a folder of attributes: AwA's holds predicate-matrix-continuous.txt, "
            f"CUB's class_attribute_labels_continuous.txt."
        )
    return ClassEmbeddings.from_traits(path, name=name, ordered=ordered)


def read_awa(folder: str | PathLike[str], *, name: str = "att") -> ClassEmbeddings:
    """Attributes of Animals with Attributes from its text files.

    Values are strengths between 0 and 100; -1 means unknown and is kept as it is, as in the
    published experiments.
    """
    folder = Path(folder)
    classes = _numbered_lines(folder / "classes.txt")
    columns = _numbered_lines(folder / "predicates.txt")
    matrix = _read_matrix(folder / "predicate-matrix-continuous.txt")
    _check_shape(folder / "predicate-matrix-continuous.txt", matrix, classes, columns)
    return ClassEmbeddings(classes, matrix, name=name, columns=columns)


def read_cub(folder: str | PathLike[str], *, name: str = "att") -> ClassEmbeddings:
    """Attributes of Caltech-UCSD Birds: percentages of annotators who saw each attribute.

    `folder` is CUB_200_2011; attribute names are read from `attributes.txt` in it, in its
    `attributes` folder or beside it, if there.
    """
    folder = Path(folder)
    path = _cub_matrix(folder)
    if path is None:
        raise FileNotFoundError(f"{folder} holds no class_attribute_labels_continuous.txt.")
    classes = _numbered_lines(folder / "classes.txt")
    matrix = _read_matrix(path)
    places = (folder / "attributes.txt", folder / "attributes" / "attributes.txt")
    listed = [place for place in (*places, folder.parent / "attributes.txt") if place.is_file()]
    columns = _numbered_lines(listed[0]) if listed else None
    _check_shape(path, matrix, classes, columns)
    return ClassEmbeddings(classes, matrix, name=name, columns=columns)


def _cub_matrix(folder: Path) -> Path | None:
    name = "class_attribute_labels_continuous.txt"
    for path in (folder / "attributes" / name, folder / name):
        if path.is_file():
            return path
    return None


def _numbered_lines(path: Path) -> list[str]:
    """Names in a file of lines "number name"; the numbers must count 1, 2, 3, …"""
    try:
        text = read_utf8(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing: it lists the names.") from None
    names = []
    for i, line in enumerate((line for line in text.splitlines() if line.strip()), start=1):
        number, _, name = line.strip().partition("\t" if "\t" in line else " ")
        if number.strip() != str(i) or not name.strip():
            raise ValueError(f"{path}, line {i}: expected '{i} NAME', but found {line.strip()!r}.")
        names.append(name.strip())
    return names


def _read_matrix(path: Path) -> np.ndarray:
    rows: list[list[float]] = []
    for number, line in enumerate(read_utf8(path).split("\n"), start=1):
        cells = line.split()
        if not cells:
            continue
        try:
            rows.append([float(cell) for cell in cells])
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}.") from None
        if len(rows[-1]) != len(rows[0]):
            raise ValueError(
                f"{path}, line {number}: {len(rows[-1])} numbers, but line 1 has "
                f"{len(rows[0])}; is the file cut short?"
            )
    if not rows:
        raise ValueError(f"{path} is empty.")
    return np.array(rows)


def _check_shape(
    path: Path, matrix: np.ndarray, classes: list[str], columns: list[str] | None
) -> None:
    width = matrix.shape[1] if columns is None else len(columns)
    if matrix.shape == (len(classes), width):
        return
    turned = columns is not None and matrix.shape == (width, len(classes))
    hint = "; it looks transposed: a line per class is needed" if turned else ""
    raise ValueError(
        f"{path} has {matrix.shape[0]} lines of {matrix.shape[1]} numbers, but there are "
        f"{len(classes)} classes and {width} attributes{hint}."
    )
