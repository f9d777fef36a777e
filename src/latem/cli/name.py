"""`latem name`: names for pictures from words alone, nothing trained."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from latem.cli.answers import Format, Pictures, Printer
from latem.cli.common import failures
from latem.core.text_files import read_lines


def name(
    pictures: Pictures,
    names: Annotated[
        str | None, typer.Option(help="Possible answers: nouns, separated by commas.")
    ] = None,
    names_file: Annotated[
        Path | None, typer.Option(help="Possible answers: text file with one per line.")
    ] = None,
    hint: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="Kind of noun to prefer if a name has several senses, such as animal.",
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many names to give, best first.")] = 5,
    output: Format = "table",
) -> None:
    """Name pictures with your own words; nothing needs to be trained.

    Names are looked up in WordNet; a synset such as crane.n.05 can be given as well. Pictures that
    cannot be read are listed and left out; the exit code is then 3.
    """
    from latem.embeddings.wordnet import in_words
    from latem.workflows.name_by_words import name_pictures_by_words, understand

    printer = Printer(output)
    if (names is None) == (names_file is None):
        raise typer.BadParameter("Give the possible answers with either --names or --names-file.")
    with failures(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        wanted = _split(names) if names is not None else read_lines(str(names_file), "names")
        answers = name_pictures_by_words(printer.find(pictures), wanted, top=top, hint=hint)
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            typer.echo(f"latem: {warning.message}", err=True)
    for each in wanted:
        sense = understand(each, hint=hint)
        if sense.found_by not in (each, in_words(each)):
            typer.echo(f"latem: {each!r} is taken as {sense.found_by!r}.", err=True)
    with failures():
        printer.show(answers)
    printer.finish()


def _split(names: str) -> list[str]:
    return [each.strip() for each in names.split(",") if each.strip()]
