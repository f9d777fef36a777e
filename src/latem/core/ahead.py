"""Reading ahead, no further than it is said to."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")


def read_ahead(items: Iterator[Item], n: int) -> Iterator[Item]:
    """The same items, of which a thread makes the next ones meanwhile.

    Parameters
    ----------
    items : iterator
        Used by one other thread, in order.
    n : int
        How many items are made, or being made, before they are asked for.

    >>> list(read_ahead(iter("abc"), 2))
    ['a', 'b', 'c']
    """
    done: Any = object()
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(1, thread_name_prefix="read-ahead") as pool:
        try:
            for _ in range(n):
                waiting.append(pool.submit(next, items, done))
            while (item := waiting.popleft().result()) is not done:
                waiting.append(pool.submit(next, items, done))
                yield item
        finally:
            for one in waiting:
                one.cancel()
