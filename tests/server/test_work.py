"""Work in threads: bounded, timed, small pieces together, and nobody spoils it for others."""

import asyncio
import threading
import time

import pytest

pytest.importorskip("fastapi")

from latem.server.problems import Busy, ProblemError
from latem.server.work import Batcher, Work


@pytest.fixture
def work():
    work = Work(2, 4, 5.0)
    yield work
    work.close()


def test_results_and_errors(work):
    async def go():
        assert await work.run(lambda a, b: a + b, 1, 2) == 3
        with pytest.raises(KeyError):
            await work.run({}.__getitem__, "x")
        await asyncio.sleep(0)
        assert work.n_open == 0

    asyncio.run(go())


def test_too_much_work_is_refused(work):
    gate = threading.Event()

    async def go():
        tasks = [asyncio.create_task(work.run(gate.wait, 5)) for _ in range(6)]
        await asyncio.sleep(0.05)
        with pytest.raises(Busy) as refused:
            await work.run(gate.wait)
        assert refused.value.status == 503
        assert refused.value.headers["Retry-After"] == "1"
        gate.set()
        assert await asyncio.gather(*tasks) == [True] * 6

    asyncio.run(go())


def test_what_takes_too_long_is_told():
    slow = Work(1, 4, 0.05)

    async def go():
        with pytest.raises(ProblemError, match=r"longer than 0\.05 seconds"):
            await slow.run(time.sleep, 0.3)

    asyncio.run(go())
    slow.close()


def batches_of(work, sizes, *, largest=8, fail=()):
    """What batches are worked on when requests of these sizes arrive during the first."""
    seen, gate = [], threading.Event()

    def double(items):
        gate.wait(2)
        seen.append(list(items))
        if any(item in fail for item in items):
            raise ValueError("spoiled")
        return [2 * item for item in items]

    async def go():
        batcher = Batcher(work, largest)
        first = asyncio.create_task(batcher.run("k", double, [0]))
        await asyncio.sleep(0.05)
        later = [
            asyncio.create_task(batcher.run("k", double, [10 * i + j for j in range(n)]))
            for i, n in enumerate(sizes, start=1)
        ]
        await asyncio.sleep(0.05)
        gate.set()
        return await asyncio.gather(first, *later, return_exceptions=True)

    return asyncio.run(go()), seen


def test_requests_that_arrive_together_are_worked_on_together(work):
    results, seen = batches_of(work, [2, 3, 1])
    assert results == [[0], [20, 22], [40, 42, 44], [60]]
    assert seen == [[0], [10, 11, 20, 21, 22, 30]]


def test_batches_have_a_largest_size(work):
    results, seen = batches_of(work, [3, 3, 3], largest=7)
    assert [len(one) for one in seen] == [1, 6, 3]
    assert [len(one) for one in results] == [1, 3, 3, 3]


def test_one_request_does_not_spoil_the_others(work):
    results, _ = batches_of(work, [1, 1, 1], fail=(20,))
    assert results[1] == [20]
    assert isinstance(results[2], ValueError)
    assert results[3] == [60]


def test_a_client_that_goes_away_leaves_the_others(work):
    gate = threading.Event()

    def same(items):
        gate.wait(2)
        return items

    async def go():
        batcher = Batcher(work, 8)
        first = asyncio.create_task(batcher.run("k", same, [1]))
        await asyncio.sleep(0.02)
        gone = asyncio.create_task(batcher.run("k", same, [2]))
        stays = asyncio.create_task(batcher.run("k", same, [3]))
        await asyncio.sleep(0.02)
        gone.cancel()
        first.cancel()
        await asyncio.sleep(0)
        gate.set()
        assert await stays == [3]
        assert await batcher.run("k", same, [4]) == [4]  # nothing is stuck

    asyncio.run(go())
