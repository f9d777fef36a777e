"""Reading class tables: delimited text as spreadsheets write it, and Parquet.

Text is read by the standard library's `csv`, not by pandas: a wrong cell is then named by line and
column, and no class called "NA" goes missing.
"""

from __future__ import annotations

import csv
import logging
import re
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latem.core.memory import TooLargeError, check_unpacked
from latem.core.parquet_files import check_parquet
from latem.core.paths import no_file
from latem.core.slim import needed

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)


def is_array(cell: Any) -> bool:
    """Whether a cell holds an array, which older versions of NumPy take for its only number."""
    return getattr(cell, "ndim", 0) > 0


def as_number(cell: Any) -> float | None:
    """Number that a cell holds, or None."""
    if is_array(cell):
        return None
    try:
        return None if "_" in str(cell) else float(cell)
    except (TypeError, ValueError):
        return None


@contextmanager
def named_as_cause(path: Path) -> Iterator[None]:
    """Let an error about a table name the file that it was read from."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None


_CELLS = 250_000  # of a sheet, which any file may have; more if it has as many bytes
EXCEL_SUFFIXES = (".xlsx", ".xlsm", ".xls")
_TRAITS_SUFFIX = ".traits.json"


def encoding_path(path: Path) -> Path:
    """Where a table's encoding is kept: how raw traits became the numbers of this file."""
    return path.with_name(f"{path.stem}{_TRAITS_SUFFIX}")


def read_raw(path: Path, what: str = "class table") -> pd.DataFrame:
    """Cells of a table as they are, texts included: CSV, TSV, Parquet or Excel.

    Class names are the index: the first column, or the one called `class` in a Parquet file.

    Parameters
    ----------
    path : Path
    what : str
        What the table is, for the message that there is none.
    """
    if not path.is_file():
        raise no_file(path, what)
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".pq"):
        frame = read_parquet(path)
        return frame.set_index("class") if "class" in frame.columns else frame
    if suffix in EXCEL_SUFFIXES:
        return read_excel(path)
    if suffix not in (".csv", ".tsv"):
        raise ValueError(
            f"{path}: a class table is a .csv, .tsv, .parquet or Excel file, not "
            f"{suffix or 'this'}."
        )
    pd = needed("pandas", "Tables of raw traits")
    names, columns, cells = read_text(path, numbers=False)
    return pd.DataFrame(cells, index=names, columns=columns)


def read_excel(path: Path) -> pd.DataFrame:
    """Cells of an Excel sheet, with the first column as index."""
    pd = needed("pandas", "Excel files")
    _check_excel(path)
    try:
        _check_cells(path)
        frame = pd.read_excel(path, dtype=object, keep_default_na=False)
    except ImportError as error:
        if "openpyxl" not in str(error):  # pandas wants another reader for it
            raise ImportError(
                f"{path} is in the format of Excel before 2007; save it as .xlsx or .csv."
            ) from None
        raise ImportError(f"Reading {path} needs openpyxl: pip install 'latem[excel]'.") from None
    except TooLargeError:
        raise
    except Exception as error:  # zip and XML errors of files that are cut or not Excel's
        foreign = isinstance(error, zipfile.BadZipFile) or "engine" in str(error)
        reason = "it is no workbook" if foreign else str(error).rstrip(".")
        raise ValueError(f"{path} is not a readable Excel file: {reason}.") from None
    if frame.shape[1] < 2:
        raise ValueError(f"{path} needs a column of class names and at least one other column.")
    return frame.iloc[:, 1:].set_axis(frame.iloc[:, 0].map(str))


def _check_excel(path: Path) -> None:
    """Refuse a workbook that unpacks to far more than itself; what is none, pandas tells."""
    try:
        if not zipfile.is_zipfile(path):
            return
        with zipfile.ZipFile(path) as parts:
            size = sum(part.file_size for part in parts.infolist())
    except Exception as error:  # zip files raise many kinds where they are damaged
        reason = str(error).rstrip(".")
        raise ValueError(f"{path} is not a readable Excel file: {reason}.") from None
    check_unpacked(path, size, "save it as CSV")


