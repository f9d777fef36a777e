"""Model files of earlier code open, and answer as they did."""

import numpy as np
import pytest
from helpers import REPOSITORY

import latem

FOLDER = REPOSITORY / "tests" / "data" / "files"


@pytest.fixture(scope="module")
def expected():
    with np.load(FOLDER / "expected.npz") as found:
        return dict(found)


@pytest.mark.parametrize("name", ["latem_cv_tuned", "late_fusion", "latem_pruned_calibrated"])
def test_answers_are_what_they_were(name, expected, tmp_path):
    model = latem.load(FOLDER / f"{name}.safetensors")
    for classes in ("all", "unseen"):
        scores = model.decision_function(expected["X"], classes)
        np.testing.assert_allclose(scores, expected[f"{name}.{classes}"], rtol=1e-4, atol=1e-5)
    model.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    np.testing.assert_array_equal(
        again.decision_function(expected["X"], "all"), model.decision_function(expected["X"], "all")
    )


def test_what_has_another_name_now():
    tuned = latem.load(FOLDER / "latem_cv_tuned.safetensors")
    assert {"start_gamma", "start_lam"} <= set(tuned.best_params_)
    best = tuned.best_estimator_
    assert (best.start_gamma, best.start_lam) == (
        tuned.best_params_["start_gamma"],
        tuned.best_params_["start_lam"],
    )
    assert best.class_view_.balance is not None
    assert tuned.cv_results_["mean_test_score"].max() == tuned.best_score_


def test_what_the_model_knew_came_along():
    model = latem.load(FOLDER / "latem_pruned_calibrated.safetensors")
    assert model.encoder_ == {"name": "efficientnet-lite0"}
    assert model.temperature_ > 0
    assert len(model.maps_) < model.n_maps
