"""`reproduce`: every table and figure of the paper on the datasets at hand.

Trainings run side by side in threads and are kept one by one, so that an interrupted run
continues; a training that several tables need is done once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from latem.core.messages import first_few
from latem.core.parallel import run_tasks
from latem.core.run_folder import RunFolder
from latem.core.threads import single_threaded_blas
from latem.core.version import __version__
from latem.datasets.dataset import ZeroShotDataset
from latem.experiments.cells import Cells
from latem.experiments.code_digest import code_key
from latem.experiments.estimate import reference_seconds
from latem.experiments.fits import Fit, Outcome, digest_dataset, run_fit
from latem.experiments.inputs import find_datasets, picture_folders
from latem.experiments.plan import Plan, plan
from latem.experiments.store import Store
from latem.experiments.summary import rows_of, summarise
from latem.experiments.tables import PaperTable, read_protocols
from latem.report.page import write_report

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Reproduction:
    """What a run did.

    Attributes
    ----------
    summary : dict
        Our numbers beside the paper's.
    n_trained, n_kept : int
        Models trained in this run, and those found from an earlier one.
    seconds : float
        Wall time of this run.
    ratio : float or None
        Estimated processor time of plain NumPy for the SGD trainings of this run, divided by the
        time that they took, with one thread each; None if there were none. Trainings kept from an
        earlier run do not count: their time may be that of another machine.
    """

    summary: dict[str, Any]
    n_trained: int
    n_kept: int
    seconds: float
    ratio: float | None


def reproduce(
    data: str | PathLike[str],
    out: str | PathLike[str],
    tables: Sequence[str] = (),
    *,
    n_jobs: int | None = None,
    seed: int = 0,
    folders: Mapping[str, str | PathLike[str]] | None = None,
    pictures: Mapping[str, str | PathLike[str]] | None = None,
    select_learning_rate: bool = False,
    n_epochs: int | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Run tables and figures of the paper, and write a report.

    Parameters
    ----------
    data : path
        Folder of dataset folders.
    out : path
        Run folder: `report.html`, `results.json`, `results.csv`, and `cells/` with every training.
    tables : sequence of str
        Ids, such as "table2"; all by default.
    n_jobs : int or None
        Trainings side by side; None uses all cores. Results do not depend on it.
    seed : int
        Seed of every training.
    folders : dict of str to path, optional
        Dataset folders for "CUB", "AWA" or "Dogs" under other names.
    pictures : dict of str to path, optional
        Folders with the pictures of a dataset, for galleries.
    select_learning_rate : bool
        Whether LatEm's step size is chosen on the val classes of the standard split instead of
        being the paper's for the dataset. If the features are not the paper's, it always is.
    n_epochs : int, optional
        Number of passes, if not the paper's 150: fewer give a quick look.
    progress : callable, optional
        Called with (trainings done, trainings known so far, what was trained).
    """
    start = time.perf_counter()
    protocols = read_protocols()
    if n_epochs is not None:
        protocols = protocols.with_epochs(n_epochs)
    paper = protocols.datasets
    wanted = _wanted_tables(protocols.tables, tables)
    found = find_datasets(Path(data), folders or {}, wanted, paper)
    datasets, places = found.datasets, found.places
    if not datasets:
        reasons = "; ".join(found.absent.values())
        raise FileNotFoundError(
            f"None of the paper's datasets is here: {reasons}. Dataset folders are "
            f"described in docs/own-data.md."
        )
    with RunFolder(out) as run:
        digests = {key: digest_dataset(dataset) for key, dataset in datasets.items()}
        code, code_note = code_key()
        remarks = [*found.notes, *filter(None, [code_note])]
        store = Store(run.store("cells"), digests, code)
        other = {key for key, place in places.items() if place.name in paper[key].other_features}
        chosen = set(places) if select_learning_rate else other
        cells = Cells(datasets, protocols, store, seed, found.absent, chosen, other)
        shown = picture_folders(places, pictures or {})
        trained: list[Fit] = []
        while (planned := plan(cells, wanted)).missing:
            _train(planned, datasets, store, n_jobs, progress)
            trained += planned.missing
        n_trained, n_kept = len(trained), len(planned.used) - len(trained)
        summary = {
            **_head(cells, wanted, seed, n_epochs, remarks),
            **summarise(cells, wanted, shown),
        }
        _write_results(run, summary)
        ratio = _ratio(trained, store)
        seconds = time.perf_counter() - start
        run.finish(
            {
                "command": "reproduce",
                "tables": list(wanted),
                "data": {key: str(path) for key, path in places.items()},
                "seed": seed,
                "trained": n_trained,
                "kept": n_kept,
                "seconds": round(seconds, 1),
                "ratio_to_numpy": None if ratio is None else round(ratio, 1),
            }
        )
        return Reproduction(summary, n_trained, n_kept, seconds, ratio)


