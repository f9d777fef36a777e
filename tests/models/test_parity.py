"""The estimator's own training loop against the authors' code and against plain NumPy."""

import numpy as np
import pytest
import reference
from helpers import FORMS, GOLDEN, ScriptedLatEm, random_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from latem import confusion_matrix, mean_class_accuracy, per_class_accuracy
from latem.models.sgd import pairs


@pytest.fixture(scope="module")
def golden():
    with np.load(GOLDEN) as file:
        return dict(file)


def scripted(Y, maps, visits, form, **params):
    settings = {"feature_scaling": None, "normalize_classes": False, "dtype": "float64", **params}
    model = ScriptedLatEm((range(len(Y)), Y), n_maps=len(maps), n_epochs=len(visits), **settings)
    return model.script(maps, visits, form)


def fit_golden(golden, form):
    visits = list(zip(golden["perm"], golden["negatives"], strict=True))
    step = float(golden["eta"])
    model = scripted(golden["S"], golden["W0"], visits, form, learning_rate=step)
    return model.fit(golden["X"], golden["y"])


@pytest.mark.parametrize("form", FORMS)
def test_training_reproduces_the_authors_release(golden, form):
    model = fit_golden(golden, form)
    np.testing.assert_allclose(model.maps_, golden["W_final"], rtol=0, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("length", [1, 2, 7, 59, 60, 61])
def test_golden_whatever_the_block_length(golden, form, length, monkeypatch):
    monkeypatch.setattr(pairs, "pair_length", lambda *_: length)
    model = fit_golden(golden, form)
    np.testing.assert_allclose(model.maps_, golden["W_final"], rtol=0, atol=1e-10)


def test_prediction_reproduces_the_authors_release(golden):
    model = fit_golden(golden, "class")
    y, predicted = golden["y_test"], model.predict(golden["X_test"])
    np.testing.assert_array_equal(confusion_matrix(y, predicted), golden["confusion"])
    np.testing.assert_allclose(per_class_accuracy(y, predicted), golden["per_class_acc"])
    assert mean_class_accuracy(y, predicted) == pytest.approx(float(golden["mean_class_acc"]))


problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**16),
        "n": st.integers(8, 70),
        "d": st.integers(1, 9),
        "c": st.integers(2, 8),
        "e": st.integers(1, 7),
        "k": st.integers(1, 9),
        "epochs": st.integers(1, 6),
    }
)


@settings(deadline=None, max_examples=60)
@given(problems, st.sampled_from(sorted(FORMS)), st.integers(1, 80), st.sampled_from([0.01, 0.5]))
def test_training_equals_plain_algorithm_1(size, form, length, step):
    p = random_problem(**size)
    expected, _ = reference.train(p["X"], p["y"], p["Y"], p["W"], p["visits"], step, 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "pair_length", lambda *_: length)
        model = scripted(p["Y"], p["W"], p["visits"], form, learning_rate=step)
        model.fit(p["X"], p["y"])
    np.testing.assert_allclose(model.maps_, expected, rtol=1e-9, atol=1e-9)


@settings(deadline=None, max_examples=30)
@given(problems, st.sampled_from(sorted(FORMS)), st.floats(0.01, 0.6))
def test_pruning_equals_the_plain_version(size, form, prune_below):
    p = random_problem(**size)
    pruning = {"prune_below": prune_below, "prune_every": 2}
    expected, kept = reference.train(
        p["X"], p["y"], p["Y"], p["W"], p["visits"], 0.1, 1.0, **pruning
    )
    model = scripted(p["Y"], p["W"], p["visits"], form, learning_rate=0.1, **pruning)
    model.fit(p["X"], p["y"])
    assert model.history_["n_maps"] == kept
    np.testing.assert_allclose(model.maps_, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_ties_go_to_the_first_map_and_the_first_class(form):
    p = random_problem(0, k=3)
    maps = np.repeat(p["W"][:1], 3, axis=0)  # three equal maps: every score is a tie
    expected, _ = reference.train(p["X"], p["y"], p["Y"], maps, p["visits"][:1], 0.1, 1.0)
    model = scripted(p["Y"], maps, p["visits"][:1], form, learning_rate=0.1)
    model.fit(p["X"], p["y"])
    np.testing.assert_allclose(model.maps_, expected, atol=1e-12)
    zero = np.zeros((4, p["X"].shape[1]))
    assert model.predict(zero).tolist() == [0] * 4
    assert model.latent_map(zero).tolist() == [0] * 4


@pytest.mark.parametrize("form", FORMS)
def test_recorded_loss_violations_and_usage(form):
    p = random_problem(3, n=50, epochs=1)
    visits, violations = np.zeros(3, int), np.zeros(3, int)
    order, rivals = p["visits"][0]
    count, loss = reference.sgd_epoch(
        p["X"], p["y"], p["Y"], p["W"].copy(), order, rivals, 0.1, 1.0, visits, violations
    )
    model = scripted(p["Y"], p["W"], p["visits"], form, learning_rate=0.1).fit(p["X"], p["y"])
    assert model.history_["violation_rate"] == [count / 50]
    assert model.history_["mean_loss"] == pytest.approx([loss / 50])
    assert model.history_["map_usage"] == [(visits / 50).tolist()]
    assert model.map_visits_.tolist() == visits.tolist()
    assert model.map_violations_.tolist() == violations.tolist()


@pytest.mark.parametrize("form", FORMS)
def test_float32_follows_float64(form):
    p = random_problem(1, n=60, epochs=2)
    models = [
        scripted(p["Y"], p["W"], p["visits"], form, learning_rate=0.1, dtype=dtype).fit(
            p["X"], p["y"]
        )
        for dtype in ("float32", "float64")
    ]
    assert models[0].maps_.dtype == np.float32
    np.testing.assert_allclose(models[0].maps_, models[1].maps_, atol=1e-4)


def test_golden_scaling(golden):
    """The release's scaling, but for its slip of setting the first deviation to one."""
    from latem.models.scaling import FeatureScaler

    scaler = FeatureScaler.fit(golden["norm_in"], "zscore")
    np.testing.assert_allclose(scaler.shift, golden["norm_mean"][0], atol=1e-12)
    np.testing.assert_allclose(1 / scaler.scale[1:], golden["norm_std"][0, 1:], atol=1e-12)
    z = (golden["norm_in"] - golden["norm_mean"]) / golden["norm_std"]
    np.testing.assert_allclose(z / golden["norm_max"], golden["norm_out"], atol=1e-12)
    zmax = FeatureScaler.fit(golden["norm_in"][:, 1:], "zmax").transform(golden["norm_in"][:, 1:])
    assert zmax.max() == pytest.approx(1.0)
