"""Every reader reads what fuzzing has kept, or refuses it with a sentence; `make fuzz` finds more.

Within 10 seconds for an input, and ten times its size of memory or 64 MB (`watch.judge`).
"""

import warnings

import pytest

from fuzz import watch
from fuzz.findings import CORPUS, FORMER, Findings, former_failures, inputs_in
from fuzz.seeds import seeds
from fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs(name, tmp_path):
    inputs = [*seeds(name), *inputs_in(CORPUS / name), *former_failures(name)]
    with warnings.catch_warnings():
        found = Findings(TARGETS[name], tmp_path, sample=1)
        found.warm_up(seeds(name))
        for data in inputs:
            found.look_at(data)
    assert found.n == len(inputs)
    assert [f"{one}\n{one.detail}" for one in found.known.values()] == []


@pytest.mark.parametrize("name", TARGETS)
def test_a_reader_takes_what_its_seeds_hold(name):
    """One at least: a reader that refuses all of them would not be looked at in the inside."""
    taken = 0
    for data in seeds(name):
        try:
            TARGETS[name].read(data)
            taken += 1
        except watch.REFUSALS:
            continue
    assert taken


def test_every_folder_of_inputs_belongs_to_a_reader():
    folders = {path.name for place in (CORPUS, FORMER) for path in place.glob("*")}
    assert folders <= TARGETS.keys()


def test_the_corpus_is_small():
    files = [path for place in (CORPUS, FORMER) for path in place.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 1_000_000
