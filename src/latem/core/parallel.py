"""Many tasks over the same data: in threads, or wherever joblib is told to run them.

Tasks run in threads over one copy of the data. Inside `joblib.parallel_config("dask")`, or "ray",
"loky" and every other backend, they run in other processes, on other machines too; no scheduler is
written here. Data that all tasks share is then written once to a folder and mapped into memory by
each worker, however many tasks it gets: nothing large is pickled per task. Arrays that already are
maps of a file are opened from that file.

The folder is `JOBLIB_TEMP_FOLDER` or the system's own; workers on other machines must see it, and
the files of mapped features, under the same path.
"""

from __future__ import annotations

import mmap
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from os import environ
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import SequentialBackend, ThreadingBackend, get_active_backend

from latem.core.threads import resolve_threads, single_threaded_blas

_LARGE = 2**20  # bytes; arrays from here on are mapped, not pickled
_N_OPEN = 4  # shared data that a worker keeps open


def run_tasks(
    task: Callable[..., Any],
    pieces: Iterable[Any],
    *,
    shared: tuple[Any, ...] = (),
    n_threads: int | None = None,
    in_order: bool = True,
    done: Callable[[], None] | None = None,
) -> Iterator[Any]:
    """Results of `task(piece, *shared)` for every piece, as they are done.

    Matrix products inside are single-threaded, here and on workers: results do not depend on where
    a task runs.

    Parameters
    ----------
    task : callable
        A function of a module, where tasks may leave the process.
    pieces : iterable
        Small; pickled for every task.
    shared : tuple
        What all tasks get; it must not be changed.
    n_threads : int or None
        Tasks at a time in this process, None means every core; elsewhere it is joblib that knows.
    in_order : bool
        Whether results come in the order of the pieces, or as soon as they are there.
    done : callable, optional
        Called before every result, for progress.
    """
    for result in _results(task, pieces, shared, n_threads, in_order=in_order):
        if done is not None:
            done()
        yield result


def _results(
    task: Callable[..., Any],
    pieces: Iterable[Any],
    shared: tuple[Any, ...],
    n_threads: int | None,
    *,
    in_order: bool,
) -> Iterator[Any]:
    way = "generator" if in_order else "generator_unordered"
    backend, _ = get_active_backend(prefer="threads")
    if isinstance(backend, ThreadingBackend | SequentialBackend):
        run = _Parallel(resolve_threads(n_threads), backend="threading", return_as=way)
        yield from run(delayed(_alone)(task, piece, shared) for piece in pieces)
        return
    if not backend.supports_return_generator:
        way = "list"
    with _written(shared) as path:
        run = _Parallel(prefer="threads", return_as=way)
        yield from run(delayed(_on_worker)(task, piece, path) for piece in pieces)


class _Parallel(Parallel):
    """joblib's, without its warning of results that nobody asked for.

    After an error nobody does, and the warning would be told before the error. (A filter of
    warnings belongs to all threads, and any of them may lift it.)
    """

    def _warn_exit_early(self) -> None:
        pass


def _alone(task: Callable[..., Any], piece: Any, shared: tuple[Any, ...]) -> Any:
    with single_threaded_blas():
        return task(piece, *shared)


def _on_worker(task: Callable[..., Any], piece: Any, path: str) -> Any:
    return _alone(task, piece, _opened(path))


# -- data that is written once and mapped by every worker ------------------------------------------


@contextmanager
def _written(shared: tuple[Any, ...]) -> Iterator[str]:
    """Path of a file that holds the data, while it is needed."""
    folder = Path(tempfile.mkdtemp(prefix="latem-shared-", dir=environ.get("JOBLIB_TEMP_FOLDER")))
    try:
        with open(folder / "shared.pickle", "wb") as file:
            _Writer(file, folder).dump(shared)
        yield str(folder / "shared.pickle")
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # workers keep what they have mapped


@lru_cache(maxsize=_N_OPEN)
def _opened(path: str) -> tuple[Any, ...]:
    """Shared data as a worker has it: arrays are read-only maps of files."""
    try:
        with open(path, "rb") as file:
            return _Reader(file).load()
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"A worker cannot see {str(error.filename)!r}: workers on other machines need the same "
            "folders as the process that trains; set JOBLIB_TEMP_FOLDER to one that all of them "
            "see."
        ) from None


class _Writer(pickle.Pickler):
    """Pickles data, but leaves large arrays to files of their own."""

    def __init__(self, file: BinaryIO, folder: Path):
        super().__init__(file, protocol=5)
        self._folder = folder
        self._written: dict[int, tuple[np.ndarray, str]] = {}  # holds arrays, so that ids stay

    def persistent_id(self, found: Any) -> tuple[Any, ...] | None:
        """What stands for an array: its file, or its place in one; None for all else."""
        if not isinstance(found, np.ndarray) or found.dtype.hasobject or found.nbytes < _LARGE:
            return None
        if isinstance(found, np.memmap) and isinstance(found.base, mmap.mmap) and found.filename:
            order = "C" if found.flags.c_contiguous else "F"
            return str(found.filename), found.dtype.str, found.shape, found.offset, order
        if id(found) not in self._written:
            path = self._folder / f"{len(self._written)}.npy"
            np.save(path, found)
            self._written[id(found)] = found, str(path)
        return (self._written[id(found)][1],)


class _Reader(pickle.Unpickler):
    """Reads what `_Writer` has written, in a worker of the same user."""

    def persistent_load(self, place: Any) -> np.ndarray:
        """An array of a file, mapped."""
        path, *rest = place
        if not rest:
            return np.asarray(np.load(path, mmap_mode="r"))
        dtype, shape, offset, order = rest
        return np.memmap(path, np.dtype(dtype), "r", offset, shape, order)
