"""The paper's tables and protocols: TOML files, read once and checked when they are read.

What is read is shared by all who ask for it and therefore cannot be changed: its mappings are
read-only and its sequences are tuples.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from latem.datasets.folder import read_toml

_HERE = Path(__file__).parent
KINDS = ("statistics", "accuracy", "maps", "curve", "gallery")
STANDARD = "standard"
FIVE = "five"
CHOSEN = "chosen"
MEAN = "mean"
FUSIONS = ("", "early", CHOSEN, MEAN)
LATEM, PRUNED = "LatEm", "LatEm, pruned"
_ORDER = (
    "table1", "table2", "table3", "table4", "table5_left", "table5_right", "figure3", "appendix_a",
    "appendix_b", "figure2",
)  # fmt: skip


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Recipe:
    """How a model is made.

    Attributes
    ----------
    model : str
        Name of a class of latem.
    params : dict
        Fixed parameters.
    tune : dict of sequences
        Chosen on the val classes of the standard split and kept for all splits.
    grid : dict of sequences
        Chosen on the val classes of each split.
    """

    name: str
    model: str
    params: Mapping[str, Any] = field(default_factory=_nothing)
    tune: Mapping[str, Sequence[Any]] = field(default_factory=_nothing)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=_nothing)


@dataclass(frozen=True)
class PaperDataset:
    """One of the paper's datasets: names of folders that hold it, and its step size.

    Folders in `other_features` hold it with features that are not the paper's, for which its
    step size was not chosen.
    """

    key: str
    folders: tuple[str, ...]
    learning_rate: float
    other_features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """A row of a table: class embeddings, perhaps several with a way to combine them.

    A row `beside` another one is ours alone: it combines the same members in another way, wherever
    the paper has a number in that row. Nothing is published for it.
    """

    name: str
    embeddings: tuple[str, ...]
    fusion: str = ""
    beside: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table: dataset and recipe, with the published numbers by row."""

    dataset: str
    name: str
    recipe: str
    published: Mapping[str, float] = field(default_factory=_nothing)
    fusion: str = ""


@dataclass(frozen=True)
class Entry:
    """Where an entry of a table or figure comes from.

    Attributes
    ----------
    dataset, recipe : str
    embeddings : tuple of str
    fusion : str
        "chosen" and "mean" combine the scores of one model per embedding: by a weighted sum whose
        weights are chosen on val classes, or by their mean. Otherwise one model gets all
        embeddings, joined.
    splits : {"standard", "five"}
    n_maps : int or None
        Number of maps, if the entry prescribes it.
    """

    dataset: str
    recipe: str
    embeddings: tuple[str, ...]
    fusion: str = ""
    splits: str = STANDARD
    n_maps: int | None = None

    @property
    def combines(self) -> bool:
        """Whether scores of several models are combined."""
        return self.fusion in (CHOSEN, MEAN)


@dataclass(frozen=True)
class PaperTable:
    """A table or figure of the paper.

    Attributes
    ----------
    id, title, caption : str
    kind : str
        One of `KINDS`.
    splits : {"standard", "five"}
    rows : tuple of Row
    columns : tuple of Column
    more : dict
        What only some kinds have, such as the numbers of maps along a curve.
    """

    id: str
    title: str
    caption: str
    kind: str
    splits: str = STANDARD
    rows: tuple[Row, ...] = ()
    columns: tuple[Column, ...] = ()
    more: Mapping[str, Any] = field(default_factory=_nothing)

    def cell(self, row: Row, column: Column) -> Entry | None:
        """Where the number in a cell comes from; None if the paper has no number there."""
        if (row.beside or row.name) not in column.published:
            return None
        fusion = column.fusion or row.fusion
        if row.beside:
            if fusion == "early":
                return None
            fusion = row.fusion
        return Entry(column.dataset, column.recipe, row.embeddings, fusion, self.splits)

    def point(self, embedding: str, n_maps: int) -> Entry:
        """Where a point of a curve comes from."""
        dataset, recipe = self.more["dataset"], self.more["recipe"]
        return Entry(dataset, recipe, (embedding,), splits=FIVE, n_maps=n_maps)

    def gallery(self, embedding: str, column: Column) -> Entry:
        """The model whose maps a gallery shows."""
        return Entry(self.more["dataset"], column.recipe, (embedding,))

    def entries(self) -> Iterator[Entry]:
        """All entries of the table; statistics have none, since they need no model."""
        if self.kind in ("accuracy", "maps"):
            for row in self.rows:
                for column in self.columns:
                    entry = self.cell(row, column)
                    if entry is not None:
                        yield entry
        elif self.kind == "curve":
            for embedding in self.more["embeddings"]:
                for n_maps in self.more["n_maps"]:
                    yield self.point(embedding, n_maps)
        elif self.kind == "gallery":
            for embedding in self.more["embeddings"]:
                for column in self.columns:
                    yield self.gallery(embedding, column)


