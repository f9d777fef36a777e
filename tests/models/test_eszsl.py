"""ESZSL against its formula, and its grid against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

import latem
from latem import ESZSL, ESZSLCV, make_latent_world, mean_class_accuracy


@parametrize_with_checks([ESZSL(), ESZSLCV(random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_images=8, noise=0.5, random_state=0)


def plain(X, y, S, gamma, lam, labels):
    """The formula, word for word."""
    Y = np.zeros((len(X), len(S)))
    Y[np.arange(len(X)), y] = 1
    if labels == "±1":
        Y = 2 * Y - 1
    left = np.linalg.inv(X.T @ X + gamma * np.eye(X.shape[1]))
    right = np.linalg.inv(S.T @ S + lam * np.eye(S.shape[1]))
    return left @ X.T @ Y @ S @ right


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 999),
    st.sampled_from([0.01, 1.0, 100.0]),
    st.sampled_from([0.01, 1.0, 100.0]),
    st.sampled_from(["01", "±1"]),
)
def test_map_is_the_formula(seed, gamma, lam, labels):
    rng = np.random.default_rng(seed)
    X, S = rng.normal(size=(40, 6)), rng.normal(size=(5, 3))
    y = np.concatenate([np.arange(5), rng.integers(0, 5, 35)])
    model = ESZSL(
        (range(5), S), gamma=gamma, lam=lam, labels=labels,
        feature_scaling=None, normalize_classes=False, dtype="float64",
    ).fit(X, y)  # fmt: skip
    np.testing.assert_allclose(model.map_, plain(X, y, S, gamma, lam, labels), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.decision_function(X, "all"), X @ model.map_ @ S.T)


def test_centred_classes_are_a_table_centred_by_hand(world):
    X, y = world.training()
    table = world.embeddings["att"]
    middle = table.select(list(np.unique(y))).vectors.mean(axis=0)
    by_hand = latem.ClassEmbeddings(table.names, table.vectors - middle)
    models = [
        ESZSL(one, center_classes=centre, balance_classes=True, dtype="float64").fit(X, y)
        for one, centre in ((table, True), (by_hand, False))
    ]
    np.testing.assert_allclose(*(model.decision_function(X, "all") for model in models), atol=1e-9)
    assert not np.allclose(ESZSL(table, dtype="float64").fit(X, y).map_, models[0].map_)


def test_grid_is_brute_force(world):
    X, y = world.training()
    val = list(world.split().val)
    gammas, lams = [0.01, 1.0, 100.0], [0.1, 10.0]
    search = ESZSLCV(world.embeddings["att"], gammas=gammas, lams=lams, cv=val).fit(X, y)
    held = np.isin(y, val)
    for i, gamma in enumerate(gammas):
        for j, lam in enumerate(lams):
            model = ESZSL(world.embeddings["att"], gamma=gamma, lam=lam, dtype="float64")
            predicted = model.fit(X[~held], y[~held]).predict(X[held], val)
            assert search.cv_scores_[i, j] == mean_class_accuracy(y[held], predicted)
    best = np.argwhere(search.cv_scores_ == search.cv_scores_.max())[-1]
    assert (search.gamma_, search.lam_) == (gammas[best[0]], lams[best[1]])
    refit = ESZSL(world.embeddings["att"], gamma=search.gamma_, lam=search.lam_).fit(X, y)
    np.testing.assert_array_equal(search.map_, refit.map_)


def test_test_classes_choose_nothing(world):
    X, y = world.training()
    one = ESZSLCV(world.embeddings["att"], cv=4, random_state=0).fit(X, y)
    turned = world.embeddings["att"].to_frame()
    turned.loc[list(world.split().test)] *= -3.0
    two = ESZSLCV(turned, cv=4, random_state=0).fit(X, y)
    assert one.map_.tobytes() == two.map_.tobytes()
    assert one.score(*world.testing()) > 0.7


@pytest.mark.parametrize("model", [ESZSL(labels="±1"), ESZSLCV(cv=3, random_state=0)])
def test_saving_and_loading_changes_nothing(world, model, tmp_path):
    X, y = world.training()
    model.set_params(class_embeddings=world.embeddings["att"]).fit(X, y)
    model.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    assert type(again) is type(model)
    np.testing.assert_array_equal(
        again.decision_function(X, "unseen"), model.decision_function(X, "unseen")
    )


def test_consistent_permutations_change_no_score(world):
    X, y = world.training()
    table = world.embeddings["att"]
    columns = np.random.default_rng(0).permutation(8)
    other = latem.ClassEmbeddings(table.names[::-1], table.vectors[::-1][:, columns])
    scores = [ESZSL(t).fit(X, y).decision_function(X, list(table.names)) for t in (table, other)]
    np.testing.assert_allclose(*scores, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ESZSL(gamma=0), "'gamma' parameter of ESZSL"),
        (ESZSL(labels="01 "), "'labels' parameter of ESZSL"),
        (ESZSLCV(gammas=[]), "gammas of ESZSLCV must be numbers above zero"),
        (ESZSLCV(lams=[1, 0]), "lams of ESZSLCV must be numbers above zero"),
        (ESZSLCV(cv=["yeti", "class 01"]), r"cannot hold out \['yeti'\]"),
        (ESZSLCV(cv=["class 01"]), "at least 2 classes to hold out"),
    ],
)
def test_bad_input(world, model, message):
    with pytest.raises(ValueError, match=message):
        model.set_params(class_embeddings=world.embeddings["att"]).fit(*world.training())
