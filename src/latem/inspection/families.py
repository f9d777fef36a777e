"""Traits that belong together: what a family of them adds to the lead of one class over another.

Attribute tables have many columns for one trait, such as `has_bill_shape::hooked` and
`has_bill_shape::cone`. A family is such a trait. What it adds is the sum of what its columns add,
so families explain exactly what their members do, in fewer words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latem.core.messages import first_few
from latem.core.slim import is_frame, is_series, needed
from latem.embeddings.table import ClassEmbeddings
from latem.embeddings.table_files import read_raw

if TYPE_CHECKING:
    import pandas as pd

MARK = "::"  # stands between a family and its member in the name of a column


@dataclass(frozen=True, eq=False)
class Family:
    """What traits that belong together add to a lead.

    Attributes
    ----------
    name : str
    contribution : float
        The sum of what its members add.
    members : Series
        What each member adds, by name of the column, largest first.
    less : frozenset of str
        Members of which the image speaks for less, not more.
    """

    name: str
    contribution: float
    members: pd.Series = field(repr=False)
    less: frozenset[str] = field(default=frozenset(), repr=False)

    def strongest(self, n: int) -> pd.Series:
        """The n members of largest size, of either sign, largest size first; n at least 1."""
        if n < 1:
            raise ValueError(f"The number of members must be at least 1, but is {n}.")
        sizes = self.members.abs().sort_values(ascending=False, kind="stable")
        return self.members[sizes.index[:n]]

    def short(self, member: str) -> str:
        """Name of a member without the family's."""
        return member.removeprefix(f"{self.name}{MARK}") or member

    def told(self, member: str) -> str:
        """A member in words, without the family's name: "red", "less red", "unlike crow"."""
        return in_words(self.short(member), member in self.less)

    @property
    def title(self) -> str:
        """The name; of a trait that stands alone in words, as `told` has it."""
        alone = len(self.members) == 1 and self.name in self.members.index
        return in_words(self.name, alone and self.name in self.less)

    def to_dict(self, n: int) -> dict[str, Any]:
        """As plain data, with the n strongest members and the sum of the others."""
        shown = self.strongest(n)
        left = self.members.drop(shown.index)
        return {
            "name": self.name,
            "words": self.title,
            "contribution": self.contribution,
            "members": [
                {
                    "name": str(name),
                    "words": self.told(str(name)),
                    "contribution": float(value),
                }
                for name, value in shown.items()
            ],
            "rest": {"n": len(left), "contribution": math.fsum(left)},
        }


def in_words(name: str, less: bool) -> str:
    """A trait, or likeness to a seen class, or that an image speaks for less of it.

    >>> in_words("red", False), in_words("red", True), in_words("like crow", True)
    ('red', 'less red', 'unlike crow')
    """
    if not less:
        return name
    return f"un{name}" if name.startswith("like ") else f"less {name}"


def gather(
    contributions: pd.Series,
    family_of: Mapping[str, str],
    less: frozenset[str] = frozenset(),
) -> list[Family]:
    """Families of some contributions, largest first.

    Parameters
    ----------
    contributions : Series
        By name of the column.
    family_of : mapping of column name to family name
        Columns that it does not name are families of their own.
    less : frozenset of str
        Columns of which the image speaks for less, not more.
    """
    ordered = contributions.sort_values(ascending=False, kind="stable")
    values = ordered.tolist()
    places: dict[str, list[int]] = {}
    for place, column in enumerate(ordered.index):
        places.setdefault(family_of.get(column, column), []).append(place)
    families = [
        Family(name, math.fsum(values[place] for place in members), ordered.iloc[members], less)
        for name, members in places.items()
    ]
    return sorted(families, key=lambda family: -family.contribution)


def family_of_columns(table: ClassEmbeddings, groups: Any = None) -> dict[str, str]:
    """Which family each column of a table belongs to, of the columns that belong to one.

    Parameters
    ----------
    table : ClassEmbeddings
    groups : mapping of column name to family name, Series, one-column DataFrame or path, optional
        By default the columns that were made from one raw trait belong together, and those whose
        names share the part before "::". An empty mapping means no families.

    Examples
    --------
    >>> columns = ["bill::hooked", "bill::cone", "mass"]
    >>> table = ClassEmbeddings(["jay"], [[1, 0, 9]], columns=columns)
    >>> family_of_columns(table)
    {'bill::hooked': 'bill', 'bill::cone': 'bill'}
    """
    columns = table.column_names()
    if groups is not None:
        given = _as_mapping(groups)
        odd = [column for column in given if column not in set(columns)]
        if odd:
            raise ValueError(
                f"groups names {first_few(odd)}, which are not columns of the class table; it has "
                f"{first_few(columns)}."
            )
        return given
    found = {}
    for column in columns:
        family, mark, member = column.partition(MARK)
        if family and mark and member:
            found[column] = family
    traits = () if table.encoding is None else table.encoding.traits
    for trait in traits:
        if len(trait.columns) > 1:
            found |= dict.fromkeys(trait.columns, trait.name)
    return found


def _as_mapping(groups: Any) -> dict[str, str]:
    """Column → family, without columns that have none."""
    if isinstance(groups, str | PathLike):
        groups = read_raw(Path(groups), "table of groups")
    if is_frame(groups):
        if groups.shape[1] != 1:
            raise ValueError(
                f"groups as a table needs the columns of the class table as its index and one "
                f"column of families, but has {groups.shape[1]}: {first_few(list(groups.columns))}."
            )
        groups = groups.iloc[:, 0]
    if not isinstance(groups, Mapping) and not is_series(groups):
        raise TypeError(
            f"groups must be a mapping of column to family, a Series, a table of one column or a "
            f"path, not {type(groups).__name__}."
        )
    pd = needed("pandas", "Explanations")
    return {
        str(column): str(family)
        for column, family in groups.items()
        if not pd.isna(family) and str(family).strip()
    }
