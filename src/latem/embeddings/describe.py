"""Describing a new class by an existing one: "like a blue jay, but red, with a long beak"."""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np

from latem.embeddings.table import ClassEmbeddings, as_class_embeddings


class Description:
    """A class described by another and some changes; every change gives a new description.

    Parameters
    ----------
    table : ClassEmbeddings, DataFrame, dict, (names, array) or path
        With names of its columns.
    like : class name
        The class to start from.

    Examples
    --------
    >>> import pandas as pd
    >>> traits = pd.DataFrame(
    ...     {"blue": [90, 5], "red": [0, 70], "long beak": [20, 40]}, index=["blue jay", "cardinal"]
    ... )
    >>> jay = Description(traits, "blue jay").least("blue").most("red").set({"long beak": 95})
    >>> jay.named("ruby jay").to_frame().loc["ruby jay"].tolist()
    [5.0, 70.0, 95.0]
    """

    def __init__(self, table: Any, like: Any):
        self._table = as_class_embeddings(table)
        if self._table.columns is None:
            raise ValueError(
                f"{self._table!r} has no names of columns, so there is nothing to change by name; "
                f"use a table of traits."
            )
        self.like = like
        self._vector = np.array(self._table[like])

    def set(self, values: Any) -> Description:
        """Give some columns other values.

        Parameters
        ----------
        values : dict of column name to number
        """
        other = self._copy()
        for column, value in dict(values).items():
            number = float(value)
            if not np.isfinite(number):
                raise ValueError(f"{column!r} cannot be {value!r}: give a finite number.")
            other._vector[self._place(column)] = number
        return other

    def most(self, *columns: str) -> Description:
        """Give some columns the largest value that any class of the table has there."""
        return self.set({c: self._table.vectors[:, self._place(c)].max() for c in columns})

    def least(self, *columns: str) -> Description:
        """Give some columns the smallest value that any class of the table has there."""
        return self.set({c: self._table.vectors[:, self._place(c)].min() for c in columns})

    def named(self, name: Any) -> ClassEmbeddings:
        """The new class as a table of one row, for `classes=` or `with_classes`."""
        table = self._table
        return ClassEmbeddings([name], [self._vector], name=table.name, columns=table.columns)

    def _copy(self) -> Description:
        other = Description.__new__(Description)
        other._table, other.like, other._vector = self._table, self.like, self._vector.copy()
        return other

    def _place(self, column: str) -> int:
        columns = self._table.column_names()
        if column in columns:
            return columns.index(column)
        close = difflib.get_close_matches(str(column), columns, n=3)
        close = close or [c for c in columns if str(column).lower() in c.lower()][:3]
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else (
            f"there are {', '.join(map(repr, columns[:5]))} and {max(len(columns) - 5, 0)} more."
        )  # fmt: skip
        raise ValueError(f"The table has no column {column!r}; {hint}")


def join_classes(table: ClassEmbeddings, more: ClassEmbeddings) -> ClassEmbeddings:
    """The table with further classes, matched by column names where both have them."""
    more = table.match_columns(more)
    twice = [name for name in more.names.tolist() if name in table]
    if twice:
        raise ValueError(f"The table describes {twice[:5]} already; give new classes new names.")
    names = [*table.names.tolist(), *more.names.tolist()]
    vectors = np.concatenate([table.vectors, more.vectors])
    return ClassEmbeddings(
        names, vectors, name=table.name, columns=table.columns, encoding=table.encoding
    )
