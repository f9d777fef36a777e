"""What is killed at any moment goes on, or starts cleanly; a full disk leaves files as they were.

`harness.py` says how operations are killed, and `operations.py` which ones there are. A few of each
kind are part of every run of the tests, all of them of the slow ones.
"""

import signal

import numpy as np
import pytest
from crash.harness import Harness, check_sentence, compare, files, share_kills, summary
from crash.operations import OPERATIONS

FULL = r"No space left on device|which has .* left"


def each_operation(*quick):
    """All operations; those that are not named are slow."""
    return pytest.mark.parametrize(
        "operation",
        [
            pytest.param(row, id=name, marks=() if name in quick else pytest.mark.slow)
            for name, row in OPERATIONS.items()
        ],
    )


@pytest.fixture(scope="module")
def harness(tmp_path_factory):
    with Harness(tmp_path_factory.mktemp("crash")) as harness:
        yield harness


@pytest.fixture
def rng():
    return np.random.default_rng(np.random.randint(2**31))  # noqa: NPY002 - seeded for every test


@pytest.fixture
def disk(harness):
    if not harness.has_disk:
        pytest.skip("no small disk can be mounted here")
    return harness


@each_operation("fit", "save", "data convert", "data fetch", "data split")
def test_a_killed_operation_ends_with_the_same_bytes(harness, rng, operation):
    harness.kill(operation, rng, n_kills=2)


@pytest.mark.slow
def test_two_hundred_kills(harness, rng):
    before = sum(tally["kills"] for tally in harness.tally.values())
    for name, n_kills in share_kills(200).items():
        harness.kill(OPERATIONS[name], rng, n_kills)
    print(summary(harness))
    assert sum(tally["kills"] for tally in harness.tally.values()) == before + 200


@each_operation("save", "data convert")
def test_a_full_disk(disk, rng, operation):
    known = disk.undisturbed(operation)
    size = sum(map(len, known.after.values()))
    n_failed = 0
    for share in (0, rng.uniform(0.1, 0.9)):
        within, seen = disk.disk_place(operation)
        with disk.full_disk(int(share * size)):
            ended = disk.start(operation, within).wait()
            disk.check_readable(operation, seen)
        if ended.code:
            check_sentence(ended, FULL)
            n_failed += 1
        disk.end_well(operation, seen, within)
    assert n_failed


@each_operation("fit", "data convert")
def test_a_disk_that_can_only_be_read(disk, rng, operation):
    within, seen = disk.disk_place(operation)
    for at in (0, int(rng.integers(1, disk.undisturbed(operation).n_steps))):
        if at:  # what a killed run has kept is kept, too
            disk.start(operation, within, signal.SIGKILL, at).wait()
        before = files(operation, seen)
        with disk.read_only_disk():
            ended = disk.start(operation, within).wait()
        check_sentence(ended, "cannot be written: Read-only file system|exists already")
        compare(operation, files(operation, seen), before)
    disk.end_well(operation, seen, within)


@each_operation("fit", "data convert", "data fetch")
def test_a_second_process_at_the_same_time(harness, rng, operation):
    known = harness.undisturbed(operation)
    middle = np.arange(int(0.3 * known.n_steps), int(0.7 * known.n_steps) + 1)
    for at in rng.permutation(middle).tolist():
        place = harness.place(operation)
        first = harness.start(operation, place, signal.SIGSTOP, at=at)
        first.wait_until_stopped()
        if not operation.busy or first.holds_a_lock():
            break
        first.send(signal.SIGCONT)  # it has only begun to look at its files
        first.wait()
    assert not operation.busy or first.holds_a_lock()
    try:
        before = files(operation, place)
        second = harness.start(operation, place).wait()
        if operation.busy:
            check_sentence(second, operation.busy)
            compare(operation, files(operation, place), before)
        else:
            assert second.code == 0, second.stderr
    finally:
        first.send(signal.SIGCONT)
        ended = first.wait()
    if operation.refuses and not operation.busy:
        check_sentence(ended, "already")
    else:
        assert ended.code in (0, 3), ended.stderr
    compare(operation, files(operation, place), known.after)
