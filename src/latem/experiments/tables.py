"""Reading the tables and protocols: TOML files, checked when they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from latem.datasets.folder import read_toml

_HERE = Path(__file__).parent
KINDS = ("statistics", "accuracy", "maps", "curve", "gallery")


@dataclass(frozen=True)
class Recipe:
    """How a model is made.

    Attributes
    ----------
    model : str
        Name of a class of latem.
    params : dict
        Fixed parameters.
    tune : dict of lists
        Chosen on the val classes of the standard split and kept for all splits.
    grid : dict of lists
        Chosen on the val classes of each split.
    """

    name: str
    model: str
    params: Mapping[str, Any] = field(default_factory=dict)
    tune: Mapping[str, list[Any]] = field(default_factory=dict)
    grid: Mapping[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class PaperDataset:
    """One of the paper's datasets: names of folders that hold it, and its step size.

    Folders in `other_features` hold it with other features than the paper's, to which the step
    size does not belong.
    """

    key: str
    folders: tuple[str, ...]
    learning_rate: float
    other_features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """A row of a table: class embeddings, perhaps several with a way to combine them."""

    name: str
    embeddings: tuple[str, ...]
    fusion: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table: dataset and recipe, with the published numbers by row."""

    dataset: str
    name: str
    recipe: str
    published: Mapping[str, float] = field(default_factory=dict)
    fusion: str = ""


@dataclass(frozen=True)
class PaperTable:
    """A table or figure of the paper."""

    id: str
    title: str
    caption: str
    kind: str
    splits: str = "standard"
    rows: tuple[Row, ...] = ()
    columns: tuple[Column, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)


def read_tables() -> dict[str, PaperTable]:
    """All tables by id, in the paper's order."""
    folder = _HERE / "tables"
    order = (
        "table1", "table2", "table3", "table4", "table5_left", "table5_right", "figure3",
        "appendix_a", "appendix_b", "figure2",
    )  # fmt: skip
    tables = {name: _table(read_toml(folder / f"{name}.toml")) for name in order}
    recipes, datasets = read_recipes(), read_datasets()
    for table in tables.values():
        for column in table.columns:
            if column.recipe not in recipes:
                raise ValueError(f"{table.id} names an unknown recipe {column.recipe!r}.")
            if column.dataset not in datasets:
                raise ValueError(f"{table.id} names an unknown dataset {column.dataset!r}.")
    return tables


def read_recipes() -> dict[str, Recipe]:
    """All recipes by name."""
    return {name: Recipe(name, **entry) for name, entry in _protocols()["recipes"].items()}


def read_datasets() -> dict[str, PaperDataset]:
    """The paper's datasets by key."""
    return {
        key: PaperDataset(
            key,
            tuple(entry["folders"]),
            entry["learning_rate"],
            tuple(entry.get("other_features", ())),
        )
        for key, entry in _protocols()["datasets"].items()
    }


def _protocols() -> dict[str, Any]:
    return read_toml(_HERE / "protocols.toml")


def _table(content: dict[str, Any]) -> PaperTable:
    known = {"id", "title", "caption", "kind", "splits", "row", "column"}
    if content["kind"] not in KINDS:
        raise ValueError(f"{content['id']} is of unknown kind {content['kind']!r}.")
    rows = tuple(
        Row(row["name"], tuple(row["embeddings"]), row.get("fusion", ""))
        for row in content.get("row", ())
    )
    names = {row.name for row in rows}
    columns = []
    for column in content.get("column", ()):
        odd = set(column.get("published", {})) - names
        if odd:
            raise ValueError(f"{content['id']} has published numbers for unknown rows {odd}.")
        columns.append(Column(**{"dataset": content.get("dataset"), **column}))
    return PaperTable(
        id=content["id"],
        title=content["title"],
        caption=content["caption"],
        kind=content["kind"],
        splits=content.get("splits", "standard"),
        rows=rows,
        columns=tuple(columns),
        more={key: value for key, value in content.items() if key not in known},
    )
