"""Finding among millions: how fast stored images are looked through, and what an index gives.

Images are those of CUB, again and again with noise (random numbers where CUB is not), in half
precision in a file that is mapped and in the system's cache. Looked through: GB of the file per
second, with all cores, against the bandwidth of a copy with all cores; and per second of a
processor, which others on the machine disturb less. By index: recall against looking through, and
the time of an answer. A file of many images of 256 features is looked through once.

    python benchmarks/find.py [--rows N] [--index-rows N] [--large-rows N] [--folder DIR]
"""

import argparse
import json
import os
import tempfile
import time
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
from machine import RESULTS, best_time, copy_bandwidth, keep, real_dataset, show

from latem import ESZSL, Committee, LatEm, make_latent_world, read_folder
from latem.core.atomic import atomic_path
from latem.inspection.image_index import ImageIndex
from latem.workflows.find import image_index, index_images, stored_images

NOISE = 0.3  # standard deviations of a feature
WANTED = (10, 100)
PARTS = ("scan", "index", "large")


def trained():
    """Models by name, images to repeat, and unseen classes."""
    folder = real_dataset("cub")
    if folder is None:
        dataset = make_latent_world(n_features=1024, random_state=0)
        table = dataset.embeddings["att"]
    else:
        dataset = read_folder(folder)
        table = dataset.embeddings["att"]
    X, y = dataset.training()
    models = {
        "committee": Committee(table, random_state=0),
        "LatEm, 6 maps": LatEm(table, n_maps=6, learning_rate=0.1, n_epochs=10, random_state=0),
    }
    return (
        {name: model.fit(X, y) for name, model in models.items()},
        np.asarray(dataset.features, np.float32),
        list(dataset.split().test),
    )


def write_images(path, source, n_rows):
    """The same images again and again, every time with other noise."""
    if path.is_file() and len(np.load(path, mmap_mode="r")) == n_rows:
        return
    rng = np.random.default_rng(0)
    noise = NOISE * source.std(axis=0) * rng.standard_normal(source.shape, np.float32)
    with atomic_path(path) as unfinished:
        images = np.lib.format.open_memmap(unfinished, "w+", np.float16, (n_rows, source.shape[1]))
        for first in range(0, n_rows, len(source)):
            rows = source + noise[rng.permutation(len(source))] if first else source
            n = min(len(source), n_rows - first)
            images[first : first + n] = np.maximum(rows[:n], 0)
        images.flush()


def read_all(X):
    """Bring a file into the system's cache."""
    for first in range(0, len(X), 65536):
        X[first : first + 65536].view(np.uint16).max()


def looked_through(models, X, classes, copy):
    found = {}
    for name, model in models.items():
        for wanted in ([classes[0]], classes):
            model.best_images(X[:20_000], wanted, 10)  # compiles
            tracemalloc.start()
            model.best_images(X, wanted, 10)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            n = len(wanted)
            task = partial(model.best_images, X, wanted, 10)
            start, repeats = time.process_time(), 9 if n == 1 else 1
            seconds = best_time(task, repeats)
            of_processor = (time.process_time() - start) / repeats
            rate = X.nbytes / seconds / 1e9
            found[f"{name}, {'one class' if n == 1 else f'{n} classes'}"] = {
                "seconds": round(seconds, 4),
                "GB/s": round(rate, 2),
                "GB_per_processor_second": round(X.nbytes / of_processor / 1e9, 2),
                "of_copy": round(rate / copy, 3),
                "memory_MB": round(peak / 1e6, 1),
            }
        some = np.array(X[:20_000])
        name_of = classes[0]

        def scored(m=model, c=name_of, some=some):
            return np.argsort(-m.decision_function(some, [c])[:, 0], kind="stable")[:10]

        found[f"{name}, one class"]["against_all_scores"] = round(
            best_time(scored)
            / best_time(lambda m=model, c=name_of, some=some: m.rank_images(some, c, 10)),
            2,
        )
    return found


