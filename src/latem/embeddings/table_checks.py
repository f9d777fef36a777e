"""Checks of what a class table is made of: names, vectors, names of columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from latem.core.memory import text_array
from latem.core.messages import first_few
from latem.embeddings.table_files import as_number, is_array

_NAME_TYPES = (str, int, float, bool)


def as_python(name: Any) -> Any:
    """A name as Python has it, not NumPy."""
    return name.item() if isinstance(name, np.generic) else name


def check_names(names: list[Any]) -> np.ndarray:
    """Class names as an array; they must be of one type, unique and not empty."""
    plain = [as_python(name) for name in names]
    if not plain:
        raise ValueError("A class table needs at least one class.")
    for row, name in enumerate(plain):
        if _is_missing(name):
            raise ValueError(f"The class number {row + 1} of the table has no name.")
    kinds = {type(name) for name in plain}
    if kinds - {str, int, float, bool} or len(kinds) > 1:
        odd = next(n for n in plain if type(n) is not type(plain[0]) or type(n) not in _NAME_TYPES)
        raise TypeError(
            f"Class names must all be str or all be numbers, but {plain[0]!r} is "
            f"{type(plain[0]).__name__} and {odd!r} is {type(odd).__name__}."
        )
    seen: dict[Any, int] = {}
    for row, name in enumerate(plain):
        if name in seen:
            raise ValueError(
                f"Class {name!r} is listed twice, as number {seen[name] + 1} and as number "
                f"{row + 1} of the table; keep one of them."
            )
        seen[name] = row
    array = text_array(plain, "class names") if kinds == {str} else np.array(plain)
    array.flags.writeable = False
    return array


def _is_missing(name: Any) -> bool:
    """Whether a name is empty or one of the things that pandas has in the place of none."""
    if isinstance(name, str | float):
        return name == "" or name != name
    return name is None or type(name).__name__ in ("NAType", "NaTType")


def check_vectors(vectors: Any, names: np.ndarray, columns: Sequence[Any] | None) -> np.ndarray:
    """Class vectors as a read-only array of finite numbers."""
    if isinstance(vectors, np.ma.MaskedArray):
        raise ValueError(
            "Class vectors must not be masked; fill in the values or drop the columns."
        )
    if hasattr(vectors, "__array__"):
        vectors = np.asarray(vectors)
    else:
        if not isinstance(vectors, Iterable):
            raise TypeError(
                f"Class vectors must form a table of classes × dimensions, not {vectors!r}."
            )
        vectors = [list(row) if np.ndim(row) else [row] for row in vectors]
        if len(vectors) == len(names):
            _check_ragged(vectors, names)
        vectors = np.array(vectors, dtype=object if _has_text(vectors) else None)
    if vectors.ndim != 2:
        raise ValueError(
            f"Class vectors must form a table of classes × dimensions, not an array of shape "
            f"{vectors.shape}."
        )
    if len(vectors) != len(names):
        raise ValueError(f"There are {len(names)} class names but {len(vectors)} class vectors.")
    if vectors.shape[1] == 0:
        raise ValueError("Class vectors need at least one dimension.")

    def place(row: int, column: int) -> str:
        title = column if columns is None else repr(columns[column])
        return f"class {names[row].item()!r}, column {title}"

    try:
        if vectors.dtype == object and any(is_array(cell) for cell in vectors.flat):
            raise TypeError("cells hold arrays")
        numbers = np.array(vectors, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        for row, column in np.ndindex(*vectors.shape):
            if as_number(vectors[row, column]) is None:
                cell = as_python(vectors[row, column])
                way = "; ClassEmbeddings.from_traits reads traits in words, units and gaps"
                raise ValueError(
                    f"The table needs numbers, but {place(row, column)} holds {cell!r}"
                    f"{way if isinstance(cell, str) else ''}."
                ) from None
        raise
    bad = np.argwhere(~np.isfinite(numbers))
    if len(bad):
        row, column = bad[0]
        more = f" (and {len(bad) - 1} more cells)" if len(bad) > 1 else ""
        raise ValueError(
            f"The table needs a finite number for {place(row, column)}, but holds "
            f"{numbers[row, column]}{more}; fill it in or drop the column."
        )
    numbers.flags.writeable = False
    return numbers


def _check_ragged(rows: list[list], names: np.ndarray) -> None:
    for row, values in enumerate(rows):
        if len(values) != len(rows[0]):
            raise ValueError(
                f"Class {names[row].item()!r} has {len(values)} values, but "
                f"{names[0].item()!r} has {len(rows[0])}; every class needs the same columns."
            )


def _has_text(rows: list[list]) -> bool:
    return any(isinstance(value, str) for row in rows for value in row)


def check_columns(columns: Sequence[Any] | None, width: int) -> tuple[str, ...] | None:
    """Names of columns as texts, all different and as many as there are columns."""
    if columns is None:
        return None
    titles = tuple(str(column) for column in columns)
    if len(titles) != width:
        raise ValueError(f"There are {len(titles)} column names but {width} columns.")
    if len(set(titles)) != width:
        doubled = sorted({title for title in titles if titles.count(title) > 1})
        raise ValueError(f"The table names these columns twice: {first_few(doubled)}.")
    return titles
