"""Reading class tables: delimited text as spreadsheets write it, and Parquet.

Text is read by the standard library's `csv`, not by pandas: a wrong cell is then named by line and
column, and no class called "NA" goes missing.
"""

from __future__ import annotations

import csv
import logging
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latem.core.memory import TooLargeError, check_unpacked
from latem.core.slim import needed

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)


def as_number(cell: Any) -> float | None:
    """Number that a cell holds, or None."""
    try:
        return None if "_" in str(cell) else float(cell)
    except (TypeError, ValueError):
        return None


EXCEL_SUFFIXES = (".xlsx", ".xlsm", ".xls")
_TRAITS_SUFFIX = ".traits.json"


def encoding_path(path: Path) -> Path:
    """Where a table's encoding is kept: how raw traits became the numbers of this file."""
    return path.with_name(f"{path.stem}{_TRAITS_SUFFIX}")


def read_raw(path: Path) -> pd.DataFrame:
    """Cells of a table as they are, texts included: CSV, TSV, Parquet or Excel.

    Class names are the index: the first column, or the one called `class` in a Parquet file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no class table {str(path)!r}.")
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
        frame = pd.read_excel(path, dtype=object, keep_default_na=False)
    except ImportError as error:
        if "openpyxl" not in str(error):  # pandas wants another reader for it
            raise ImportError(
                f"{path} is in the format of Excel before 2007; save it as .xlsx or .csv."
            ) from None
        raise ImportError(f"Reading {path} needs openpyxl: pip install 'latem[excel]'.") from None
    except Exception as error:  # zip and XML errors of files that are cut or not Excel's
        raise ValueError(f"{path} is not a readable Excel file: {error}.") from None
    if frame.shape[1] < 2:
        raise ValueError(f"{path} needs a column of class names and at least one other column.")
    return frame.iloc[:, 1:].set_axis(frame.iloc[:, 0].map(str))


def _check_excel(path: Path) -> None:
    """Refuse a workbook that unpacks to far more than itself; what is none, pandas tells."""
    if zipfile.is_zipfile(path):
        try:
            with zipfile.ZipFile(path) as parts:
                size = sum(part.file_size for part in parts.infolist())
        except zipfile.BadZipFile as error:
            raise ValueError(f"{path} is not a readable Excel file: {error}.") from None
        check_unpacked(path, size, "save it as CSV")


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
    counts = ([str(i) for i in range(start, start + len(header) - 1)] for start in (0, 1))
    titled_by_numbers = all(as_number(title) is not None for title in header[1:])
    if titled_by_numbers and header[0].strip().lower() != "class" and header[1:] not in counts:
        raise ValueError(
            f"{path} seems to have no header: its first line holds numbers. Add a line of column "
            f"names, beginning with 'class'."
        )
    _log.debug("read %s: %d classes, %d columns", path, len(names), len(header) - 1)
    return names, header[1:], np.array(rows, dtype=object)


def _delimiter(header: str) -> str:
    """Comma, semicolon or tab: what comes first in the header, outside quotes."""
    bare = re.sub(r'"[^"]*"', "", header)
    found = [mark for mark in bare if mark in "\t,;"]
    return found[0] if found else ","


def read_parquet(path: Path) -> pd.DataFrame:
    """Frame of a Parquet file, with the class names as its index or as its column `class`."""
    pd = needed("pandas", "Parquet tables")
    try:
        check_parquet(path)
        frame = pd.read_parquet(path)
    except ImportError:
        raise ImportError(f"Reading {path} needs pyarrow: pip install 'latem[parquet]'.") from None
    except TooLargeError:
        raise
    except Exception as error:  # pyarrow raises many kinds for files that are cut or not its own
        raise ValueError(f"{path} is not a readable Parquet file: {error}.") from None
    if "class" not in frame.columns and isinstance(frame.index, pd.RangeIndex):
        frame = frame.set_index(frame.columns[0])
    return frame


def check_parquet(path: Path) -> None:
    """Refuse a Parquet file whose table is far larger than the file, before it is read."""
    from pyarrow import parquet

    promise = parquet.read_metadata(path)
    check_unpacked(path, 8 * promise.num_rows * promise.num_columns, "save it as CSV")
