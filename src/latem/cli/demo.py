"""`latem demo`: the main job on the bundled emoji."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from latem.cli.common import failures
from latem.cli.serve import Browser, Port, check_extra
from latem.cli.serve import start as start_server
from latem.core.progress import bars_by_title

if TYPE_CHECKING:
    from latem.workflows.demo import DemoResult


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("latem-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    serve: Annotated[
        bool, typer.Option("--serve", help="Then open the explorer on the emoji.")
    ] = False,
    port: Port = 8000,
    browser: Browser = True,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show results only, no progress.")
    ] = False,
) -> None:
    """Learn from emoji of seen classes and name unseen ones from their words alone."""
    from latem.workflows.demo import run_demo

    if serve:
        with failures():
            check_extra()

    start = time.perf_counter()
    with failures(), bars_by_title(not quiet, "steps") as advance:
        result = run_demo(out, seed=seed, progress=advance)
    _print_demo(result, out, time.perf_counter() - start)
    if serve:
        from latem.workflows.serving import demo_to_serve

        with failures():
            typer.echo("\nTraining the explorer's models, by keywords and by sentences, once.")
            served = demo_to_serve(out, seed=seed, verbose=not quiet)
            start_server(served, {"port": port}, {}, browser=browser)


def _print_demo(result: DemoResult, out: Path, seconds: float) -> None:
    from latem.workflows.demo import PAGE
    from latem.workflows.demo_answers import source_of

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

    console.print(f"\nA random dozen of the drawings, named by the {result.scores[-1].name}:")
    characters = result.dataset.info["characters"]
    samples = Table("drawing", "drawn by", "named", "truth ranked")
    for sample in result.samples:
        samples.add_row(
            f"{characters[sample.true]} {sample.true}",
            source_of(sample.image),
            f"{characters[sample.named]} {sample.named}",
            ordinal(sample.rank) + (" ✓" if sample.right else ""),
        )
    console.print(samples)
    console.print(
        f"Done in {seconds:.0f} seconds. All answers, and why they were given: {out / PAGE}. "
        f"Models, scores and predictions are beside it.",
        highlight=False,
        markup=False,
        emoji=False,
    )


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, …"""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
