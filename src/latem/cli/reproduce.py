"""`latem reproduce`: the paper's tables and figures on the user's datasets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from latem.cli.common import CONTINUES, Cluster, failures, pairs
from latem.core.progress import progress_bar

if TYPE_CHECKING:
    from latem.experiments.runner import Reproduction

_NOTHING = "–"


def reproduce(
    tables: Annotated[
        list[str] | None,
        typer.Argument(help="Which tables, such as table2 or figure3; all by default."),
    ] = None,
    data: Annotated[Path, typer.Option(help="Folder that holds the dataset folders.")] = Path("."),
    out: Annotated[Path, typer.Option(help="Folder for results and report.")] = Path(
        "latem-reproduction"
    ),
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Trainings side by side; all cores by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every training.")] = 0,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FOLDER",
            help="Another folder for a dataset: CUB=FOLDER, AWA=FOLDER, Dogs=FOLDER.",
        ),
    ] = None,
    pictures: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FOLDER", help="Pictures of a dataset, for galleries: CUB=FOLDER."
        ),
    ] = None,
    select_step: Annotated[
        bool,
        typer.Option(
            "--select-step",
            help="Choose LatEm's step size on val classes instead of taking the paper's.",
        ),
    ] = False,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Fewer passes than the paper's 150, for a quick look.")
    ] = None,
    cluster: Cluster = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show results only, no progress.")
    ] = False,
) -> None:
    """Run the paper's tables and figures and put our numbers beside the published ones.

    An interrupted run continues where it stopped. Datasets that are missing are skipped and named.
    """
    from latem.core.cluster import on_cluster
    from latem.experiments.runner import reproduce as run

    with (
        failures(CONTINUES),
        on_cluster(cluster),
        progress_bar(not quiet, "training", unit="models") as show,
    ):
        done = run(
            data,
            out,
            tables or (),
            n_jobs=jobs,
            seed=seed,
            folders=pairs(dataset, "--dataset"),
            pictures=pairs(pictures, "--pictures"),
            select_learning_rate=select_step,
            n_epochs=epochs,
            progress=show,
        )
    _print(done, out)


def _print(done: Reproduction, out: Path) -> None:
    console = Console(soft_wrap=True)
    for table in done.summary["tables"]:
        for group in dict.fromkeys(group for group, _ in table["columns"]):
            if group not in table["absent"]:
                _print_group(table, group)
    for note in done.summary["notes"]:
        console.print(note, markup=False, emoji=False, highlight=False)
    ratio = "" if done.ratio is None else (
        f"; the SGD trainings were {done.ratio:.0f} times as fast as an estimate for plain NumPy"
    )  # fmt: skip
    console.print(
        f"{done.n_trained} models trained ({done.n_kept} kept from before) in "
        f"{done.seconds / 60:.1f} minutes{ratio}. Report: {out / 'report.html'}",
        markup=False,
        emoji=False,
        highlight=False,
    )


def _print_group(table: dict, group: str) -> None:
    """The columns of one dataset, so that lines stay short; datasets that are absent have none."""
    places = [i for i, (of, _) in enumerate(table["columns"]) if of == group]
    what = f"{group} with other features" if group in table.get("apart", ()) else group
    shown = Table(table["row_title"], title=f"{table['title']}, {what}: ours (paper)")
    for i in places:
        shown.add_column(table["columns"][i][1], justify="right", no_wrap=True)
    for name, line in zip(table["rows"], table["cells"], strict=True):
        texts = [_text(line[i], table["digits"]) for i in places]
        if name not in table["absent"] and set(texts) != {_NOTHING}:
            shown.add_row(name, *texts)
    Console().print(shown)


def _text(cell: dict, digits: int) -> str:
    if cell["status"] == "none":
        return _NOTHING
    paper = "" if cell["paper"] is None else f" ({cell['paper']:.{digits}f})"
    return ("skipped" if cell["ours"] is None else f"{cell['ours']:.{digits}f}") + paper
