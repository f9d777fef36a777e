"""`latem train`: a model from a dataset folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from latem.cli.common import NOTHING_WRITTEN, Cluster, failures, not_nan


def train(
    dataset: Annotated[Path, typer.Argument(help="Dataset folder.")],
    out: Annotated[Path, typer.Option(help="Model file to write.")],
    embedding: Annotated[
        str | None,
        typer.Option(
            help="Name of the class table to learn with.", show_default="the only one there is"
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Committee (four models that answer together), LatEm, or a baseline such as "
            "ESZSL.",
            show_default="Committee; LatEm with --preset, --maps, --step or --epochs",
        ),
    ] = None,
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
    calibrate: Annotated[
        bool,
        typer.Option(
            help="Also choose on held-out classes how the model answers: probabilities, the "
            "penalty on seen classes, none of these."
        ),
    ] = True,
    false_accept_rate: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            callback=not_nan,
            help="Wanted share of pictures of none of the classes that get a name.",
        ),
    ] = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    cluster: Cluster = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show results only, no progress.")
    ] = False,
) -> None:
    """Train a model on a dataset folder and write it to a file.

    What is not given is chosen on held-out classes: the split's val classes, or folds of classes.
    So is how the model will answer, which `latem predict` then uses.
    """
    given = {"n_maps": maps, "learning_rate": step, "n_epochs": epochs}
    with failures(NOTHING_WRITTEN):
        from latem.core import atomic
        from latem.core.cluster import on_cluster
        from latem.datasets.folder import own_files
        from latem.workflows.train import train_model

        atomic.check_target(out, own_files(dataset))
        with on_cluster(cluster):
            done = train_model(
                dataset,
                embedding,
                kind=model,
                preset=preset,
                split=None if split == "none" else split,
                given={name: value for name, value in given.items() if value is not None},
                calibrate=calibrate,
                false_accept_rate=false_accept_rate,
                seed=seed,
                verbose=not quiet,
            )
        done.model.save(out)
    say = Console(soft_wrap=True)
    for line in done.lines():
        say.print(line, markup=False, emoji=False, highlight=False)
    for note in done.notes:
        typer.echo(f"latem: {note}", err=True)
    say.print(f"Model written to {out}.", markup=False, emoji=False, highlight=False)
