"""Results on disk, one file per training, so that an interrupted run continues.

Beside each result lie its scores, where they are needed, and the time it took; times differ from
run to run and are therefore kept apart from results.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from latem.core.atomic import write_array, write_text
from latem.experiments.fits import Fit, Outcome


class Store:
    """Finished trainings in a folder.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    digests : dict of str to str
        Digest of each dataset: results from other data are not used.
    code : str
        Digest of the code: results of other code are not used.
    """

    def __init__(self, folder: Path, digests: Mapping[str, str], code: str):
        self.folder = folder
        self.digests = digests
        self.code = code
        folder.mkdir(parents=True, exist_ok=True)
        self._known: dict[Fit, Outcome] = {}
        self._lock = threading.Lock()

    def get(self, fit: Fit) -> Outcome | None:
        """Outcome of a training, or None if it is still to be done."""
        with self._lock:
            if fit in self._known:
                return self._known[fit]
        if not self._path(fit, ".json").exists():
            return None
        try:
            outcome = self._read(fit)
        except (OSError, ValueError, EOFError):
            return None  # damaged or incomplete: it is trained again
        with self._lock:
            self._known[fit] = outcome
        return outcome

    def _read(self, fit: Fit) -> Outcome:
        """Outcome from its files; an error if one is missing or damaged."""
        content = json.loads(self._path(fit, ".json").read_text(encoding="utf-8"))
        if not isinstance(content, dict) or "accuracy" not in content:
            raise ValueError("not a result")
        scores = np.load(self._path(fit, ".npy")) if fit.keeps_scores else None
        seconds = float(self._path(fit, ".seconds").read_text())
        return Outcome(content, scores, seconds)

    def put(self, fit: Fit, outcome: Outcome) -> None:
        """Keep an outcome; the result is written last and makes it valid."""
        if outcome.scores is not None:
            write_array(self._path(fit, ".npy"), outcome.scores)
        write_text(self._path(fit, ".seconds"), f"{outcome.seconds:.6f}\n")
        text = json.dumps(outcome.result, ensure_ascii=False, allow_nan=False)
        write_text(self._path(fit, ".json"), text + "\n")
        with self._lock:
            self._known[fit] = outcome

    def _path(self, fit: Fit, suffix: str) -> Path:
        return self.folder / f"{fit.key(self.code, self.digests[fit.dataset])}{suffix}"
