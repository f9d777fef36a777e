"""`latem gallery`: what a model has learned, as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from latem.cli.common import failures


def gallery(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    dataset: Annotated[Path, typer.Argument(help="Dataset folder.")],
    out: Annotated[Path, typer.Option(help="Folder for the page.")] = Path("latem-gallery"),
    split: Annotated[str, typer.Option(help="Split whose test classes are shown.")] = "standard",
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="class, trait or map; may be repeated. By default all that the model has, and "
            "maps only if it has several."
        ),
    ] = None,
    trait: Annotated[
        list[str] | None,
        typer.Option(
            help="A trait to show; may be repeated. By default up to 12 that agree best with the "
            "descriptions."
        ),
    ] = None,
    n: Annotated[
        int, typer.Option("--images", min=1, max=100, help="Images per class, trait or map.")
    ] = 8,
    pictures: Annotated[
        Path | None,
        typer.Option(
            help="Folder that holds the pictures; by default the dataset's `images`, or the "
            "folder they were embedded from."
        ),
    ] = None,
) -> None:
    """Show the unseen images that fit each class, trait and map best."""
    from latem.datasets import read_folder
    from latem.inspection.pictures import page_notes, pictures_folder
    from latem.models.files import load
    from latem.workflows.gallery import counted, make_gallery

    with failures():
        fitted, data = load(model), read_folder(dataset)
        folder = pictures_folder(dataset, data, pictures)
        shown = make_gallery(
            fitted,
            data,
            out,
            split,
            by=by or None,
            traits=trait or None,
            n=n,
            pictures=folder,
            record={"model": str(model), "dataset": str(dataset)},
        )
    tested = data.rows(data.split(split).test)
    for note in page_notes(dataset, data, tested, folder, pictures):
        typer.echo(f"latem: {note}", err=True)
    Console(soft_wrap=True).print(
        f"{counted(shown)}; page: {out / 'gallery.html'}",
        markup=False,
        emoji=False,
        highlight=False,
    )
