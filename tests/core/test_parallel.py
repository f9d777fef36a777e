"""Tasks in threads and in other processes: same results, data shared once."""

import gc
import operator
import os
import pickle
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest

from latem.core import parallel
from latem.core.parallel import run_tasks


def test_results_in_order():
    pieces = list(range(20))
    assert list(run_tasks(operator.add, pieces, shared=(100,))) == [p + 100 for p in pieces]
    assert sorted(run_tasks(operator.add, pieces, shared=(1,), in_order=False)) == [
        p + 1 for p in pieces
    ]


def test_threads_get_the_very_same_objects():
    data = np.zeros(2**18)
    assert set(run_tasks(lambda _, given: id(given), range(4), shared=(data,))) == {id(data)}


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_progress_is_told_before_every_result(backend):
    told = []
    with joblib.parallel_config(backend, n_jobs=2):
        for i, result in enumerate(
            run_tasks(operator.neg, [1, 2, 3], done=lambda: told.append(1)), start=1
        ):
            assert result == -i
            assert len(told) == i


def test_errors_come_through():
    with pytest.raises(ZeroDivisionError):
        list(run_tasks(operator.truediv, [1, 2], shared=(0,)))


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_nothing_is_said_of_results_that_nobody_wants_any_more(backend):
    """joblib warns of them, as of something that went wrong."""
    with warnings.catch_warnings(record=True) as told, joblib.parallel_config(backend, n_jobs=2):
        warnings.simplefilter("always")
        results = run_tasks(time.sleep, [0.02] * 20, n_threads=2)
        assert next(results) is None
        results.close()
        gc.collect()
    assert [str(one.message) for one in told] == []


def test_processes_map_what_is_shared(tmp_path, monkeypatch):
    """Every kind of array arrives as it was; folders are gone afterwards."""
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(600, 700))
    np.save(tmp_path / "features.npy", plain.astype(np.float32))
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    shared = ({"plain": plain, "turned": plain.T, "again": plain}, [mapped, mapped[100:]], "small")
    with parallel._written(shared) as path:
        written = sorted(one.name for one in Path(path).parent.iterdir())
        one, two, three = parallel._opened(path)
        assert np.array_equal(one["plain"], plain)
        assert np.array_equal(one["again"], plain)
        assert np.array_equal(one["turned"], plain.T)
        assert one["turned"].flags.f_contiguous
        assert np.array_equal(two[0], mapped)
        assert Path(two[0].filename) == Path(mapped.filename)  # the file itself, not a copy
        assert np.array_equal(two[1], mapped[100:])
        assert three == "small"
        assert not one["plain"].flags.writeable
    assert written == ["0.npy", "1.npy", "2.npy", "shared.pickle"]  # plain, turned, the rows
    assert [one.name for one in tmp_path.iterdir()] == ["features.npy"]


def test_nothing_large_is_pickled_per_task(monkeypatch):
    sizes = []
    real = parallel.delayed

    def watched(function):
        def call(*arguments):
            sizes.append(len(pickle.dumps(arguments[1:])))
            return real(function)(*arguments)

        return call

    monkeypatch.setattr(parallel, "delayed", watched)
    data = np.random.default_rng(0).normal(size=(1000, 1000))
    with joblib.parallel_config("loky", n_jobs=2):
        found = list(run_tasks(lambda place, rows: rows[place], range(4), shared=(data,)))
    assert np.array_equal(found, data[:4])
    assert max(sizes) < 4000


def test_a_worker_that_cannot_see_the_folder_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="A worker cannot see .* set JOBLIB_TEMP_FOLDER"):
        parallel._on_worker(operator.neg, 1, str(tmp_path / "elsewhere"))


def test_what_was_written_is_removed_after_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    with joblib.parallel_config("loky", n_jobs=2), pytest.raises(ZeroDivisionError):
        list(run_tasks(operator.truediv, [1, 2], shared=(0,)))
    assert [name for name in os.listdir(tmp_path) if name.startswith("latem")] == []
