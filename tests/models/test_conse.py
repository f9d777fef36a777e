"""ConSE against its formula."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import latem
from latem import ConSE, make_latent_world


@parametrize_with_checks([ConSE()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 999), st.integers(1, 8), st.integers(2, 5))
def test_scores_are_the_formula(seed, n_top, n_classes):
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(n_classes + 2, 3))
    y = np.arange(30) % n_classes
    X = rng.normal(size=(30, 4)) + rng.normal(size=(n_classes, 4))[y]
    options = {"feature_scaling": None, "normalize_classes": False, "dtype": "float64"}
    model = ConSE((range(n_classes + 2), S), n_top=n_top, **options).fit(X, y)
    probabilities = LogisticRegression(max_iter=1000).fit(X, y).predict_proba(X)
    expected = []
    for p in probabilities:
        best = np.argsort(-p)[:n_top]
        mixed = sum(p[t] * S[t] for t in best) / sum(p[t] for t in best)
        expected.append([mixed @ s / np.linalg.norm(mixed) / np.linalg.norm(s) for s in S])
    np.testing.assert_allclose(model.decision_function(X, "all"), expected, atol=1e-6)


def test_unseen_classes_and_files(tmp_path):
    world = make_latent_world(n_poses=1, n_images=8, random_state=0)
    X, y = world.training()
    model = ConSE(world.embeddings["att"]).fit(X, y)
    assert model.score(*world.testing()) > 0.5
    model.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    scores = model.decision_function(X, "all")
    np.testing.assert_array_equal(again.decision_function(X, "all"), scores)
    table = world.embeddings["att"]
    columns = np.random.default_rng(0).permutation(8)
    other = latem.ClassEmbeddings(table.names[::-1], table.vectors[::-1][:, columns])
    turned = ConSE(other).fit(X, y)
    np.testing.assert_allclose(turned.decision_function(X, list(table.names)), scores, atol=1e-4)


def test_bad_parameters():
    with pytest.raises(ValueError, match="'n_top' parameter of ConSE"):
        ConSE(n_top=0).fit(np.eye(4), [0, 1, 0, 1])
