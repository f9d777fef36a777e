"""Working ahead: in order, alone, no further than it is said to."""

import threading
import time

import pytest

from latem.core.ahead import side_by_side
from latem.core.threads import resolve_threads


def test_results_come_in_the_order_of_the_items():
    def task(i):
        time.sleep(0.001 * (7 - i))
        return i

    assert list(side_by_side(task, iter(range(8)), 3, 2)) == list(range(8))
    assert list(side_by_side(task, iter(()), 2, 0)) == []


def test_several_threads_work_at_once_and_each_alone():
    together = threading.Barrier(2, timeout=10)

    def task(_):
        together.wait()
        return resolve_threads(None), threading.get_ident()

    found = list(side_by_side(task, iter(range(4)), 2, 2))
    assert [n for n, _ in found] == [1] * 4
    assert len({thread for _, thread in found}) == 2


@pytest.mark.parametrize(("n_threads", "n_ahead"), [(1, 0), (1, 2), (2, 0), (2, 3)])
def test_no_more_items_are_made_than_are_said(n_threads, n_ahead):
    made = []

    def items():
        for i in range(20):
            made.append(i)
            yield i

    for taken, _ in enumerate(side_by_side(str, items(), n_threads, n_ahead)):
        assert len(made) - taken <= n_threads + n_ahead
    assert len(made) == 20


def test_an_error_comes_in_its_turn_and_ends_the_work():
    begun = []

    def task(i):
        begun.append(i)
        if i == 3:
            raise ZeroDivisionError
        return i

    results = side_by_side(task, iter(range(100)), 2, 2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert max(begun) < 10


def test_what_is_no_longer_wanted_is_not_begun():
    begun = []

    def task(i):
        begun.append(i)
        time.sleep(0.05)
        return i

    results = side_by_side(task, iter(range(100)), 1, 50)
    assert next(results) == 0
    results.close()
    assert len(begun) < 10
