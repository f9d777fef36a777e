"""What combining class embeddings gives: Table 3's way, and beyond the paper.

One model per class embedding; their scores are added up with weights in tenths that are chosen on
the val classes (`LateFusion.choose_weights`), or by the plain mean. Members are those of Table 3,
LatEm and SJE, out of the kept record of `latem reproduce` (`benchmarks/reproduce.py`), and, trained
here, the tuned preset (`LatEmCV`) and the committee (`CommitteeCV`). Standard split, mean per-class
accuracy on unseen classes, seed 0. Members and weights are chosen on val classes only; then the
members learn from train and val classes. Kept figures of other sets and members stay:

    python benchmarks/fusion.py                               # all sets under LATEM_DATA
    python benchmarks/fusion.py --sets cub --members tuned
"""

import argparse
import json

import numpy as np
from accuracy import committee, tuned
from joblib import Parallel, delayed
from machine import RESULTS, keep, real_dataset, show
from paper_page import SETS, WAYS, Record, combinations
from sklearn.base import clone

from latem import LateFusion, read_folder

MEMBERS = {"tuned": tuned, "committee": committee}


def member(folder, embedding, kind):
    """A model that has learned from the train classes alone, and one from train and val classes."""
    dataset = read_folder(folder)
    X, y = dataset.training("standard")
    val = list(dataset.split("standard").val)
    search = MEMBERS[kind](dataset.embeddings[embedding], val, np.unique(y), 0).fit(X, y)
    best = search.best_estimator_
    return clone(best).fit(*dataset.training("standard", val=False)), best


def combined(dataset, members):
    """Accuracies in percent: of every member, of the plain mean, and of chosen weights."""
    testing = dataset.testing("standard")

    def fused(place, val, **weights):
        models = [(name, pair[place]) for name, pair in members.items()]
        return LateFusion(models, prefit=True, **weights).fit(*dataset.training(val=val))

    chosen = fused(0, False).choose_weights(*dataset.validation("standard")).weights
    return {
        "members": {name: 100 * float(m.score(*testing)) for name, (_, m) in members.items()},
        "mean": 100 * float(fused(1, True).score(*testing)),
        "chosen": 100 * float(fused(1, True, weights=chosen).score(*testing)),
        "weights": dict(zip(members, chosen, strict=True)),
    }


def report(done):
    """Print a row per set, way and kind of member, beside those of Table 3 that are kept."""
    path = RESULTS / "reproduce.json"
    record = Record(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None
    rows = []
    for (name, way, kind), cell in combinations(record, done):
        best = max(cell["members"], key=cell["members"].get)
        weights = ", ".join(f"{one} {share:.1f}" for one, share in cell["weights"].items() if share)
        numbers = f"{cell['members'][best]:.1f}", f"{cell['mean']:.1f}", f"{cell['chosen']:.1f}"
        rows.append((f"{name} {way}", kind.strip("`"), best, *numbers, weights))
    show(
        "Combined class embeddings: mean per-class accuracy on unseen classes (%), standard split",
        ("set", "members", "best member", "alone", "plain mean", "chosen weights", "weights"),
        rows,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--members", nargs="*", default=list(MEMBERS), choices=list(MEMBERS))
    parser.add_argument("--jobs", type=int, default=-1)
    arguments = parser.parse_args()
    path = RESULTS / "fusion.json"
    done = json.loads(path.read_text(encoding="utf-8"))["cells"] if path.exists() else {}
    for name in arguments.sets:
        folder = real_dataset(name)
        if folder is None:
            continue
        dataset = read_folder(folder)
        tables = [e for e in WAYS["with attributes"] if e in dataset.embeddings]
        for kind in arguments.members:
            trained = Parallel(arguments.jobs)(delayed(member)(folder, e, kind) for e in tables)
            members = dict(zip(tables, trained, strict=True))
            for way, embeddings in WAYS.items():
                if set(embeddings) <= set(members):
                    here = {e: members[e] for e in embeddings}
                    done[f"{name}/{way}/{kind}"] = combined(dataset, here)
            keep("fusion", {"cells": dict(sorted(done.items()))})
    report(done)


if __name__ == "__main__":
    main()
