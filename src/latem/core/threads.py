"""Parallel work whose result does not depend on the number of threads.

Matrix libraries may add numbers in another order when they use more threads. So every matrix
product here runs single-threaded, and parallelism comes from doing several fixed-size pieces
of work side by side: the pieces, and therefore the bytes, are the same for any `n_threads`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController


class _BlasLimit:
    """One thread for the matrix libraries while anybody needs it.

    The limit belongs to the whole process: the first holder sets it, the last one lifts it, from
    whatever thread. Libraries on OpenMP count their threads per calling thread instead; there
    every thread sets and lifts its own limit.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: set[object] = set()
        self._before: list[tuple[Any, int]] = []
        self._local = threading.local()
        self._shared: list[Any] | None = None
        self._per_thread: list[Any] = []

    def hold(self, holder: object) -> None:
        with self._lock:
            if self._shared is None:
                self._find_libraries()
            if self._per_thread:
                self._limit_this_thread(holder)
            if not self._holders:
                for library in self._shared or ():
                    self._before.append((library, library.get_num_threads()))
                    _set_threads(library, 1)
            self._holders.add(holder)

    def release(self, holder: object) -> None:
        """Give up a hold; to do it again, after an interruption, does no harm."""
        with self._lock:
            if self._per_thread:
                self._lift_this_thread(holder)
            self._holders.discard(holder)
            if not self._holders:
                for library, n_threads in self._before:
                    _set_threads(library, n_threads)
                self._before.clear()

    def _find_libraries(self) -> None:
        import scipy.linalg  # noqa: F401 - brings a matrix library of its own

        found = ThreadpoolController().select(user_api="blas").lib_controllers
        self._per_thread = [one for one in found if _is_per_thread(one)]
        self._shared = [one for one in found if not _is_per_thread(one)]

    def _limit_this_thread(self, holder: object) -> None:
        if not self._holders_here():
            self._local.before = [one.get_num_threads() for one in self._per_thread]
            for library in self._per_thread:
                library.set_num_threads(1)
        self._holders_here().add(holder)

    def _lift_this_thread(self, holder: object) -> None:
        if holder in self._holders_here():
            self._holders_here().discard(holder)
            if not self._holders_here():
                for library, n_threads in zip(self._per_thread, self._local.before, strict=True):
                    library.set_num_threads(n_threads)

    def _holders_here(self) -> set[object]:
        if not hasattr(self._local, "holders"):
            self._local.holders = set()
        return self._local.holders


def _is_per_thread(library: Any) -> bool:
    return getattr(library, "threading_layer", None) == "openmp"


def _set_threads(library: Any, n_threads: int) -> None:
    """Set a library's number of threads, whichever thread set it before."""
    clear = getattr(library, "clear_controlling_thread", None)
    if clear is not None:  # newer versions of threadpoolctl listen to one thread only
        clear(force=True)
    library.set_num_threads(n_threads)
    if clear is not None:
        clear(force=True)


_limit = _BlasLimit()


def _forget_limit() -> None:
    """In a forked child other threads, and what they held, are gone; begin anew."""
    global _limit
    _limit = _BlasLimit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_limit)


class single_threaded_blas:
    """Context that holds the matrix libraries to one thread while any user of it is inside.

    An interruption at any moment (Ctrl-C) leaves no limit behind.
    """

    def __enter__(self) -> None:
        self._limit = _limit
        try:
            self._limit.hold(self)
        except BaseException:
            self._limit.release(self)
            raise

    def __exit__(self, *_: object) -> None:
        try:
            self._limit.release(self)
        except BaseException:
            self._limit.release(self)
            raise


def resolve_threads(n_threads: int | None) -> int:
    """Number of threads meant by `n_threads`: None is every core this process may use."""
    return joblib.cpu_count() if n_threads is None else n_threads


def run_all(task: Callable[[Any], None], pieces: Iterable[Any], n_threads: int | None) -> None:
    """Run `task(piece)` for every piece, with single-threaded matrix products inside.

    The calling thread works along. After an error no further piece is begun, and the first
    error is raised.
    """
    waiting = list(pieces)
    if len(waiting) == 1:
        with single_threaded_blas():
            task(waiting[0])
        return
    queue = iter(waiting)
    lock = threading.Lock()
    errors: list[BaseException] = []

    def work() -> None:
        with single_threaded_blas():
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


def _start(thread: threading.Thread) -> bool:
    """Start a thread; at the end of the interpreter's life there are no new ones."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True
