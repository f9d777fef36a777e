"""`latem train`: a model from a dataset folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from latem.cli.common import failures


def train(
    dataset: Annotated[Path, typer.Argument(help="Dataset folder.")],
    embedding: Annotated[str, typer.Option(help="Name of the class table to learn with.")],
    out: Annotated[Path, typer.Option(help="Model file to write.")],
    model: Annotated[str, typer.Option(help="LatEm, or a baseline such as ESZSL.")] = "LatEm",
    preset: Annotated[
        str | None,
        typer.Option(
            help="How LatEm is trained: tuned (what named unseen classes best), or paper.",
            show_default="tuned",
        ),
    ] = None,
    split: Annotated[
        str, typer.Option(help="Split to learn from; 'none' learns from all images.")
    ] = "standard",
    maps: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of maps; if not given, 1 (tuned) or chosen on held-out classes."
        ),
    ] = None,
    step: Annotated[
        float | None, typer.Option(help="Step size; if not given, as for --maps.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the images.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show results only, no progress.")
    ] = False,
) -> None:
    """Train a model on a dataset folder and write it to a file.

    What is not given is chosen on held-out classes: the split's val classes, or folds of classes.
    """
    from latem.core import storage
    from latem.datasets import read_folder
    from latem.workflows.train import train_model

    given = {"n_maps": maps, "learning_rate": step, "n_epochs": epochs}
    with failures():
        storage.check_target(out)
        done = train_model(
            read_folder(dataset),
            embedding,
            kind=model,
            preset=preset,
            split=None if split == "none" else split,
            given={name: value for name, value in given.items() if value is not None},
            seed=seed,
            verbose=not quiet,
        )
        done.model.save(out)
    say = Console(soft_wrap=True)
    if done.held_out_score is not None:
        chosen = ", ".join(f"{name} {value}" for name, value in done.chosen.items())
        say.print(
            f"Chosen on held-out classes: {chosen} ({done.held_out_score:.1%} there).",
            markup=False,
            emoji=False,
            highlight=False,
        )
    if done.unseen_score is not None:
        say.print(
            f"Mean per-class accuracy on {done.n_unseen} unseen classes: {done.unseen_score:.1%} "
            f"(chance {1 / done.n_unseen:.1%}).",
            highlight=False,
        )
    for note in done.notes:
        typer.echo(f"latem: {note}", err=True)
    say.print(f"Model written to {out}.", markup=False, emoji=False, highlight=False)
