"""Displays of confusions and of trainings."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from latem import (
    ESZSL,
    WSABIE,
    ConfusionDisplay,
    HeldOutSearch,
    LatEm,
    TrainingCurveDisplay,
    make_latent_world,
)


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_unseen=5, n_dimensions=8, noise=2.0, random_state=0)


@pytest.fixture
def ax():
    return Figure().subplots()


def test_confusions(ax):
    true, named = list("aaabb") + ["$x$ <b>"], list("abbab") + ["a"]
    display = ConfusionDisplay.from_predictions(true, named, n=2)
    assert display.plot(ax=ax, color="red") is display
    assert [bar.get_width() for bar in ax.patches] == [2, 1]
    assert ax.get_yticklabels()[0].get_text() == "a → b"
    assert [text.get_text() for text in ax.texts] == ["of 3", "of 1"]
    assert ax.get_yticklabels()[1].get_text() == r"\$x\$ <b> → a"
    ax.figure.canvas.draw()


def test_confusions_of_a_model(world, ax):
    model = ESZSL(world.embeddings["att"]).fit(*world.training())
    X, y = world.testing()
    found = ConfusionDisplay.from_estimator(model, X, y, "unseen", n=3).plot(ax=ax).confusions
    assert len(found) == 3
    named = model.predict(X, "unseen")
    worst = found.iloc[0]
    assert worst["count"] == ((y == worst["true"]) & (named == worst["named"])).sum()


def test_no_confusions_at_all(ax):
    display = ConfusionDisplay.from_predictions(["a", "b"], ["a", "b"]).plot(ax=ax)
    assert len(display.confusions) == len(ax.patches) == 0


def test_training_curve(world, ax):
    X, y = world.training(val=False)
    model = LatEm(world.embeddings["att"], n_maps=2, n_epochs=6, random_state=0)
    model.fit(X, y, validation=world.validation())
    display = TrainingCurveDisplay.from_estimator(model).plot(ax=ax)
    drawn = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    history = model.history_
    np.testing.assert_allclose(drawn["margin violated"], 100 * np.array(history["violation_rate"]))
    np.testing.assert_allclose(
        drawn["held-out classes right"], 100 * np.array(history["validation_score"])
    )
    (loss,) = display.loss_ax_.get_lines()
    np.testing.assert_allclose(loss.get_ydata(), history["mean_loss"])
    assert ("epoch that was kept" in drawn) == (model.best_epoch_ < 6)


def test_which_models_have_one(world, ax):
    X, y = world.training()
    table = world.embeddings["att"]
    wsabie = WSABIE(table, n_epochs=2, random_state=0).fit(X, y)
    assert len(TrainingCurveDisplay.from_estimator(wsabie).plot(ax=ax).history["mean_loss"]) == 2
    grid = {"n_epochs": [2]}
    search = HeldOutSearch(LatEm(table, n_maps=2, random_state=0), grid, cv=3).fit(X, y)
    assert len(TrainingCurveDisplay.from_estimator(search).history["mean_loss"]) == 2
    with pytest.raises(TypeError, match="ESZSL was not learned in epochs"):
        TrainingCurveDisplay.from_estimator(ESZSL(table).fit(X, y))
