"""The committee against its nearest rivals on all divisions of CUB's classes, with paired tests.

Each division gives one accuracy on unseen classes per model, all chosen on its val classes; a
paired t-test over the divisions says whether differences are more than chance. (Divisions share
classes, so the tests are somewhat too sure.)

    python benchmarks/cub_splits.py
    python benchmarks/cub_splits.py --embeddings att
"""

import argparse

import numpy as np
from accuracy import MODELS
from joblib import Parallel, delayed
from machine import keep, real_dataset, show
from scipy.stats import ttest_rel

from latem import read_folder

COMPARED = ("committee", "tuned", "EXEM", "CCA", "ESZSL")


def run(folder, split, embedding, model):
    """Accuracy on unseen classes, in percent."""
    dataset = read_folder(folder)
    X, y = dataset.training(split)
    val = [name for name in dataset.split(split).val if name in set(y)]
    search = MODELS[model](dataset.embeddings[embedding], val, np.unique(y), 0)
    return 100 * float(search.fit(X, y).score(*dataset.testing(split)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--embeddings", nargs="+")
    parser.add_argument("--jobs", type=int, default=-1)
    arguments = parser.parse_args()
    folder = real_dataset("cub")
    if folder is None:
        return
    dataset = read_folder(folder)
    splits = [name for name in dataset.splits if name != "proposed"]
    tables = arguments.embeddings or list(dataset.embeddings)
    jobs = [(s, e, m) for s in splits for e in tables for m in COMPARED]
    found = Parallel(arguments.jobs)(delayed(run)(folder, *job) for job in jobs)
    scores = {"/".join(job): score for job, score in zip(jobs, found, strict=True)}
    rows = []
    for embedding in tables:
        of = {m: np.array([scores[f"{s}/{embedding}/{m}"] for s in splits]) for m in COMPARED}
        for m in COMPARED:
            test = "" if m == "committee" else f"{ttest_rel(of['committee'], of[m]).pvalue:.3f}"
            rows.append((embedding, m, *(f"{a:.1f}" for a in of[m]), f"{of[m].mean():.1f}", test))
    title = "Mean per-class accuracy on unseen classes of CUB (%); p of a paired t-test over splits"
    show(title, ("table", "model", *splits, "mean", "p against committee"), rows)
    keep("cub_splits", {"scores": scores})


if __name__ == "__main__":
    main()
