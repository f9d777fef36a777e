"""A reproduced table beside the published one: differences, and what they amount to.

Only in tables of percentages is more better. Differences of counts, such as the number of maps,
are shown but not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from latem.report.names import fixed, number, signed

TOLERANCE = 1.0  # points; differences up to this are called the same
_STEPS = (2.5, 5.0)  # points; beyond them a difference is tinted more strongly
ARROWS = {"above": "▲", "same": "≈", "below": "▼", "plain": "", "": ""}
STATUSES = ("ok", "skipped", "none")


@dataclass(frozen=True)
class Cell:
    """A cell of the comparison.

    Attributes
    ----------
    ours, paper, error, difference : float or None
        The difference is that of the numbers as shown.
    verdict : str
        `above`, `same` or `below` the paper; `plain` where differences are not judged; empty
        where there is nothing to compare.
    level : int
        How far apart the two are, from 0 (the same) to 3.
    status, note : str
        As in the summary.
    digits : int
        Decimals to show.
    """

    ours: float | None
    paper: float | None
    error: float | None
    difference: float | None
    verdict: str
    level: int
    status: str
    note: str
    digits: int

    @property
    def ours_text(self) -> str:
        """Our number."""
        return fixed(self.ours, self.digits)

    @property
    def paper_text(self) -> str:
        """The paper's number."""
        return fixed(self.paper, self.digits)

    @property
    def error_text(self) -> str:
        """The standard error, or nothing."""
        return "" if self.error is None else f"± {fixed(self.error, max(self.digits, 1))}"

    @property
    def note_text(self) -> str:
        """The note, in which a line does not end between a name and its number."""
        return re.sub(r"(?<=\w) (?=\d)", "\N{NO-BREAK SPACE}", self.note)

    @property
    def difference_text(self) -> str:
        """The difference with its sign, and an arrow where it is judged."""
        text = signed(self.difference, self.digits)
        return f"{ARROWS[self.verdict]} {text}".strip()


def compare(cell: Mapping[str, Any], unit: str, digits: int, *, judged: bool = True) -> Cell:
    """A cell of a summary's table, compared; without a verdict if it is not to be `judged`.

    >>> compare({"ours": 47.91, "paper": 45.5}, "%", 1).difference_text
    '▲ +2.4'
    """
    ours, paper = number(cell.get("ours")), number(cell.get("paper"))
    difference, verdict, level = None, "", 0
    if ours is not None and paper is not None:
        difference = round(round(ours, digits) - round(paper, digits), digits)
        verdict, level = _judge(difference) if judged and unit == "%" else ("plain", 0)
    return Cell(
        ours=ours,
        paper=paper,
        error=number(cell.get("error")) if ours is not None else None,
        difference=difference,
        verdict=verdict,
        level=level,
        status=str(cell.get("status", "ok")),
        note=str(cell.get("note") or ""),
        digits=digits,
    )


def _judge(difference: float) -> tuple[str, int]:
    size = abs(difference)
    if size <= TOLERANCE:
        return "same", 0
    return "above" if difference > 0 else "below", 1 + sum(size > step for step in _STEPS)


@dataclass(frozen=True)
class Table:
    """A table of the comparison, ready to be shown.

    Groups that stand `apart` are compared with the paper, but neither judged nor counted.
    """

    caption: str
    unit: str
    row_title: str
    rows: list[str]
    columns: list[tuple[str, str]]
    cells: list[list[Cell]]  # one list per row
    apart: tuple[str, ...] = ()

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The upper header: names and how many columns each spans."""
        return [(name, len(list(cols))) for name, cols in groupby(self.columns, lambda c: c[0])]

    @property
    def has_lower_header(self) -> bool:
        """Whether any column has a name of its own beneath its group's."""
        return any(name for _, name in self.columns)

    @property
    def compared(self) -> list[Cell]:
        """Cells that both sides have."""
        return [cell for row in self.cells for cell in row if cell.difference is not None]

    @property
    def counted(self) -> list[Cell]:
        """Compared cells of groups that do not stand apart."""
        return [
            cell
            for row in self.cells
            for (group, _), cell in zip(self.columns, row, strict=True)
            if cell.difference is not None and group not in self.apart
        ]

    @property
    def counts(self) -> dict[str, int]:
        """How many cells are compared, above, the same, below, apart, and not run."""
        differences = [cell.difference or 0.0 for cell in self.counted]
        tolerance = TOLERANCE if self.unit == "%" else 0.0
        return {
            "compared": len(differences),
            "above": sum(d > tolerance for d in differences),
            "same": sum(abs(d) <= tolerance for d in differences),
            "below": sum(d < -tolerance for d in differences),
            "apart": len(self.compared) - len(differences),
            "skipped": sum(cell.status == "skipped" for row in self.cells for cell in row),
        }

    @property
    def mean_difference(self) -> str:
        """Mean of all counted differences, as text; counts of different things have none."""
        differences = [cell.difference or 0.0 for cell in self.counted]
        if not differences or self.unit != "%":
            return "–"
        return signed(sum(differences) / len(differences), 1)

    def lines(self) -> Iterator[tuple[str, list[tuple[str, Cell]]]]:
        """Compared cells of each group, by row, with a name each; groups without any left out."""
        for group in dict.fromkeys(group for group, _ in self.columns):
            compared = [
                (f"{row}, {name}" if name else row, cell)
                for row, cells in zip(self.rows, self.cells, strict=True)
                for (of, name), cell in zip(self.columns, cells, strict=True)
                if of == group and cell.difference is not None
            ]
            if compared:
                yield group, compared
