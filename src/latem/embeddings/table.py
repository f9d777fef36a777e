"""`ClassEmbeddings`: a labelled table of class descriptions.

Each class has a name and a vector: attribute strengths (`att`), a word vector (`w2v`, `glo`), its
place in a hierarchy (`hie`), the embedding of a sentence (`text`). A model needs nothing else to
know a class, so new rows can be added to a table after training.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latem.core.arrays import unit_rows
from latem.core.messages import first_few
from latem.core.paths import as_path, no_file
from latem.core.slim import is_frame, needed
from latem.embeddings.table_checks import as_python, check_columns, check_names, check_vectors
from latem.embeddings.table_files import (
    EXCEL_SUFFIXES,
    encoding_path,
    named_as_cause,
    read_parquet,
    read_raw,
    read_text,
)
from latem.embeddings.traits import TraitEncoding

if TYPE_CHECKING:
    import pandas as pd

_TEXT_SUFFIXES = (".csv", ".tsv")
_PARQUET_SUFFIXES = (".parquet", ".pq")
TABLE_SUFFIXES = _TEXT_SUFFIXES + _PARQUET_SUFFIXES


class ClassEmbeddings:
    """Class names and their vectors; immutable.

    Parameters
    ----------
    names : sequence of str or of int
        One name per class, all different.
    vectors : array-like of shape (n_classes, n_dimensions)
        Finite numbers.
    name : str
        Name of the embedding, such as "att".
    columns : sequence of str, optional
        What the dimensions are called, such as the attributes' names.
    encoding : TraitEncoding, optional
        How the numbers were made from a raw table of traits; classes described later by such
        traits are treated alike.

    Attributes
    ----------
    names : ndarray of shape (n_classes,)
    vectors : ndarray of shape (n_classes, n_dimensions), float64, read-only
    name : str
    columns : tuple of str, or None
    encoding : TraitEncoding or None

    Examples
    --------
    >>> table = ClassEmbeddings(["zebra", "horse"], [[1, 1], [0, 1]], columns=["striped", "hoofed"])
    >>> table
    ClassEmbeddings(2 classes × 2 dimensions)
    >>> table["zebra"]
    array([1., 1.])
    >>> table.select(["horse"]).to_frame()
           striped  hoofed
    class
    horse      0.0     1.0
    """

    names: np.ndarray
    vectors: np.ndarray
    name: str
    columns: tuple[str, ...] | None
    encoding: TraitEncoding | None

    def __init__(
        self,
        names: Iterable[Any],
        vectors: Any,
        *,
        name: str = "",
        columns: Sequence[Any] | None = None,
        encoding: TraitEncoding | None = None,
    ):
        self.names = check_names(list(names))
        self.name = name
        self.vectors = check_vectors(vectors, self.names, columns)
        self.columns = check_columns(columns, self.vectors.shape[1])
        if encoding is not None and list(self.columns or ()) != encoding.columns:
            raise ValueError("The encoding of traits gives other columns than the table has.")
        self.encoding = encoding
        self._index = {key: i for i, key in enumerate(self.names.tolist())}

    # -- making one ---------------------------------------------------------------------------

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, *, name: str = "") -> ClassEmbeddings:
        """From a DataFrame whose index, or whose column `class`, holds the class names."""
        if "class" in frame.columns:
            frame = frame.set_index("class")
        if frame.columns.has_duplicates:
            doubled = frame.columns[frame.columns.duplicated()].unique().tolist()
            raise ValueError(f"The table names these columns twice: {first_few(doubled)}.")
        return cls(frame.index, frame.to_numpy(object), name=name, columns=list(frame.columns))

    @classmethod
    def from_traits(
        cls,
        table: pd.DataFrame | str | PathLike[str],
        *,
        name: str | None = None,
        ordered: Mapping[str, Sequence[str]] | None = None,
    ) -> ClassEmbeddings:
        """From a raw table of traits: units that differ, categories, several values, gaps.

        A table that is what models want already (numbers on one scale) stays as it is. Otherwise
        `encoding` says what was done, in its `notes`, and does the same to classes that are
        described later.

        Parameters
        ----------
        table : DataFrame, or path of a CSV, TSV, Parquet or Excel file
            One row per class.
        name : str, optional
            Name of the table; by default that of the file.
        ordered : dict of column name to values, optional
            Values of ordered categories, from least to most. Usual ones, such as small, medium
            and large, are recognised.

        Examples
        --------
        >>> import pandas as pd
        >>> birds = pd.DataFrame(
        ...     {"weight": [12.0, 350.0, 9000.0], "diet": ["seeds", "fish", "fish; seeds"]},
        ...     index=["wren", "gull", "swan"],
        ... )
        >>> table = ClassEmbeddings.from_traits(birds)
        >>> table.columns
        ('weight', 'diet::fish', 'diet::seeds')
        >>> table.encoding.notes[0]
        "'diet' has several values in a cell, apart by ';': 'fish', 'seeds'."
        """
        where = ""
        if is_frame(table):
            frame = table.set_index("class") if "class" in table.columns else table
        else:
            where, name = f"{table}: ", Path(table).stem if name is None else name
            frame = _numbers_or_raw(Path(table), cls)
        try:
            encoding = TraitEncoding.learn(frame, ordered=ordered)
            if encoding is None:
                return cls.from_frame(frame, name=name or "")
            numbers = encoding.transform(frame)
            return cls(
                frame.index, numbers, name=name or "", columns=encoding.columns, encoding=encoding
            )
        except ValueError as error:
            raise ValueError(f"{where}{error}") from None

    @classmethod
    def from_dict(cls, vectors: Mapping[Any, Any], *, name: str = "") -> ClassEmbeddings:
        """From a mapping class name → vector (or → mapping of column to value).

        >>> ClassEmbeddings.from_dict({"zebra": {"striped": 1}, "horse": {"striped": 0}}).columns
        ('striped',)
        """
        rows = list(vectors.values())
        if rows and all(isinstance(row, Mapping) for row in rows):
            columns = list(rows[0])
            for key, row in vectors.items():
                odd = set(columns) ^ set(row)
                if odd:
                    raise ValueError(
                        f"Class {key!r} does not have the same columns as "
                        f"{next(iter(vectors))!r}: {first_few(sorted(map(str, odd)))}."
                    )
            values = [[row[column] for column in columns] for row in rows]
            return cls(vectors, values, name=name, columns=columns)
        return cls(vectors, rows, name=name)

    @classmethod
    def read(cls, path: str | PathLike[str], *, name: str | None = None) -> ClassEmbeddings:
        """From a CSV, TSV or Parquet file: a column of class names, then one per dimension.

        In a text file the first column is the class, whatever its header says; commas,
        semicolons and tabs are recognised. The table is called after the file unless `name`
        is given.
        """
        path = as_path(path, "a class table")
        if not path.is_file():
            raise no_file(path, "class table")
        name = path.stem if name is None else name
        suffix = path.suffix.lower()
        if suffix in _TEXT_SUFFIXES:
            names, columns, values = read_text(path)
            with named_as_cause(path):
                return cls(names, values, name=name, columns=columns)
        if suffix in _PARQUET_SUFFIXES:
            frame = read_parquet(path)
            with named_as_cause(path):
                return cls.from_frame(frame, name=name)
        raise ValueError(
            f"{path}: a class table is one of {', '.join(TABLE_SUFFIXES)}, not {suffix or 'this'}."
        )

    # -- looking at one -----------------------------------------------------------------------

    @property
    def n_dimensions(self) -> int:
        """Width of the vectors."""
        return self.vectors.shape[1]

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return as_python(name) in self._index

    def __getitem__(self, name: Any) -> np.ndarray:
        return self.vectors[self.positions([name])[0]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClassEmbeddings):
            return NotImplemented
        return (
            self.name == other.name
            and self.columns == other.columns
            and self.names.tolist() == other.names.tolist()
            and np.array_equal(self.vectors, other.vectors)
            and self.encoding == other.encoding
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        title = f"{self.name!r}, " if self.name else ""
        return f"ClassEmbeddings({title}{len(self)} classes × {self.n_dimensions} dimensions)"

    def __deepcopy__(self, memo: dict) -> ClassEmbeddings:
        return self  # immutable: cloned estimators share one table

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self.vectors.flags.writeable = False
        self.names.flags.writeable = False

    def to_frame(self) -> pd.DataFrame:
        """As a DataFrame with the class names as index."""
        pd = needed("pandas", "Frames")
        index = pd.Index(self.names, name="class")
        return pd.DataFrame(self.vectors.copy(), index=index, columns=self.column_names())

    def positions(self, names: Iterable[Any]) -> np.ndarray:
        """Row numbers of some classes; an unknown name is an error that suggests near ones."""
        wanted = [as_python(name) for name in names]
        missing = [name for name in wanted if name not in self._index]
        if missing:
            raise ValueError(
                f"The class table{f' {self.name!r}' if self.name else ''} has no rows for "
                f"{first_few(missing)}{self._hint(missing)}"
            )
        return np.array([self._index[name] for name in wanted], dtype=np.intp)

    # -- deriving another ---------------------------------------------------------------------

    def select(self, names: Iterable[Any]) -> ClassEmbeddings:
        """Table of just these classes, in this order."""
        rows = self.positions(names)
        return self._with(self.names[rows], self.vectors[rows], self.encoding)

    def l2(self) -> ClassEmbeddings:
        """Table with every vector divided by its Euclidean length."""
        return self._with(self.names, self.unit_vectors())

    def unit_vectors(self) -> np.ndarray:
        """Vectors divided by their Euclidean lengths."""
        zero = self.names[~self.vectors.any(axis=1)].tolist()
        if zero:
            raise ValueError(
                f"The vectors of {first_few(zero)} are all zero and have no direction to "
                f"normalise; describe those classes or leave them out."
            )
        return unit_rows(self.vectors)

    def concat(self, other: ClassEmbeddings, *others: ClassEmbeddings) -> ClassEmbeddings:
        """Early fusion (*cnc*): normalise each part, join side by side, normalise.

        All tables must describe the same classes; rows are matched by name. However many tables
        are joined, all weigh the same. Join several in one call: a table that is already joined
        counts as one part.

        >>> att = ClassEmbeddings(["a", "b"], [[3, 4], [1, 0]], name="att")
        >>> glo = ClassEmbeddings(["b", "a"], [[2.0], [5.0]], name="glo")
        >>> att.concat(glo)
        ClassEmbeddings('att+glo', 2 classes × 3 dimensions)
        """
        tables = [self, *map(as_class_embeddings, (other, *others))]
        for table in tables[1:]:
            lone = set(self._index) ^ set(table._index)
            if lone:
                raise ValueError(
                    f"Tables {self.name!r} and {table.name!r} do not describe the same classes: "
                    f"only one of them has {first_few(sorted(lone, key=str))}; select common "
                    f"classes."
                )
        parts = [table.select(self.names).unit_vectors() for table in tables]
        names = [table.name or f"part{i}" for i, table in enumerate(tables, start=1)]
        columns = None
        if any(table.columns is not None for table in tables):
            columns = [
                f"{name}:{column}"
                for name, table in zip(names, tables, strict=True)
                for column in table.column_names()
            ]
        joined = np.concatenate(parts, axis=1)
        fused = ClassEmbeddings(self.names, joined, name="+".join(names), columns=columns)
        return fused.l2()

    def matching(self, table: Any) -> ClassEmbeddings:
        """Table of other classes with this one's columns; raw traits are encoded as these were.

        Parameters
        ----------
        table : ClassEmbeddings, DataFrame, dict, (names, array) or path
            With the columns of this table or, if it was made from raw traits, with those. Where
            both have the same names, a ClassEmbeddings and the table of a dataset folder hold
            numbers, anything else raw traits.
        """
        numbers_only = isinstance(table, ClassEmbeddings | tuple) or (
            isinstance(table, str | PathLike) and encoding_path(Path(table)).is_file()
        )
        if self.encoding is not None and not numbers_only:
            frame = _raw_frame(table)
            titles = set() if frame is None else set(map(str, frame.columns))
            is_raw = titles != set(self.columns or ()) or titles == set(self.encoding.raw_columns)
            if frame is not None and is_raw:
                frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
                numbers = self.encoding.transform(frame)
                return self._with(frame.index, numbers, self.encoding)
        if isinstance(table, str | PathLike) and Path(table).suffix.lower() in EXCEL_SUFFIXES:
            table = read_raw(Path(table))
        return self.match_columns(as_class_embeddings(table))

    def match_columns(self, table: ClassEmbeddings) -> ClassEmbeddings:
        """`table` with its columns in the order of this one's.

        Named columns are matched by name, unnamed ones by place.
        """
        if self.columns is not None and table.columns is not None:
            missing = [column for column in self.columns if column not in set(table.columns)]
            extra = [column for column in table.columns if column not in set(self.columns)]
            if missing or extra:
                raise ValueError(
                    "The new class table needs the columns of the one the model was trained with"
                    + (f"; it lacks {first_few(missing)}" if missing else "")
                    + (f"; it also has {first_few(extra)}" if extra else "")
                    + "."
                )
            place = {column: i for i, column in enumerate(table.columns)}
            order = [place[column] for column in self.columns]
            return ClassEmbeddings(
                table.names, table.vectors[:, order], name=table.name, columns=self.columns
            )
        if table.n_dimensions != self.n_dimensions:
            raise ValueError(
                f"The new class table has {table.n_dimensions} columns, but the model was trained "
                f"with {self.n_dimensions}; describe new classes in the same columns."
            )
        return table

    def _with(
        self, names: Any, vectors: np.ndarray, encoding: TraitEncoding | None = None
    ) -> ClassEmbeddings:
        return ClassEmbeddings(
            names, vectors, name=self.name, columns=self.columns, encoding=encoding
        )

    def column_names(self) -> list[str]:
        """Names of the columns, made up from the table's name where it has none."""
        if self.columns is not None:
            return list(self.columns)
        return [f"{self.name or 'dim'}_{i:03d}" for i in range(self.n_dimensions)]

    def _hint(self, missing: list[Any]) -> str:
        """What to write instead of names that the table does not have."""
        first, known = missing[0], self.names[0].item()
        if type(first) is not type(known):
            return (
                f"; its names are of type {type(known).__name__} (such as {known!r}), not "
                f"{type(first).__name__}."
            )
        if len(missing) == 1:
            near = difflib.get_close_matches(str(first), map(str, self._index), n=1)
            if near:
                return f"; did you mean {near[0]!r}?"
        return f"; it describes {first_few(list(self._index))}."


