"""`latem gallery`: what each map of a model has learned, as a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from latem.cli.common import failures


def gallery(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    dataset: Annotated[Path, typer.Argument(help="Dataset folder.")],
    out: Annotated[Path, typer.Option(help="Folder for the page.")] = Path("latem-gallery"),
    split: Annotated[str, typer.Option(help="Split whose test classes are shown.")] = "standard",
    n: Annotated[int, typer.Option("--images", min=1, max=100, help="Images per map.")] = 8,
    pictures: Annotated[
        Path | None,
        typer.Option(
            help="Folder that holds the pictures; by default the dataset's `images`, or the "
            "folder they were embedded from."
        ),
    ] = None,
) -> None:
    """Show the unseen images that each map likes best, and which classes and attributes."""
    from latem.core.run_folder import RunFolder
    from latem.datasets import read_folder
    from latem.inspection.galleries import gallery_of
    from latem.models.files import load
    from latem.report import write_gallery

    with failures():
        if pictures is not None and not pictures.is_dir():
            raise FileNotFoundError(f"There is no folder {pictures} with pictures.")
        fitted, data = load(model), read_folder(dataset)
        folder = pictures or _pictures(dataset, data.info)
        shown = gallery_of(fitted, data, split, n=n, pictures=folder)
        run = RunFolder(out)
        rows = [
            [one["number"], place, image["name"], image["class"], image["named"], image["score"]]
            for one in shown["maps"]
            for place, image in enumerate(one["images"], start=1)
        ]
        run.write_table("images.csv", ["map", "place", "image", "class", "named", "score"], rows)
        count = _counted(len(shown["maps"]))
        title = f"What {count} {'has' if len(shown['maps']) == 1 else 'have'} learned"
        write_gallery([shown], run.file("gallery.html"), title=title)
        run.finish({"command": "gallery", "model": str(model), "dataset": str(dataset)})
    Console(soft_wrap=True).print(
        f"{count}; page: {out / 'gallery.html'}", markup=False, emoji=False, highlight=False
    )


def _pictures(folder: Path, info: Mapping[str, Any]) -> Path:
    """Where a dataset's pictures are likely to be."""
    inside, source = folder / "images", Path(str(info.get("pictures", "")))
    if inside.is_dir() or "pictures" not in info:
        return inside
    return source.parent if source.suffix.lower() == ".csv" else source


def _counted(n: int) -> str:
    return f"{n} map" if n == 1 else f"{n} maps"
