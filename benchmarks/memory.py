"""Training on a file several times larger than memory: peaks, and the cost of a visit.

Features in half precision, sorted by class, are trained on in processes of their own:

- in memory, without a limit: what the others are compared with;
- from the file, with a limit, in random order: every visit reads the disk;
- from the file, with the same limit, through `shuffle_buffer`.

The limit holds for private memory and for cached pages of the file together, so reads come from the
disk as on a machine of that size. A control group of the system enforces it on the whole process,
from its start: what would go beyond is refused, and the process killed. Where none may be made (it
takes a superuser, as a rule), RLIMIT_DATA limits private memory, which the system enforces, and a
thread looks every few milliseconds how much of the file is in memory and returns pages until both
are below the limit; between two looks they may be above.

`--accuracy` compares unseen accuracy after visits in both orders instead, on real data whose files
are sorted by class.
"""

import argparse
import ctypes
import json
import mmap
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from machine import RESULTS, keep, real_dataset, show

from latem import LatEm, read_folder
from latem.core.memory import in_bytes
from latem.models.latem import TUNED

CLASSES, WIDTH, DIMENSIONS = 200, 1024, 312
PAGE = mmap.PAGESIZE
PIECE = 4 * 2**20  # bytes that are returned at a time
SHARES = (4, 16, 64)  # the buffer holds one such part of the images
SEEDS = range(3)
VISITS = 100_000  # of the order that takes long


# -- the file, and a training of it -----------------------------------------------------------


def table():
    return np.random.default_rng(0).random((CLASSES, DIMENSIONS))


def labels(n):
    return np.arange(n) * CLASSES // n


