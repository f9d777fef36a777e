"""DAP's logistic regressions on the real CUB birds: together, against scikit-learn one by one.

Both minimise the same; the distance of scikit-learn's coefficients is that of its own tolerance.
Needs the dataset folder `cub` (set LATEM_DATA to the folder that holds it).
"""

import time

import numpy as np
from machine import keep, real_dataset, show
from sklearn.linear_model import LogisticRegression

from latem import read_folder
from latem.core.threads import run_all
from latem.models.logistic import fit_binary

C, MAX_ITER = 0.01, 1000  # DAP's own


def one_by_one(X, targets):
    coefficients = np.empty((X.shape[1], targets.shape[1]))

    def learn(m):
        inner = LogisticRegression(C=C, max_iter=MAX_ITER).fit(X, targets[:, m])
        coefficients[:, m] = inner.coef_[0]

    run_all(learn, range(targets.shape[1]), None)
    return coefficients


def together(X, targets):
    return fit_binary(X, targets, C=C, max_iter=MAX_ITER)[0]


def problem(folder):
    """Standardised features, and which attributes the class of each image has."""
    data = read_folder(folder)
    X, y = data.training("standard")
    table = data.embeddings["att"]
    seen = table.vectors[table.positions(np.unique(y))]
    present = table.vectors[table.positions(y)] > seen.mean()
    share = present.mean(axis=0)
    X = np.asarray(X, np.float64)
    deviation = X.std(axis=0)
    scaled = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    return scaled, present[:, (share > 0) & (share < 1)]


def timed(solve, X, targets):
    start = time.perf_counter()
    return solve(X, targets), time.perf_counter() - start


def main():
    folder = real_dataset("cub")
    if folder is None:
        return
    X, targets = problem(folder)
    plain, before = timed(one_by_one, X, targets)
    found, after = timed(together, X, targets)
    distance = float(np.abs(plain - found).max())
    rows = [
        ("scikit-learn, one by one", f"{before:.1f} s", ""),
        ("together", f"{after:.1f} s", f"{before / after:.1f}×"),
    ]
    show(f"{targets.shape[1]} attributes, {len(X)} images", ("", "time", "faster"), rows)
    print(f"Coefficients differ by at most {distance:.1g}.")
    keep(
        "attributes",
        {
            "n_attributes": targets.shape[1],
            "n_images": len(X),
            "one_by_one_seconds": round(before, 2),
            "together_seconds": round(after, 2),
            "ratio": round(before / after, 2),
            "largest_difference": distance,
        },
    )


if __name__ == "__main__":
    main()
