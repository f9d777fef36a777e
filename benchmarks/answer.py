"""How long an answer takes, against the bare matrix product.

One image among few and among many classes, and many images at once, with K = 6 maps, 1024 features
and 312 attributes (the sizes of CUB). The bare product is NumPy's, on one thread, with everything
prepared: for one image W_kᵀ x for all maps, then one product with the class vectors, or x V_k with
V_k = W_k Yᵀ at hand, whichever is faster; for many images x V_k, map by map. The first call for
some classes prepares them; the next ones find them prepared.
"""

import time

import numpy as np
from machine import keep, show

from latem import LatEm
from latem.core.threads import single_threaded_blas

N_MAPS, N_FEATURES, N_DIMENSIONS = 6, 1024, 312
ONE_IMAGE = {"50 classes": 50, "20,000 classes": 20_000}
MANY = (4000, 200)  # images, classes
BARS = {"50 classes": "< 0.5 ms", "20,000 classes": "≤ 1.5", "4000 images": "≤ 1.0"}


def best(task, repeats, rounds=7):
    """Shortest mean time of a task, in seconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeats):
            task()
        times.append((time.perf_counter() - start) / repeats)
    return min(times)


def fitted(n_classes):
    """A model that knows `n_classes` unseen classes; how well it has learned does not matter."""
    rng = np.random.default_rng(0)
    names = [f"class {i}" for i in range(n_classes + 4)]
    table = (names, rng.random((n_classes + 4, N_DIMENSIONS)))
    X, y = rng.random((8, N_FEATURES), np.float32), np.array(names[:4] * 2)
    return LatEm(table, n_maps=N_MAPS, n_epochs=1, feature_scaling=None, random_state=0).fit(X, y)


def bare_products(model, X):
    """Functions that compute all scores with nothing around them, by both orders of products."""
    vectors = np.ascontiguousarray(model.class_view_.candidates("unseen").vectors)
    maps, vectors_t = model.maps_, vectors.T

    def from_the_left():
        projected = (X @ maps).reshape(-1, N_DIMENSIONS)
        return (projected @ vectors_t).reshape(N_MAPS, len(X), -1).max(axis=0)

    if N_MAPS * N_FEATURES * len(vectors) * 4 > 2**30:
        return [from_the_left]
    products = maps @ vectors_t

    def from_the_right():
        scores = X @ products[0]
        for k in range(1, N_MAPS):
            np.maximum(scores, X @ products[k], out=scores)
        return scores

    return [from_the_left, from_the_right]


def one_image(n_classes):
    model = fitted(n_classes)
    x = np.random.default_rng(1).random((1, N_FEATURES), np.float32)
    start = time.perf_counter()
    model.predict(x, "unseen")
    first = time.perf_counter() - start
    repeats = 400 if n_classes < 1000 else 40
    answer = best(lambda: model.predict(x, "unseen"), repeats)
    with single_threaded_blas():
        bare = min(best(task, repeats) for task in bare_products(model, x))
    return {"first_ms": 1e3 * first, "answer_ms": 1e3 * answer, "bare_ms": 1e3 * bare}


def many_images():
    n_images, n_classes = MANY
    model = fitted(n_classes).set_params(n_threads=1)
    X = np.random.default_rng(1).random((n_images, N_FEATURES), np.float32)
    answer = best(lambda: model.decision_function(X, "unseen"), 2)
    with single_threaded_blas():
        bare = min(best(task, 2) for task in bare_products(model, X))
    return {"answer_ms": 1e3 * answer, "bare_ms": 1e3 * bare}


def main():
    found = {name: one_image(n) for name, n in ONE_IMAGE.items()}
    found[f"{MANY[0]} images"] = many_images()
    rows = []
    for name, times in found.items():
        ratio = times["answer_ms"] / times["bare_ms"]
        times["ratio"] = round(ratio, 3)
        rows.append(
            (
                name, f"{times['first_ms']:.1f} ms" if "first_ms" in times else "–",
                f"{times['answer_ms']:.3f} ms", f"{times['bare_ms']:.3f} ms", f"{ratio:.2f}",
                BARS[name],
            )
        )  # fmt: skip
    show(
        "Answering, K = 6, 1024 features, 312 attributes, one thread",
        ("", "first call", "next calls", "bare product", "ratio", "bar"),
        rows,
    )
    keep("answer", found)


if __name__ == "__main__":
    main()
