"""What the commands share: errors as sentences, and options of the form KEY=VALUE."""

from __future__ import annotations

from collections.abc import Iterator
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
        raise  # the reader closed the pipe, as head does: click then ends quietly
    except (OSError, ValueError, TypeError, ImportError) as error:
        Console(stderr=True, soft_wrap=True).print(Text(f"latem: {error}", style="red"))
        raise typer.Exit(1) from None


def pairs(values: list[str] | None, option: str) -> dict[str, str]:
    """Values of an option of the form KEY=VALUE."""
    found = {}
    for value in values or []:
        key, equals, rest = value.partition("=")
        if not (key and equals and rest):
            raise typer.BadParameter(f"{option} takes KEY=FOLDER, not {value!r}.")
        found[key] = rest
    return found