def by_index(models, path, classes):
    found = {}
    X = stored_images(path).X
    for name, model in models.items():
        start = time.perf_counter()
        file = index_images(model, path)
        seconds = time.perf_counter() - start
        opening = best_time(partial(image_index, model, X, use_index=True))
        index, exact = image_index(model, X, use_index=True), ImageIndex(model, X)
        facts = {
            "rows": len(X),
            "build_seconds": round(seconds, 1),
            "MB": round(file.stat().st_size / 1e6, 1),
            "listed": index.stored.listed,
            "open_ms": round(1e3 * opening, 2),
        }
        for k in WANTED:
            shares, ratios, times = [], [], []
            for one in classes:
                right = exact.best(one, k)[0]
                shares.append(len(np.intersect1d(right, index.best(one, k)[0])) / k)
            for one in classes[:10]:
                quick = best_time(partial(index.best, one, k))
                slow = best_time(partial(exact.best, one, k))
                ratios.append(slow / quick)
                times.append(1e3 * quick)
            facts[f"recall@{k}"] = round(float(np.mean(shares)), 4)
            facts[f"ms@{k}"] = round(float(np.median(times)), 2)
            facts[f"exact_to_index@{k}"] = round(float(np.median(ratios)), 2)
        found[name] = facts
    return found


def large(folder, n_rows):
    """Once through many images of 256 features, with a model of one map."""
    rng = np.random.default_rng(0)
    path = folder / f"large-{n_rows}.npy"
    width, part = 256, rng.random((50_000, 256), np.float32).astype(np.float16)
    if not path.is_file():
        with atomic_path(path) as unfinished:
            images = np.lib.format.open_memmap(unfinished, "w+", np.float16, (n_rows, width))
            for first in range(0, n_rows, len(part)):
                images[first : first + len(part)] = part[: n_rows - first]
            images.flush()
    world = make_latent_world(n_features=width, random_state=0)
    model = ESZSL(world.embeddings["att"], feature_scaling="l2").fit(*world.training())
    X, name = stored_images(path).X, model.classes_[0]
    read_all(X)
    seconds = best_time(lambda: model.rank_images(X, name, 10), 5)
    return {
        "rows": n_rows,
        "GB": round(X.nbytes / 1e9, 2),
        "seconds": round(seconds, 3),
        "GB/s": round(X.nbytes / seconds / 1e9, 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--index-rows", type=int, default=200_000)
    parser.add_argument("--large-rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="keep the files there, and use those there are")
    parser.add_argument("--only", nargs="*", default=PARTS, choices=PARTS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        models, source, classes = trained()
        cores = os.cpu_count()
        found = {"cores": cores}
        if "scan" in given.only:
            path = folder / f"images-{given.rows}.npy"
            write_images(path, source, given.rows)
            X = stored_images(path).X
            read_all(X)
            copy = {f"{n}": round(copy_bandwidth(256, n), 2) for n in sorted({1, cores})}
            found |= {"rows": len(X), "GB": round(X.nbytes / 1e9, 2), "copy_GB/s": copy}
            found["scan"] = looked_through(models, X, classes, copy[f"{cores}"])
            show(
                f"Looking through {len(X):,} images ({X.nbytes / 1e9:.2f} GB); a copy reads and "
                f"writes {copy[f'{cores}']:.1f} GB/s",
                ("", "seconds", "GB/s", "/CPU s", "of a copy", "memory", "all scores / this"),
                [
                    (
                        name, one["seconds"], one["GB/s"], one["GB_per_processor_second"],
                        one["of_copy"],
                        f"{one['memory_MB']} MB", one.get("against_all_scores", ""),
                    )
                    for name, one in found["scan"].items()
                ],
            )  # fmt: skip
        if "index" in given.only:
            path = folder / f"indexed-{given.index_rows}.npy"
            write_images(path, source, given.index_rows)
            found["index"] = by_index(models, path, classes)
            header = list(next(iter(found["index"].values())))
            rows = [(name, *one.values()) for name, one in found["index"].items()]
            show("By an index", ("", *header), rows)
        if "large" in given.only and given.large_rows:
            found["large"] = large(folder, given.large_rows)
            show("Many images", tuple(found["large"]), [tuple(found["large"].values())])
        if set(given.only) != set(PARTS) and (RESULTS / "find.json").is_file():
            found = json.loads((RESULTS / "find.json").read_text(encoding="utf-8")) | found
        keep("find", found)


if __name__ == "__main__":
    main()
