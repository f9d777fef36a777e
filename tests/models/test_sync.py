"""SynC against plain loops and a general minimiser."""

import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import latem
from latem import FileFormatError, SynC, make_latent_world
from latem.core import storage
from latem.models import structured_hinge

EXACT = {"feature_scaling": None, "dtype": "float64"}


@parametrize_with_checks([SynC(), SynC(loss="structured", lam=0.1)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_images=8, noise=0.5, random_state=0)


def problem(seed, n_classes=4, width=3):
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(n_classes + 2, width)) + 1
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 26)])
    X = rng.normal(size=(len(y), 3)) + rng.normal(size=(n_classes, 3))[y] + 2
    return X, y, S


def likeness(a, phantoms, tau):
    distances = np.array([sum((a - b) ** 2) for b in phantoms])
    weights = np.exp(-tau * (distances - distances.min()))  # the factor that this takes out cancels
    return weights / weights.sum()


def plain_scores(X, y, S, tau, lam):
    """Base classifiers V that minimise the paper's objective, and the mixtures of them."""
    n_seen, width = y.max() + 1, X.shape[1] + 1
    S = np.array([s / np.linalg.norm(s) for s in S])
    pairs = [np.linalg.norm(S[a] - S[b]) for a in range(n_seen) for b in range(a)]
    S = S / np.median(pairs)
    images = np.column_stack([X, np.ones(len(X))])
    own = np.array([likeness(S[c], S[:n_seen], tau) for c in range(n_seen)])
    assume(np.linalg.cond(own) < 100)  # the general minimiser gets no nearer where it is larger
    targets = np.where(y[:, None] == np.arange(n_seen), 1, -1)

    def loss(V):
        W = own @ V.reshape(n_seen, width)
        slack = np.maximum(0, 1 - targets * (images @ W.T))
        slope = -2 / len(X) * (targets * slack).T @ images
        slope[:, :-1] += lam * W[:, :-1]  # the offset is free
        value = np.sum(slack**2) / len(X) + lam / 2 * np.sum(W[:, :-1] ** 2)
        return value, (own.T @ slope).ravel()

    options = {"maxiter": 10**5, "maxfun": 10**5, "ftol": 0, "gtol": 1e-11, "maxcor": 30}
    start = np.zeros(n_seen * width)
    V = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    classifiers = [likeness(s, S[:n_seen], tau) @ V.reshape(n_seen, width) for s in S]
    return images @ np.array(classifiers).T


@settings(deadline=None, max_examples=15)
@given(
    st.integers(0, 999),
    st.sampled_from([0.5, 2.0, 32.0]),
    st.sampled_from([0.01, 0.3]),
    st.sampled_from([2, 3, 9]),
)
def test_scores_are_the_definition(seed, tau, lam, width):
    X, y, S = problem(seed, width=width)
    model = SynC((range(6), S), tau=tau, lam=lam, **EXACT).fit(X, y)
    expected = plain_scores(X, y, S, tau, lam)
    scores = model.decision_function(X, "all")
    np.testing.assert_allclose(scores, expected, atol=1e-5 * np.abs(expected).max())


def structured_scores(X, y, S, tau, lam):
    """The same for the structured loss, as a quadratic programme: slack variables and margins."""
    n, n_seen, width = len(X), y.max() + 1, X.shape[1]
    S = np.array([s / np.linalg.norm(s) for s in S])
    pairs = [np.linalg.norm(S[a] - S[b]) for a in range(n_seen) for b in range(a)]
    S, images = S / np.median(pairs), X - X.mean(axis=0)
    own = np.array([likeness(S[c], S[:n_seen], tau) for c in range(n_seen)])
    assume(np.linalg.cond(own) < 100)
    rules, least = [], []  # slack_i - (w_c - w_y)·x_i >= margin
    for i, c in itertools.product(range(n), range(n_seen)):
        if c != y[i]:
            by_class = np.zeros((n_seen, width))
            by_class[c], by_class[y[i]] = -images[i], images[i]
            rules.append(np.concatenate([(own.T @ by_class).ravel(), np.eye(n)[i]]))
            least.append(sum((S[c] - S[y[i]]) ** 2))
    rules, least = np.array(rules), np.array(least)

    def loss(values):
        W, slack = own @ values[:-n].reshape(n_seen, width), values[-n:]
        slope = np.concatenate([(lam * own.T @ W).ravel(), 2 * slack / n])
        return np.sum(slack**2) / n + lam / 2 * np.sum(W**2), slope

    start = np.concatenate([np.zeros(n_seen * width), np.full(n, max(least))])
    bounds = {"type": "ineq", "fun": lambda v: rules @ v - least, "jac": lambda v: rules}
    options = {"maxiter": 1000, "ftol": 1e-15}
    found = minimize(loss, start, jac=True, constraints=bounds, method="SLSQP", options=options).x
    V = found[:-n].reshape(n_seen, width)
    return images @ np.array([likeness(s, S[:n_seen], tau) @ V for s in S]).T