def _wanted_tables(known: Mapping[str, PaperTable], names: Sequence[str]) -> dict[str, PaperTable]:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"The paper has no {first_few(unknown)} here; there are {', '.join(known)}."
        )
    return {name: table for name, table in known.items() if not names or name in names}


def _train(
    planned: Plan,
    datasets: Mapping[str, ZeroShotDataset],
    store: Store,
    n_jobs: int | None,
    progress: Progress | None,
) -> None:
    """Do the missing trainings of a plan, the longest first."""

    def cost(fit: Fit) -> float:
        params = json.loads(fit.params)
        images = len(datasets[fit.dataset].labels)
        return -images * (4 + params.get("n_maps", 1)) * (1 if fit.part == "all" else 0.7)

    finished = len(planned.used) - len(planned.missing)

    if progress is not None:
        progress(finished, planned.n_known, "")
    with single_threaded_blas():
        for fit, outcome in run_tasks(
            _run, sorted(planned.missing, key=cost), shared=(datasets,), n_threads=n_jobs,
            in_order=False,
        ):  # fmt: skip
            store.put(fit, outcome)
            finished += 1
            if progress is not None:
                progress(finished, planned.n_known, str(fit))


def _run(fit: Fit, datasets: Mapping[str, ZeroShotDataset]) -> tuple[Fit, Outcome]:
    return fit, run_fit(fit, datasets[fit.dataset])


def _ratio(fits: Iterable[Fit], store: Store) -> float | None:
    """Estimated time of plain NumPy divided by ours, for the SGD ones of some trainings."""
    costs, ours = [], 0.0
    for fit in fits:
        outcome = store.get(fit)
        if outcome is not None and "cost" in outcome.result:
            costs.append({**outcome.result["cost"], "model": fit.model})
            ours += outcome.seconds
    return reference_seconds(costs) / ours if costs else None


def _head(
    cells: Cells,
    tables: Mapping[str, PaperTable],
    seed: int,
    n_epochs: int | None,
    remarks: Sequence[str],
) -> dict[str, Any]:
    """Title, remarks and settings of the report."""
    steps = []
    for key in cells.datasets:
        step = cells.learning_rate(key, n_epochs or 150)
        source = "chosen on val classes" if key in cells.choose_step else "Sec. 5"
        steps.append(f"{key} not needed here" if step is None else f"{key} {step} ({source})")
    notes = [f"{key}: {reason}." for key, reason in cells.absent.items()]
    for key, data in cells.datasets.items():
        if data.info.get("features"):
            notes.append(f"{key} features: {data.info['features']}.")
        if key in cells.other_features:
            notes.append(
                f"{key} is here with other features than the paper's. Its numbers stand beside the "
                f"published ones, but are neither judged nor part of a mean difference."
            )
    if n_epochs is not None:
        notes.append(f"A quick look: {n_epochs} epochs instead of the paper's 150.")
    return {
        "title": "Latent Embeddings for Zero-shot Classification, reproduced",
        "subtitle": "Tables and figures of Xian et al., CVPR 2016: our numbers beside the paper's",
        "version": __version__,
        "notes": [*notes, *remarks],
        "settings": {
            "Measure": "mean per-class top-1 accuracy on unseen classes, in percent",
            "Choices": "numbers of maps, steps and all else on val classes only; final models "
            "learn from train and val classes",
            "LatEm's step": ", ".join(steps),
            "Epochs": str(n_epochs or 150),
            "Five splits": "the standard one and four random ones with as many classes",
            "Seed": str(seed),
            "Tables": ", ".join(table.title for table in tables.values()),
        },
    }


def _write_results(run: RunFolder, summary: Mapping[str, Any]) -> None:
    text = json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False)
    run.write_text("results.json", text + "\n")
    header, rows = rows_of(summary)
    run.write_table("results.csv", header, rows)
    write_report(summary, run.file("report.html"))
