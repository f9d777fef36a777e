"""What a Parquet file promises is looked at before it is read: it decides what reading takes."""

from __future__ import annotations

from os import PathLike
from typing import Any

from latem.core.memory import check_unpacked

_NUMBER = 8  # bytes of a value in memory


def check_parquet(path: str | PathLike[str]) -> None:
    """Refuse a Parquet file that contradicts itself, or whose table is far larger than the file.

    A reader reserves memory for the rows that a group of rows promises, whatever the file says
    elsewhere. (Descriptions of single columns are not looked at: pyarrow ends the process on some
    that are damaged, where reading the file is a plain error.)

    Parameters
    ----------
    path : path

    Raises
    ------
    ValueError
        If its footer is damaged; pyarrow raises errors of its own if there is none.
    TooLargeError
        If its table is far larger than the file.
    """
    from pyarrow import parquet

    promise = parquet.read_metadata(path)
    check_unpacked(path, _NUMBER * promise.num_rows * promise.num_columns, "save it as CSV")
    check_groups(promise)


def check_groups(promise: Any) -> None:
    """Refuse a Parquet file whose groups of rows are not those of its table.

    Parameters
    ----------
    promise : pyarrow.parquet.FileMetaData

    Raises
    ------
    ValueError
    """
    counts = [promise.row_group(i).num_rows for i in range(promise.num_row_groups)]
    if sum(counts) != promise.num_rows or min([0, *counts]) < 0:
        raise ValueError(
            f"its groups of rows have {sum(counts)} rows, the table {promise.num_rows}"
        )
