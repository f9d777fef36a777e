"""What the commands share: errors and interruptions as sentences, the log, KEY=VALUE options."""

from __future__ import annotations

import inspect
import logging
import math
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from os import PathLike
from types import FrameType
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from latem.core.messages import shortened

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

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.help = _unbroken(self.help)

    def get_params(self, ctx: Any) -> list[Any]:
        """Arguments and options, that of the help included."""
        return _in_plain_words(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Values of the arguments and options; one that is refused is told."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            _name_value(error)
            raise

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


def _unbroken(text: str | None) -> str | None:
    """A docstring with one line for each paragraph; the terminal breaks it where it ends."""
    if text is None:
        return None
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


def _in_plain_words(params: list[Any]) -> list[Any]:
    """Let parameters show plain types; newer versions of typer show Python's, `<list[Path]>`."""
    for param in params:
        shown = getattr(param, "display_type_rich", None)
        if shown is not None and not isinstance(shown, partial):
            param.display_type_rich = partial(_plain_type, shown)
    return params


def _name_value(error: typer.BadParameter) -> None:
    """Let an error say which value was refused; newer versions of typer only say why."""
    told = getattr(error.__cause__, "errors", None)
    if told is not None:
        first = told()[0]
        reason = error.message.removeprefix("Value error, ").rstrip(".")
        value = shortened(repr(first["input"]))
        given = "" if value in reason else f", not {value}"
        error.message = f"{reason}{given}."


def _plain_type(shown: Callable[..., str | None], ctx: Any) -> str | None:
    text = shown(ctx=ctx)
    return text if text is None else _PLAIN_TYPES.get(text, text)


def example(line: str) -> dict[str, Any]:
    """Options for `app.command`: the help ends with an example of the command in use."""
    return {"cls": Command, "epilog": f"Example: latem {line}"}


def _told(error: OSError) -> str:
    """A sentence of ours as it is; of the system's, what is wrong with which file."""
    if error.strerror is None or not isinstance(error.filename, str | PathLike):
        return str(error)
    return f"{shortened(os.fsdecode(error.filename), 200)}: {error.strerror}."


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
    except OSError as error:
        _complain(_told(error))
        raise typer.Exit(1) from None
    except (ValueError, TypeError, ImportError) as error:
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


def not_nan(value: float | None) -> float | None:
    """Callback of options with a range: some versions of typer let nan through it."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number in the allowed range.")
    return value


def pairs(values: list[str] | None, option: str) -> dict[str, str]:
    """Values of an option of the form KEY=VALUE."""
    found = {}
    for value in values or []:
        key, equals, rest = value.partition("=")
        if not (key and equals and rest):
            raise typer.BadParameter(f"{option} takes KEY=FOLDER, not {value!r}.")
        found[key] = rest
    return found


Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Train on the workers of a Dask scheduler, such as tcp://10.0.0.1:8786; they need the "
        "same folders as this machine.",
    ),
]
