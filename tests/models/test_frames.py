"""Scores under the names of the classes, of every model."""

import numpy as np
import pandas as pd
import pytest
from model_suite import EVERY, make
from sklearn.exceptions import NotFittedError

from latem import ClassEmbeddings, make_latent_world


@pytest.fixture(scope="module")
def problem():
    world = make_latent_world(n_poses=1, n_seen=12, n_images=6, random_state=0)
    table = world.embeddings["att"]
    shifted = table.vectors - table.vectors.min()  # no negative numbers: traits
    table = ClassEmbeddings(table.names, shifted, columns=[f"trait {i}" for i in range(8)])
    return world, table


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.filterwarnings("ignore::latem.UncalibratedWarning")
def test_frames_of_every_model(name, problem):
    world, table = problem
    X, y = world.training()
    X_new = world.testing()[0]
    X_new = pd.DataFrame(X_new, index=[f"image {i}" for i in range(len(X_new))])
    values = X_new.to_numpy()
    model = make(name, table)
    with pytest.raises(NotFittedError):
        model.scores_frame(X)
    model.fit(X, y)
    for classes in (None, "unseen", list(world.split().test[2:])):
        frame = model.scores_frame(X_new, classes)
        assert frame.columns.tolist() == model.candidate_names(classes).tolist()
        assert frame.columns.name == "class"
        assert frame.index.tolist() == X_new.index.tolist()
        np.testing.assert_array_equal(frame.to_numpy(), model.decision_function(values, classes))
        assert frame.idxmax(axis=1).tolist() == model.predict(values, classes).tolist()
        sure = model.scores_frame(values, classes, probabilities=True)
        np.testing.assert_array_equal(sure.to_numpy(), model.predict_proba(values, classes))
        assert sure.index.tolist() == list(range(len(values)))
    few = iter(world.split().test[:3])
    assert model.scores_frame(X_new, few).columns.tolist() == list(world.split().test[:3])


@pytest.mark.parametrize("name", ["LatEm", "ESZSL", "LateFusion"])
def test_two_seen_classes_have_a_column_each(name):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 4)), np.array(["a", "b"] * 10)
    table = ClassEmbeddings(["a", "b", "c"], rng.random(size=(3, 3)), columns=list("xyz"))
    model = make(name, table).fit(X, y)
    frame = model.scores_frame(X)
    assert frame.columns.tolist() == ["a", "b"]
    np.testing.assert_array_equal(frame.to_numpy(), model.decision_function(X, ["a", "b"]))
    np.testing.assert_allclose(frame["b"] - frame["a"], model.decision_function(X), atol=1e-12)
