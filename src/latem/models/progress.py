"""Progress bars, on the error stream and only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from latem.models.training import EpochInfo


@contextmanager
def progress_bar(shown: bool, n_epochs: int) -> Iterator[Callable[[EpochInfo], None]]:
    """Function to call after each epoch; it advances a bar if `shown`, else does nothing."""
    with _bar(shown, n_epochs, "training", "epochs") as advance:

        def show(info: EpochInfo) -> None:
            advance(f"{info.violation_rate:.1%} violations, {info.n_maps} maps")

        yield show


@contextmanager
def task_bar(shown: bool, n_tasks: int, title: str) -> Iterator[Callable[[], None]]:
    """Function to call after each task; it advances a bar if `shown`, else does nothing."""
    with _bar(shown, n_tasks, title, "trainings") as advance:
        yield lambda: advance("")


@contextmanager
def _bar(shown: bool, total: int, title: str, unit: str) -> Iterator[Callable[[str], Any]]:
    if not shown:
        yield lambda text: None
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
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit + " {task.description}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda text: bar.update(task, advance=1, description=text)