@settings(deadline=None, max_examples=5)
@given(st.integers(0, 999), st.sampled_from([0.5, 2.0, 32.0]), st.sampled_from([0.01, 0.3]))
def test_structured_scores_are_the_definition(seed, tau, lam):
    X, y, S = problem(seed)
    X, y = X[:14], y[:14]
    with mock.patch.object(structured_hinge, "TOLERANCE", 1e-11):
        model = SynC(
            (range(6), S), tau=tau, lam=lam, loss="structured", max_iter=10**5, **EXACT
        ).fit(X, y)
    expected = structured_scores(X, y, S, tau, lam)
    scores = model.decision_function(X, "all")
    np.testing.assert_allclose(scores, expected, atol=1e-5 * np.abs(expected).max())


def test_mixtures_of_seen_classes_are_their_own_classifiers(world):
    X, y = world.training()
    model = SynC(world.embeddings["att"], dtype="float64").fit(X, y)
    n_seen = len(model.classes_)
    np.testing.assert_allclose(model.mixtures("seen"), np.eye(n_seen), atol=1e-6)
    scores = model.scaler_.transform(X) @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-5)
    unseen = model.mixtures()
    assert unseen.shape == (len(model.candidate_names("unseen")), n_seen)
    with pytest.raises(NotFittedError):
        SynC().mixtures()


def test_a_large_tau_takes_the_nearest_class_alone():
    X, y, S = problem(1)
    model = SynC((range(6), S), tau=1e4, normalize_classes=False, **EXACT).fit(X, y)
    for name, row in zip((4, 5), model.mixtures(), strict=True):
        nearest = np.argmin([np.linalg.norm(S[name] - s) for s in S[:4]])
        np.testing.assert_allclose(row, np.eye(4)[nearest], atol=1e-9)


@pytest.mark.parametrize("loss", ["one-versus-other", "structured"])
def test_a_world_and_its_file(world, tmp_path, loss):
    X, y = world.training()
    model = SynC(world.embeddings["att"], loss=loss).fit(X, y)
    assert model.score(*world.testing()) > 0.6
    model.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    np.testing.assert_array_equal(
        again.decision_function(X, "all"), model.decision_function(X, "all")
    )
    assert again.n_iter_ == model.n_iter_


def test_parameters_that_change_after_a_fit_change_no_mixture(world):
    X, y = world.training()
    model = SynC(world.embeddings["att"]).fit(X, y)
    before = model.mixtures()
    np.testing.assert_array_equal(model.set_params(tau=8.0).mixtures(), before)


@pytest.mark.filterwarnings("ignore::latem.GridEdgeWarning")  # the usual grid is narrow
def test_parameters_are_chosen_on_held_out_classes(world):
    search = latem.HeldOutSearch(SynC(world.embeddings["att"]), cv=list(world.split().val))
    search.fit(*world.training())
    assert set(search.best_params_) == {"tau", "lam"}
    assert search.score(*world.testing()) > 0.6


def test_too_few_steps_are_told():
    X, y, S = problem(0)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 steps"):
        model = SynC((range(6), S), lam=1e-5, max_iter=1).fit(X, y)
    assert model.n_iter_ == 1
    with pytest.warns(ConvergenceWarning, match="max_iter=1 rounds"):
        model = SynC((range(6), S), lam=1e-5, max_iter=1, loss="structured").fit(X, y)
    assert model.n_iter_ == 1


@pytest.mark.parametrize(
    ("tensor", "change"),
    [
        ("coef", lambda t: t[:, :-1]),
        ("intercept", lambda t: t * np.nan),
        ("rate", None),
    ],
)
def test_damaged_files(tensor, change, tmp_path):
    X, y, S = problem(0)
    tensors, meta = SynC((range(6), S)).fit(X, y).pack()
    if tensor == "rate":
        meta["record"]["rate"] = 0.0
        tensor = "a rate"
    else:
        tensors[tensor] = np.ascontiguousarray(change(tensors[tensor]))
    storage.write_file(tmp_path / "m", "model", tensors, meta)
    with pytest.raises(FileFormatError, match=f"damaged: {tensor}"):
        latem.load(tmp_path / "m")


@pytest.mark.parametrize("name", ["tau", "lam", "max_iter", "loss"])
def test_bad_parameters(name):
    X, y, _ = problem(0)
    with pytest.raises(ValueError, match=f"'{name}' parameter of SynC"):
        SynC(**{name: 0}).fit(X, y)
