"""A progress bar for training, on the error stream and only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from latem.models.training import EpochInfo


@contextmanager
def progress_bar(shown: bool, n_epochs: int) -> Iterator[Callable[[EpochInfo], None]]:
    """Function to call after each epoch; it advances a bar if `shown`, else does nothing."""
    if not shown:
        yield lambda info: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("epochs, {task.description}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=n_epochs)

        def show(info: EpochInfo) -> None:
            text = f"{info.violation_rate:.1%} violations, {info.n_maps} maps"
            bar.update(task, advance=1, description=text)

        yield show
