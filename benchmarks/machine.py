"""What the benchmarks share: real data if it is there, timing, memory bandwidth, results."""

import json
import os
import threading
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from latem.core.atomic import write_text
from latem.core.storage import library_versions

RESULTS = Path(__file__).parent / "results"
DATA = Path(os.environ.get("LATEM_DATA", Path(__file__).parents[2] / "shared" / "data"))


def real_dataset(name):
    """Folder of a real dataset, or None (said aloud) where it is not."""
    folder = DATA / name
    if (folder / "dataset.toml").is_file():
        return folder
    print(f"{name}: not found under {DATA}; set LATEM_DATA to the folder that holds it.")
    return None


def best_time(task, repeats=3, clock=time.perf_counter):
    """Shortest time of some calls, in seconds; by the clock on the wall or another one."""
    times = []
    for _ in range(repeats):
        start = clock()
        task()
        times.append(clock() - start)
    return min(times)


def processor():
    """What the kernels are compiled for."""
    import llvmlite.binding

    features = llvmlite.binding.get_host_cpu_features()
    widest = next(
        (name for name in ("avx512f", "avx2", "neon") if features.get(name)), "no vectors"
    )
    return f"{llvmlite.binding.get_host_cpu_name()} ({widest})"


def copy_bandwidth(megabytes, n_threads=1):
    """Bytes read and written per second by a copy of this size, in GB/s."""
    source = np.ones(megabytes * 2**20 // 4, np.float32)
    target = np.empty_like(source)
    repeats = max(1, 256 // megabytes)
    parts = list(
        zip(np.array_split(target, n_threads), np.array_split(source, n_threads), strict=True)
    )

    def copy_part(part):
        for _ in range(repeats):
            np.copyto(*part)

    def copy():
        helpers = [threading.Thread(target=copy_part, args=(part,)) for part in parts[1:]]
        for helper in helpers:
            helper.start()
        copy_part(parts[0])
        for helper in helpers:
            helper.join()

    copy()
    return 2 * source.nbytes * repeats / best_time(copy, 5) / 1e9


def show(title, header, rows):
    """Print a table."""
    table = Table(title=title, title_justify="left")
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*map(str, row))
    Console(width=140).print(table)


def keep(name, content):
    """Keep a benchmark's figures as JSON."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({**content, "versions": library_versions()}, indent=2)
    write_text(RESULTS / f"{name}.json", text + "\n")
    print(f"Figures kept in {RESULTS / f'{name}.json'}")
