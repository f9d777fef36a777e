"""Describing a new class by an existing one: "like a blue jay, but red, with a long beak"."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from latem.core.messages import first_few
from latem.core.slim import needed
from latem.embeddings.table import ClassEmbeddings, as_class_embeddings
from latem.embeddings.trait import Trait

if TYPE_CHECKING:
    import pandas as pd

_N_TOLD = 8  # changes that a description tells


class Description:
    """A class described by another and some changes; every change gives a new description.

    Parameters
    ----------
    table : ClassEmbeddings, DataFrame, dict, (names, array) or path
        With names of its columns.
    like : class name or None
        The class to start from; None is the mean of all classes.

    Examples
    --------
    >>> import pandas as pd
    >>> traits = pd.DataFrame(
    ...     {"blue": [90, 5], "red": [0, 70], "long beak": [20, 40]}, index=["blue jay", "cardinal"]
    ... )
    >>> jay = Description(traits, "blue jay").least("blue").most("red").set({"long beak": 95})
    >>> jay
    like 'blue jay', but blue 90 → 5, red 0 → 70, long beak 20 → 95
    >>> jay.named("ruby jay").to_frame().loc["ruby jay"].tolist()
    [5.0, 70.0, 95.0]

    Of a table that was made from raw traits, these are changed as they are written there:

    >>> birds = pd.DataFrame(
    ...     {"mass": ["12 g", "350 g", "9000 g"], "diet": ["seeds", "fish", "fish; seeds"]},
    ...     index=["wren", "gull", "swan"],
    ... )
    >>> Description(ClassEmbeddings.from_traits(birds), "gull").set({"mass": "40 g"})
    like 'gull', but mass 350 g → 40 g
    """

    def __init__(self, table: Any, like: Any):
        self._table = as_class_embeddings(table)
        if self._table.columns is None:
            raise ValueError(
                f"{self._table!r} has no names of columns, so there is nothing to change by name; "
                f"use a table of traits."
            )
        self.like = like
        self._vector = self._start()

    def __repr__(self) -> str:
        changes = self._changes()
        told = changes[:_N_TOLD]
        if len(changes) > len(told):
            told.append(f"and {len(changes) - len(told)} more changes")
        start = "like the mean of all classes" if self.like is None else f"like {self.like!r}"
        return start + (f", but {', '.join(told)}" if told else "")

    def set(self, values: Mapping[str, Any]) -> Description:
        """Give some columns other values.

        Parameters
        ----------
        values : dict of column name to number
            If the table was made from raw traits, of trait to what its cell would hold, such as
            ``{"mass": "40 g", "diet": "fish"}``; an empty text means unknown. A single column of
            a trait with several, such as `diet::fish`, is a number from 0 to 1.
        """
        other = self._copy()
        for column, value in dict(values).items():
            trait = self._traits().get(column)
            if trait is not None:
                places = [self._place(each) for each in trait.columns]
                other._vector[places] = trait.encode_cell(value)
            else:
                place = self._place(column)
                other._vector[place] = self._scaled(column, _finite(column, value))
        return other

    def most(self, *columns: str) -> Description:
        """Give some columns the largest value that any class of the table has there."""
        return self._filled(columns, np.max)

    def least(self, *columns: str) -> Description:
        """Give some columns the smallest value that any class of the table has there."""
        return self._filled(columns, np.min)

    def named(self, name: Any) -> ClassEmbeddings:
        """The new class as a table of one row, for `classes=` or `with_classes`."""
        table = self._table
        return ClassEmbeddings(
            [name], [self._vector], name=table.name, columns=table.columns, encoding=table.encoding
        )

    def to_frame(self, name: Any) -> pd.DataFrame:
        """The new class as a row for a spreadsheet, which `classes=` reads again.

        It holds raw traits if the table was made from them and the class can be written so, and
        the numbers of the table otherwise.
        """
        encoding = self._table.encoding
        cells = None if encoding is None else encoding.decode(self._vector)
        if cells is None:
            return self.named(name).to_frame()
        pd = needed("pandas", "Frames")
        return pd.DataFrame([cells], index=pd.Index([name], name="class"))

    # -- how it is done -----------------------------------------------------------------------

    def _start(self) -> np.ndarray:
        """The vector that changes are made to."""
        table = self._table
        return table.vectors.mean(axis=0) if self.like is None else np.array(table[self.like])

    def _filled(self, columns: Iterable[str], choose: Any) -> Description:
        other = self._copy()
        for column in columns:
            place = self._place(column)
            other._vector[place] = choose(self._table.vectors[:, place])
        return other

    def _copy(self) -> Description:
        other = Description.__new__(Description)
        other._table, other.like, other._vector = self._table, self.like, self._vector.copy()
        return other

    def _traits(self) -> dict[str, Trait]:
        """Raw traits by name, if the table was made from such."""
        encoding = self._table.encoding
        return {} if encoding is None else {t.name: t for t in encoding.traits if t.columns}

    def _scaled(self, column: str, number: float) -> float:
        """A number as the table has it, for one of the columns of a raw trait."""
        for trait in self._traits().values():
            if column in trait.columns:
                place = trait.columns.index(column)
                return (number - trait.mean[place]) * trait.scale[place]
        return number

    def _changes(self) -> list[str]:
        """What differs from the class it is like, in words."""
        before, after = self._start(), self._vector
        columns = self._table.column_names()
        changes, told = [], set()
        for trait in self._traits().values():
            places = [columns.index(column) for column in trait.columns]
            cells = [trait.decode(vector[places]) for vector in (before, after)]
            if None not in cells:
                told |= set(trait.columns)
                if not np.array_equal(before[places], after[places]):
                    was, now = (cell or "unknown" for cell in cells)
                    changes.append(f"{trait.name} {was} → {now}")
        for column, was, now in zip(columns, before.tolist(), after.tolist(), strict=True):
            if was != now and column not in told:
                changes.append(f"{column} {was:.4g} → {now:.4g}")
        return changes

    def _place(self, column: str) -> int:
        columns = self._table.column_names()
        if column in columns:
            return columns.index(column)
        traits = self._traits()
        if column in traits:
            raise ValueError(
                f"{column!r} takes several columns; name one of "
                f"{', '.join(map(repr, traits[column].columns))}."
            )
        known = [*columns, *(name for name in traits if name not in columns)]
        close = difflib.get_close_matches(str(column), known, n=3)
        close = close or [c for c in known if str(column).lower() in c.lower()][:3]
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else (
            f"there are {first_few(columns)}."
        )  # fmt: skip
        raise ValueError(f"The table has no column {column!r}; {hint}")


def described(
    table: Any,
    like: Any,
    *,
    changes: Iterable[str] = (),
    most: Iterable[str] = (),
    least: Iterable[str] = (),
) -> Description:
    """A description from texts, as people type them.

    Parameters
    ----------
    table : ClassEmbeddings, DataFrame, dict, (names, array) or path
    like : class name
        Also as the text of a name that is a number.
    changes : iterable of str
        Each ``COLUMN=VALUE``, see `Description.set`; they come last, and no column twice.
    most, least : iterable of str
        Columns, see `Description.most` and `Description.least`; none may be named twice.

    Examples
    --------
    >>> traits = {"blue jay": {"blue": 90, "red": 0}, "cardinal": {"blue": 5, "red": 70}}
    >>> described(traits, "blue jay", changes=["red=40"], least=["blue"])
    like 'blue jay', but blue 90 → 5, red 0 → 40
    """
    table = as_class_embeddings(table)
    if like not in table:
        like = next((name for name in table.names.tolist() if str(name) == like), like)
    raw = () if table.encoding is None else table.encoding.raw_columns
    known = {*table.column_names(), *raw}
    values = [split_change(change, known) for change in changes]
    most, least = list(most), list(least)
    check_once([*most, *least])
    check_once([column for column, _ in values])
    return Description(table, like).most(*most).least(*least).set(dict(values))


def check_once(columns: Sequence[str]) -> None:
    """Refuse columns that are changed several times: only one of the changes could hold."""
    twice = [column for i, column in enumerate(columns) if column in columns[:i]]
    if twice:
        raise ValueError(f"{twice[0]!r} is changed more than once; say once what it should be.")


def split_change(text: str, columns: Collection[str]) -> tuple[str, str]:
    """Column and value of a text ``COLUMN=VALUE``.

    Names of columns may hold "=" themselves: the longest known one is taken.
    """
    places = [i for i, letter in enumerate(text) if letter == "="]
    if not places or not text[: places[0]].strip():
        raise ValueError(f"A change is written COLUMN=VALUE, such as beak=9, not {text!r}.")
    splits = [(text[:i].strip(), text[i + 1 :].strip()) for i in places]
    known = [split for split in splits if split[0] in columns]
    return known[-1] if known else splits[0]


def _finite(column: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise ValueError(f"{column!r} cannot be {value!r}: give a finite number.")
    return number


def join_classes(table: ClassEmbeddings, more: ClassEmbeddings) -> ClassEmbeddings:
    """The table with further classes, matched by column names where both have them."""
    more = table.match_columns(more)
    twice = [name for name in more.names.tolist() if name in table]
    if twice:
        raise ValueError(
            f"The table describes {first_few(twice)} already; give new classes new names."
        )
    names = [*table.names.tolist(), *more.names.tolist()]
    vectors = np.concatenate([table.vectors, more.vectors])
    return ClassEmbeddings(
        names, vectors, name=table.name, columns=table.columns, encoding=table.encoding
    )
