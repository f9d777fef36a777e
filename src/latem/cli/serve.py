"""`latem serve`: a model as a web application and a REST server."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from latem.cli.common import failures
from latem.core.paths import no_file
from latem.core.text_files import read_lines

DEFAULT_SPLIT = "standard"  # a dataset without it can be looked at, too
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")]
Browser = Annotated[
    bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
]


def serve(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL... [DATASET]",
            help="Model files, and the dataset folder to look at them with.",
        ),
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than 127.0.0.1 need a token.")
    ] = "127.0.0.1",
    port: Port = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File whose first line clients must know; or set LATEM_TOKEN.", show_default=False
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(help="Further name that clients may call the server by; may be repeated."),
    ] = None,
    split: Annotated[
        str, typer.Option(help="Split whose test classes are measured and shown.")
    ] = DEFAULT_SPLIT,
    pictures: Annotated[
        Path | None,
        typer.Option(
            help="Folder that holds the dataset's pictures; by default its `images`, or the "
            "folder they were embedded from."
        ),
    ] = None,
    words: Annotated[
        Path | None,
        typer.Option(help="Word vectors that the class table was made from: lets people type."),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="Local weight file of the encoder, if it needs one.")
    ] = None,
    classes_file: Annotated[
        Path | None,
        typer.Option(help="CSV file that invented classes are written to, if people ask for it."),
    ] = None,
    browser: Browser = False,
) -> None:
    """Serve models: an explorer in the browser, REST, and the Open Inference Protocol.

    The page names pictures, lets one invent classes and see which pictures fit them, names whole
    albums, and shows what a model has learned. /api/openapi.json describes the REST doors. A model
    file that is replaced is taken over while the server runs.
    """
    with failures():
        from latem.workflows.serving import to_serve

        settings = {
            "host": host,
            "port": port,
            "token": _token(token_file),
            "allowed_hosts": tuple(allowed_host or ()),
            "classes_file": classes_file,
        }
        more = {
            "split": split,
            "words": words,
            "encoder_options": {} if weights is None else {"weights": weights},
        }
        check_extra()
        served = to_serve(paths, pictures)
        _check_files(words, weights, classes_file)
        if served.dataset is not None and split != DEFAULT_SPLIT:
            served.dataset.split(split)
        start(served, settings, more, browser=browser)


def _check_files(words: Path | None, weights: Path | None, classes_file: Path | None) -> None:
    """Say at once what would be found out when somebody asks."""
    from latem.core.atomic import check_target

    for what, path in (("word vectors", words), ("weights", weights)):
        if path is not None and not path.is_file():
            raise no_file(path, f"file of {what}")
    if classes_file is not None:
        check_target(classes_file)


def check_extra() -> None:
    """Say what must be installed, before anything long begins."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise ImportError("The server needs fastapi: pip install 'latem[serve]'.") from None


def start(
    served: Any, settings: dict[str, Any], more: dict[str, Any], *, browser: bool = False
) -> None:
    """Run the server until it is stopped.

    Parameters
    ----------
    served : latem.workflows.serving.Served
    settings : dict
        For `latem.server.settings.Settings`.
    more : dict
        For `latem.server.shelf.Source`.
    browser : bool
        Whether to open the page.
    """
    from latem.server.run import serve as run
    from latem.server.settings import Settings
    from latem.server.shelf import Source

    def ready(address: str) -> None:
        typer.echo(f"latem: serving {', '.join(served.models)} at {address} (Ctrl+C stops)")
        if browser:
            webbrowser.open(address)

    source = Source(served.dataset, pictures=served.pictures, **more)
    try:
        run(dict(served.models), source, Settings(**settings), ready)
    except KeyboardInterrupt:  # how a server ends
        typer.echo("latem: stopped")


def _token(path: Path | None) -> str | None:
    """The token, from a file or the environment; never from the command line, which all can see."""
    from latem.server.settings import TOKEN_VARIABLE

    if path is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    return read_lines(path, "tokens")[0]
