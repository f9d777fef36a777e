"""EXEM against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils.estimator_checks import parametrize_with_checks

import latem
from latem import EXEM, FileFormatError, make_latent_world
from latem.core import storage


@parametrize_with_checks(
    [
        EXEM(),
        EXEM(neighbour="1NN", n_components=2),
        EXEM(neighbour="whitened", center_classes=True),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_images=8, noise=0.5, random_state=0)


def problem(seed, n_classes=6, width=3):
    """Images with unequal numbers per class, two at least."""
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(n_classes + 2, width)) + 1
    y = np.concatenate([np.arange(n_classes).repeat(2), rng.integers(0, n_classes, 30)])
    X = rng.normal(size=(len(y), 5)) + rng.normal(size=(n_classes, 5))[y] + 2
    return X, y, S


def plain(X, y, S, gamma, alpha, neighbour, n_components):
    """Scores and exemplars, class by class and dimension by dimension."""
    n_seen = y.max() + 1
    X = np.array([x / np.linalg.norm(x) for x in X])
    S = np.array([s / np.linalg.norm(s) for s in S])
    pairs = [np.linalg.norm(S[a] - S[b]) for a in range(n_seen) for b in range(a)]
    S = S / np.median(pairs)
    X = X - X.mean(axis=0)
    Z = X @ np.linalg.svd(X)[2][:n_components].T
    exemplars, spread = np.zeros((len(S), Z.shape[1])), np.zeros(Z.shape[1])
    for j in range(Z.shape[1]):
        means = np.array([Z[y == c, j].mean() for c in range(n_seen)])
        ridge = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma)
        ridge.fit(S[:n_seen], means - means.mean())
        exemplars[:, j] = ridge.predict(S) + means.mean()
        spread[j] = np.mean([Z[y == c, j].std() for c in range(n_seen)])
    D = np.diag(1 / spread**2) if neighbour == "1NNs" else np.eye(len(spread))
    return [[2 * z @ D @ v - v @ D @ v for v in exemplars] for z in Z], exemplars


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 999),
    st.sampled_from([2**-4, 1.0, 2**4]),
    st.sampled_from([0.01, 1.0]),
    st.sampled_from(["1NN", "1NNs"]),
    st.sampled_from([1, 3, 500]),
    st.sampled_from([2, 3, 9]),
)
def test_scores_are_the_definition(seed, gamma, alpha, neighbour, n_components, width):
    X, y, S = problem(seed, width=width)
    options = {"gamma": gamma, "alpha": alpha, "neighbour": neighbour}
    model = EXEM((range(8), S), n_components=n_components, dtype="float64", **options).fit(X, y)
    scores, exemplars = plain(X, y, S, n_components=n_components, **options)
    np.testing.assert_allclose(model.decision_function(X, "all"), scores, rtol=1e-6, atol=1e-6)
    found = model.exemplars().vectors
    signs = np.sign(np.sum(found * exemplars, axis=0))  # an axis has no direction of its own
    np.testing.assert_allclose(found * signs, exemplars, atol=1e-6)


def test_nearest_exemplar_is_the_answer(world):
    X, y = world.training()
    model = EXEM(world.embeddings["att"], neighbour="1NN", dtype="float64").fit(X, y)
    images = model.scaler_.transform(X, np.float64) - model.image_mean_
    table = model.exemplars("unseen")
    distances = [[np.linalg.norm(z - v) for v in table.vectors] for z in images @ model.components_]
    np.testing.assert_array_equal(
        model.predict(X, "unseen"), table.names[np.argmin(distances, axis=1)]
    )


def test_exemplars_describe_classes_for_other_models(world):
    X, y = world.training()
    model = EXEM(world.embeddings["att"]).fit(X, y)
    table = model.exemplars()
    assert table.names.tolist() == world.embeddings["att"].names.tolist()
    assert table.name == "att_exemplars"
    assert table.n_dimensions == model.components_.shape[1]
    assert latem.ESZSL(table).fit(X, y).score(*world.testing()) > 0.7
    new = {"new": world.embeddings["att"].vectors[3]}
    np.testing.assert_allclose(
        model.exemplars(new).vectors[0], table.vectors[3], rtol=1e-5, atol=1e-6
    )


def test_without_spread_within_classes_all_neighbours_agree():
    X = np.array([[1.0, 0], [0, 1.0], [1.0, 1.0]])
    kinds = ("1NN", "1NNs", "whitened")
    scores = [EXEM(neighbour=one).fit(X, [0, 1, 2]).decision_function(X) for one in kinds]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_allclose(scores[0], scores[2], atol=1e-6)
    assert (scores[0].argmax(axis=1) == [0, 1, 2]).all()


@pytest.mark.parametrize("neighbour", ["1NN", "1NNs", "whitened"])
def test_images_that_are_all_alike_are_no_trouble(neighbour):
    model = EXEM(neighbour=neighbour).fit(np.ones((6, 3)), [0, 1, 0, 1, 0, 1])
    np.testing.assert_array_equal(model.decision_function(np.ones((2, 3)), [0, 1]), 0)


@pytest.mark.parametrize("neighbour", ["1NN", "1NNs", "whitened"])
def test_a_world_and_its_file(world, neighbour, tmp_path):
    X, y = world.training()
    model = EXEM(world.embeddings["att"], neighbour=neighbour).fit(X, y)
    assert model.score(*world.testing()) > 0.7
    model.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    np.testing.assert_array_equal(
        again.decision_function(X, "all"), model.decision_function(X, "all")
    )
    np.testing.assert_array_equal(again.exemplars().vectors, model.exemplars().vectors)


def test_centred_classes_are_a_table_centred_by_hand(world):
    X, y = world.training()
    table = world.embeddings["att"]
    middle = table.select(list(np.unique(y))).vectors.mean(axis=0)
    by_hand = latem.ClassEmbeddings(table.names, table.vectors - middle)
    scores = [
        EXEM(one, center_classes=centre, dtype="float64").fit(X, y).decision_function(X, "all")
        for one, centre in ((table, True), (by_hand, False))
    ]
    np.testing.assert_allclose(*scores, atol=1e-8 * np.abs(scores[0]).max())
    plain = EXEM(table, dtype="float64").fit(X, y).decision_function(X, "all")
    assert not np.allclose(scores[0], plain)


def test_parameters_that_change_after_a_fit_change_no_exemplar(world):
    X, y = world.training()
    model = EXEM(world.embeddings["att"]).fit(X, y)
    before = model.decision_function(X, "all")
    model.set_params(gamma=4.0)
    np.testing.assert_array_equal(model.decision_function(X, "all"), before)
    model.set_params(neighbour="1NN")
    assert not np.array_equal(model.decision_function(X, "all"), before)


def test_parameters_are_chosen_on_held_out_classes(world):
    search = latem.HeldOutSearch(EXEM(world.embeddings["att"]), cv=list(world.split().val))
    search.fit(*world.training())
    assert set(search.best_params_) == {"gamma", "alpha"}
    assert search.score(*world.testing()) > 0.7


@pytest.mark.parametrize(
    ("tensor", "change"),
    [
        ("components", lambda t: t[:, :-1]),
        ("image_mean", lambda t: t[:-1]),
        ("coef", lambda t: t * np.nan),
        ("offset", lambda t: t[:, None]),
        ("spreads", lambda t: t.astype("float64")),
        ("spreads", lambda t: 0 * t),
        ("rate", None),
    ],
)
def test_damaged_files(tensor, change, tmp_path):
    X, y, S = problem(0)
    tensors, meta = EXEM((range(8), S)).fit(X, y).pack()
    if tensor == "rate":
        meta["record"]["rate"] = -1.0
        tensor = "a rate"
    else:
        tensors[tensor] = np.ascontiguousarray(change(tensors[tensor]))
    storage.write_file(tmp_path / "m", "model", tensors, meta)
    with pytest.raises(FileFormatError, match=f"damaged: {tensor}"):
        latem.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("name", "value"), [("gamma", 0), ("alpha", 0), ("neighbour", "2NN"), ("n_components", 0)]
)
def test_bad_parameters(name, value):
    X, y, _ = problem(0)
    with pytest.raises(ValueError, match=f"'{name}' parameter of EXEM"):
        EXEM(**{name: value}).fit(X, y)
