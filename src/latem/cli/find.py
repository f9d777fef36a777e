"""`latem find`: the stored pictures that fit a class best."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from latem.cli.candidates import (
    Called,
    Changes,
    Least,
    Like,
    Likeness,
    Most,
    candidates,
    table_of,
)
from latem.cli.common import failures

_FORMATS = ("table", "json", "csv")


def find(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    images: Annotated[
        Path, typer.Argument(help="A dataset folder, or a .npy file of features, of any size.")
    ],
    classes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CLASSES...",
            help="unseen, seen, all, names, and tables of new classes (files). By default the new "
            "class of --like, or else unseen.",
            show_default=False,
        ),
    ] = None,
    like: Like = None,
    changes: Changes = None,
    most: Most = None,
    least: Least = None,
    called: Called = None,
    top: Annotated[
        int, typer.Option(min=1, help="How many pictures to give for each class, best first.")
    ] = 10,
    index: Annotated[
        bool | None,
        typer.Option(
            "--index/--exact",
            help="Look them up in the index made by latem data index, which may miss some, or look "
            "through all pictures.",
            show_default="the index, if it is there and pictures are many",
        ),
    ] = None,
    output: Annotated[str, typer.Option("--format", help="table, json or csv.")] = "table",
    out: Annotated[Path | None, typer.Option(help="Write a .csv or .json file.")] = None,
) -> None:
    """Find the pictures that fit a class best, among millions.

    The class needs no picture: a name from the model's class table will do, or a description. The
    score is the model's own; all pictures are looked through, or looked up in an index.
    """
    if output not in _FORMATS:
        raise typer.BadParameter(f"--format must be table, json or csv, not {output!r}.")
    if out is not None and out.suffix.lower() not in (".csv", ".json"):
        raise typer.BadParameter(f"--out must end in .csv or .json, not {out.name!r}.")
    if out is not None and output != "table":
        raise typer.BadParameter(
            "--format is for what is printed; the ending of --out says how the file is written."
        )
    likeness = Likeness(like, changes, most, least, called)
    with failures():
        from latem.core.atomic import check_target, write_text
        from latem.models.files import load
        from latem.workflows.find import files_of, find_images, found_text

        fitted = load(model)
        if out is not None:
            check_target(out, (model, *files_of(images, fitted), *(classes or ())))
        meant = _meant(classes, fitted, likeness)
        found = find_images(fitted, images, meant, k=top, use_index=index)
        if out is not None:
            write_text(out, found_text(found, out.suffix.lower()[1:]))
    if out is not None:
        n = "1 picture is" if len(found) == 1 else f"{len(found)} pictures are"
        typer.echo(f"{n} listed in {out}.")
    elif output != "table":
        typer.echo(found_text(found, output), nl=False)
    else:
        _print(found)


def _meant(classes: list[str] | None, fitted: Any, likeness: Likeness) -> Any:
    """Classes to look for: those that are named, and the one that is described."""
    if not classes and likeness.like is not None:
        return likeness.of(table_of(fitted)).named(likeness.name)
    return candidates(",".join(classes or ["unseen"]), fitted, likeness)


def _print(found: list[Any]) -> None:
    table = Table()
    for title in ("class", "", "picture", "its class", "score"):
        table.add_column(title, overflow="fold", justify="right" if title == "" else "left")
    for one in found:
        first = one.place == 1
        cells = (
            str(one.wanted) if first else "",
            str(one.place),
            one.image or f"row {one.row}",
            one.label or "",
            f"{one.score:.4f}",
        )
        table.add_row(*(Text(cell) for cell in cells))  # names may look like markup
    Console().print(table)
