"""What the commands share: errors and interruptions as sentences, the log, KEY=VALUE options."""

from __future__ import annotations

import logging
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, TextIO

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

START_AGAIN = "the same command starts from the beginning"
NOTHING_WRITTEN = f"nothing was written, and {START_AGAIN}"
CONTINUES = "the same command continues where this one stopped"


_PLAIN_TYPES = {
    "<list[Path]>": "<path>...",
    "<list[str]>": "<text>...",
    "<str>": "<text>",
    "<int range>": "<int>",
    "<float range>": "<float>",
    "<bool>": "",
}


class Command(TyperCommand):
    """A command as typer makes it, with a help that speaks no Python."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Arguments and options, that of the help included."""
        return _in_plain_words(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run it; a package that was left out is told by name (see `latem.core.slim`)."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            package = str(error.name).partition(".")[0]
            _complain(f"{package} is not installed: pip install {package}.")
            raise typer.Exit(1) from None


class Group(TyperGroup):
    """The same for a group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Options, that of the help included."""
        return _in_plain_words(super().get_params(ctx))


def _in_plain_words(params: list[Any]) -> list[Any]:
    """Let parameters show plain types; newer versions of typer show Python's, `<list[Path]>`."""
    for param in params:
        shown = getattr(param, "display_type_rich", None)
        if shown is not None and not isinstance(shown, partial):
            param.display_type_rich = partial(_plain_type, shown)
    return params


def _plain_type(shown: Callable[..., str | None], ctx: Any) -> str | None:
    text = shown(ctx=ctx)
    return text if text is None else _PLAIN_TYPES.get(text, text)


def example(line: str) -> dict[str, Any]:
    """Options for `app.command`: the help ends with an example of the command in use."""
    return {"cls": Command, "epilog": f"Example: latem {line}"}


class Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM), which it does as after Ctrl-C."""


@contextmanager
def failures(interrupted: str = START_AGAIN) -> Iterator[None]:
    """Print an expected error as one sentence and exit with code 1.

    Ctrl-C ends in a sentence too, and in code 130; SIGTERM in 143.

    Parameters
    ----------
    interrupted : str
        How to go on after an interruption; the rest of a sentence.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _Told()
            yield
    except BrokenPipeError:
        raise  # the reader closed the pipe, as head does: click then ends quietly
    except ModuleNotFoundError:
        raise  # see `Command`
    except (OSError, ValueError, TypeError, ImportError) as error:
        _complain(str(error))
        raise typer.Exit(1) from None
    except MemoryError as error:
        _complain(f"there is not enough memory: {error or 'an array is too large'}.")
        raise typer.Exit(1) from None
    except KeyboardInterrupt as stop:
        _complain(f"interrupted; {interrupted}.")
        raise typer.Exit(143 if isinstance(stop, Terminated) else 130) from None


class _Told:
    """Shows a warning of the library as a sentence, each once."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, message: Any, *_: Any, **__: Any) -> None:
        sentence = str(message)
        if sentence not in self._said:
            self._said.add(sentence)
            typer.echo(f"latem: {sentence}", err=True)


def _complain(sentence: str) -> None:
    Console(stderr=True, soft_wrap=True).print(Text(f"latem: {sentence}", style="red"))


def end_politely() -> None:
    """Let SIGTERM end a command as Ctrl-C does, so that it cleans up and says how to go on."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, stop)


class _ErrorStream(logging.StreamHandler):
    """Writes to whatever the error stream is at the moment: a progress bar may stand in for it."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:
        return sys.stderr


_log_handler = _ErrorStream()


def show_log(verbosity: int) -> None:
    """Show the library's log on the error stream: 1 for its steps, 2 for details, 0 for nothing."""
    log = logging.getLogger("latem")
    log.removeHandler(_log_handler)
    log.setLevel({0: logging.NOTSET, 1: logging.INFO}.get(verbosity, logging.DEBUG))
    if verbosity:
        _log_handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        log.addHandler(_log_handler)


def pairs(values: list[str] | None, option: str) -> dict[str, str]:
    """Values of an option of the form KEY=VALUE."""
    found = {}
    for value in values or []:
        key, equals, rest = value.partition("=")
        if not (key and equals and rest):
            raise typer.BadParameter(f"{option} takes KEY=FOLDER, not {value!r}.")
        found[key] = rest
    return found
