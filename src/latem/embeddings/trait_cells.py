"""Cells of raw trait tables: what is a gap, a number, a list of values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

MISSING = frozenset({"", "-", "–", "?", "na", "n/a", "nan", "none", "null", "unknown"})


YES = frozenset({"yes", "y", "true", "t", "ja", "oui", "si", "sí", "x", "✓"})


NO = frozenset({"no", "n", "false", "f", "nein", "non"})


_SEPARATORS = (";", "|", ",", "/")


_MOSTLY = 0.5  # share of numbers from which on a word among them is a slip


_DECIMAL_COMMA = re.compile(r"[-+]?\d+(,\d+)?")


_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")


_NUMBER_FIRST = re.compile(r"[~<>≈±]?\s*[-+]?\d")


_UNIT_IN_TITLE = re.compile(r"[(\[]\s*([^()\[\]]+?)\s*[)\]]\s*$")


WITH_UNIT = re.compile(r"([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*([^\d\s].*)")


def find_separator(known: list[str]) -> str:
    """What stands between several values in a cell, or nothing.

    Commas and slashes may belong to a text: they count only if the parts come up again.
    """
    for mark in _SEPARATORS:
        if not any(mark in text for text in known):
            continue
        parts = [part for text in known for part in split_cell(text, mark)]
        if mark in ";|" or len(set(parts)) <= 0.7 * len(parts):
            return mark
    return ""


def texts_of(cells: pd.Series | Sequence[Any]) -> list[str | None]:
    """Cells as texts, None for gaps."""
    found: list[str | None] = []
    for cell in cells if isinstance(cells, Sequence) else cells.tolist():
        if cell is None or (isinstance(cell, float) and np.isnan(cell)) or _is_no_time(cell):
            found.append(None)
            continue
        if isinstance(cell, bool | np.bool_):
            cell = "yes" if cell else "no"
        text = " ".join(str(cell).split())
        found.append(None if text.lower() in MISSING else text)
    return found


def gaps_in_words(cells: pd.Series) -> list[str]:
    """What is written in the gaps of a column where they are not empty, in the order of letters."""
    texts = {" ".join(cell.split()) for cell in cells.tolist() if isinstance(cell, str)}
    return sorted(text for text in texts if text and text.lower() in MISSING)


def _is_no_time(cell: Any) -> bool:
    """Whether a cell is the gap of a column of times, `pandas.NaT`."""
    return type(cell).__name__ == "NaTType"


def split_cell(text: str | None, separator: str) -> list[str]:
    """The values of a cell that holds several."""
    return [] if text is None else [p.strip() for p in text.split(separator) if p.strip()]


def numbers_of(
    name: str, texts: list[str | None], classes: pd.Index
) -> tuple[np.ndarray, str] | None:
    """Numbers of a column with NaN for gaps, and how they were read; None if they are words."""
    known = [text for text in texts if text is not None]
    readers = (("", plain_number), ("decimal comma", comma_number))
    with_comma = [text for text in known if "," in text]
    for form, read in readers:
        values = [read(text) for text in known]
        if form and with_comma and all(map(_THOUSANDS.fullmatch, with_comma)):
            continue  # 1,200 may be either
        if all(value is not None for value in values):
            return _spread_out(texts, values), form
    units = {match.group(2) for match in map(WITH_UNIT.fullmatch, known) if match}
    if len(units) == 1 and all(WITH_UNIT.fullmatch(text) for text in known):
        values = [float(WITH_UNIT.fullmatch(text).group(1)) for text in known]  # type: ignore[union-attr]
        return _spread_out(texts, values), units.pop()
    good = sum(plain_number(text) is not None for text in known)
    if with_comma and all(comma_number(text) is not None for text in known):
        raise ValueError(
            f"Column {name!r} holds {with_comma[0]!r}, which may be thousands or a decimal comma; "
            f"write {with_comma[0].replace(',', '')} or {with_comma[0].replace(',', '.')}."
        )
    if good >= _MOSTLY * len(known):
        row = next(i for i, text in enumerate(texts) if text and plain_number(text) is None)
        raise ValueError(
            f"The table has numbers in column {name!r}, but class {classes[row]!r}, column "
            f"{name!r} holds {texts[row]!r}; write a number there, or leave the cell empty."
        )
    return None


def begins_with_number(text: str) -> bool:
    """Whether a text may have been meant as a number."""
    return _NUMBER_FIRST.match(text) is not None


def unit_in_title(title: str) -> str:
    """The unit in brackets at the end of a column's title, or nothing."""
    found = _UNIT_IN_TITLE.search(title)
    return found.group(1) if found else ""


def plain_number(text: str) -> float | None:
    """Finite number that a text is, or None."""
    try:
        number = None if "_" in text else float(text)
    except ValueError:
        return None
    return number if number is not None and np.isfinite(number) else None


def comma_number(text: str) -> float | None:
    """Number with a decimal comma that a text is, or None."""
    return float(text.replace(",", ".")) if _DECIMAL_COMMA.fullmatch(text) else None


def _spread_out(texts: list[str | None], values: Sequence[float | None]) -> np.ndarray:
    """The values of the known cells at their places, NaN elsewhere."""
    numbers, following = np.full(len(texts), np.nan), iter(values)
    for row, text in enumerate(texts):
        if text is not None:
            numbers[row] = next(following)
    return numbers
