"""Parallel work whose result does not depend on the number of threads.

Matrix libraries may add numbers in another order when they use more threads. So every matrix
product here runs single-threaded, and parallelism comes from doing several fixed-size pieces
of work side by side: the pieces, and therefore the bytes, are the same for any `n_threads`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController


class _BlasLimit:
    """One thread for the matrix libraries while anybody needs it.

    The limit belongs to the whole process: the first user sets it, the last one lifts it.
    threadpoolctl lets only the thread that set a limit change it again while that thread lives,
    and the last user need not be the first; so short-lived threads do both.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._controller: ThreadpoolController | None = None
        self._limiter: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._users == 0:
                try:
                    _in_thread(self._set)
                except BaseException:
                    _in_thread(self._lift)
                    raise
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                _in_thread(self._lift)

    def _set(self) -> None:
        if self._controller is None:
            import scipy.linalg  # noqa: F401 - brings a matrix library of its own

            self._controller = ThreadpoolController()
        self._limiter = self._controller.limit(limits=1, user_api="blas")

    def _lift(self) -> None:
        limiter, self._limiter = self._limiter, None
        if limiter is not None:
            limiter.restore_original_limits()


_limit = _BlasLimit()


def _forget_limit() -> None:
    """In a forked child other threads, and what they held, are gone; begin anew."""
    global _limit
    _limit = _BlasLimit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_limit)


def _in_thread(task: Callable[[], None]) -> None:
    thread = threading.Thread(target=task)
    if _start(thread):
        thread.join()
    else:
        task()


def _start(thread: threading.Thread) -> bool:
    """Start a thread; at the end of the interpreter's life there are no new ones."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


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
    """Run `task(piece)` for every piece, with single-threaded matrix products inside.

    The calling thread works along. After an error no further piece is begun, and the first
    error is raised.
    """
    waiting = list(pieces)
    queue = iter(waiting)
    lock = threading.Lock()
    errors: list[BaseException] = []

    def work() -> None:
        while True:
            with lock:
                piece = next(queue, queue)
            if piece is queue or errors:
                return
            try:
                task(piece)
            except BaseException as error:
                errors.append(error)

    with single_threaded_blas():
        helpers = [
            threading.Thread(target=work)
            for _ in range(min(resolve_threads(n_threads), len(waiting)) - 1)
        ]
        helpers = [helper for helper in helpers if _start(helper)]
        work()
        for helper in helpers:
            helper.join()
    if errors:
        raise errors[0]