def detail_entries(tables: Mapping[str, PaperTable]) -> list[Entry]:
    """Models of which the report shows details: LatEm with one embedding, on the standard split."""
    found: dict[Entry, None] = {}
    for recipe in (PRUNED, LATEM):
        for table in tables.values():
            for column in table.columns:
                for row in table.rows:
                    if column.recipe == recipe and len(row.embeddings) == 1:
                        found[Entry(column.dataset, recipe, row.embeddings)] = None
    return list(found)


@dataclass(frozen=True)
class Protocols:
    """All that is known of the paper's experiments.

    Attributes
    ----------
    tables : dict of str to PaperTable
        By id, in the paper's order.
    recipes : dict of str to Recipe
        By name.
    datasets : dict of str to PaperDataset
        By key.
    """

    tables: Mapping[str, PaperTable]
    recipes: Mapping[str, Recipe]
    datasets: Mapping[str, PaperDataset]

    def with_epochs(self, n_epochs: int) -> Protocols:
        """The same experiments with another number of passes; a choice among several is capped."""
        recipes = {}
        for name, recipe in self.recipes.items():
            params, tune = dict(recipe.params), dict(recipe.tune)
            if "n_epochs" in params:
                params["n_epochs"] = n_epochs
            if "n_epochs" in tune:
                tune["n_epochs"] = sorted({min(n, n_epochs) for n in tune["n_epochs"]})
            recipes[name] = dataclasses.replace(
                recipe, params=_read_only(params), tune=_read_only(tune)
            )
        return dataclasses.replace(self, recipes=_read_only(recipes))


@cache
def read_protocols() -> Protocols:
    """The tables, recipes and datasets of the paper; the files are read once per process."""
    content = _read("protocols.toml")
    recipes = {name: Recipe(name, **entry) for name, entry in content["recipes"].items()}
    datasets = {key: PaperDataset(key, **entry) for key, entry in content["datasets"].items()}
    tables = {name: _table(_read(f"tables/{name}.toml")) for name in _ORDER}
    for table in tables.values():
        _check_names(table, recipes, datasets)
    return Protocols(_read_only(tables), _read_only(recipes), _read_only(datasets))


def _check_names(
    table: PaperTable, recipes: Mapping[str, Recipe], datasets: Mapping[str, PaperDataset]
) -> None:
    named = [(column.recipe, column.dataset) for column in table.columns]
    if table.kind == "curve":
        named.append((table.more["recipe"], table.more["dataset"]))
    for recipe, dataset in named:
        if recipe not in recipes:
            raise ValueError(f"{table.id} names an unknown recipe {recipe!r}.")
        if dataset not in datasets:
            raise ValueError(f"{table.id} names an unknown dataset {dataset!r}.")


def _read(name: str) -> Mapping[str, Any]:
    return _read_only(read_toml(_HERE / name))


def _read_only(value: Any) -> Any:
    """The same value with read-only mappings and with tuples for lists, all the way down."""
    if isinstance(value, Mapping):
        return MappingProxyType({key: _read_only(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(_read_only(item) for item in value)
    return value


def _table(content: Mapping[str, Any]) -> PaperTable:
    known = {"id", "title", "caption", "kind", "splits", "row", "column"}
    if content["kind"] not in KINDS:
        raise ValueError(f"{content['id']} is of unknown kind {content['kind']!r}.")
    rows = tuple(Row(**row) for row in content.get("row", ()))
    names = {row.name for row in rows}
    for row in rows:
        if row.beside and row.beside not in names:
            raise ValueError(
                f"{content['id']} has a row {row.name!r} beside {row.beside!r}, which it lacks."
            )
    columns = []
    for column in content.get("column", ()):
        unknown = set(column.get("published", {})) - names
        if unknown:
            raise ValueError(f"{content['id']} has published numbers for unknown rows {unknown}.")
        columns.append(Column(**{"dataset": content.get("dataset"), **column}))
    table = PaperTable(
        id=content["id"],
        title=content["title"],
        caption=content["caption"],
        kind=content["kind"],
        splits=content.get("splits", STANDARD),
        rows=rows,
        columns=tuple(columns),
        more=_read_only({key: value for key, value in content.items() if key not in known}),
    )
    strange = {entry.fusion for entry in table.entries()} - set(FUSIONS)
    if strange:
        raise ValueError(f"{table.id} combines embeddings in unknown ways {sorted(strange)}.")
    if any(entry.combines and entry.splits != STANDARD for entry in table.entries()):
        raise ValueError(
            f"{table.id} combines scores over five splits, but they are kept for the standard one."
        )
    return table
