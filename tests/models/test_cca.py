"""CCA against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg
from scipy.optimize import minimize
from sklearn.utils.estimator_checks import parametrize_with_checks

import latem
from latem import CCA, ClassEmbeddings, FileFormatError, make_latent_world
from latem.core import storage

EXACT = {"feature_scaling": None, "normalize_classes": False, "dtype": "float64"}


@parametrize_with_checks([CCA(), CCA(n_components=2, power=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_images=8, noise=0.5, random_state=0)


def problem(seed, n_classes=5, width=3):
    """Images with unequal numbers per class."""
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(n_classes + 2, width)) + 1
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 35) ** 2 % n_classes])
    X = rng.normal(size=(len(y), 4)) + rng.normal(size=(n_classes, 4))[y] + 2
    return X, y, S


def covariances(X, Y, reg_x, reg_y):
    """Sums over images, one at a time."""
    n, mean_x, mean_y = len(X), X.mean(axis=0), Y.mean(axis=0)
    xx, yy, xy = 0.0, 0.0, 0.0
    for x, target in zip(X - mean_x, Y - mean_y, strict=True):
        xx, yy, xy = xx + np.outer(x, x), yy + np.outer(target, target), xy + np.outer(x, target)
    xx, yy, xy = xx / n, yy / n, xy / n
    xx += reg_x * np.mean(np.diag(xx)) * np.eye(len(xx))
    yy += reg_y * np.mean(np.diag(yy)) * np.eye(len(yy))
    return xx, yy, xy


def plain_scores(X, y, S, reg_x, reg_y, power, n_components):
    """CCA as a generalised eigenproblem, without a whitening."""
    xx, yy, xy = covariances(X, S[y], reg_x, reg_y)
    zero = np.zeros_like(xy)
    both = np.block([[zero @ zero.T, xy], [xy.T, zero.T @ zero]])
    values, vectors = linalg.eigh(both, linalg.block_diag(xx, yy))
    scores = np.zeros((len(X), len(S)))
    keep = [i for i in np.argsort(-values)[:n_components] if values[i] > 1e-7]
    A, B = (np.array([part[:, i] * values[i] ** power for i in keep])
            for part in (vectors[: len(xx)], vectors[len(xx) :]))  # fmt: skip
    for i, x in enumerate(X):
        for k, s in enumerate(S):
            p, q = A @ (x - X.mean(axis=0)), B @ (s - S[y].mean(axis=0))
            scores[i, k] = p @ q / np.linalg.norm(p) / np.linalg.norm(q)
    return values[keep], scores


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 999),
    st.sampled_from([0.01, 0.5, 5.0]),
    st.sampled_from([0.01, 0.5, 5.0]),
    st.sampled_from([0, 1, 4]),
    st.sampled_from([1, 2, None]),
    st.sampled_from([2, 3, 9]),
)
def test_scores_are_the_definition(seed, reg_x, reg_y, power, n_components, width):
    X, y, S = problem(seed, width=width)  # width 9: more dimensions than classes
    options = {"reg_x": reg_x, "reg_y": reg_y, "power": power, "n_components": n_components}
    model = CCA((range(7), S), **options, **EXACT).fit(X, y)
    correlations, scores = plain_scores(X, y, S, reg_x, reg_y, power, n_components)
    np.testing.assert_allclose(model.correlations_, correlations, atol=1e-9)
    np.testing.assert_allclose(model.decision_function(X, "all"), scores, atol=1e-6)


def test_no_direction_correlates_more():
    X, y, S = problem(0)
    model = CCA((range(7), S), reg_x=0.2, reg_y=0.1, power=0, **EXACT).fit(X, y)
    xx, yy, xy = covariances(X, S[y], 0.2, 0.1)

    def correlation(w):
        a, b = w[:4], w[4:]
        return -(a @ xy @ b) / np.sqrt((a @ xx @ a) * (b @ yy @ b))

    rng = np.random.default_rng(0)
    best = min(minimize(correlation, rng.normal(size=7)).fun for _ in range(5))
    assert model.correlations_[0] == pytest.approx(-best, abs=1e-6)
    np.testing.assert_allclose(model.image_map_.T @ xx @ model.image_map_, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(model.class_map_.T @ yy @ model.class_map_, np.eye(3), atol=1e-9)


def test_a_world_without_noise_is_named_without_an_error():
    world = make_latent_world(n_poses=1, n_images=4, noise=0, random_state=0)
    model = CCA(world.embeddings["att"], reg_x=1e-6, reg_y=1e-6).fit(*world.training())
    assert model.score(*world.testing()) == 1
    assert len(model.correlations_) == 8
    np.testing.assert_allclose(model.correlations_, 1, atol=1e-4)


def test_components_are_at_most_what_the_classes_allow():
    X, y, S = problem(0, n_classes=3, width=9)
    model = CCA((range(5), S)).fit(X, y)
    assert len(model.correlations_) == 2
    assert len(model.set_params(n_components=50).fit(X, y).correlations_) == 2
    assert len(model.set_params(n_components=1).fit(X, y).correlations_) == 1


@pytest.mark.parametrize("name", ["X", "S"])
def test_scale_and_place_change_nothing(name):
    X, y, S = problem(2)
    scores = CCA((range(7), S), **EXACT).fit(X, y).decision_function(X, "all")
    if name == "X":
        X = 30 * X - 7
    else:
        S = 30 * S - 7
    again = CCA((range(7), S), **EXACT).fit(X, y).decision_function(X, "all")
    np.testing.assert_allclose(again, scores, atol=1e-9)


def test_images_that_are_all_alike_are_no_trouble():
    model = CCA().fit(np.ones((6, 3)), [0, 1, 0, 1, 0, 1])
    np.testing.assert_array_equal(model.decision_function(np.ones((2, 3)), [0, 1]), 0)


def test_unseen_classes_change_nothing_but_their_own_scores(world):
    X, y = world.training()
    table = world.embeddings["att"]
    few = CCA(table.select(np.unique(y))).fit(X, y)
    many = CCA(table).fit(X, y)
    assert few.image_map_.tobytes() == many.image_map_.tobytes()
    unseen = table.select(world.split().test)
    np.testing.assert_allclose(
        few.decision_function(X, unseen), many.decision_function(X, "unseen"), atol=1e-6
    )


def test_files_and_permutations(world, tmp_path):
    X, y = world.training()
    table = world.embeddings["att"]
    model = CCA(table).fit(X, y)
    assert model.score(*world.testing()) > 0.7
    model.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    scores = model.decision_function(X, "all")
    np.testing.assert_array_equal(again.decision_function(X, "all"), scores)
    np.testing.assert_array_equal(again.correlations_, model.correlations_)
    columns = np.random.default_rng(0).permutation(8)
    other = ClassEmbeddings(table.names[::-1], table.vectors[::-1][:, columns])
    turned = CCA(other).fit(X, y)
    np.testing.assert_allclose(turned.decision_function(X, list(table.names)), scores, atol=1e-4)


@pytest.mark.parametrize(
    ("tensor", "change"),
    [
        ("correlations", lambda t: t[:, None]),
        ("image_map", lambda t: t[:, :-1]),
        ("class_map", lambda t: t * np.nan),
        ("image_mean", lambda t: t.astype("float64")),
        ("class_mean", lambda t: t[:-1]),
    ],
)
def test_damaged_files(tensor, change, tmp_path):
    X, y, S = problem(0)
    tensors, meta = CCA((range(7), S)).fit(X, y).pack()
    tensors[tensor] = np.ascontiguousarray(change(tensors[tensor]))
    storage.write_file(tmp_path / "m", "model", tensors, meta)
    with pytest.raises(FileFormatError, match=f"damaged: {tensor}"):
        latem.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("name", "value"), [("n_components", 0), ("reg_x", 0), ("reg_y", -1), ("power", -0.5)]
)
def test_bad_parameters(name, value):
    X, y, _ = problem(0)
    with pytest.raises(ValueError, match=f"'{name}' parameter of CCA"):
        CCA(**{name: value}).fit(X, y)
