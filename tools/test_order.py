"""Run the tests in many orders: every file by itself, then all of them in random orders.

    python tools/test_order.py [--seeds SEED ...] [--jobs N] [PYTEST OPTION ...]

It is run in the folder that holds `tests` and `src`. Each file of tests, and each module with
examples in its docstrings, has a process of its own, N of them at a time (2); no test may then need
what another file has imported, cached or left behind. After that everything is run once per seed,
spread over N processes. Without --seeds there are five new ones. Other options go to pytest:

    python tools/test_order.py -m "not slow"

What fails is printed in full, its seed included; at the end there is one line per failure, and the
exit code is 1 if there is any.
"""

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

N_SEEDS = 5
NOTHING_TO_RUN = 5  # pytest's exit code if no test is left to run


@dataclass(frozen=True)
class Run:
    """One run of pytest that has ended."""

    name: str
    failed: bool
    output: str
    seconds: float

    def show(self) -> None:
        """Print how it ended, and everything it said if it failed."""
        if self.failed:
            print(f"\n{self.output}")
        verdict = "FAILED" if self.failed else "ok"
        print(f"{verdict:6} {self.seconds:6.1f} s  {self.name}", flush=True)


def files_of_tests() -> list[str]:
    """Files of tests, and modules with examples."""
    modules = Path("src").rglob("*.py")
    return sorted(
        [
            *(path.as_posix() for path in Path("tests").rglob("test_*.py")),
            *(path.as_posix() for path in modules if ">>> " in path.read_text(encoding="utf-8")),
        ]
    )


def run_pytest(name: str, arguments: Sequence[str], passing: Sequence[int] = (0,)) -> Run:
    """Run pytest in a process of its own that shares no cache with others."""
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
    )  # fmt: skip
    return Run(name, done.returncode not in passing, done.stdout, time.monotonic() - start)


def main(argv: Sequence[str] | None = None) -> int:
    """Run everything; gives 1 if something failed."""
    parser = argparse.ArgumentParser(
        description="Every file of tests by itself, then all tests in random orders.",
        epilog="Other options go to pytest.",
        allow_abbrev=False,
    )
    parser.add_argument("--seeds", type=int, nargs="+", help=f"of the orders; {N_SEEDS} new ones")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time; 2")
    options, rest = parser.parse_known_args(argv)
    source = random.SystemRandom()
    seeds = options.seeds or [source.getrandbits(32) for _ in range(N_SEEDS)]

    def alone(path: str) -> Run:
        return run_pytest(f"{path} alone", [*rest, path], (0, NOTHING_TO_RUN))

    runs = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for run in pool.map(alone, files_of_tests()):
            run.show()
            runs.append(run)
    for seed in seeds:
        order = [f"--randomly-seed={seed}", "-n", str(options.jobs)]
        runs.append(run_pytest(f"everything with {order[0]}", [*rest, *order]))
        runs[-1].show()
    failed = [run for run in runs if run.failed]
    print(f"\n{len(runs)} runs, {len(failed)} failed")
    for run in failed:
        print(f"  {run.name}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
