"""Values that are tried for each model unless others are given, as the registry has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from latem.models import model_rows


class UsualGrids(Mapping[str, Mapping[str, Sequence[Any]]]):
    """Usual grids by the name of a registered model that has one."""

    def __getitem__(self, name: str) -> Mapping[str, Sequence[Any]]:
        grid = model_rows.find(name).grid
        if not grid:
            raise KeyError(name)
        return grid

    def __iter__(self) -> Iterator[str]:
        return (row.name for row in model_rows.rows() if row.grid)

    def __len__(self) -> int:
        return sum(1 for _ in self)


GRIDS = UsualGrids()
