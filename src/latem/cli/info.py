"""`latem info`: what a model file holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from latem.cli.common import failures

_FORMATS = ("text", "json", "markdown")


def info(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    output: Annotated[
        str, typer.Option("--format", help="text, json, or markdown (a model card).")
    ] = "text",
) -> None:
    """Say what a model file holds: classes, parameters, how good it was, versions.

    Only the file's description is read, so that it takes no time with large files.
    """
    if output not in _FORMATS:
        raise typer.BadParameter(f"--format must be text, json or markdown, not {output!r}.")
    with failures():
        from latem.models.info import read_info
        from latem.report.model_card import info_lines, model_card

        found = read_info(model)
        if output == "json":
            text = json.dumps(found.to_dict(), ensure_ascii=False, indent=2) + "\n"
        elif output == "markdown":
            text = model_card(found)
        else:
            text = "\n".join(info_lines(found)) + "\n"
    typer.echo(text, nl=False)
