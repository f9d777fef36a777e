"""Pictures given on the command line and the names found for them: for `predict` and `name`."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from latem.workflows.name_pictures import Named

_FORMATS = ("table", "json", "csv")

Format = Annotated[str, typer.Option("--format", help="table, json or csv.")]


class Answers:
    """Prints names for pictures, for people or for machines, and keeps count of failures.

    Parameters
    ----------
    output : {"table", "json", "csv"}
    explain : bool
        Whether there will be explanations to print.
    """

    def __init__(self, output: str, *, explain: bool = False):
        if output not in _FORMATS:
            raise typer.BadParameter(f"--format must be table, json or csv, not {output!r}.")
        if output == "csv" and explain:
            raise typer.BadParameter(
                "Explanations do not fit into CSV; use --format json or table."
            )
        self.output = output
        self.n_failed = 0

    def find(self, sources: Sequence[Path]) -> list[Path]:
        """Pictures to name: the files given, and all pictures in the folders given."""
        from latem.datasets.picture_files import pictures_in

        found, errors = pictures_in(sources)
        for error in errors:
            self.unreadable(error.place, str(error))
        return found

    def unreadable(self, place: str | Path, reason: str) -> None:
        """Tell why a picture has no answer."""
        self.n_failed += 1
        typer.echo(f"latem: {reason}", err=True)

    def finish(self) -> None:
        """Exit with code 1 if a picture could not be read."""
        if self.n_failed:
            raise typer.Exit(1)

    def show(self, named: Sequence[Named]) -> None:
        """Print the answers."""
        if self.output == "json":
            typer.echo(json.dumps([_record(one) for one in named], indent=2, ensure_ascii=False))
        elif self.output == "csv":
            typer.echo(_lines(named), nl=False)
        elif named:
            _print(named)


def _record(one: Named) -> dict[str, object]:
    pairs = zip(one.names, one.scores, strict=True)
    return {
        "picture": str(one.picture),
        "classes": [{"class": str(name), "score": score} for name, score in pairs],
        **({"explanation": one.explanation} if one.explanation else {}),
    }


def _lines(named: Sequence[Named]) -> str:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["picture", "place", "class", "score"])
    for one in named:
        for place, (name, score) in enumerate(zip(one.names, one.scores, strict=True), start=1):
            lines.writerow([one.picture, place, name, score])
    return text.getvalue()


def _print(named: Sequence[Named]) -> None:
    console = Console()
    folder = Path(os.path.commonpath([one.picture.absolute().parent for one in named]))
    table = Table()
    table.add_column("picture", overflow="fold")
    for title in ("named", "score", "then"):
        table.add_column(title)
    for one in named:
        path = str(one.picture.absolute().relative_to(folder))
        then = ", ".join(map(str, one.names[1:]))
        # as Text, because names may look like markup
        cells = (path, str(one.names[0]), f"{one.scores[0]:.3f}", then)
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)
    for one in named:
        if one.explanation:
            console.print(Text(f"\n{one.picture}\n{one.explanation}"), soft_wrap=True)
