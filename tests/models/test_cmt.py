"""CMT against its formula, its gradient, and a plain Adam."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad, minimize
from sklearn.utils.estimator_checks import parametrize_with_checks

import latem
from latem import CMT, ClassEmbeddings, FileFormatError, make_latent_world
from latem.core import storage
from latem.models.cmt import Network

EXACT = {"feature_scaling": None, "normalize_classes": False, "dtype": "float64"}


@parametrize_with_checks(
    [
        CMT(n_hidden=16),
        CMT(n_hidden=16, solver="sgd", learning_rate=0.01, n_epochs=50),
        CMT(n_hidden=16, neighbour="cosine", novelty="gaussian", fit_intercept=False),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_images=8, noise=0.5, random_state=0)


def problem(seed, n=40, n_classes=4):
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(n_classes + 2, 2))
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, 3)) + rng.normal(size=(n_classes, 3))[y]
    return X, y, S


# -- the network ------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 999), st.sampled_from([0.0, 0.3]), st.booleans(), st.integers(1, 4))
def test_loss_is_the_formula_and_the_gradient_is_its_slope(seed, alpha, fit_intercept, n_hidden):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(6, 3)), rng.normal(size=(6, 2))
    network = Network(3, n_hidden, 2)
    weights = rng.normal(size=network.size)
    W2, b2, W1, b1 = network.parts(weights)
    if not fit_intercept:
        b2[...], b1[...] = 0, 0
    expected = 0.0
    for x, target in zip(X, Y, strict=True):
        hidden = [math.tanh(x @ W2[:, h] + b2[h]) for h in range(n_hidden)]
        for j in range(2):
            expected += (
                sum(hidden[h] * W1[h, j] for h in range(n_hidden)) + b1[j] - target[j]
            ) ** 2
    expected = expected / 6 + alpha * sum(w**2 for w in [*W1.ravel(), *W2.ravel()])
    loss, gradient = network.loss(weights, X, Y, alpha, fit_intercept)
    assert loss == pytest.approx(expected)
    free = np.ones(network.size, bool)
    if not fit_intercept:
        places = np.zeros(network.size)
        network.parts(places)[1][...], network.parts(places)[3][...] = 1, 1
        free = places == 0
        assert not gradient[~free].any()

    def part(values, which):
        everything = weights.copy()
        everything[free] = values
        found = network.loss(everything, X, Y, alpha, fit_intercept)
        return found[0] if which == "loss" else found[1][free]

    error = check_grad(
        lambda w: part(w, "loss"), lambda w: part(w, "gradient"), weights[free], epsilon=1e-6
    )
    assert error < 1e-4 * max(1, np.linalg.norm(gradient))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_no_generic_optimiser_finds_a_smaller_loss_nearby(fit_intercept):
    X, y, S = problem(0)
    model = CMT(
        (range(6), S), n_hidden=2, alpha=0.1, fit_intercept=fit_intercept, max_iter=2000,
        random_state=0, **EXACT,
    ).fit(X, y)  # fmt: skip
    network, size = Network(3, 2, 2), 14
    learned = np.zeros(size)
    for place, part in zip(
        network.parts(learned),
        (model.hidden_map_, model.hidden_offset_, model.map_, model.offset_),
        strict=True,
    ):
        place[...] = part
    assert network.size == size
    arguments = (X, S[y], 0.1, fit_intercept)
    assert model.loss_ == pytest.approx(network.loss(learned, *arguments)[0])
    assert np.abs(network.loss(learned, *arguments)[1]).max() < 1e-4
    places = np.flatnonzero(learned) if not fit_intercept else np.arange(size)
    assert len(places) == (size if fit_intercept else 10)

    def loss(values):
        weights = np.zeros(size)
        weights[places] = values
        return network.loss(weights, *arguments)[0]

    found = minimize(loss, learned[places], method="Powell")
    assert found.fun > model.loss_ - 1e-6
    assert model.loss_ < loss(np.zeros(len(places)))


def test_mini_batches_are_a_plain_adam():
    X, y, S = problem(1, n=300)
    options = {"n_hidden": 3, "alpha": 0.02, "learning_rate": 0.05, "n_epochs": 2}
    model = CMT((range(6), S), solver="sgd", random_state=7, **options, **EXACT).fit(X, y)
    rng = np.random.RandomState(7)
    network = Network(3, 3, 2)
    weights = np.zeros(network.size)
    W2, _, _, b1 = network.parts(weights)
    W2[...] = rng.normal(size=(3, 3)) / math.sqrt(3)
    b1[...] = S[y].mean(axis=0)
    m, v, t = [0.0] * network.size, [0.0] * network.size, 0
    for _ in range(2):
        order = rng.permutation(300)
        for rows in (order[:128], order[128:256], order[256:]):
            _, slope = network.loss(weights, X[rows], S[y[rows]], 0.02)
            t += 1
            for i in range(network.size):
                m[i] = 0.9 * m[i] + 0.1 * slope[i]
                v[i] = 0.999 * v[i] + 0.001 * slope[i] ** 2
                step = (m[i] / (1 - 0.9**t)) / (math.sqrt(v[i] / (1 - 0.999**t)) + 1e-8)
                weights[i] -= 0.05 * step
    learned = (model.hidden_map_, model.hidden_offset_, model.map_, model.offset_)
    for expected, part in zip(network.parts(weights), learned, strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-7, atol=1e-10)
    assert model.n_iter_ == 2


def test_a_step_too_large_is_reported():
    X, y, S = problem(0)
    model = CMT((range(6), S), solver="sgd", learning_rate=1e200, random_state=0)
    with pytest.raises(ValueError, match="diverged in epoch 1: .* smaller learning_rate"):
        model.fit(X, y)


# -- answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_a_world_without_noise_is_named_without_an_error(solver):
    world = make_latent_world(n_poses=1, n_images=8, noise=0, random_state=0)
    model = CMT(
        world.embeddings["att"], alpha=1e-5, solver=solver, n_epochs=100, learning_rate=3e-3,
        random_state=0,
    ).fit(*world.training())  # fmt: skip
    assert model.score(*world.testing()) == 1


def plain_distances(model, X, S):
    """Squared distances of mapped images and class vectors, one by one."""
    mapped = [
        np.tanh(x @ model.hidden_map_ + model.hidden_offset_) @ model.map_ + model.offset_
        for x in X
    ]
    return np.array([[sum((f - s) ** 2) for s in S] for f in mapped]), np.array(mapped)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 999), st.sampled_from([0.05, 0.45, 0.95]))
def test_scores_are_the_formula(seed, quantile):
    X, y, S = problem(seed)
    names = [f"class {i}" for i in range(6)]
    model = CMT(
        (names, S), n_hidden=3, max_iter=20, novelty_quantile=quantile, random_state=0, **EXACT
    ).fit(X, np.array(names)[y])
    X = np.concatenate([X, 3 * X])
    distances, mapped = plain_distances(model, X, S)
    np.testing.assert_allclose(model.decision_function(X, "all"), -distances, atol=1e-9)
    model.set_params(neighbour="cosine")
    cosines = [[f @ s / np.linalg.norm(f) / np.linalg.norm(s) for s in S] for f in mapped]
    np.testing.assert_allclose(model.decision_function(X, "all"), cosines, atol=1e-9)

    own = distances[np.arange(40), y]
    radii = [np.quantile(own[y == k], quantile) for k in range(4)]
    np.testing.assert_allclose(model.radii_, radii, atol=1e-12)
    novel = [all(d[k] > radii[k] for k in range(4)) for d in distances]
    np.testing.assert_array_equal(model.is_novel(X), novel)
    model.set_params(novelty="gaussian")
    with_cosines = [
        [c - (0 if (k >= 4) == n else 3) for k, c in enumerate(row)]
        for row, n in zip(cosines, novel, strict=True)
    ]
    np.testing.assert_allclose(model.decision_function(X, "all"), with_cosines, atol=1e-9)
    model.set_params(neighbour="euclidean")
    s = np.mean(radii)
    expected = [
        [s / (s + d) if (k >= 4) == n else -(s + d) / s for k, d in enumerate(row)]
        for row, n in zip(distances, novel, strict=True)
    ]
    np.testing.assert_allclose(model.decision_function(X, "all"), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("neighbour", ["euclidean", "cosine"])
def test_novelty_decides_between_seen_and_unseen_and_nothing_else(world, neighbour):
    X, y = world.training()
    model = CMT(
        world.embeddings["att"], n_hidden=16, neighbour=neighbour, novelty_quantile=0.5,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    images = np.concatenate([X, world.testing()[0]])
    before = {c: model.predict(images, c) for c in (None, "unseen", "all")}
    model.set_params(novelty="gaussian")
    novel = model.is_novel(images)
    assert 0.1 < novel.mean() < 0.9
    np.testing.assert_array_equal(model.predict(images), before[None])
    np.testing.assert_array_equal(model.predict(images, "unseen"), before["unseen"])
    answers = model.predict(images, "all")
    np.testing.assert_array_equal(~np.isin(answers, model.classes_), novel)
    assert (answers != before["all"]).any()
    np.testing.assert_array_equal(answers, np.where(novel, before["unseen"], before[None]))


def test_a_class_far_away_changes_no_score_and_is_still_preferred(world):
    X, y = world.training()
    table = world.embeddings["att"]
    model = CMT(
        table, n_hidden=16, novelty="gaussian", novelty_quantile=0.5, normalize_classes=False,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    seen = table.select(model.classes_)
    far = np.full((1, 8), 1e6)
    more = ClassEmbeddings([*seen.names, "far"], np.concatenate([seen.vectors, far]))
    scores = model.decision_function(X, more)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(scores[:, :-1], model.decision_function(X), rtol=1e-5)
    novel = model.is_novel(X)
    assert 0 < novel.sum() < len(X)
    np.testing.assert_array_equal(model.predict(X, more) == "far", novel)


def corners():
    return range(4), np.vstack([np.eye(3), np.ones(3)])


def test_radii_of_zero_are_no_trouble():
    X, y = np.repeat(np.eye(3), 4, axis=0), np.repeat([0, 1, 2], 4)
    model = CMT(corners(), n_hidden=8, novelty="gaussian", random_state=0).fit(X, y)
    model.radii_ = np.zeros_like(model.radii_)
    assert np.isfinite(model.decision_function(X, "all")).all()


def test_no_training_image_is_novel_if_all_lie_within_the_threshold():
    X, y = np.repeat(np.eye(3), 4, axis=0), np.repeat([0, 1, 2], 4)
    model = CMT(
        corners(), n_hidden=8, alpha=1e-6, novelty="gaussian", novelty_quantile=1, random_state=0
    ).fit(X, y)
    assert not model.is_novel(X).any()
    np.testing.assert_array_equal(model.predict(X, "all"), y)


# -- seeds, files, order ----------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_the_same_seed_gives_the_same_bytes(world, solver):
    X, y = world.training()
    table = world.embeddings["att"]
    models = [
        CMT(table, n_hidden=8, solver=solver, n_epochs=2, n_threads=n, random_state=seed).fit(X, y)
        for n, seed in ((1, 3), (2, 3), (1, 4))
    ]
    one, two, other = ([m.hidden_map_.tobytes(), m.map_.tobytes()] for m in models)
    assert one == two
    assert one[0] != other[0]


@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_files_and_permutations(world, solver, tmp_path):
    X, y = world.training()
    table = world.embeddings["att"]
    options = {"n_hidden": 8, "solver": solver, "max_iter": 20, "n_epochs": 5, "random_state": 0}
    model = CMT(table, novelty="gaussian", **options).fit(X, y)
    model.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    scores = model.decision_function(X, "all")
    np.testing.assert_array_equal(again.decision_function(X, "all"), scores)
    np.testing.assert_array_equal(again.is_novel(X), model.is_novel(X))
    assert (again.loss_, again.n_iter_) == (model.loss_, model.n_iter_)
    columns = np.random.default_rng(0).permutation(8)
    other = ClassEmbeddings(table.names[::-1], table.vectors[::-1][:, columns])
    scores = model.set_params(novelty=None).decision_function(X, "all")
    turned = CMT(other, **options).fit(X, y)
    np.testing.assert_allclose(turned.decision_function(X, list(table.names)), scores, atol=1e-3)


@pytest.mark.parametrize(
    ("tensor", "change"),
    [
        ("hidden_map", lambda t: t[:, :-1]),
        ("hidden_offset", lambda t: t * np.nan),
        ("map", lambda t: t.T),
        ("offset", lambda t: t.astype("float64")),
        ("radii", lambda t: -1 - t),
    ],
)
def test_damaged_files(tensor, change, tmp_path):
    X, y, S = problem(0)
    tensors, meta = CMT((range(6), S), n_hidden=3, random_state=0).fit(X, y).pack()
    tensors[tensor] = np.ascontiguousarray(change(tensors[tensor]))
    storage.write_file(tmp_path / "m", "model", tensors, meta)
    with pytest.raises(FileFormatError, match=f"damaged: {tensor}"):
        latem.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_hidden", 0),
        ("alpha", -1),
        ("solver", "adam"),
        ("max_iter", 0),
        ("n_epochs", 0),
        ("learning_rate", 0),
        ("neighbour", "manhattan"),
        ("novelty", "loop"),
        ("novelty_quantile", 1.5),
        ("fit_intercept", "no"),
    ],
)
def test_bad_parameters(name, value):
    X, y, _ = problem(0)
    with pytest.raises(ValueError, match=f"'{name}' parameter of CMT"):
        CMT(**{name: value}).fit(X, y)
