"""Speed of the baselines, as ratios in one run.

SJE and ALE against a NumPy loop over samples that does what one would write by hand: one matrix,
scores of all classes by two products, one outer product per update, in float32. Both do the same
epoch from the same map and see the same violations. ESZSL's whole grid of 49 pairs, through
`ESZSLCV`'s eigendecompositions, against one fit by `numpy.linalg.solve`.

At the size of CUB: its own features if they are there (set LATEM_DATA), else random ones.
"""

import time

import numpy as np
from machine import best_time, keep, real_dataset, show

from latem import ALE, SJE, read_folder
from latem.core.threads import single_threaded_blas
from latem.models.bilinear import warp_weights
from latem.models.normal_equations import ImageSums, NormalEquations
from latem.models.scaling import FeatureScaler

BAR, GRID_BAR = 30, 3
WARM_UP, VISITS = 15, 1500
STEPS = {"SJE": 0.1, "ALE": 0.01}


def problem():
    """Features, labels and class table of CUB's 150 seen classes, or of a world of that size."""
    folder = real_dataset("cub")
    if folder is not None:
        dataset = read_folder(folder)
        X, y = dataset.training("standard")
        return "CUB itself", X, y, dataset.embeddings["att"]
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((150, 312))
    y = np.arange(8855) % 150
    X = Y[y] @ rng.standard_normal((312, 1024)) + 60 * rng.standard_normal((8855, 1024))
    return "random, size of CUB", X.astype(np.float32), y, (np.arange(150), Y)


def sje_epoch(X, y, Y, W, order, step, margin):
    """The multiclass loss, one sample at a time."""
    violations = 0
    for n in order:
        scores = Y @ (X[n] @ W)
        scores[y[n]] -= margin
        best = scores.argmax()
        if best != y[n]:
            W += np.outer(step * X[n], Y[y[n]] - Y[best])
            violations += 1
    return violations


def ale_epoch(X, y, Y, W, order, keys, weights, step, margin):
    """The weighted ranking loss, one sample at a time."""
    violations = 0
    for n, key in zip(order, keys, strict=True):
        scores = Y @ (X[n] @ W)
        violating = scores + margin > scores[y[n]]
        violating[y[n]] = False
        rivals = np.flatnonzero(violating)
        if len(rivals):
            first = rivals[key[rivals].argmin()]
            draws = 1 + np.count_nonzero(key < key[first]) - (key[y[n]] < key[first])
            W += np.outer(step * weights[draws] * X[n], Y[y[n]] - Y[first])
            violations += 1
    return violations


def training_ratio(kind, X, y, table):
    """Time of the loop per visit over ours, after some epochs."""
    name = kind.__name__
    step = np.float32(STEPS[name])
    model = kind(table, learning_rate=float(step), n_epochs=WARM_UP, random_state=0, n_threads=1)
    model.fit(X, y)
    W = model.maps_[0].copy()
    times = []
    model.set_params(n_epochs=5, warm_start=True)
    model.fit(X, y, callback=lambda info: times.append(time.perf_counter()) and None)
    ours = min(np.diff(times)) / len(X)
    rate = model.history_["violation_rate"][WARM_UP]
    codes = np.searchsorted(model.classes_, y)
    scaled = model.scaler_.transform(X, np.float32)
    Y = model._seen_vectors()
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))[:VISITS]
    keys, weights = (
        rng.random((VISITS, len(Y)), np.float32),
        warp_weights(len(Y)).astype(np.float32),
    )
    best = np.inf
    with single_threaded_blas():
        for _ in range(3):
            start_map = W.copy()
            start = time.perf_counter()
            if kind is SJE:
                count = sje_epoch(scaled, codes, Y, start_map, order, step, np.float32(1))
            else:
                count = ale_epoch(
                    scaled, codes, Y, start_map, order, keys, weights, step, np.float32(1)
                )
            best = min(best, time.perf_counter() - start)
    return best / VISITS / ours, rate, count / VISITS


def grid_ratio(X, y, table):
    """Time of ESZSL's grid of 49 maps over that of one fit by numpy.linalg.solve."""
    model = SJE(table)
    model._set_classes(y)
    codes = np.searchsorted(model.classes_, y)
    vectors = model._exact_vectors()
    scaler = FeatureScaler.fit(X, "zmax")
    features = scaler.transform(X, np.float64)
    held = features[:500]
    grid = 10.0 ** np.arange(-3, 4)

    def whole_grid():
        problem = NormalEquations(ImageSums(X, codes, len(vectors), scaler), vectors)
        for _, _, scores in problem.grid_scores(held, vectors, grid, grid):
            scores.argmax(axis=1)

    def one_fit():
        Z = np.zeros((len(X), len(vectors)))
        Z[np.arange(len(X)), codes] = 1
        left = features.T @ features + np.eye(features.shape[1])
        right = vectors.T @ vectors + np.eye(vectors.shape[1])
        half = np.linalg.solve(left, features.T @ Z @ vectors)
        W = np.linalg.solve(right, half.T).T
        (held @ W @ vectors.T).argmax(axis=1)

    with single_threaded_blas():
        return best_time(whole_grid) / best_time(one_fit)


def main():
    what, X, y, table = problem()
    rows, kept = [], {"data": what}
    for kind in (SJE, ALE):
        ratio, rate, theirs = training_ratio(kind, X, y, table)
        name = kind.__name__
        rows.append((name, f"{ratio:.0f}×", f"≥ {BAR}×", f"{rate:.0%}", f"{theirs:.0%}"))
        kept[name] = {
            "ratio": ratio, "bar": BAR, "violation_rate": rate, "loop_violation_rate": theirs
        }  # fmt: skip
    show(
        f"Training against a NumPy loop, one thread, float32 ({what})",
        ("model", "speed-up", "bar", "violations", "loop's"),
        rows,
    )
    ratio = grid_ratio(X, y, table)
    print(f"ESZSL: 49 pairs take {ratio:.2f} times one numpy.linalg.solve fit (bar ≤ {GRID_BAR})")
    kept["ESZSL grid"] = {"ratio": ratio, "bar": GRID_BAR}
    keep("baselines", kept)


if __name__ == "__main__":
    main()
