"""Displays of trust: numbers by hand, drawn where they should be."""

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from latem import (
    ESZSL,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    SeenUnseenDisplay,
    make_latent_world,
)
from latem.datasets import hold_out
from latem.metrics import generalized_accuracy, risk_coverage_curve
from latem.metrics.calibration import probabilities_of


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_unseen=5, n_dimensions=8, noise=1.5, random_state=0)


@pytest.fixture(scope="module")
def model(world):
    return ESZSL(world.embeddings["att"]).fit(*world.training())


@pytest.fixture
def ax():
    return Figure().subplots()


def lines(ax):
    return {line.get_label(): np.array(line.get_data()) for line in ax.get_lines()}


def test_reliability_before_and_after(world, model, ax):
    X, y = world.testing()
    names = world.split().test
    plain = ReliabilityDisplay.from_estimator(model, X, y, names)
    assert (plain.after, plain.temperature) == (None, None)
    model.temperature_ = 0.005
    display = ReliabilityDisplay.from_estimator(model, X, y, names, n_bins=5)
    del model.temperature_
    scores = model.decision_function(X, names)
    p = probabilities_of(scores, 0.005)
    right = np.array(names)[scores.argmax(axis=1)] == y
    confidence = p.max(axis=1)
    last = confidence > 0.8
    assert display.after.accuracy[-1] == pytest.approx(right[last].mean())
    assert display.after.confidence[-1] == pytest.approx(confidence[last].mean())
    assert display.after.counts.sum() == len(y)
    assert display.plot(ax=ax) is display
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    drawn = lines(ax)
    label = f"T = 0.005, error {display.after.error:.1%}"
    np.testing.assert_allclose(drawn[label], [display.after.confidence, display.after.accuracy])
    assert f"before, error {display.before.error:.1%}" in drawn
    plain.plot(ax=Figure().subplots(), linewidth=5)
    assert {line.get_linewidth() for line in plain.ax_.get_lines()[1:]} == {5}


def test_seen_and_unseen(world, model, ax):
    split = hold_out(world, world.split())
    rows = np.concatenate([split.held_out, world.rows(split.test)])
    X, y = world.features[rows], world.labels[rows]
    display = SeenUnseenDisplay.from_estimator(model, X, y, gamma=0.1).plot(ax=ax)
    names = model.candidate_names("all")
    measured = (model.decision_function(X, "all"), y, names, model.classes_)
    assert display.plain == generalized_accuracy(*measured)
    assert display.stacked == generalized_accuracy(*measured, 0.1)
    drawn = lines(ax)
    np.testing.assert_array_equal(
        drawn[f"γ = 0.1, H {display.stacked.harmonic:.1%}"].ravel(),
        [display.stacked.unseen, display.stacked.seen],
    )
    np.testing.assert_array_equal(
        drawn[f"every γ, area {display.curve.area:.1%}"], [display.curve.unseen, display.curve.seen]
    )
    bare = SeenUnseenDisplay.from_predictions(y, measured[0], names, seen=model.classes_).plot(
        ax=Figure().subplots()
    )
    assert bare.stacked is None
    assert len(lines(bare.ax_)) == 2


def test_risk_and_coverage(world, model, ax):
    X, y = world.testing()
    names = world.split().test
    display = RiskCoverageDisplay.from_estimator(model, X, y, names).plot(ax=ax)
    scores = model.decision_function(X, names)
    right = np.array(names)[scores.argmax(axis=1)] == y
    assert display.curve == risk_coverage_curve(probabilities_of(scores).max(axis=1), right)
    drawn = lines(ax)[f"mean {display.curve.area:.1%}"]
    np.testing.assert_allclose(drawn, [100 * display.curve.coverage, 100 * display.curve.risk])


def test_new_axes(world, model):
    from matplotlib import pyplot as plt

    display = RiskCoverageDisplay.from_estimator(model, *world.testing(), "unseen").plot()
    assert display.figure_.number in plt.get_fignums()
    plt.close(display.figure_)


@pytest.mark.parametrize("kind", [ReliabilityDisplay, RiskCoverageDisplay])
def test_mistakes(kind):
    with pytest.raises(ValueError, match=r"\(1, 2\), but have shape \(1, 3\)"):
        kind.from_predictions(["a"], [[1.0, 2.0, 3.0]], ["a", "b"])
    with pytest.raises(ValueError, match="not among the candidate classes"):
        kind.from_predictions(["c"], [[1.0, 2.0]], ["a", "b"])


def test_without_matplotlib(monkeypatch):
    display = RiskCoverageDisplay.from_predictions(["a"], [[1.0, 0.0]], ["a", "b"])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        display.plot()
