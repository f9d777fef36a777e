"""What fuzzing has found: one input per kind and place, for whoever mends it."""

import hashlib
import json
import sys
import warnings
from pathlib import Path

from fuzz import watch

CORPUS = Path(__file__).parent / "corpus"
"""Kept inputs, a folder for each reader: those that take a way of their own through its code."""
FORMER = Path(__file__).parent / "former"
"""Inputs that once showed something wrong."""
RUNNING = "running"  # an input that is being read
_SAMPLE = 8  # of as many inputs, the memory of one is measured: it takes as long as a short read


class Findings:
    """Judges inputs of a target, and keeps those that show something wrong.

    Parameters
    ----------
    target : Target
    folder : path
        An input goes to a file of its own, with what was found beside it.
    """

    def __init__(self, target, folder, sample=_SAMPLE):
        self.target, self.folder = target, Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.known = {}
        self.n, self.sample = 0, sample
        warnings.simplefilter("ignore")

    def warm_up(self, inputs):
        """Read some inputs once: what is imported at first use is no memory of a reader."""
        for data in inputs:
            watch.judge(self.target.read, data, floor=self.target.floor, measure=False)

    def look_at(self, data):
        """Judge an input."""
        self.n += 1
        finding = watch.judge(
            self.target.read, data, floor=self.target.floor, measure=self.n % self.sample == 0
        )
        if finding is not None and str(finding) not in self.known:
            self.known[str(finding)] = finding
            self._keep(finding, data)

    def _keep(self, finding, data):
        digest = hashlib.sha256(data).hexdigest()[:12]
        (self.folder / digest).write_bytes(data)
        note = {"kind": finding.kind, "where": finding.where, "detail": finding.detail}
        (self.folder / f"{digest}.json").write_text(json.dumps(note, indent=1))
        print(f"{self.target.name}: {finding}, kept as {digest}", file=sys.stderr)


def former_failures(name):
    """Inputs that once showed something wrong with a reader."""
    return inputs_in(FORMER / name)


def inputs_in(*folders):
    """Contents of the files of some folders, in the order of their names."""
    found = []
    for folder in map(Path, folders):
        if folder.is_dir():
            found += [path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()]
    return found
