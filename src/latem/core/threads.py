"""Parallel work whose result does not depend on the number of threads.

Matrix libraries may add numbers in another order when they use more threads. So every matrix
product here runs single-threaded, and parallelism comes from doing several fixed-size pieces
of work side by side: the pieces, and therefore the bytes, are the same for any `n_threads`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController


class _BlasLimit:
    """One thread for the matrix libraries while anybody needs it.

    The limit belongs to the whole process: the first holder sets it, the last one lifts it, from
    whatever thread. Libraries on OpenMP count their threads per calling thread instead; there
    every thread sets and lifts its own limit.

    A holder is the frame of the function that is inside. An interruption can strike before a
    context's way out has begun; its frame is gone then, and the next call gives up its hold.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._holders: dict[int, list[FrameType]] = {}  # by thread, the outermost first
        self._before: dict[int, list[tuple[Any, int]]] = {}  # by thread, or 0 for the process
        self._shared: list[Any] | None = None
        self._per_thread: list[Any] = []

    def hold(self, frame: FrameType) -> None:
        here = threading.get_ident()
        with self._lock:
            if self._shared is None:
                self._find_libraries()
            if not self._holders:
                self._set_limit(0, self._shared or [])
            if here not in self._holders and self._per_thread:
                self._set_limit(here, self._per_thread)
            self._holders.setdefault(here, []).append(frame)

    def release(self, level: int) -> None:
        """Give up all holds of this thread from a level on; doing it again does no harm."""
        here = threading.get_ident()
        with self._lock:
            holders = self._holders.get(here, [])
            del holders[level:]
            if not holders:
                self._lift_limit(here)
                self._holders.pop(here, None)
            if not self._holders:
                self._lift_limit(0)

    def level(self, frame: FrameType) -> int:
        """How many holds the calling thread has; those of functions that are gone are given up."""
        holders = self._holders.get(threading.get_ident())
        if not holders:
            return 0
        left = len(holders)  # usually all are running, and not far up the stack
        caller: FrameType | None = frame
        while caller is not None and left:
            while left and holders[left - 1] is caller:
                left -= 1
            caller = caller.f_back
        if not left:
            return len(holders)
        running: set[int] = set()
        caller = frame
        while caller is not None:
            running.add(id(caller))
            caller = caller.f_back
        n_running = next(
            (i for i, one in enumerate(holders) if id(one) not in running), len(holders)
        )
        if n_running < len(holders):
            self.release(n_running)
        return n_running

    def _set_limit(self, key: int, libraries: list[Any]) -> None:
        before = self._before.setdefault(key, [])
        for library in libraries:
            before.append((library, library.get_num_threads()))
            _set_threads(library, 1)

    def _lift_limit(self, key: int) -> None:
        for library, n_threads in self._before.get(key, ()):
            _set_threads(library, n_threads)
        self._before.pop(key, None)

    def _find_libraries(self) -> None:
        import scipy.linalg  # noqa: F401 - brings a matrix library of its own

        found = ThreadpoolController().select(user_api="blas").lib_controllers
        self._per_thread = [one for one in found if _is_per_thread(one)]
        self._shared = [one for one in found if not _is_per_thread(one)]


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

    Not for generators: what holds must be running. An interruption (Ctrl-C) leaves no limit behind
    for longer than until the next use.
    """

    def __enter__(self) -> None:
        self._limit, frame = _limit, sys._getframe(1)
        self._level = self._limit.level(frame)
        try:
            self._limit.hold(frame)
        except BaseException:
            self._limit.release(self._level)
            raise

    def __exit__(self, *_: object) -> None:
        try:
            self._limit.release(self._level)
        except BaseException:
            self._limit.release(self._level)
            raise


def resolve_threads(n_threads: int | None) -> int:
    """Number of threads meant by `n_threads`: None is every core this process may use."""
    return joblib.cpu_count() if n_threads is None else n_threads


def run_all(task: Callable[[Any], None], pieces: Iterable[Any], n_threads: int | None) -> None:
    """Run `task(piece)` for every piece, with single-threaded matrix products inside.

    The calling thread takes part. After an error no further piece is begun, and the first
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
