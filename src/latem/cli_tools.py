"""What the commands share: errors as sentences, and progress bars on the error stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.text import Text


@contextmanager
def failures() -> Iterator[None]:
    """Print an expected error as one sentence and exit with code 1."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader had enough, as head has: click ends quietly then
    except (OSError, ValueError, TypeError, ImportError) as error:
        Console(stderr=True, soft_wrap=True).print(Text(f"latem: {error}", style="red"))
        raise typer.Exit(1) from None


@contextmanager
def download_bar(quiet: bool) -> Iterator[Callable[[int, int | None], None]]:
    """Function of (bytes so far, bytes in all) that moves a progress bar."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=quiet) as bar:
        task = bar.add_task("downloading", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def epoch_bar(quiet: bool, title: str) -> Iterator[Callable[[int, int], None]]:
    """Function of (epochs so far, epochs in all) that moves a progress bar."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=quiet) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def training_bar(quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """Function of (trainings done, known of, what was done) that moves a progress bar."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, what: bar.update(
            task, completed=done, total=total, description=what
        )


def pairs(values: list[str] | None, option: str) -> dict[str, str]:
    """Values of an option of the form KEY=VALUE."""
    found = {}
    for value in values or []:
        key, equals, rest = value.partition("=")
        if not (key and equals and rest):
            raise typer.BadParameter(f"{option} takes KEY=FOLDER, not {value!r}.")
        found[key] = rest
    return found
