"""Parallel work whose result does not depend on the number of threads.

Matrix libraries may add numbers in another order when they use more threads. So every matrix
product here runs single-threaded, and parallelism comes from doing several fixed-size pieces
of work side by side: the pieces, and therefore the bytes, are the same for any `n_threads`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
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

    Not for generators, nor for an `ExitStack`: what holds must be running. An interruption (Ctrl-C)
    leaves no limit behind for longer than until the next use.
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


_local = threading.local()


@contextmanager
def one_thread() -> Iterator[None]:
    """Work that the calling thread begins inside is not shared with others: these are busy."""
    before = getattr(_local, "alone", False)
    _local.alone = True
    try:
        yield
    finally:
        _local.alone = before


def resolve_threads(n_threads: int | None) -> int:
    """Number of threads meant by `n_threads`: None is every core this process may use."""
    if getattr(_local, "alone", False):
        return 1
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

    n_helpers = min(resolve_threads(n_threads), len(waiting)) - 1
    helpers = [Helper(work) for _ in range(n_helpers)]
    with single_threaded_blas():
        try:
            helpers = [helper for helper in helpers if start_thread(helper)]
            work()
        except BaseException as error:  # an interruption between two pieces
            errors.append(error)
            raise
        finally:
            wait_for(helpers, errors.append)
    if errors:
        raise errors[0]


_BEGINS_WITHIN = 1.0  # seconds: a thread that was asked to begin, if it ever will


class Helper(threading.Thread):
    """A thread that can be waited for again after an interruption.

    `Thread.join` cannot: in some versions of Python a thread counts as ended once waiting for it
    was interrupted.

    Parameters
    ----------
    task : callable
        What it does.
    name : str, optional
    """

    def __init__(self, task: Callable[[], None], name: str | None = None):
        super().__init__(name=name)
        self._task = task
        self._begun, self._ended = False, threading.Event()

    def start(self) -> None:
        """Begin the task."""
        self._begun = True
        try:
            super().start()
        except RuntimeError:  # there is no room for it
            self._begun = False
            raise

    def run(self) -> None:
        """Do the task."""
        try:
            self._task()
        finally:
            self._ended.set()

    def wait(self) -> None:
        """Wait until the task is done, if it was begun."""
        # an interruption in `start` does not tell whether the thread is about to begin, or never
        last = time.monotonic() + _BEGINS_WITHIN
        while self._begun and self.ident is None and time.monotonic() < last:
            time.sleep(_BEGINS_WITHIN / 1000)
        if self.ident is not None:
            self._ended.wait()
            self.join()


def wait_for(helpers: Iterable[Helper], stop: Callable[[BaseException], Any]) -> None:
    """Wait for all helpers; after an interruption tell them to stop, and wait again.

    A second interruption no longer waits.

    Parameters
    ----------
    helpers : iterable of Helper
    stop : callable
        Gets the interruption, and sees to it that the helpers end soon.
    """
    helpers = list(helpers)
    try:
        for helper in helpers:
            helper.wait()
    except BaseException as error:
        stop(error)
        for helper in helpers:
            helper.wait()
        raise


def start_thread(thread: threading.Thread) -> bool:
    """Start a thread, if that is possible: at the end of the interpreter's life it is not."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True
