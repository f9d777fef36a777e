"""`latem predict`: names for pictures from a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from latem.cli.answers import Answers, Format
from latem.cli.common import failures

_TABLES = (".csv", ".tsv", ".parquet", ".pq", ".xlsx", ".xlsm", ".xls")


def predict(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    pictures: Annotated[list[Path], typer.Argument(help="Pictures, or folders of pictures.")],
    classes: Annotated[
        str,
        typer.Option(
            help="Which classes may be the answer: unseen, seen, all, names separated by commas, "
            "or a table of new classes (a file)."
        ),
    ] = "unseen",
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
    with failures():
        fitted = load(model)
        answers.show(
            name_pictures(
                fitted,
                answers.find(pictures),
                candidates(classes),
                top=top,
                seen_penalty=seen_penalty,
                explain=explain,
                encoder_options={} if weights is None else {"weights": weights},
                unreadable=answers.unreadable,
            )
        )
    answers.finish()


def candidates(classes: str) -> Any:
    """Meaning of a --classes option."""
    if classes in ("unseen", "all"):
        return classes
    if classes == "seen":
        return None
    if classes.lower().endswith(_TABLES):
        return Path(classes)  # the model reads it by the columns, or the raw traits, that it knows
    names = [name.strip() for name in classes.split(",") if name.strip()]
    if not names:
        raise ValueError("--classes names no class; give at least one, or unseen, seen or all.")
    return names
