"""Answering very many rows of features, against the bare matrix product, and the memory it takes.

The bare product is NumPy's x V_k for all maps, V_k = W_k Yᵀ, with as many threads as the machine
has, over float32 features that are in memory, into an array that is there: no reading, no scaling,
no checks, no maximum over maps and no answers. Beside it, at the same shape:

- predict from a memory map, float16 and float32;
- the command's own way: chunks read from the file beside the work, answers with scores;
- the same into Parquet and CSV files, best name and best five.

Features have 1024 columns, classes 312 attributes (the sizes of CUB), among 200 classes. Then
`top_k` (five best) among 20,000 and 200,000 classes, against (x W_k) Yᵀ. Memory is the peak of a
process of its own, over that of the same process after it has answered a single row.

On a machine that does other work as well, the clock tells little; the ratio of processor times
(of all threads) then says more.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from joblib import cpu_count
from machine import keep, show

from latem import LatEm, load
from latem.core.ahead import side_by_side
from latem.datasets.feature_files import NpyRows
from latem.models.answering import Asked
from latem.workflows.bulk_features import READ_AHEAD, chunk_rows, name_features_in_bulk

N_FEATURES, N_DIMENSIONS, N_CLASSES = 1024, 312, 200
ROWS = {1: 524_288, 6: 131_072}  # by number of maps
MANY = {20_000: 1024, 200_000: 1024}  # classes, rows: two blocks, one for each of two cores
BAR = 0.8
ROUNDS = 5
REST = 0.3  # seconds: threads of OpenBLAS keep a core busy for a while after a product by all cores


def fitted(n_maps, n_classes):
    """A model that knows `n_classes` unseen classes; how well it has learned does not matter."""
    rng = np.random.default_rng(0)
    names = [f"class {i}" for i in range(n_classes + 4)]
    table = (names, rng.random((n_classes + 4, N_DIMENSIONS), np.float32))
    X, y = rng.random((8, N_FEATURES), np.float32), np.array(names[:4] * 2)
    return LatEm(table, n_maps=n_maps, n_epochs=1, random_state=0).fit(X, y)


def write_rows(path, n_rows, dtype):
    """Random features, written piece by piece."""
    array = np.lib.format.open_memmap(path, "w+", dtype, (n_rows, N_FEATURES))
    rng = np.random.default_rng(1)
    for first in range(0, n_rows, 8192):
        array[first : first + 8192] = rng.random((min(8192, n_rows - first), N_FEATURES), "f4")
    array.flush()


def best_of(tasks):
    """Shortest time of each of some tasks, which take turns: by the clock, and of the processor."""
    clock, processor = ({name: [] for name in tasks} for _ in range(2))
    for _ in range(ROUNDS):
        for name, task in tasks.items():
            time.sleep(REST)
            start, busy = time.perf_counter(), time.process_time()
            task()
            clock[name].append(time.perf_counter() - start)
            processor[name].append(time.process_time() - busy)
    return {name: (min(clock[name]), min(processor[name])) for name in tasks}


def beside(bare, other, n_rows):
    """Rows per second, and the share of the bare product's speed, by both ways of measuring."""
    return {
        "rows_per_second": round(n_rows / other[0]),
        "ratio": round(bare[0] / other[0], 3),
        "ratio_of_processor_time": round(bare[1] / other[1], 3),
    }


def many_rows(n_maps, folder):
    """Rows per second of everything, among 200 classes."""
    n_rows = ROWS[n_maps]
    model = fitted(n_maps, N_CLASSES)
    for dtype in ("float16", "float32"):
        write_rows(folder / f"{dtype}.npy", n_rows, dtype)
    X = np.load(folder / "float32.npy")
    vectors = model.class_view_.candidates("unseen").vectors
    products = [np.ascontiguousarray(one @ vectors.T) for one in model.maps_]
    out = np.zeros((n_rows, N_CLASSES), np.float32)

    def bare():
        for one in products:
            np.matmul(X, one, out=out)

    def mapped(dtype):
        return lambda: model.predict(np.load(folder / f"{dtype}.npy", mmap_mode="r"), "unseen")

    def streamed(dtype):
        def task():
            rows, asked = NpyRows(folder / f"{dtype}.npy"), Asked(model, "unseen", 1)
            size = chunk_rows(N_FEATURES, asked.n_scored, asked.top)
            for _ in side_by_side(asked.columns, rows.chunks(0, size), cpu_count(), READ_AHEAD):
                pass

        return task

    def written(suffix, top):
        path, answers = folder / "float16.npy", folder / f"answers.{suffix}"
        return lambda: name_features_in_bulk(model, path, answers, top=top)

    tasks = {
        "bare product": bare,
        "predict, float32 map": mapped("float32"),
        "predict, float16 map": mapped("float16"),
        "streamed, float32": streamed("float32"),
        "streamed, float16": streamed("float16"),
        "Parquet, best name": written("parquet", 1),
        "Parquet, best five": written("parquet", 5),
        "CSV, best name": written("csv", 1),
        "CSV, best five": written("csv", 5),
    }
    times = best_of(tasks)
    return {name: beside(times["bare product"], time, n_rows) for name, time in times.items()}