def write(path, n):
    """Noisy images of the classes of `table`."""
    X = np.lib.format.open_memmap(path, "w+", np.float16, (n, WIDTH))
    rng = np.random.default_rng(1)
    Y = table() - table().mean(axis=0)
    means = Y @ rng.standard_normal((DIMENSIONS, WIDTH)) / np.sqrt(DIMENSIONS / 12)
    noise = 2 * rng.standard_normal((4096, WIDTH)).astype(np.float32)
    y = labels(n)
    for first in range(0, n, len(noise)):
        last = min(first + len(noise), n)
        rows = np.roll(noise, first // len(noise), axis=1)[: last - first]
        X[first:last] = rows + means[y[first:last]]
        X.flush()
    del X
    forget(path)


def forget(path):
    """Return the pages of a file that no process has mapped."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Timed(LatEm):
    """Notes when each epoch begins, and ends it after so many visits."""

    most = None

    def _visits(self, epoch, labels):
        order, rivals = super()._visits(epoch, labels)
        self.n_visits = len(order[: self.most])
        self.began = time.perf_counter(), time.thread_time()
        return order[: self.most], rivals[: self.most]


def private_memory():
    """Private memory of this process: what is in use, and what RLIMIT_DATA counts."""
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return tuple(1024 * int(lines[name].split()[0]) for name in ("RssAnon", "VmData"))


class ControlGroup:
    """A limit on the memory of a process, cached pages included, which the system enforces."""

    PLACES = (  # of either version: folder, files of the limit and of the peak
        ("/sys/fs/cgroup", "memory.max", "memory.peak"),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
    )

    def __init__(self, limit):
        self.folder = None
        for place, most, peak in self.PLACES:
            folder = Path(place) / f"latem-{os.getpid()}"
            try:
                folder.mkdir()
            except OSError:  # not allowed
                continue
            if (folder / most).is_file() and (folder / peak).is_file():  # made by the system
                (folder / most).write_text(str(limit))
                self.folder, self.peak_file = folder, folder / peak
                return
            folder.rmdir()

    def enter(self):
        """Put the calling process into the group."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def peak(self):
        """The most that was in memory at any time, in bytes."""
        return int(self.peak_file.read_text())

    def remove(self):
        """End the group, when its processes have ended."""
        self.folder.rmdir()


class Warden(threading.Thread):
    """Returns cached pages of a mapped file so that they and private memory stay in a limit."""

    def __init__(self, X, path, limit):
        super().__init__(daemon=True)
        self.map, self.file = X._mmap, os.open(path, os.O_RDONLY)
        self.start_of_map = X.ctypes.data - X.offset % mmap.ALLOCATIONGRANULARITY
        self.seen = np.zeros(-(-len(self.map) // PAGE), np.uint8)
        self.mincore = ctypes.CDLL(None, use_errno=True).mincore
        self.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        self.limit, self.place, self.peak, self.ended = limit, 0, 0, False

    def cached(self):
        """Pages of the file in memory, as ones of an array."""
        if self.mincore(self.start_of_map, len(self.map), self.seen.ctypes.data):
            raise OSError(ctypes.get_errno(), "mincore")
        return self.seen & 1

    def run(self):
        while not self.ended:
            self.look()
            time.sleep(0.005)

    def look(self):
        private, _ = private_memory()
        cached = PAGE * int(self.cached().sum())
        self.peak = max(self.peak, private + cached)
        over = private + cached - self.limit * 0.9
        while over > 0:  # in the order of the file, round and round
            first, last = self.place, min(self.place + PIECE, len(self.map))
            size = PAGE * int((self.seen[first // PAGE : -(-last // PAGE)] & 1).sum())
            if size:
                self.map.madvise(mmap.MADV_DONTNEED, first, last - first)
                os.posix_fadvise(self.file, first, last - first, os.POSIX_FADV_DONTNEED)
            over -= size
            self.place = last % len(self.map)


def child(path, limit, in_memory, most, params):
    """Train in this process; figures go to standard output.

    `limit` is one that is not enforced from outside.
    """
    X = np.load(path, mmap_mode="r")
    y = labels(len(X))
    settings = {"n_maps": 6, "n_epochs": 1, "random_state": 0, "n_threads": 1, **params}
    model = Timed((range(CLASSES), table()), **settings)
    some = slice(None, None, len(X) // 2000)
    model.fit(np.array(X[some]), y[some])  # compiles
    model.most = most
    if in_memory:
        X = np.array(X)
    warden = None
    if limit:
        warden = Warden(X, path, limit)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        try:
            np.ones(limit, np.uint8)
            raise SystemExit("the limit does not hold")
        except MemoryError:
            warden.look()  # returns what is left of the writing
            warden.peak = 0
            warden.start()
    times = {}

    def ended(info):
        times["epoch"] = time.perf_counter() - model.began[0]
        times["processor"] = time.thread_time() - model.began[1]
        times["violations"] = info.violation_rate * len(X) / model.n_visits

    start = time.perf_counter()
    model.fit(X, y, callback=ended)
    figures = {
        "microseconds_per_visit": 1e6 * times["epoch"] / model.n_visits,
        "of_the_processor": 1e6 * times["processor"] / model.n_visits,
        "visits": model.n_visits,
        "other_passes_seconds": time.perf_counter() - start - times["epoch"],
        "violation_rate": times["violations"],
    }
    if warden is not None:
        warden.ended = True
        warden.join()
        figures |= {"peak_bytes": warden.peak, "counted_bytes": private_memory()[1]}
    print(json.dumps(figures))


def run(path, limit, *, in_memory=False, most=None, **params):
    """Figures of a training in a process of its own, with one thread."""
    forget(path)
    group = ControlGroup(limit) if limit else None
    enforced = group is not None and group.folder is not None
    given = json.dumps([str(path), None if enforced else limit, in_memory, most, params])
    one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    command = [sys.executable, __file__, "--child", given]
    try:
        done = subprocess.run(
            command,
            env=os.environ | one,
            stdout=subprocess.PIPE,
            check=True,
            preexec_fn=group.enter if enforced else None,
        )
        figures = json.loads(done.stdout)
        if enforced:
            figures |= {"peak_bytes": group.peak(), "limit_is": "a control group"}
        elif limit:
            figures["limit_is"] = "watched"
        return figures
    finally:
        if enforced:
            group.remove()


def measure(megabytes, limit, folder):
    n = megabytes * 2**20 // (2 * WIDTH)
    buffer = limit * 2**20 // 8 // (2 * WIDTH)
    closed = {"start": "eszsl", "balance_classes": True, "feature_scaling": "l2-centered"}
    cases = {
        "in memory, random order": (None, {"in_memory": True}),
        f"from the file, random order, first {VISITS} visits": (limit, {"most": VISITS}),
        f"from the file, shuffle_buffer={buffer}": (limit, {"shuffle_buffer": buffer}),
        "the same, ESZSL start and balance": (limit, {"shuffle_buffer": buffer, **closed}),
    }
    results = {}
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "features.npy"
        write(path, n)
        for name, (most, params) in cases.items():
            print(name, flush=True)
            results[name] = run(path, most and most * 2**20, **params)
    base = results["in memory, random order"]["microseconds_per_visit"]
    rows = []
    for name, found in results.items():
        found["visit"] = found["microseconds_per_visit"] / base
        peak = found.get("peak_bytes")
        rows.append(
            (name, f"{found['visit']:.2f}", f"{found['microseconds_per_visit']:.1f}",
             f"{found['of_the_processor']:.1f}", f"{found['violation_rate']:.1%}",
             f"{found['other_passes_seconds']:.0f} s",
             "no limit" if peak is None else in_bytes(peak))
        )  # fmt: skip
    show(
        f"{n} × {WIDTH} images in half precision ({megabytes} MiB), limit {limit} MiB, one thread",
        (
            "training",
            "visit, in memory = 1",
            "µs",
            "of the processor",
            "violations",
            "other passes",
            "peak",
        ),
        rows,
    )  # fmt: skip
    return {"file_mib": megabytes, "limit_mib": limit, "n_images": n, "results": results}


# -- accuracy ---------------------------------------------------------------------------------

ACCURACY = {
    "CUB, K = 6, 50 epochs": ("cub", {"n_maps": 6, "learning_rate": 0.1, "n_epochs": 50}),
    "CUB, tuned, 2 epochs": ("cub", dict(TUNED)),
    "AWA, tuned, 2 epochs": ("awa_handcrafted", dict(TUNED)),
    "emoji, K = 6, 30 epochs": ("emoji", {"n_maps": 6, "n_epochs": 30}),
    "emoji, tuned, 2 epochs": ("emoji", dict(TUNED)),
}


def accuracy():
    kept, rows = {}, []
    for name, (folder, params) in ACCURACY.items():
        place = real_dataset(folder)
        if place is None:
            continue
        dataset = read_folder(place)
        X, y = dataset.training("standard")
        order = np.argsort(y, kind="stable")  # as the files are, and the worst case
        X, y = X[order], y[order]
        X_new, y_new = dataset.testing("standard")

        def score(seed, buffer, params=params, dataset=dataset, X=X, y=y, new=(X_new, y_new)):
            model = LatEm(dataset.embeddings["att"], **params, random_state=seed, n_threads=1)
            model.set_params(shuffle_buffer=buffer).fit(X, y)
            return 100 * model.score(*new, classes="unseen")

        buffers = [None, *(len(X) // share for share in SHARES)]
        jobs = [(seed, buffer) for buffer in buffers for seed in SEEDS]
        scores = Parallel(n_jobs=2, backend="threading")(delayed(score)(*job) for job in jobs)
        by_buffer = np.reshape(scores, (len(buffers), len(SEEDS)))
        kept[name] = {
            "n_images": len(X),
            **{str(b): list(map(float, s)) for b, s in zip(buffers, by_buffer, strict=True)},
        }
        means, spread = by_buffer.mean(axis=1), by_buffer[0].std(ddof=1)
        rows.append((name, len(X), *(f"{mean:.1f}" for mean in means), f"{spread:.1f}"))
    show(
        f"Mean per-class accuracy on unseen classes (%), mean of {len(SEEDS)} seeds, images sorted "
        f"by class",
        ("training", "images", "random", *(f"1/{s} in the buffer" for s in SHARES), "± of a seed"),
        rows,
    )
    return kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=2048, help="size of the file (MiB)")
    parser.add_argument("--limit", type=int, default=512, help="memory of the trainings (MiB)")
    parser.add_argument("--folder", help="where to write the file: on a disk, not in memory")
    parser.add_argument("--accuracy", action="store_true", help="compare accuracies instead")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(*json.loads(arguments.child))
    else:
        file = RESULTS / "memory.json"
        kept = json.loads(file.read_text()) if file.is_file() else {}
        kept.pop("versions", None)
        if arguments.accuracy:
            kept["accuracy"] = accuracy()
        else:
            kept["speed"] = measure(arguments.megabytes, arguments.limit, arguments.folder)
        keep("memory", kept)
