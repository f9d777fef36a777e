"""Progress on the error stream, and only where somebody wants to see it.

A terminal gets a bar. Where the error stream goes to a file or a pipe, long work says a plain
line now and then, without control characters, and short work says nothing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

Advance = Callable[..., None]
Clock = Callable[[], float]

FIRST_LINE, NEXT_LINE = 10.0, 30.0  # seconds before the first plain line, and between two
_TOO_SOON = 2.0  # seconds after which the time left is guessed


@contextmanager
def progress_bar(
    shown: bool,
    title: str,
    *,
    total: float | None = None,
    unit: str = "",
    in_bytes: bool = False,
    clock: Clock = time.monotonic,
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
    clock : callable
        Seconds that have passed; for plain lines.

    Yields
    ------
    callable
        ``advance()`` moves it by one step, ``advance(done, total)`` to a given place; `text` is
        shown after the bar.
    """
    if not shown:
        yield lambda done=None, total=None, text="": None
        return
    if not _shows_bars(sys.stderr):
        lines = PlainLines(sys.stderr, unit, in_bytes=in_bytes, clock=clock)
        lines.begin(title, total)

        def say(done: float | None = None, total: float | None = None, text: str = "") -> None:
            lines.advance(title, done, total, text)

        yield say
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
def bars_by_title(
    shown: bool, unit: str, *, clock: Clock = time.monotonic
) -> Iterator[Callable[[str, float, float], None]]:
    """Function of (title, done, total); every title has a bar of its own."""
    if not shown:
        yield lambda title, done, total: None
        return
    if not _shows_bars(sys.stderr):
        yield PlainLines(sys.stderr, unit, clock=clock).advance
        return
    tasks: dict[str, Any] = {}
    with _bars(unit, in_bytes=False) as bars:

        def advance(title: str, done: float, total: float) -> None:
            if title not in tasks:
                tasks[title] = bars.add_task(title, total=total, text="")
            bars.update(tasks[title], completed=done)

        yield advance


class PlainLines:
    """Progress as lines of text, the first after ten seconds and then one every thirty.

    Parameters
    ----------
    stream : text stream
    unit : str
        What is counted.
    in_bytes : bool
        Whether steps are bytes.
    clock : callable
        Seconds that have passed.
    """

    def __init__(
        self,
        stream: TextIO,
        unit: str,
        *,
        in_bytes: bool = False,
        clock: Clock = time.monotonic,
    ):
        self._stream, self._unit, self._in_bytes, self._clock = stream, unit, in_bytes, clock
        self._due = clock() + FIRST_LINE
        self._lock = threading.Lock()  # work that goes side by side reports from its threads
        self._counts: dict[str, _Count] = {}

    def begin(self, title: str, total: float | None = None) -> None:
        """Count steps of `title` from now on."""
        self._counts[title] = _Count(self._clock(), total)

    def advance(
        self, title: str, done: float | None = None, total: float | None = None, text: str = ""
    ) -> None:
        """Take in that a step, or `done` steps in all, are done; say so if it is time."""
        with self._lock:
            now = self._clock()
            if title not in self._counts:
                self.begin(title)
            count = self._counts[title]
            count.move(now, done, total)
            if now < self._due or count.ended:
                return
            self._due = now + NEXT_LINE
            parts = [self._state(count), count.time_left(now), text]
            line = f"{title}: {', '.join(part for part in parts if part)}"
            print(line, file=self._stream, flush=True)

    def _state(self, count: _Count) -> str:
        if self._in_bytes:
            numbers, unit = [_megabytes(count.done)], "MB"
            numbers += [] if count.total is None else [_megabytes(count.total)]
        else:
            numbers, unit = [f"{count.done:g}"], self._unit
            numbers += [] if count.total is None else [f"{count.total:g}"]
        return f"{' of '.join(numbers)} {unit}".rstrip()


class _Count:
    """How far something is, and how fast it goes.

    What is done when it first tells a place, such as the share of an earlier run, took no time.
    """

    def __init__(self, now: float, total: float | None):
        self.began, self.total = now, total
        self.done = self._before = 0.0
        self._moved = False

    def move(self, now: float, done: float | None, total: float | None) -> None:
        if total is not None:
            self.total = total
        if done is None:
            self.done += 1
        else:
            if not self._moved and done > 1:
                self.began, self._before = now, done
            self.done = done
        self._moved = True

    @property
    def ended(self) -> bool:
        return self.total is not None and self.done >= self.total

    def time_left(self, now: float) -> str:
        passed, moved = now - self.began, self.done - self._before
        if self.total is None:
            return f"{_minutes(passed)} so far"
        if passed < _TOO_SOON:
            return ""
        return f"{_minutes(passed * (self.total - self.done) / moved)} left" if moved > 0 else ""


def _minutes(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    start = f"{hours}:{minutes:02d}" if hours else f"{minutes}"
    return f"{start}:{whole % 60:02d}"


def _megabytes(n: float) -> str:
    return f"{n / 1e6:.1f}"


def _shows_bars(stream: TextIO | None) -> bool:
    """Whether a bar can be drawn: on a terminal that moves its cursor, or in a notebook."""
    from rich.console import Console

    if stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb":
        return True
    return Console(stderr=True).is_jupyter


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