def as_class_embeddings(table: Any) -> ClassEmbeddings:
    """Table from anything that can be one: a table, DataFrame, dict, (names, array) or path."""
    if isinstance(table, ClassEmbeddings):
        return table
    if is_frame(table):
        return ClassEmbeddings.from_frame(table)
    if isinstance(table, Mapping):
        return ClassEmbeddings.from_dict(table)
    if isinstance(table, str | PathLike):
        return ClassEmbeddings.read(table)
    if isinstance(table, tuple) and len(table) == 2:
        return ClassEmbeddings(*table)
    raise TypeError(
        "A class table must be a ClassEmbeddings, a DataFrame indexed by class, a dict of class → "
        f"vector, a pair (names, array) or a path, not {type(table).__name__}."
    )


def _numbers_or_raw(path: Path, kind: type[ClassEmbeddings]) -> pd.DataFrame:
    """A table file as numbers if it holds nothing else, or as it is."""
    if path.suffix.lower() in _TEXT_SUFFIXES and path.is_file():
        try:
            return kind.read(path).to_frame()
        except ValueError:  # not all numbers: told in full by what reads it as it is
            return read_raw(path)
    return read_raw(path)


def _raw_frame(table: Any) -> pd.DataFrame | None:
    """A table of named columns as it is, or None if its columns have no names."""
    if isinstance(table, str | PathLike):
        return read_raw(Path(table))
    if is_frame(table):
        return table.set_index("class") if "class" in table.columns else table
    if isinstance(table, Mapping) and all(isinstance(row, Mapping) for row in table.values()):
        pd = needed("pandas", "Tables of raw traits")
        return pd.DataFrame.from_dict(dict(table), orient="index")
    return None
