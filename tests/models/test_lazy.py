"""Dask arrays and frames of images: lazily, the answers that arrays in memory get."""

import pickle

import numpy as np
import pandas as pd
import pytest
from model_suite import EVERY, make, world_problem

import latem
from latem.models import lazy
from latem.models.lazy import is_lazy
from latem.models.probabilities import UncalibratedWarning

da = pytest.importorskip("dask.array")
METHODS = {
    "predict": {},
    "decision_function": {},
    "predict_proba": {},
    "top_k": {"k": 3},
}


@pytest.fixture(scope="module")
def problem():
    return world_problem()


@pytest.fixture(scope="module")
def model(problem):
    X, y, table, _ = problem
    return latem.ESZSL(table, dtype="float32").fit(X, y)


@pytest.mark.filterwarnings("ignore::latem.models.probabilities.UncalibratedWarning")
@pytest.mark.parametrize("name", EVERY)
def test_every_model_answers_blocks_as_it_answers_arrays(problem, name):
    X, y, table, new = problem
    model = make(name, table).fit(X, y)
    blocks = da.from_array(new, chunks=(len(new) // 3, new.shape[1]))
    for method, options in METHODS.items():
        ask = getattr(model, method)
        found = ask(blocks, classes="unseen", **options)
        assert is_lazy(found)
        wanted = ask(new, classes="unseen", **options)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        assert found.chunks[0] == blocks.chunks[0]
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(found.compute(), wanted, rtol=1e-9, atol=1e-12)
        else:
            np.testing.assert_array_equal(found.compute(), wanted)


def test_nothing_is_computed_before_it_is_asked_for(model, problem, monkeypatch):
    seen = []
    monkeypatch.setattr(lazy, "_ask", lambda images, question: seen.append(1) or question(images))
    X = da.from_array(problem[3], chunks=(7, -1))
    found = model.predict(X, "unseen")
    assert not seen
    found[:5].compute()
    assert len(seen) == 1  # and then the block of these rows alone


def test_scores_come_with_the_best_classes(model, problem):
    new = problem[3]
    names, scores = model.top_k(da.from_array(new, chunks=9), 4, "all", return_scores=True)
    wanted = model.top_k(new, 4, "all", return_scores=True)
    np.testing.assert_array_equal(names.compute(), wanted[0])
    np.testing.assert_allclose(scores.compute(), wanted[1], rtol=1e-5)


def test_two_seen_classes_have_one_column(problem):
    X, y, table, new = problem
    two = np.isin(y, np.unique(y)[:2])
    model = latem.ESZSL(table).fit(X[two], y[two])
    found = model.decision_function(da.from_array(new, chunks=10))
    assert found.ndim == 1
    np.testing.assert_allclose(found.compute(), model.decision_function(new), rtol=1e-6)


def test_frames_with_names_and_empty_partitions(problem):
    frames = pytest.importorskip("dask.dataframe")
    X, y, table, new = problem
    columns = [f"f{i}" for i in range(X.shape[1])]
    model = latem.ESZSL(table).fit(pd.DataFrame(X, columns=columns), y)
    frame = pd.DataFrame(new, columns=columns)
    blocks = frames.from_pandas(frame, npartitions=4)
    kept = blocks[blocks["f0"] > frame["f0"].iloc[: len(frame) // 4].max()]
    wanted = frame[frame["f0"] > frame["f0"].iloc[: len(frame) // 4].max()]
    assert len(wanted)
    assert not len(kept.partitions[0].compute())
    found = model.predict(kept, "unseen")
    assert is_lazy(found)
    assert np.isnan(found.shape[0])
    np.testing.assert_array_equal(found.compute(), model.predict(wanted, "unseen"))
    names, scores = model.top_k(blocks, 2, "unseen", return_scores=True)
    np.testing.assert_array_equal(names.compute(), model.top_k(frame, 2, "unseen"))
    assert scores.compute().shape == (len(frame), 2)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(blocks.rename(columns={"f0": "g0"}), "unseen")


def test_columns_in_several_blocks_and_lengths_unknown(model, problem):
    new = problem[3]
    X = da.from_array(new, chunks=(10, 5))
    np.testing.assert_array_equal(model.predict(X).compute(), model.predict(new))
    unknown = X[da.from_array(np.ones(len(new), bool), chunks=10)]
    assert np.isnan(unknown.shape[0])
    np.testing.assert_array_equal(model.predict(unknown).compute(), model.predict(new))


def test_what_is_wrong_is_told_at_once(model, problem):
    X = da.from_array(problem[3], chunks=10)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :5])
    with pytest.raises(ValueError, match="no rows for 'henn'"):
        model.predict(X, ["henn"])
    with pytest.raises(ValueError, match="k must be between"):
        model.top_k(X, 1000)
    with pytest.raises(ValueError, match="two dimensions, not 1"):
        model.predict(X[:, 0])
    with pytest.warns(UncalibratedWarning):
        model.predict_proba(X)


def test_a_model_is_in_the_graph_once(model, problem):
    """However many blocks there are, the graph has one copy of it."""
    one = len(pickle.dumps(model))
    rows = da.zeros((1000, problem[0].shape[1]), chunks=(5, -1))
    graph = dict(model.predict(rows, "unseen").__dask_graph__())
    holding = [key for key, task in graph.items() if len(pickle.dumps(task)) > one // 2]
    assert len(graph) > 200
    assert len(holding) == 1


def test_a_cluster(model, problem):
    distributed = pytest.importorskip("distributed")
    new = problem[3]
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        found = model.top_k(da.from_array(new, chunks=6), 3, "all").compute()
    np.testing.assert_array_equal(found, model.top_k(new, 3, "all"))
