"""LatEm on the real CUB birds: the paper's Table 2 cell for attributes.

Split `standard` (150 seen classes, 50 unseen), attributes, K = 4, step 0.1, 150 epochs, features
scaled as in the authors' release. The paper: 45.5 %. Needs the dataset folder `cub` (set
LATEM_DATA to the folder that holds it).
"""

import numpy as np
from joblib import Parallel, delayed
from machine import keep, real_dataset, show

from latem import LatEm, read_folder

SEEDS = range(5)
BAR, PAPER = 45.0, 45.5


def accuracy(dataset, seed, **params):
    X, y = dataset.training("standard")
    X_new, y_new = dataset.testing("standard")
    model = LatEm(dataset.embeddings["att"], random_state=seed, **params).fit(X, y)
    return 100 * model.score(X_new, y_new), len(model.maps_)


def main():
    folder = real_dataset("cub")
    if folder is None:
        return
    dataset = read_folder(folder)
    settings = {
        "K = 4": {"n_maps": 4},
        "K = 1": {"n_maps": 1},
        "pruned from 16": {"n_maps": 16, "prune_below": 0.05},
    }
    jobs = [(name, seed) for name in settings for seed in SEEDS]
    results = Parallel(n_jobs=-1, backend="threading")(
        delayed(accuracy)(dataset, seed, **settings[name]) for name, seed in jobs
    )
    rows, kept = [], {}
    for name in settings:
        scores = [r[0] for (job, _), r in zip(jobs, results, strict=True) if job == name]
        maps = [r[1] for (job, _), r in zip(jobs, results, strict=True) if job == name]
        kept[name] = {"accuracies": scores, "mean": float(np.mean(scores)), "maps": maps}
        each = ", ".join(f"{score:.1f}" for score in scores)
        rows.append((name, f"{np.mean(scores):.1f}", each, maps if len(set(maps)) > 1 else maps[0]))
    show(
        "CUB, standard split, att: mean per-class accuracy on 50 unseen classes (%), seeds 0-4",
        ("model", "mean", "seeds", "maps"),
        rows,
    )
    print(f"K = 4: bar ≥ {BAR}, the paper {PAPER}")
    keep("cub", {"bar": BAR, "paper": PAPER, "results": kept})


if __name__ == "__main__":
    main()
