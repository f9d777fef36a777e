"""`latem describe`: a new class, described by another one, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from latem.cli.candidates import Called, Changes, Least, Likeness, Most, table_of
from latem.cli.common import failures


def describe(
    source: Annotated[
        Path, typer.Argument(help="A model file, a dataset folder or a class table (a file).")
    ],
    like: Annotated[str, typer.Option("--like", help="The class to start from.")],
    changes: Changes = None,
    most: Most = None,
    least: Least = None,
    called: Called = None,
    table: Annotated[
        str | None, typer.Option(help="Which class table of a dataset that has several.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="CSV file to write; by default the table is printed.")
    ] = None,
) -> None:
    """Describe a new class by another one: like a blue jay, but red.

    The table has one row, which latem predict --classes reads.
    """
    from latem.core import atomic

    likeness = Likeness(like, changes, most, least, called)
    with failures():
        if out is not None:
            atomic.check_target(out, _read_files(source))
        description = likeness.of(_table(source, table))
        text = description.to_frame(likeness.name).to_csv(lineterminator="\n")
        if out is not None:
            atomic.write_text(out, text)
    if out is None:
        typer.echo(text, nl=False)
    typer.echo(f"latem: {likeness.name!r} is {description!r}.", err=True)


def _read_files(source: Path) -> list[Path]:
    """Files that a table is read from."""
    from latem.datasets.folder import own_files

    return own_files(source) if source.is_dir() else [source]


def _table(source: Path, name: str | None) -> Any:
    """The class table of a model, of a dataset, or of a file."""
    from latem.datasets import read_folder
    from latem.embeddings import ClassEmbeddings
    from latem.models.class_view import is_class_table
    from latem.models.files import load

    if source.is_dir():
        tables = read_folder(source).embeddings
        if name is None and len(tables) > 1:
            raise ValueError(
                f"{source} has the class tables {', '.join(map(repr, sorted(tables)))}; name one "
                f"with --table."
            )
        name = next(iter(tables)) if name is None else name
        if name not in tables:
            raise ValueError(
                f"{source} has no class table {name!r}; it has "
                f"{', '.join(map(repr, sorted(tables)))}."
            )
        return tables[name]
    if name is not None:
        raise ValueError(f"--table is for dataset folders, but {source} is none; leave it out.")
    if is_class_table(source.name):
        return ClassEmbeddings.from_traits(source)
    return table_of(load(source))
