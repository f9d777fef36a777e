"""What the parts of the tuned preset add, without any test class.

The seen classes of each set's standard split are divided into three parts, by seeds: half to fit, a
quarter to choose on, a quarter to report on. Each variant chooses on the second part, is fitted to
the first two and names the third; the table shows means over embeddings and dealings. Figures of
variants and sets that are not run again stay in `results/parts.json`.
"""

import argparse
import json

import numpy as np
from joblib import Parallel, delayed
from machine import RESULTS, keep, real_dataset, show

from latem import CommitteeCV, LatEmCV, read_folder

DEALINGS = {"animals": 8, "awa_handcrafted": 2, "cub": 2, "dogs": 2, "emoji": 2}
FEATURES, PLAIN = {"feature_scaling": "l2"}, {"balance_classes": False}
VARIANTS = {  # what is changed in the preset, and the numbers of maps
    "no centring, no balance": ({**FEATURES, **PLAIN}, None),
    "no balance": (PLAIN, None),
    "tuned": ({}, None),
    "tuned, four maps": ({}, (4,)),
    "tuned, kernel on classes": ({}, None),
    "committee": (None, None),
    "committee, four maps": (None, (4,)),
}
KERNEL = "tuned, kernel on classes"  # its width is chosen as everything is, no kernel included
WIDTHS = (None, 0.5, 0.7, 1.0)


def variant(changes):
    """`LatEmCV` whose tuned preset is changed in some points."""

    return type("Variant", (LatEmCV,), {"tuned": {**LatEmCV.tuned, **changes}})


def dealt(seen, number):
    """Classes to fit, to choose on and to report on."""
    order = np.random.default_rng(100 + number).permutation(len(seen))
    half, quarter = len(seen) // 2, len(seen) // 4
    return seen[order[:half]], seen[order[half : half + quarter]], seen[order[half + quarter :]]


def search_for(name, table, chosen_on):
    """What chooses and fits a variant."""
    changes, maps = VARIANTS[name]
    how = {"cv": list(chosen_on), "random_state": 0, "n_threads": 1}
    if changes is None:
        return committee(maps)(table, **how)
    widths = WIDTHS if name == KERNEL else (None,)
    return variant(changes)(table, class_kernel=widths, n_maps=maps, **how)


def committee(maps):
    """`CommitteeCV` whose ranking member has several maps, or one."""

    class Variant(CommitteeCV):
        def unfitted_model(self):
            model = super().unfitted_model()
            if maps is not None:  # they would all start alike without noise
                model.set_params(ranking__n_maps=maps[0], ranking__init_scale=0.1)
            return model

    return Variant


def run(folder, embedding, number, variants):
    """Accuracy of some variants, in percent."""
    dataset = read_folder(folder)
    X, y = dataset.training("standard")
    table = dataset.embeddings[embedding].select(np.unique(y).tolist())
    _, chosen_on, report = dealt(np.unique(y), number)
    out = np.isin(y, report)
    scores = {}
    for name in variants:
        search = search_for(name, table, chosen_on).fit(X[~out], y[~out])
        scores[name] = 100 * float(search.score(X[out], y[out], list(report)))
    return scores


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--sets", nargs="+", default=list(DEALINGS), choices=list(DEALINGS))
    parser.add_argument("--jobs", type=int, default=-1)
    arguments = parser.parse_args()
    jobs = [
        (name, folder, embedding, number)
        for name, n in DEALINGS.items()
        if name in arguments.sets
        if (folder := real_dataset(name)) is not None
        for embedding in read_folder(folder).embeddings
        for number in range(n)
    ]
    found = Parallel(arguments.jobs)(delayed(run)(*job[1:], arguments.variants) for job in jobs)
    sets = list(dict.fromkeys(job[0] for job in jobs))
    means = {
        variant: {
            name: float(
                np.mean([f[variant] for f, j in zip(found, jobs, strict=True) if j[0] == name])
            )
            for name in sets
        }
        for variant in arguments.variants
    }
    rows = [
        (
            variant,
            *(f"{by_set[name]:.1f}" for name in sets),
            f"{np.mean(list(by_set.values())):.1f}",
        )
        for variant, by_set in means.items()
    ]
    show("Mean per-class accuracy on seen classes divided anew (%)", ("", *sets, "mean"), rows)
    path = RESULTS / "parts.json"
    known = json.loads(path.read_text())["means"] if path.exists() else {}
    for variant, by_set in means.items():
        known[variant] = {**known.get(variant, {}), **by_set}
    keep("parts", {"means": known})


if __name__ == "__main__":
    main()
