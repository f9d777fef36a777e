"""Work that is done at once, without a thread; and room that requests share."""

import asyncio
import threading

import pytest

pytest.importorskip("fastapi")

from latem.server.work import Batcher, Room, Work


@pytest.fixture
def work():
    made = Work(2, 16, 30.0)
    yield made
    made.close()


class Task:
    """Doubles numbers; notes in which thread, and how many at a time.

    It has a clock of its own, on which nothing else takes time: a busy machine is no slower.
    """

    def __init__(self, seconds=0.0):
        self.seconds, self.calls, self.now = seconds, [], 0.0

    def clock(self):
        return self.now

    def __call__(self, items):
        self.calls.append((threading.current_thread() is threading.main_thread(), len(items)))
        self.now += self.seconds
        if "bad" in items:
            raise ValueError("bad")
        return [2 * item for item in items]


def ask(batcher, task, *requests):
    """Results of requests that come at the same moment, or their errors."""

    async def run():
        waiting = [batcher.run("key", task, items) for items in requests]
        found = await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.sleep(0.01)  # what threads have noted arrives
        return found

    return run()


def test_quick_work_needs_no_thread(work):
    task = Task()
    batcher = Batcher(work, 8, quick=1.0, clock=task.clock)

    async def main():
        assert await ask(batcher, task, [1]) == [[2]]  # nobody knows yet that it is quick
        assert await ask(batcher, task, [2], [3, 4], [5]) == [[4], [6, 8], [10]]
        assert await ask(batcher, task, *([i] for i in range(10))) == [[2 * i] for i in range(10)]

    asyncio.run(main())
    assert task.calls[:2] == [(False, 1), (True, 4)]
    assert sum(n for _, n in task.calls[2:]) == 10
    assert max(n for _, n in task.calls) <= 8


def test_slow_work_stays_in_threads(work):
    task = Task(seconds=0.02)
    batcher = Batcher(work, 8, quick=0.001, clock=task.clock)

    async def main():
        for _ in range(3):
            assert await ask(batcher, task, [1]) == [[2]]

    asyncio.run(main())
    assert task.calls == [(False, 1)] * 3


def test_work_that_has_become_slow_goes_to_threads(work):
    task = Task()
    batcher = Batcher(work, 8, quick=0.05, clock=task.clock)

    async def main():
        await ask(batcher, task, [1])
        await ask(batcher, task, [1])
        task.seconds = 0.1
        await ask(batcher, task, [1])
        await ask(batcher, task, [1])

    asyncio.run(main())
    assert [here for here, _ in task.calls] == [False, True, True, False]


def test_many_items_are_not_quick(work):
    task = Task(seconds=0.01)
    batcher = Batcher(work, 5000, quick=0.2, clock=task.clock)

    async def main():
        await ask(batcher, task, [1])
        await ask(batcher, task, [1])
        await ask(batcher, task, [1] * 4000)

    asyncio.run(main())
    assert task.calls == [(False, 1), (True, 1), (False, 4000)]


def test_one_bad_request_does_not_spoil_the_others(work):
    task = Task()
    batcher = Batcher(work, 8, quick=1.0, clock=task.clock)

    async def main():
        await ask(batcher, task, [1])
        good, bad, other = await ask(batcher, task, [2], ["bad"], [3])
        assert (good, other) == ([4], [6])
        assert isinstance(bad, ValueError)
        assert await ask(batcher, task, [4]) == [[8]]

    asyncio.run(main())
    assert (True, 3) in task.calls


def test_paces_are_not_kept_for_ever(work):
    task = Task()
    batcher = Batcher(work, 8, quick=1.0, clock=task.clock)

    async def main():
        for number in range(600):
            await batcher.run(number, task, [1])
        await asyncio.sleep(0.01)
        before = len(task.calls)
        await batcher.run(0, task, [1])  # forgotten: looked at anew
        await batcher.run(599, task, [1])
        return task.calls[before:]

    assert asyncio.run(main()) == [(False, 1), (True, 1)]


def test_room():
    room = Room(10)
    assert room.take(6)
    assert not room.take(5)
    assert room.take(4)
    assert room.take(0)
    room.leave(6)
    assert room.take(6)
    assert room.n_taken == 10
