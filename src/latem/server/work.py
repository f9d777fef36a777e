"""Work for requests, done in threads: bounded in number and time, small pieces together."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from latem.server.problems import Busy, ProblemError

_N_LIKE_ONE = 16  # so many items take hardly longer than one
_N_PACES = 256  # kinds of work whose pace is remembered


class Work:
    """Threads that work for requests.

    Parameters
    ----------
    n_threads : int
    waiting : int
        Pieces of work that may wait; further ones are refused.
    seconds : float
        After which a request is told that its work takes too long. Work that has begun cannot be
        stopped and keeps its thread until it is done.
    """

    def __init__(self, n_threads: int, waiting: int, seconds: float):
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix="latem-serve")
        self._limit = n_threads + waiting
        self._seconds = seconds
        self.n_open = 0

    async def run(self, task: Callable[..., Any], *args: Any) -> Any:
        """The result of a task, done in a thread."""
        if self.n_open >= self._limit:
            raise Busy()
        self.n_open += 1
        future = self._pool.submit(task, *args)
        loop = asyncio.get_running_loop()
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._done))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._seconds)
        except (TimeoutError, asyncio.TimeoutError):
            raise ProblemError(
                503, f"This takes longer than {self._seconds:g} seconds; ask for less at a time."
            ) from None

    def _done(self) -> None:
        self.n_open -= 1

    def close(self) -> None:
        """Finish what has begun, and drop the rest."""
        self._pool.shutdown(cancel_futures=True)


class Room:
    """Memory that all requests share, in some unit.

    Parameters
    ----------
    limit : int
    """

    def __init__(self, limit: int):
        self._limit, self.n_taken = limit, 0

    def take(self, n: int) -> bool:
        """Whether there was room for so much; it is taken then."""
        if n and self.n_taken + n > self._limit:
            return False
        self.n_taken += n
        return True

    def leave(self, n: int) -> None:
        """Give back what was taken."""
        self.n_taken -= n


@dataclass
class _Waiting:
    items: list[Any]
    future: asyncio.Future[list[Any]]


class Batcher:
    """Scores small requests that arrive together, together.

    While one batch is being worked on, requests for the same thing gather; they are the next
    batch. Nobody waits for companions: a request that comes alone is worked on at once.

    Parameters
    ----------
    work : Work
    largest : int
        Items in a batch.
    seen : callable, optional
        Called with the number of items of every batch.
    waiting : int, optional
        Requests for the same thing that may wait; by default as many as `largest`.
    quick : float
        Seconds. Work that took no longer the last time is done without a thread: to hand it over
        and back would take as long. What is asked at the same moment is then one batch.
    clock : callable
        Seconds since some moment.
    """

    def __init__(
        self,
        work: Work,
        largest: int,
        seen: Callable[[int], None] | None = None,
        waiting: int | None = None,
        quick: float = 0.0,
        clock: Callable[[], float] = time.perf_counter,
    ):
        self._work, self._largest, self._seen = work, largest, seen
        self._n_waiting = largest if waiting is None else waiting
        self._quick, self._clock = quick, clock
        self._waiting: dict[Hashable, list[_Waiting]] = {}
        self._running: set[Hashable] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pace: OrderedDict[Hashable, float] = OrderedDict()  # seconds per item, at most

    async def run(
        self, key: Hashable, task: Callable[[list[Any]], list[Any]], items: list[Any]
    ) -> list[Any]:
        """What a task makes of some items, one result for each.

        Parameters
        ----------
        key : hashable
            Requests with the same key may be worked on together.
        task : callable
            From a list of items to a list of results.
        items : list
        """
        if self._work.n_open and len(self._waiting.get(key, ())) >= self._n_waiting:
            raise Busy()
        alone = key not in self._running
        if alone and not self._is_quick(key, len(items)):
            self._running.add(key)
            try:
                return await self._timed(key, task, items)
            finally:
                self._next(key, task)
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._waiting.setdefault(key, []).append(_Waiting(items, future))
        if alone:
            self._running.add(key)
            loop.call_soon(self._at_once, key, task)
        return await future

    def _is_quick(self, key: Hashable, n: int) -> bool:
        pace = self._pace.get(key)
        return pace is not None and pace * max(n, _N_LIKE_ONE) <= self._quick

    async def _timed(
        self, key: Hashable, task: Callable[[list[Any]], list[Any]], items: list[Any]
    ) -> list[Any]:
        if self._seen is not None:
            self._seen(len(items))

        def work(items: list[Any]) -> list[Any]:
            start = self._clock()
            results = task(items)
            seconds = self._clock() - start
            if self._quick:
                asked.call_soon_threadsafe(self._note, key, seconds, len(items))
            return results

        asked = asyncio.get_running_loop()
        return await self._work.run(work, items)

    def _note(self, key: Hashable, seconds: float, n: int) -> None:
        self._pace[key] = seconds / max(n, _N_LIKE_ONE)
        self._pace.move_to_end(key)
        while len(self._pace) > _N_PACES:
            self._pace.popitem(last=False)

    def _next(self, key: Hashable, task: Callable[[list[Any]], list[Any]]) -> None:
        if not self._waiting.get(key):
            self._waiting.pop(key, None)
            self._running.discard(key)
            return
        running = asyncio.create_task(self._batch(key, task))
        self._tasks.add(running)
        running.add_done_callback(self._tasks.discard)

    def _taken(self, key: Hashable) -> list[_Waiting]:
        """The next requests that are worked on together."""
        queue = self._waiting[key]
        taken = [queue.pop(0)]
        n = len(taken[0].items)
        while queue and n + len(queue[0].items) <= self._largest:
            n += len(queue[0].items)
            taken.append(queue.pop(0))
        return [one for one in taken if not one.future.cancelled()]

    def _at_once(self, key: Hashable, task: Callable[[list[Any]], list[Any]]) -> None:
        """Work on what was asked at the same moment, here and now."""
        if not self._is_quick(key, sum(len(one.items) for one in self._waiting[key])):
            self._next(key, task)
            return
        taken = self._taken(key)
        items = [item for one in taken for item in one.items]
        start = self._clock()
        try:
            results = task(items) if items else []
        except Exception:  # one request must not spoil the others: each by itself, in a thread
            self._waiting[key] = [*taken, *self._waiting[key]]
            self._pace.pop(key, None)
        else:
            if self._seen is not None and items:
                self._seen(len(items))
            self._note(key, self._clock() - start, len(items))
            _settle(taken, results)
        self._next(key, task)

    async def _batch(self, key: Hashable, task: Callable[[list[Any]], list[Any]]) -> None:
        taken = self._taken(key)
        try:
            if taken:
                await self._answer(key, task, taken)
        finally:
            self._next(key, task)

    async def _answer(
        self, key: Hashable, task: Callable[[list[Any]], list[Any]], taken: list[_Waiting]
    ) -> None:
        items = [item for one in taken for item in one.items]
        try:
            results = await self._timed(key, task, items)
        except Exception as error:
            if len(taken) > 1:  # one request must not spoil the others
                for one in taken:
                    await self._answer(key, task, [one])
            elif not taken[0].future.done():
                taken[0].future.set_exception(error)
            return
        _settle(taken, results)


def _settle(taken: list[_Waiting], results: list[Any]) -> None:
    """Give every request its part of the results."""
    first = 0
    for one in taken:
        if not one.future.done():
            one.future.set_result(results[first : first + len(one.items)])
        first += len(one.items)
