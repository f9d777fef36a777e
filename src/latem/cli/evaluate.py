"""`latem evaluate`: how good a saved model is on a dataset."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from latem.cli.common import failures


def evaluate_command(
    model: Annotated[Path, typer.Argument(help="A model file, written by save.")],
    dataset: Annotated[Path, typer.Argument(help="A dataset folder.")],
    split: Annotated[str, typer.Option(help="Which split of the dataset.")] = "standard",
    generalized: Annotated[
        bool,
        typer.Option("--generalized", help="Also name seen and unseen classes together."),
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="Calibrate the probabilities and measure them."),
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed for choosing the images that γ is chosen on.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    table: Annotated[
        Path | None, typer.Option("--csv", help="Also write all numbers to a CSV file.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            help="Also write a page about it: a file that ends in .html, or a folder. It shows "
            "all that the split allows, also what --generalized and --probabilities ask for."
        ),
    ] = None,
    pictures: Annotated[
        Path | None,
        typer.Option(
            help="For --html: folder that holds the pictures; by default the dataset's `images`, "
            "or the folder they were embedded from."
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show results only, no progress.")
    ] = False,
) -> None:
    """Measure a model on classes it has never seen.

    What needs choosing is chosen on the split's val classes, by a copy of the model fitted to
    the train classes alone. The model file is left as it is.
    """
    from latem.core import atomic
    from latem.datasets import read_folder
    from latem.datasets.folder import own_files
    from latem.evaluation import evaluate
    from latem.inspection.pictures import page_notes, pictures_folder
    from latem.models.files import load
    from latem.workflows.evaluate_report import page_path, report_evaluation

    console = Console(stderr=True, quiet=quiet, soft_wrap=True)
    with failures():
        if table is not None:
            atomic.check_target(table, (model, *own_files(dataset)))
        loaded, data = load(model), read_folder(dataset)
        if pictures is not None and html is None:
            raise ValueError("--pictures is for the page: give --html as well.")
        with console.status("evaluating, with a copy fitted to the train classes if needed"):
            if html is None:
                result = evaluate(
                    loaded, data, split, generalized=generalized, calibrate=probabilities, seed=seed
                )
            else:
                folder = pictures_folder(dataset, data, pictures)
                result = report_evaluation(
                    loaded,
                    data,
                    html,
                    split,
                    generalized=generalized or None,
                    calibrate=probabilities or None,
                    pictures=folder,
                    seed=seed,
                )
        if table is not None:
            text = io.StringIO()
            lines = csv.writer(text, lineterminator="\n")
            lines.writerow(("part", "measure", "value"))
            lines.writerows(result.to_rows())
            atomic.write_text(table, text.getvalue())
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2, ensure_ascii=False))
    else:
        typer.echo(result.to_text())
    if html is not None:
        tested = data.rows(data.split(split).test)
        for note in page_notes(dataset, data, tested, folder, pictures):
            typer.echo(f"latem: {note}", err=True)
        console.print(f"page: {page_path(html)}", markup=False, highlight=False)
