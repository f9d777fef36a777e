"""LatEm beyond the paper against the baselines, on every real set and embedding that is there.

Standard split, mean per-class accuracy on unseen classes. Everything is chosen on val classes only
and then fitted to train and val classes; `committee` and `tuned` are run with several seeds, other
models with seed 0. Finished cells are kept in `results/accuracy.json` and not run again:

    python benchmarks/accuracy.py                     # all sets under LATEM_DATA
    python benchmarks/accuracy.py --sets cub animals --models tuned ESZSL
"""

import argparse
import json

import numpy as np
from joblib import Parallel, delayed
from machine import RESULTS, keep, real_dataset, show

from latem import (
    ALE,
    CCA,
    ESZSLCV,
    EXEM,
    GFZSL,
    SAE,
    SJE,
    ClassEmbeddings,
    CommitteeCV,
    DeViSE,
    HeldOutSearch,
    LatEm,
    LatEmCV,
    SynC,
    read_folder,
)
from latem.core.threads import single_threaded_blas
from latem.selection.closed_forms import GAMMAS, LAMS, exemplar_accuracy, fold_images
from latem.selection.folds import FoldData
from latem.selection.grids import GRIDS

SETS = ("cub", "dogs", "awa_handcrafted", "animals", "emoji")
SEEDS = {"committee": range(5), "tuned": range(5)}
FEW = {"learning_rate": (0.01, 0.1, 1.0), "n_epochs": (10, 20, 50)}
PAPER = {"n_maps": (2, 4, 6), "learning_rate": (0.001, 0.01, 0.1)}


def centred(table, classes):
    """The table less the mean of some classes."""
    mean = table.select(classes).vectors.mean(axis=0)
    return ClassEmbeddings(table.names, table.vectors - mean, name=table.name)


def tuned(table, val, seen, seed):
    return LatEmCV(table, preset="tuned", cv=val, random_state=seed, n_threads=1)


def committee(table, val, seen, seed):
    return CommitteeCV(table, cv=val, random_state=seed, n_threads=1)


def paper(table, val, seen, seed):
    model = LatEm(table, random_state=seed)
    return HeldOutSearch(model, {**PAPER, "n_epochs": (150,)}, cv=val, n_threads=1)


def eszsl(table, val, seen, seed):
    return ESZSLCV(table, cv=val, gammas=10.0 ** np.arange(-3, 6))


def without_ranking(table, val, seen, seed):
    """ESZSL with the inputs of `tuned`, and balanced like it: all but the ranking."""
    return ESZSLCV(
        centred(table, seen),
        cv=val,
        feature_scaling="l2-centered",
        balance_classes=True,
        gammas=GAMMAS,
        lams=LAMS,
    )


def sje(table, val, seen, seed):
    return HeldOutSearch(SJE(table, random_state=seed), FEW, cv=val, n_threads=1)


def ale(table, val, seen, seed):
    return HeldOutSearch(ALE(table, random_state=seed), FEW, cv=val, n_threads=1)


def devise(table, val, seen, seed):
    return HeldOutSearch(DeViSE(table, random_state=seed), FEW, cv=val, n_threads=1)


def cca(table, val, seen, seed):
    return HeldOutSearch(CCA(table), cv=val, n_threads=1)


class Exemplars:
    """EXEM with its usual grid, chosen as by `HeldOutSearch`; one decomposition serves it all."""

    def __init__(self, table, val, seen, seed):
        self.table, self.val = table, val

    def fit(self, X, y):
        out = np.isin(y, self.val)
        fold = FoldData(X[~out], y[~out], X[out], y[out], np.unique(self.val))
        model, grid = EXEM(self.table), GRIDS["EXEM"]
        with single_threaded_blas():
            images = fold_images(model, fold)
            found = exemplar_accuracy(model, fold, images, grid["gamma"], grid["alpha"])
        i, j = np.unravel_index(found.argmax(), found.shape)  # the first of equals
        self.best_score_ = found.max()
        return model.set_params(gamma=grid["gamma"][i], alpha=grid["alpha"][j]).fit(X, y)


def usual(kind):
    """A baseline with its usual grid."""

    def search(table, val, seen, seed):
        return HeldOutSearch(kind(table), cv=val, n_threads=1)

    return search


MODELS = {
    "committee": committee,
    "tuned": tuned,
    "ESZSL": eszsl,
    "tuned without ranking": without_ranking,
    "SJE": sje,
    "ALE": ale,
    "DeViSE": devise,
    "CCA": cca,
    "EXEM": Exemplars,
    "SAE": usual(SAE),
    "SynC": usual(SynC),
    "GFZSL": usual(GFZSL),
    "paper": paper,
}


def run(folder, embedding, model, seed):
    """Accuracy on val classes and on unseen ones, in percent."""
    dataset = read_folder(folder)
    X, y = dataset.training("standard")
    val = list(dataset.split("standard").val)
    search = MODELS[model](dataset.embeddings[embedding], val, np.unique(y), seed)
    fitted = search.fit(X, y)
    held_out = search.cv_scores_.max() if isinstance(search, ESZSLCV) else search.best_score_
    return 100 * float(held_out), 100 * float(fitted.score(*dataset.testing("standard")))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--jobs", type=int, default=-1)
    arguments = parser.parse_args()
    path = RESULTS / "accuracy.json"
    done = json.loads(path.read_text())["cells"] if path.exists() else {}
    jobs = []
    for name in arguments.sets:
        folder = real_dataset(name)
        if folder is None:
            continue
        for embedding in read_folder(folder).embeddings:
            for model in arguments.models:
                for seed in SEEDS.get(model, (0,)):
                    key = f"{name}/{embedding}/{model}/{seed}"
                    if key not in done:
                        jobs.append((key, folder, embedding, model, seed))
    jobs.sort(key=lambda job: job[4])  # all cells with the first seed first
    finished = Parallel(arguments.jobs, return_as="generator_unordered")(
        delayed(lambda key, *job: (key, run(*job)))(*job) for job in jobs
    )
    for number, (key, pair) in enumerate(finished, start=1):
        done[key] = pair
        print(f"{number}/{len(jobs)} {key}: val {pair[0]:.1f}, unseen {pair[1]:.1f}", flush=True)
        if number % 10 == 0:
            keep("accuracy", {"cells": dict(sorted(done.items()))})
    keep("accuracy", {"cells": dict(sorted(done.items()))})
    report(done)


def report(done):
    """Print one row per set and embedding."""
    cells = sorted({tuple(key.split("/")[:2]) for key in done})
    rows = []
    for name, embedding in cells:
        row, means = [f"{name} {embedding}"], {}
        for model in MODELS:
            scores = [v[1] for k, v in done.items() if k.split("/")[:3] == [name, embedding, model]]
            if not scores:
                row.append("–")
                continue
            means[model] = np.mean(scores)
            row.append(
                f"{means[model]:.1f}" + (f" ± {np.std(scores):.1f}" if len(scores) > 1 else "")
            )
        best = max(means, key=means.get)
        rows.append((*row, best))
    show(
        "Mean per-class accuracy on unseen classes (%), standard split; ± over seeds 0-4",
        ("cell", *MODELS, "best"),
        rows,
    )


if __name__ == "__main__":
    main()
