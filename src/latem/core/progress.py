"""Progress bars, on the error stream and only where somebody wants to see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Advance = Callable[..., None]


@contextmanager
def progress_bar(
    shown: bool,
    title: str,
    *,
    total: float | None = None,
    unit: str = "",
    in_bytes: bool = False,
) -> Iterator[Advance]:
    """Progress bar; the block gets a function that moves it. Nothing happens unless `shown`.

    Parameters
    ----------
    shown : bool
    title : str
    total : number, optional
        Steps in all; it may also be given later.
    unit : str
        What is counted, such as "epochs".
    in_bytes : bool
        Whether steps are bytes of a download.

    Yields
    ------
    callable
        ``advance()`` moves it by one step, ``advance(done, total)`` to a given place; `text` is
        shown after the bar.
    """
    if not shown:
        yield lambda done=None, total=None, text="": None
        return
    with _bars(unit, in_bytes) as bars:
        task = bars.add_task(title, total=total, text="")

        def advance(done: float | None = None, total: float | None = None, text: str = "") -> None:
            if done is None:
                bars.update(task, advance=1, text=text)
            else:
                bars.update(task, completed=done, total=total, text=text)

        yield advance


@contextmanager
def bars_by_title(shown: bool, unit: str) -> Iterator[Callable[[str, float, float], None]]:
    """Function of (title, done, total); every title has a bar of its own."""
    if not shown:
        yield lambda title, done, total: None
        return
    tasks: dict[str, Any] = {}
    with _bars(unit, in_bytes=False) as bars:

        def advance(title: str, done: float, total: float) -> None:
            if title not in tasks:
                tasks[title] = bars.add_task(title, total=total, text="")
            bars.update(tasks[title], completed=done)

        yield advance


def _bars(unit: str, in_bytes: bool) -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn() if in_bytes else MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[text]}"),
        console=Console(stderr=True),
    )
