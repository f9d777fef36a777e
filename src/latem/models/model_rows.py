"""What latem knows about a model: its row in the registry, and how rows are added and found.

`latem.models.registry` lists the models of the library. Any other package adds a row with
`latem.register`, or by an entry point of the group "latem.models" that has the model's name and
leads to a `ModelRow`; its models are then saved, loaded, searched, evaluated and compared like
those of the library. `docs/adding-a-model.md` shows how.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

ENTRY_POINTS = "latem.models"


@dataclass(frozen=True)
class ModelRow:
    """What latem knows about a model.

    Parameters
    ----------
    name : str
        Name of its class; files know it by that.
    module : str
        Module that holds the class.
    grid : dict of parameter name to values
        Values to try unless others are given; empty if there is nothing to choose.
    on_command_line : bool
        Whether `latem train --model` offers it.
    maps : str or None
        Attribute of the fitted model that holds its bilinear maps, (n_features, n_dimensions) or
        several of them, if scores are sums over the dimensions of the class vector: then answers
        can be explained.
    kind : type or None
        The class itself, if it is already imported; otherwise it is imported when first needed.
    """

    name: str
    module: str
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    on_command_line: bool = True
    maps: str | None = None
    kind: type | None = field(default=None, repr=False)

    def load(self) -> Any:
        """The model's class."""
        if self.kind is not None:
            return self.kind
        return getattr(import_module(self.module), self.name)


_ROWS: dict[str, ModelRow] = {}


def register(row: ModelRow | type, **options: Any) -> Any:
    """Add a model to the registry.

    Parameters
    ----------
    row : ModelRow, or the model's class
    **options
        With a class: `grid`, `on_command_line` and `maps` of its row.

    Returns
    -------
    row
        So that a class can be decorated.
    """
    if isinstance(row, ModelRow):
        made = row
        if options:
            raise TypeError("register takes options with a class, not with a ModelRow.")
    elif not isinstance(row, type):
        raise TypeError(f"register takes a model's class or a ModelRow, not {row!r}.")
    else:
        made = ModelRow(row.__name__, row.__module__, kind=row, **options)
    known = _ROWS.get(made.name)
    if known is not None and known.module != made.module:
        raise ValueError(
            f"There is a model {made.name!r} already, in {known.module}; files could not tell the "
            f"two apart. Give yours another name."
        )
    _ROWS[made.name] = made
    return row


def find(name: str) -> ModelRow:
    """Row of a model by name; an unknown one is a KeyError."""
    if name not in _ROWS:
        for entry in entry_points(group=ENTRY_POINTS, name=name):
            register(entry.load())
    return _ROWS[name]


def row_of(model: Any) -> ModelRow | None:
    """Row of a model or of the nearest of its bases that has one."""
    for kind in type(model).__mro__:
        row = _ROWS.get(kind.__name__)
        if row is not None and row.module == kind.__module__:
            return row
    return None


def rows() -> Iterator[ModelRow]:
    """All rows, those of installed packages included; one that cannot be used causes a warning."""
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            find(entry.name)
        except Exception as error:  # of somebody else's code: anything
            warnings.warn(
                f"The model {entry.name!r} of an installed package cannot be used: {error}",
                UserWarning,
                stacklevel=2,
            )
    yield from tuple(_ROWS.values())


def own_rows() -> Iterator[ModelRow]:
    """The rows that are registered so far; asks no installed package."""
    yield from tuple(_ROWS.values())
