"""Kill every operation at random moments, and print a table of what became of it.

From the repository: `PYTHONPATH=src:tests python -m crash [kills [seed]]`; 200 kills unless told.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from crash.harness import Harness, share_kills, summary
from crash.operations import OPERATIONS


def main(n_kills=200, seed=None):
    seed = time.time_ns() % 2**32 if seed is None else seed
    print(f"{n_kills} kills, seed {seed}", flush=True)
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder, Harness(Path(folder)) as harness:
        for name, share in share_kills(n_kills).items():
            harness.kill(OPERATIONS[name], rng, share)
            print(f"{name}: {share} kills", flush=True)
        print(summary(harness))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
