"""`latem predict`: names for pictures from a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from latem.cli.answers import Answers, Format
from latem.cli.candidates import Called, Changes, Classes, Least, Like, Likeness, Most, candidates
from latem.cli.common import failures


def predict(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    pictures: Annotated[list[Path], typer.Argument(help="Pictures, or folders of pictures.")],
    classes: Classes = "unseen",
    like: Like = None,
    changes: Changes = None,
    most: Most = None,
    least: Least = None,
    called: Called = None,
    top: Annotated[int, typer.Option(min=1, help="How many classes to give, best first.")] = 5,
    seen_penalty: Annotated[
        float,
        typer.Option(
            help="γ, subtracted from the scores of seen classes; latem evaluate chooses it."
        ),
    ] = 0.0,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say which traits made the difference.")
    ] = False,
    output: Format = "table",
    weights: Annotated[
        Path | None, typer.Option(help="Local weight file of the encoder, if it needs one.")
    ] = None,
) -> None:
    """Name pictures with a trained model.

    Pictures that cannot be read are listed and left out; the exit code is then 1.
    """
    from latem.models.files import load
    from latem.workflows.name_pictures import name_pictures

    answers = Answers(output, explain=explain)
    likeness = Likeness(like, changes, most, least, called)
    with failures():
        fitted = load(model)
        answers.show(
            name_pictures(
                fitted,
                answers.find(pictures),
                candidates(classes, fitted, likeness),
                top=top,
                seen_penalty=seen_penalty,
                explain=explain,
                encoder_options={} if weights is None else {"weights": weights},
                unreadable=answers.unreadable,
            )
        )
    answers.finish()
