"""SemanticOutputCodes against its formula."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

import latem
from latem import SemanticOutputCodes, make_latent_world


@parametrize_with_checks([SemanticOutputCodes(), SemanticOutputCodes(neighbour="cosine")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_images=8, random_state=0)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 999), st.sampled_from([0.1, 10.0]), st.integers(1, 4))
def test_scores_are_the_formula(seed, alpha, width):
    rng = np.random.default_rng(seed)
    X, S = rng.normal(size=(30, 5)), rng.normal(size=(4, width))
    y = np.arange(30) % 4
    centred, targets = X - X.mean(axis=0), S[y]
    W = np.linalg.solve(
        centred.T @ centred + alpha * np.eye(5), centred.T @ (targets - targets.mean(axis=0))
    )
    predicted = centred @ W + targets.mean(axis=0)
    settings = {"feature_scaling": None, "normalize_classes": False, "dtype": "float64"}
    model = SemanticOutputCodes((range(4), S), alpha=alpha, **settings).fit(X, y)
    distances = np.array([[np.sum((p - s) ** 2) for s in S] for p in predicted])
    np.testing.assert_allclose(model.decision_function(X, "all"), -distances, atol=1e-9)
    model.set_params(neighbour="cosine")
    cosines = [[p @ s / np.linalg.norm(p) / np.linalg.norm(s) for s in S] for p in predicted]
    np.testing.assert_allclose(model.decision_function(X, "all"), cosines, atol=1e-9)


@pytest.mark.parametrize("neighbour", ["euclidean", "cosine"])
def test_unseen_classes_files_and_permutations(world, neighbour, tmp_path):
    X, y = world.training()
    table = world.embeddings["att"]
    model = SemanticOutputCodes(table, neighbour=neighbour).fit(X, y)
    assert model.score(*world.testing()) > 0.95
    model.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    scores = model.decision_function(X, "all")
    np.testing.assert_array_equal(again.decision_function(X, "all"), scores)
    columns = np.random.default_rng(0).permutation(8)
    other = latem.ClassEmbeddings(table.names[::-1], table.vectors[::-1][:, columns])
    turned = SemanticOutputCodes(other, neighbour=neighbour).fit(X, y)
    np.testing.assert_allclose(turned.decision_function(X, list(table.names)), scores, atol=1e-4)


def test_bad_parameters(world):
    with pytest.raises(ValueError, match="'alpha' parameter of SemanticOutputCodes"):
        SemanticOutputCodes(world.embeddings["att"], alpha=0).fit(*world.training())
