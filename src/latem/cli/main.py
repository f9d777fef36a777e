"""The whole command line, put together."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from latem.cli.common import Group, end_politely, example, show_log
from latem.cli.data import app as data_app
from latem.cli.demo import demo
from latem.cli.describe import describe
from latem.cli.embed import app as embed_app
from latem.cli.evaluate import evaluate_command
from latem.cli.export import export
from latem.cli.find import find
from latem.cli.gallery import gallery
from latem.cli.info import info
from latem.cli.name import name
from latem.cli.predict import predict
from latem.cli.reproduce import reproduce
from latem.cli.serve import serve
from latem.cli.train import train

app = typer.Typer(
    name="latem",
    cls=Group,
    help="Name classes you have no pictures of.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data_app, name="data")
app.add_typer(embed_app, name="embed")
app.command(**example("demo --out emoji"))(demo)
app.command(**example("train birds --embedding att --out birds.safetensors"))(train)
app.command(**example("predict birds.safetensors photos --out answers.csv"))(predict)
app.command(
    **example("describe birds.safetensors --like 'Blue Jay' --set 'has_wing_color::red=90'")
)(describe)
app.command(**example("name photos --names 'okapi, tapir, zebra' --hint animal"))(name)
app.command(**example("find birds.safetensors birds 'Blue Jay' --top 20"))(find)
app.command("evaluate", **example("evaluate birds.safetensors birds --html birds.html"))(
    evaluate_command
)
app.command(**example("info birds.safetensors --format markdown"))(info)
app.command(**example("export birds.safetensors --onnx birds.onnx --classes all"))(export)
app.command(**example("reproduce table2 --data datasets --out results"))(reproduce)
app.command(**example("serve birds.safetensors birds"))(serve)
app.command(**example("gallery birds.safetensors birds --out birds-gallery"))(gallery)


def main() -> None:
    """Run the command line; characters the terminal cannot show become question marks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    end_politely()
    app()


def _show_version(wanted: bool) -> None:
    if wanted:
        from latem.core.version import __version__

        typer.echo(f"latem {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            metavar="",
            show_default=False,
            help="Say what is read, written and chosen; twice for details. Comes before the "
            "command: latem -v train …",
        ),
    ] = 0,
) -> None:
    """Name classes you have no pictures of."""
    show_log(verbose)
