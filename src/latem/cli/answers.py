"""Pictures given on the command line and the names found for them: for `predict` and `name`.

Exit codes: 0 if all pictures were named, 1 if the command could not do its work, 2 if it was
misused, 3 if some pictures could not be read (the others are answered; 1 if none could), 130 if it
was interrupted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from latem.models.answers import Answer, Answers

UNREADABLE = 3  # exit code
_FORMATS = ("table", "json", "csv")

Format = Annotated[str, typer.Option("--format", help="table, json or csv.")]
Pictures = Annotated[
    list[str],
    typer.Argument(
        metavar="PICTURES...",
        help="Pictures, folders of pictures, lists of them (.csv with the column image), or - for "
        "paths on standard input, one per line.",
    ),
]


class Printer:
    """Prints answers, for people or for machines, and keeps count of failures.

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
        self.n_failed = self.n_answered = 0
        self.what = ("picture", "pictures")

    def features(self, sources: Sequence[str]) -> bool:
        """Whether files of features are given rather than pictures."""
        from latem.datasets.feature_files import are_features

        self.what = ("row", "rows") if are_features(sources) else self.what
        return self.what[0] == "row"

    def find(self, sources: Iterable[str]) -> list[Path]:
        """Pictures to name: the files given, all pictures in folders, and those on lists."""
        from latem.datasets.picture_files import pictures_in

        meant: list[str] = []
        for source in sources:
            if source == "-":
                try:
                    lines = typer.get_text_stream("stdin").read().splitlines()
                except UnicodeDecodeError:
                    raise ValueError(
                        "Standard input is no list of paths, one per line, in UTF-8."
                    ) from None
                meant += [line for line in lines if line.strip()]
            else:
                meant.append(source)
        found, errors = pictures_in(meant)
        for error in errors:
            self.unreadable(str(error))
        if not found and not errors:
            raise ValueError("No pictures are given.")
        return found

    def counted(self, n: int) -> str:
        """So many pictures, or rows, in words."""
        return f"{n} {self.what[n != 1]}"

    def judged(self, n_answers: int, n_doubtful: int, n_none: int, rate: float | None) -> None:
        """Tell what a question mark means, and how to change that."""
        if rate is None or not (n_doubtful or n_none):
            return
        pictures = self.counted(n_answers)
        meaning = ""
        if n_doubtful:
            meaning += (
                f" Doubtful: the name has less than even odds, or more than {rate:.0%} of other "
                f"classes' pictures look as much like one of these; see --false-accept-rate."
            )
        if n_none:
            meaning += (
                " None of these: hardly any picture of these classes looks so little like them; "
                "probabilities say which it would be if it had to be one. Perhaps it is of a class "
                "that was not asked for (--classes all asks for all that are known); "
                "--false-accept-rate 1 names every picture."
            )
        typer.echo(
            f"latem: {pictures}: {n_doubtful} doubtful (?), {n_none} none of these.{meaning}",
            err=True,
        )

    def transductive(self, n_answers: int, n_changed: int) -> None:
        """Tell that the answers of an album depend on each other."""
        typer.echo(
            f"latem: album (transductive): answers depend on each other, and {n_changed} of "
            f"{n_answers} pictures have another name than alone.",
            err=True,
        )

    def unreadable(self, reason: str) -> None:
        """Tell why a picture has no answer."""
        self.n_failed += 1
        typer.echo(f"latem: {reason}", err=True)

    def finish(self) -> None:
        """Exit with code 3 if a picture could not be read, with 1 if none could."""
        if self.n_failed:
            raise typer.Exit(UNREADABLE if self.n_answered else 1)

    def show(self, answers: Answers, among: str = "") -> None:
        """Print the answers; `among` says which classes they were chosen from."""
        self.n_answered += len(answers) - len(answers.errors)
        for failed in answers.errors:
            self.unreadable(f"{failed.picture}: {failed.error}")
        if self.output == "json":
            typer.echo(json.dumps(answers.to_dicts(), indent=2, ensure_ascii=False))
        elif self.output == "csv":
            typer.echo(answers.to_csv(), nl=False)
        else:
            _print([answer for answer in answers if not answer.error], among)


def _percent(p: float) -> str:
    """A probability that is never rounded to certainty."""
    if p > 0.995:
        return ">99%" if p < 1 else "100%"
    return f"{p:.0%}" if p >= 0.005 else "<1%"


def _print(answers: Sequence[Answer], among: str) -> None:
    from latem.models.answers import DOUBTFUL, NONE

    if not answers:
        return
    console = Console()
    folder = os.path.commonpath([os.path.dirname(os.path.abspath(one.picture)) for one in answers])
    sure = any(one.probabilities for one in answers)
    table = Table(title=Text(among) if among else None, title_justify="left")
    table.add_column("picture", overflow="fold")
    titles = ("named", "probability" if sure else "score", "then")
    for title in titles:
        table.add_column(title)
    for one in answers:
        path = os.path.relpath(os.path.abspath(one.picture), folder)
        shown = [
            f"{name} {_percent(p)}" if sure else str(name)
            for name, p in zip(one.names, one.probabilities or one.scores, strict=True)
        ]
        first = _percent(one.probabilities[0]) if one.probabilities else f"{one.scores[0]:.3f}"
        if one.none_of_these:
            cells = (path, NONE, "", ", ".join(shown))
        else:
            doubt = "?" if one.verdict == DOUBTFUL else ""
            cells = (path, f"{one.names[0]}{doubt}", first, ", ".join(shown[1:]))
        # as Text, because names may look like markup
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)
    for one in answers:
        if one.explanation is not None:
            console.print(Text(f"\n{one.picture}\n{one.explanation['text']}"), soft_wrap=True)
