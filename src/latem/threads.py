"""Parallel work whose result does not depend on the number of threads.

Matrix libraries may add numbers in another order when they use more threads. So every matrix
product here runs single-threaded, and parallelism comes from doing several fixed-size pieces
of work side by side: the pieces, and therefore the bytes, are the same for any `n_threads`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController


class _BlasLimit:
    """One thread for the matrix libraries while anybody needs it.

    The limit belongs to the whole process: the first user sets it, the last one lifts it. A
    helper thread does both, because threadpoolctl lets only the thread that set a limit
    change it again, and the last user need not be the first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._keeper: ThreadPoolExecutor | None = None
        self._controller: ThreadpoolController | None = None
        self._limiter: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._users == 0:
                if self._keeper is None:
                    self._keeper = ThreadPoolExecutor(1, thread_name_prefix="latem-blas")
                self._keeper.submit(self._set).result()
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._keeper is not None:
                self._keeper.submit(self._lift).result()

    def _set(self) -> None:
        if self._controller is None:
            import scipy.linalg  # noqa: F401 - brings a matrix library of its own

            self._controller = ThreadpoolController()
        self._limiter = self._controller.limit(limits=1, user_api="blas")
        self._limiter.__enter__()

    def _lift(self) -> None:
        self._limiter.__exit__(None, None, None)
        self._limiter = None


_limit = _BlasLimit()


def _forget_limit() -> None:
    """In a forked child the helper thread is gone; begin anew."""
    global _limit
    _limit = _BlasLimit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_limit)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold the matrix libraries to one thread while any user of this context is inside."""
    limit = _limit
    limit.enter()
    try:
        yield
    finally:
        limit.leave()


def resolve_threads(n_threads: int | None) -> int:
    """Number of threads meant by `n_threads`: None is every core this process may use."""
    return joblib.cpu_count() if n_threads is None else n_threads


def run_all(task: Callable[[Any], None], pieces: Iterable[Any], n_threads: int | None) -> None:
    """Run `task(piece)` for every piece, with single-threaded matrix products inside."""
    pieces = list(pieces)
    workers = min(resolve_threads(n_threads), len(pieces))
    with single_threaded_blas():
        if workers <= 1:
            for piece in pieces:
                task(piece)
            return
        with ThreadPoolExecutor(workers) as pool:
            for _ in pool.map(task, pieces):
                pass
