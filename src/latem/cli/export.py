"""`latem export`: a trained model as a file for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from latem.cli.candidates import Classes, candidates
from latem.cli.common import NOTHING_WRITTEN, failures


def export(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    onnx: Annotated[Path, typer.Option(help="ONNX file to write.")],
    classes: Classes = "unseen",
    pictures: Annotated[
        bool,
        typer.Option(
            "--pictures", help="Begin with pixels: put the model's encoder into the file, too."
        ),
    ] = False,
    fixed_classes: Annotated[
        bool,
        typer.Option(
            "--fixed-classes",
            help="Take no other classes later; quicker for single images.",
        ),
    ] = False,
    opset: Annotated[int, typer.Option(help="Version of ONNX's operators, from 13.")] = 17,
    check: Annotated[
        bool,
        typer.Option(help="Compare with the model on random images before anything is written."),
    ] = True,
    weights: Annotated[
        Path | None, typer.Option(help="With --pictures: local weight file of the encoder.")
    ] = None,
) -> None:
    """Write a trained model as an ONNX file, which programs without latem can run.

    The classes are a default: whoever runs the file can give other descriptions, unless it is
    written with --fixed-classes.
    """
    if weights is not None and not pictures:
        raise typer.BadParameter("--weights are the encoder's: give --pictures as well.")
    with failures(NOTHING_WRITTEN):
        from latem.core.atomic import check_target
        from latem.export import export_onnx
        from latem.models.files import load

        check_target(onnx, (model, weights))
        fitted = load(model)
        done = export_onnx(
            fitted,
            onnx,
            classes=candidates(classes, fitted),
            opset=opset,
            pictures=pictures,
            open_classes=not fixed_classes,
            check=check,
            encoder_options=None if weights is None else {"weights": weights},
        )
    say = Console(soft_wrap=True)
    for line in done.lines():
        say.print(line, markup=False, emoji=False, highlight=False)
    for note in done.notes:
        typer.echo(f"latem: {note}", err=True)
    say.print(f"ONNX file written to {onnx}.", markup=False, emoji=False, highlight=False)
