"""Answers that would be nonsense are refused, and what is refused changes nothing."""

import copy
import os
import signal

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from latem import CCA, DAP, ESZSL, WSABIE, LateFusion, LatEm, SemanticOutputCodes, make_latent_world


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_images=8, random_state=0)


def problem(scale=1.0):
    rng = np.random.default_rng(0)
    return scale * rng.normal(size=(40, 6)), np.arange(40) % 5, (range(5), rng.normal(size=(5, 4)))


def test_balanced_eszsl_with_plain_class_vectors(world):
    """The table's own array is read-only, and stays as it is."""
    X, y = world.training()
    table = world.embeddings["att"]
    before = table.vectors.copy()
    model = ESZSL(table, balance_classes=True, normalize_classes=False, dtype="float64")
    model.set_params(feature_scaling="l2-centered").fit(X, y)
    np.testing.assert_allclose((model.decision_function(X, "all") ** 2).mean(axis=0), 1)
    np.testing.assert_array_equal(table.vectors, before)


def test_scores_that_are_not_finite_are_refused():
    X, y, table = problem()
    model = SemanticOutputCodes(table, feature_scaling=None).fit(X, y)
    huge = np.full((2, 6), 1e30)
    for ask in (model.predict, model.decision_function, lambda X: model.top_k(X, 2)):
        with pytest.raises(ValueError, match="scores that are not finite among rows 0 to 1"):
            ask(huge)
    with pytest.raises(ValueError, match="not finite"):
        model.predict_proba(huge)
    tiny = ESZSL(table, balance_classes=True, feature_scaling=None).fit(1e-30 * X, y)
    with pytest.raises(ValueError, match="not finite|too small"):
        tiny.predict(1e30 * X)


def test_a_table_of_huge_attributes_says_so():
    X, y, _ = problem()
    with pytest.raises(ValueError, match="too large for float32"):
        DAP((range(5), 1e200 * np.arange(20.0).reshape(5, 4))).fit(X, y)


@pytest.mark.parametrize("kind", [WSABIE, CCA, "fusion"])
def test_scores_do_not_depend_on_the_threads_of_the_matrix_library(kind):
    rng = np.random.default_rng(0)
    n_classes, width = 1560, 1200
    table = ([f"c{i:04d}" for i in range(n_classes)], rng.normal(size=(n_classes, width)))
    X, y = rng.normal(size=(60, 20)), np.array([f"c{i % 10:04d}" for i in range(60)])
    small = {"rank": 40, "n_epochs": 1, "random_state": 0}
    if kind == "fusion":
        model = LateFusion([("cca", CCA(table)), ("wsabie", WSABIE(table, **small))])
    else:
        model = kind(table, **(small if kind is WSABIE else {}))
    model.fit(X, y)
    scores = []
    for n in (1, 2):
        with threadpool_limits(n, user_api="blas"):
            scores.append(copy.deepcopy(model).decision_function(X, "all"))
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize("kind", ["zscore", "zmax"])
def test_half_precision_is_scaled_like_single(kind):
    from latem.models.scaling import FeatureScaler

    rng = np.random.default_rng(0)
    X = (100 + 0.4 * rng.normal(size=(500, 3))).astype(np.float16)
    half, single = (FeatureScaler.fit(part, kind) for part in (X, X.astype(np.float32)))
    np.testing.assert_allclose(half.scale, single.scale, rtol=1e-6)
    assert half.transform(X, np.float32).std() > 0.01


@pytest.mark.parametrize("model", [LatEm(n_epochs=2, random_state=0)])
def test_a_refused_partial_fit_changes_nothing(world, model):
    X, y = world.training()
    X_new, y_new = world.testing()
    model = model.set_params(class_embeddings=world.embeddings["att"]).fit(X, y)
    model.calibrate(X_new, y_new)
    before = model.temperature_, model.maps_.copy(), model.predict_proba(X_new[:3], "unseen")
    with pytest.raises(ValueError, match="are not among them"):
        model.partial_fit(X_new[:3], y_new[:3])
    assert model.temperature_ == before[0]
    np.testing.assert_array_equal(model.maps_, before[1])
    np.testing.assert_array_equal(model.predict_proba(X_new[:3], "unseen"), before[2])
    model.partial_fit(X[:5], y[:5])  # which changes scores
    assert not hasattr(model, "temperature_")


@pytest.mark.parametrize("params", [{"n_rivals": 2}, {"n_rivals": 99}, {"average": True}, {}])
def test_exact_ties_are_no_violations_without_a_margin(params):
    """All maps are zero: every score is 0, and no rival is above the true class."""
    rng = np.random.default_rng(0)
    for n_classes in (2, 3):
        X, y = rng.normal(size=(30, 4)), np.arange(30) % n_classes
        table = (range(n_classes), rng.normal(size=(n_classes, 3)))
        model = LatEm(table, margin=0.0, init_scale=0.0, n_epochs=2, random_state=0, **params)
        model.fit(X, y)
        assert model.history_["violation_rate"] == [0.0, 0.0]
        assert not model.maps_.any()


@pytest.mark.parametrize("params", [{}, {"n_rivals": 3, "average": True, "start": "eszsl"}])
def test_every_epoch_has_single_threaded_products(world, params, tmp_path):
    from threadpoolctl import threadpool_info

    found = []

    def look(info):
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
        found.extend(pool["num_threads"] for pool in pools if pool["threading_layer"] != "openmp")

    X, y = world.training()
    model = LatEm(world.embeddings["att"], n_epochs=2, **params)
    with threadpool_limits(2, user_api="blas"):
        model.fit(X, y, callback=look).fit(X, y, callback=look, checkpoint=tmp_path / "state")
    assert set(found) == {1}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that interrupt")
def test_interrupted_predictions_leave_no_limit_behind(world):
    from threadpoolctl import threadpool_info

    def blas_threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    X, y = world.training()
    model = ESZSL(world.embeddings["att"]).fit(X, y)
    model.predict(X[:1], "unseen")
    before = blas_threads()

    def interrupt(number, frame):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    rng = np.random.default_rng(os.getpid())
    n_interrupted = 0
    try:
        for _ in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 1e-3))
                for _ in range(100_000):
                    model.predict(X[:1], "unseen")
            except KeyboardInterrupt:
                n_interrupted += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, old)
    assert n_interrupted == 300
    model.predict(X[:1], "unseen")  # an interruption at the very end is mended by the next call
    assert blas_threads() == before