def _check_cells(path: Path) -> None:
    """Refuse a sheet whose cells lie so far out that the empty ones before them have no end."""
    if path.suffix.lower() == ".xls":
        return
    from openpyxl import load_workbook

    limit = max(_CELLS, path.stat().st_size)
    # opened here: older versions of openpyxl keep a file open if a sheet is left half read
    with (
        open(path, "rb") as file,
        closing(load_workbook(file, read_only=True, data_only=True)) as book,
    ):
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # which a file may promise as it likes
        widest = 1
        for n_rows, row in enumerate(sheet.iter_rows(values_only=True), start=1):
            widest = max(widest, len(row))  # pandas makes all rows as wide
            if n_rows * widest > limit:
                raise TooLargeError(
                    f"{path} has more than {limit:,} cells, empty ones included; delete rows and "
                    f"columns that only look empty, or save it as CSV."
                )


def read_text(path: Path, *, numbers: bool = True) -> tuple[list[str], list[str], np.ndarray]:
    """Class names, column names and cells of a delimited text file.

    Unless `numbers` are wanted, cells may hold any text.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            delimiter = _delimiter(head)
            file.seek(0)
            lines = csv.reader(file, delimiter=delimiter, strict=True)
            header = next(lines, [])
            names, rows = [], []
            for cells in lines:
                if not cells:
                    continue
                if len(cells) != len(header):
                    raise ValueError(
                        f"{path}, line {lines.line_num} (class {cells[0]!r}): {len(cells)} cells, "
                        f"but the header has {len(header)}."
                    )
                if numbers and any(
                    "_" in cell for cell in cells[1:]
                ):  # Python would read 1_0 as 10
                    raise ValueError(
                        f"{path}, line {lines.line_num} (class {cells[0]!r}): a number must not "
                        f"hold an underscore."
                    )
                names.append(cells[0])
                rows.append(cells[1:])
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; save it as 'CSV UTF-8'.") from None
    except csv.Error as error:
        raise ValueError(f"{path}, line {lines.line_num}: {error}.") from None
    if not rows:
        raise ValueError(f"{path} holds no classes: a header and one line per class are needed.")
    if len(header) < 2:
        raise ValueError(f"{path} needs a column of class names and at least one of numbers.")
    _check_first_column(path, header, names)
    counts = ([str(i) for i in range(start, start + len(header) - 1)] for start in (0, 1))
    titled_by_numbers = all(as_number(title) is not None for title in header[1:])
    if titled_by_numbers and header[0].strip().lower() != "class" and header[1:] not in counts:
        raise ValueError(
            f"{path} seems to have no header: its first line holds numbers. Add a line of column "
            f"names, beginning with 'class'."
        )
    _log.debug("read %s: %d classes, %d columns", path, len(names), len(header) - 1)
    return names, header[1:], np.array(rows, dtype=object)


def _check_first_column(path: Path, header: list[str], names: list[str]) -> None:
    """Refuse a first column that holds no class names, where another one is called `class`."""
    titles = [title.strip().lower() for title in header]
    if titles[0] == "class" or "class" not in titles:
        return
    if len(set(names)) < len(names) or all(as_number(name) is not None for name in names):
        raise ValueError(
            f"{path}: class names are in the first column, but {header[0]!r} holds numbers, or the "
            f"same more than once. Put {header[titles.index('class')]!r} first, and leave out what "
            f"describes no class."
        )


def _delimiter(header: str) -> str:
    """Comma, semicolon or tab: what comes first in the header, outside quotes."""
    bare = re.sub(r'"[^"]*"', "", header)
    found = [mark for mark in bare if mark in "\t,;"]
    return found[0] if found else ","


def read_parquet(path: Path) -> pd.DataFrame:
    """Frame of a Parquet file, with the class names as its index or as its column `class`."""
    frame = parquet_frame(path)
    pd = needed("pandas", "Parquet tables")
    if "class" not in frame.columns and isinstance(frame.index, pd.RangeIndex):
        if frame.columns.empty:
            raise ValueError(f"{path} has no columns; the first holds the class names.")
        frame = frame.set_index(frame.columns[0])
    return frame


def parquet_frame(path: Path) -> pd.DataFrame:
    """Frame of a Parquet file as it is, unless its table is far larger than the file."""
    pd = needed("pandas", "Parquet tables")
    try:
        check_parquet(path)
        frame = pd.read_parquet(path)
        # texts that are no UTF-8 are refused only when they are looked at
        list(frame.index)
        frame.select_dtypes(exclude="number").to_numpy(object)
        return frame
    except ImportError:
        raise ImportError(f"Reading {path} needs pyarrow: pip install 'latem[parquet]'.") from None
    except TooLargeError:
        raise
    except Exception as error:  # pyarrow raises many kinds for files that are cut or not its own
        reason = str(error).rstrip(".")
        raise ValueError(f"{path} is not a readable Parquet file: {reason}.") from None