def many_classes(n_maps, n_classes):
    """`top_k` against the bare products, and the memory of a process that does it."""
    n_rows = MANY[n_classes]
    model = fitted(n_maps, n_classes)
    X = np.random.default_rng(1).random((n_rows, N_FEATURES), np.float32)
    vectors = model.class_view_.candidates("unseen").vectors
    out = np.zeros((n_rows, n_classes), np.float32)

    def bare():
        for one in model.maps_:
            np.matmul(X @ one, vectors.T, out=out)

    times = best_of({"bare": bare, "top_k": lambda: model.top_k(X, 5, "unseen")})
    return {
        **beside(times["bare"], times["top_k"], n_rows),
        "bare_rows_per_second": round(n_rows / times["bare"][0]),
        "scores_of_all_mb": round(n_rows * n_classes * 4 / 2**20),
        **memory_of("classes", n_maps, n_classes),
    }


def memory_of(*order):
    """What a process of its own says of its memory."""
    line = [sys.executable, __file__, "--alone", *map(str, order)]
    return json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)


def alone(what, *order):
    """In a process of its own: what it holds after one row, and what all of them add at most.

    The peak is Linux's, which is set back in between (`ru_maxrss` would count the parent's, too).
    """

    def held(line):
        found = re.search(line + r":\s+(\d+) kB", Path("/proc/self/status").read_text())
        return int(found[1]) / 1024

    def begin():
        Path("/proc/self/clear_refs").write_text("5")
        return held("VmRSS")

    if what == "classes":
        n_maps, n_classes = map(int, order)
        model = fitted(n_maps, n_classes)
        X = np.random.default_rng(1).random((MANY[n_classes], N_FEATURES), np.float32)
        model.top_k(X[:1], 5, "unseen")
        before = begin()
        model.top_k(X, 5, "unseen")
    else:
        model, folder = load(order[0]), Path(order[1])
        name_features_in_bulk(model, folder / "one.npy", folder / "one.parquet")
        before = begin()
        name_features_in_bulk(model, folder / order[2], folder / "answers.parquet")
    peak = held("VmHWM")
    print(json.dumps({"peak_mb": round(peak), "more_mb": round(peak - before)}))


def growth(folder):
    """Memory of naming so many rows into a Parquet file, and twice as many."""
    model = folder / "model.safetensors"
    fitted(1, N_CLASSES).save(model)
    found = {}
    for name, n_rows in (("one", 1), ("some", ROWS[1]), ("twice", 2 * ROWS[1])):
        write_rows(folder / f"{name}.npy", n_rows, "float16")
        if n_rows > 1:
            found[f"{n_rows} rows"] = memory_of("rows", model, folder, f"{name}.npy")
    return found


def main():
    found = {"bar": BAR}
    for n_maps in ROWS:
        with tempfile.TemporaryDirectory() as folder:
            found[f"{n_maps} maps"] = rows = many_rows(n_maps, Path(folder))
        show(
            f"{ROWS[n_maps]:,} rows, {N_FEATURES} features, {N_CLASSES} classes, K = {n_maps}",
            ("", "rows/s", f"of the bare product (bar: {BAR})", "by processor time"),
            [
                (name, f"{one['rows_per_second']:,}", one["ratio"], one["ratio_of_processor_time"])
                for name, one in rows.items()
            ],
        )
    rows = []
    for n_classes in MANY:
        for n_maps in ROWS:
            one = many_classes(n_maps, n_classes)
            found[f"{n_classes} classes, {n_maps} maps"] = one
            rows.append(
                (
                    f"{n_classes:,} classes, K = {n_maps}", f"{one['rows_per_second']:,}",
                    f"{one['bare_rows_per_second']:,}", one["ratio"],
                    one["ratio_of_processor_time"], f"{one['more_mb']} MB",
                    f"{one['scores_of_all_mb']} MB",
                )
            )  # fmt: skip
    show(
        "top_k, the five best",
        (
            "", "rows/s", "bare", f"ratio (bar: {BAR})", "by processor time", "memory",
            "all scores would be",
        ),
        rows,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        found["memory"] = memory = growth(Path(folder))
    show(
        "latem predict features.npy --out answers.parquet, float16, K = 1",
        ("", "peak memory", "more than for one row"),
        [(name, f"{one['peak_mb']} MB", f"{one['more_mb']} MB") for name, one in memory.items()],
    )
    keep("answer_millions", found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alone", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    alone(*given.alone) if given.alone else main()
