"""Fuzzing one target with Hypothesis, where there is no atheris: the same changes, without a guide.

Inputs are kept files with several changes on top of each other. Nothing tells which of them took a
new branch, so this finds less in the same time. The input that is being read lies in a file, in
case it ends the process; one that is still being read after half a minute does.
"""

import faulthandler
import json
import random
import sys
import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz import mutators, watch
from fuzz.findings import RUNNING, Findings, inputs_in
from fuzz.targets import TARGETS

_BATCH = 200


def main(name, findings, runs, seconds, folders):
    """Fuzz a target for a number of runs or seconds, whichever ends first; prints the count."""
    target = TARGETS[name]
    kept = inputs_in(*folders)
    found = Findings(target, findings)
    found.warm_up(kept)
    running = Path(findings) / RUNNING

    @settings(
        max_examples=_BATCH,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        derandomize=False,
    )
    @given(st.sampled_from(kept), st.integers(0, 2**64 - 1), st.integers(1, 6))
    def look(data, seed, n_changes):
        rng = random.Random(seed)
        for _ in range(n_changes):
            data = changed(target, data, rng)
        running.write_bytes(data)
        faulthandler.dump_traceback_later(3 * watch.SECONDS, exit=True)
        found.look_at(data)
        faulthandler.cancel_dump_traceback_later()

    end = time.monotonic() + seconds
    while found.n < runs and time.monotonic() < end:
        look()
        print(json.dumps({"runs": found.n, "corpus": len(kept)}), flush=True)
    running.unlink()


def changed(target, data, rng):
    """An input of a target with one change, by its own mutator if it has one."""

    def inner(part, largest):
        return mutators.blind(part, largest, rng)

    if target.mutate is None:
        return inner(data, target.largest)
    return target.mutate(data, target.largest, rng, inner)


if __name__ == "__main__":
    name, findings, runs, seconds, *folders = sys.argv[1:]
    main(name, findings, int(runs), float(seconds), folders)
