"""What is chosen on held-out classes before a model answers."""

import numpy as np
import pytest

from latem import ESZSL, LatEm, calibrate_answers, evaluate, make_latent_world
from latem.datasets import hold_out
from latem.metrics.calibration import class_codes, fit_temperature
from latem.metrics.generalized import best_gamma
from latem.selection.calibration import HeldOutTwin


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_seen=24, n_unseen=6, n_images=10, random_state=0)


@pytest.fixture(scope="module")
def fitted(world):
    return ESZSL(world.embeddings["att"]).fit(*world.training())


def test_by_hand_on_val_classes(world, fitted):
    X, y = world.training()
    val = np.array(world.split().val)
    report = calibrate_answers(fitted, X, y, cv=val)
    out = np.isin(y, val)
    rng, aside = np.random.default_rng(0), np.zeros(len(y), bool)
    rest = np.flatnonzero(~out)
    for name in np.unique(y[~out]):
        own = rest[y[rest] == name]
        aside[rng.permutation(own)[: max(round(0.2 * len(own)), 1)]] = True
    twin = ESZSL(world.embeddings["att"]).fit(X[~out & ~aside], y[~out & ~aside])
    held = np.unique(y[out])
    scores = twin.decision_function(X[out], held)
    temperature = fit_temperature(scores, class_codes(y[out], held))
    assert fitted.temperature_ == pytest.approx(temperature, rel=1e-6)
    both = np.concatenate([twin.classes_, held])
    images = np.concatenate([np.flatnonzero(aside), np.flatnonzero(out)])
    gamma = best_gamma(twin.decision_function(X[images], both), y[images], both, twin.classes_)
    assert fitted.seen_penalty_ == pytest.approx(gamma, rel=1e-5)
    assert report.penalised.harmonic >= report.plain.harmonic
    assert report.probabilities.log_loss_after < report.probabilities.log_loss_before
    assert report.probabilities.n_images == out.sum()
    shares = [report.coverage(4, rate) for rate in (0.05, 0.1, 0.5)]
    assert shares == sorted(shares)


def test_folds_use_every_class_once(world, fitted):
    X, y = world.training()
    report = calibrate_answers(fitted, X, y, cv=4)
    assert report.probabilities.n_images == len(y)
    assert report.probabilities.n_classes == len(np.unique(y))
    again = ESZSL(world.embeddings["att"]).fit(X, y)
    calibrate_answers(again, X, y, cv=4)
    assert again.temperature_ == fitted.temperature_
    assert again.seen_penalty_ == fitted.seen_penalty_
    assert again.acceptance_.facts() == fitted.acceptance_.facts()


def test_evaluate_chooses_the_same(world):
    split = hold_out(world, world.split())
    model = ESZSL(world.embeddings["att"])
    result = evaluate(model, world, split, generalized=True, calibrate=True)
    from dataclasses import replace

    held = replace(world, splits={"standard": split})
    X, y = held.training()
    calibrate_answers(model, X, y, cv=split.val)
    assert result.generalized.gamma == pytest.approx(model.seen_penalty_)
    assert result.probabilities.val.temperature == pytest.approx(model.temperature_)


def test_the_twin_never_sees_held_out_classes(world, fitted):
    X, y = world.training()
    out = np.isin(y, world.split().val)
    twin = HeldOutTwin(fitted, X, y, out, share=0.2, seed=0)
    assert not set(twin.seen.tolist()) & set(world.split().val)
    assert set(twin.others) == set(world.split().test)
    assert twin.model.training_digest_ is None
    assert len(twin.y_aside) == twin.aside.sum()


def test_one_image_of_each_class(world, fitted):
    """Nothing can be set aside then: no penalty, but all the rest."""
    X, y = world.training()
    first = np.unique(y, return_index=True)[1]
    model = ESZSL(world.embeddings["att"]).fit(X[first], y[first])
    calibrate_answers(model, X[first], y[first], cv=3)
    assert model.seen_penalty_ == 0
    assert np.isfinite(model.strangeness(world.testing()[0], "unseen")).all()


def test_a_model_without_a_seed_is_calibrated_the_same_way_every_time(world):
    X, y = world.training()
    model = LatEm(world.embeddings["att"], n_epochs=2).fit(X, y)
    found = [calibrate_answers(model, X, y, cv=3).probabilities for _ in range(2)]
    assert found[0] == found[1]


def test_bad_requests(world, fitted):
    X, y = world.training()
    with pytest.raises(ValueError, match="share must lie between 0 and 1"):
        calibrate_answers(fitted, X, y, share=0)
    with pytest.raises(ValueError, match="false_accept_rate must be a share"):
        calibrate_answers(fitted, X, y, false_accept_rate=1)
    with pytest.raises(ValueError, match="needs at least 2 classes to hold out"):
        calibrate_answers(fitted, X, y, cv=world.split().val[:1])
    with pytest.raises(TypeError, match="calibrate_answers takes a model of latem"):
        calibrate_answers("model", X, y)
