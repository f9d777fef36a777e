"""The command line: a thin shell over the library."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from latem.cli_data import app as data_app
from latem.cli_embed import app as embed_app
from latem.cli_evaluate import evaluate_command
from latem.cli_gallery import gallery
from latem.cli_name import name
from latem.cli_reproduce import reproduce
from latem.cli_tools import failures
from latem.cli_train import predict, train

if TYPE_CHECKING:
    from latem.demo import DemoResult
    from latem.models.training import EpochInfo

app = typer.Typer(
    name="latem",
    help="Name classes you have no pictures of.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data_app, name="data")
app.add_typer(embed_app, name="embed")
app.command()(train)
app.command()(predict)
app.command()(name)
app.command("evaluate")(evaluate_command)
app.command()(reproduce)
app.command()(gallery)


def main() -> None:
    """Run the command line; characters the terminal cannot show become question marks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()


def _show_version(wanted: bool) -> None:
    if wanted:
        from latem import __version__

        typer.echo(f"latem {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Name classes you have no pictures of."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("latem-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show results only, no progress.")
    ] = False,
) -> None:
    """Learn from emoji of seen classes and name unseen ones from their words alone."""
    from latem.demo import run_demo

    start = time.perf_counter()
    with failures(), _Progress(quiet) as progress:
        result = run_demo(out, seed=seed, progress=progress.advance)
    _print_demo(result, out, time.perf_counter() - start)


class _Progress:
    """Progress bars on the error stream, one per model; nothing when quiet."""

    def __init__(self, quiet: bool):
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._bars = Progress(
            TextColumn("training {task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("epochs"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=quiet,
        )
        self._tasks: dict[str, object] = {}

    def __enter__(self) -> _Progress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def advance(self, name: str, info: EpochInfo) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=info.n_epochs)
        self._bars.update(self._tasks[name], completed=info.epoch)  # type: ignore[arg-type]


def _print_demo(result: DemoResult, out: Path, seconds: float) -> None:
    console = Console()
    console.print(
        f"Learned from {result.n_training_images} drawings of {result.n_seen} things; now naming "
        f"drawings of {result.n_unseen} things never seen, from words that describe them.",
        highlight=False,
    )
    console.print("\nMean per-class accuracy on the unseen classes:")
    table = Table("model")
    table.add_column("top-1", justify="right")
    table.add_column("top-5", justify="right")
    for score in result.scores:
        table.add_row(score.name, f"{score.top_1:.1%}", f"{score.top_5:.1%}")
    console.print(table)

    console.print(f"\nA random dozen of the drawings, named by {result.scores[-1].name}:")
    characters = result.dataset.info["characters"]
    samples = Table("drawing", "drawn by", "named", "truth ranked")
    for sample in result.samples:
        samples.add_row(
            f"{characters[sample.true]} {sample.true}",
            sample.image.rsplit(" ", 1)[1],
            f"{characters[sample.named]} {sample.named}",
            _ordinal(sample.rank) + (" ✓" if sample.right else ""),
        )
    console.print(samples)
    console.print(
        f"Done in {seconds:.0f} seconds. Models, scores and all predictions are in {out}.",
        highlight=False,
        markup=False,
        emoji=False,
    )


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
