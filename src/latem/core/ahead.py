"""Working ahead, no further than it is said to."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from latem.core.threads import one_thread

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(
    task: Callable[[Item], Result], items: Iterator[Item], n_threads: int, n_ahead: int
) -> Iterator[Result]:
    """Results of `task(item)` in the order of the items, which several threads work on.

    Each item is one thread's, with all that the task would share among threads. The calling thread
    makes the items and takes the results meanwhile.

    Parameters
    ----------
    task : callable
    items : iterator
    n_threads : int
    n_ahead : int
        How many items are made before a thread is free for them.

    >>> list(side_by_side(str.upper, iter("abc"), 2, 2))
    ['A', 'B', 'C']
    """

    def alone(item: Item) -> Result:
        with one_thread():
            return task(item)

    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(n_threads, thread_name_prefix="side-by-side") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(alone, item))
                if len(waiting) == n_threads + n_ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for one in waiting:
                one.cancel()
