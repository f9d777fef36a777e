"""DAP and IAP against their formulas."""

import contextlib
import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import latem
from latem import DAP, IAP, ClassEmbeddings, FileFormatError
from latem.core import storage
from latem.core.threads import single_threaded_blas

BOTH = pytest.mark.parametrize("kind", [DAP, IAP])


@parametrize_with_checks([DAP(), IAP(), DAP(threshold="column", prior="uniform")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def problem(seed, n_seen=5, n_unseen=2, n_attributes=4):
    """Images of some classes, and percentages as a table; column 0 tells classes apart."""
    rng = np.random.default_rng(seed)
    S = rng.integers(0, 101, size=(n_seen + n_unseen, n_attributes)).astype(float)
    S[:2, 0] = 0, 100
    y = np.arange(25) % n_seen
    X = rng.normal(size=(25, 3)) + rng.normal(size=(n_seen, 3))[y]
    return X, y, S


def plain_scores(probabilities, present, n_seen, prior):
    """Bayes' rule word for word: attributes that all or no seen classes have are left out."""
    scores = np.zeros((len(probabilities), len(present)))
    for i, p in enumerate(probabilities):
        for z, a in enumerate(present):
            for m in range(len(a)):
                share = sum(present[k][m] for k in range(n_seen)) / n_seen
                if 0 < share < 1:
                    share = share if prior == "classes" else 0.5
                    scores[i, z] += math.log(p[m] if a[m] else 1 - p[m])
                    scores[i, z] -= math.log(share if a[m] else 1 - share)
    return scores


def plain_probabilities(X, y):
    with single_threaded_blas():  # many small fits are slow with more
        inner = LogisticRegression(C=0.5, solver="newton-cholesky", tol=1e-12)
        return inner.fit(X, y).predict_proba(X)


@BOTH
@settings(deadline=None, max_examples=12)
@given(
    seed=st.integers(0, 999),
    threshold=st.sampled_from(["mean", "column", 30.0, 85]),
    prior=st.sampled_from(["classes", "uniform"]),
    n_seen=st.integers(2, 5),
)
def test_scores_are_the_formula(kind, seed, threshold, prior, n_seen):
    X, y, S = problem(seed, n_seen)
    options = {"threshold": threshold, "prior": prior, "C": 0.5}
    model = kind((range(len(S)), S), feature_scaling=None, dtype="float64", **options).fit(X, y)
    cut = {"mean": S[:n_seen].mean(), "column": S[:n_seen].mean(axis=0)}.get(threshold, threshold)
    present = np.greater(S, cut)
    probabilities = np.full((len(X), S.shape[1]), np.nan)  # NaN must not reach a score
    classes = plain_probabilities(X, y)
    for m in range(S.shape[1]):
        if not 0 < present[:n_seen, m].sum() < n_seen:
            continue
        if kind is DAP:
            probabilities[:, m] = plain_probabilities(X, present[y, m])[:, 1]
        else:
            probabilities[:, m] = [
                sum(p[k] * present[k, m] for k in range(n_seen)) for p in classes
            ]
    expected = plain_scores(probabilities, present, n_seen, prior)
    np.testing.assert_allclose(model.decision_function(X, "all"), expected, atol=1e-8)


def test_attribute_classifiers_are_what_a_generic_optimiser_finds():
    X, y, S = problem(1)
    model = DAP((range(len(S)), S), C=0.3, feature_scaling=None, dtype="float64").fit(X, y)
    targets = np.where(S[y, 0] > S[:5].mean(), 1, -1)

    def loss(w):
        return 0.3 * np.logaddexp(0, -targets * (X @ w[:3] + w[3])).sum() + w[:3] @ w[:3] / 2

    found = minimize(loss, np.zeros(4), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 0})
    np.testing.assert_allclose([*model.coef_[:, 0], model.intercept_[0]], found.x, atol=1e-6)


def world_of_bits():
    """Every class is a code of five bits, and its images show each bit in a feature.

    Unseen codes differ from one another in at least three bits.
    """
    codes = np.array(list(itertools.product([0.0, 1.0], repeat=5)))
    names = ["".join(str(int(bit)) for bit in code) for code in codes]
    unseen = ["00000", "11100", "00111", "11011"]
    rng = np.random.default_rng(0)
    y = np.repeat(names, 5)
    X = np.repeat(2 * codes - 1, 5, axis=0) + rng.normal(scale=0.1, size=(160, 5))
    X = np.concatenate([X, rng.normal(size=(160, 2))], axis=1)  # two features say nothing
    table = pd.DataFrame(codes, index=names, columns=["red", "big", "wet", "hot", "old"])
    return X, y, table, np.isin(y, unseen)


@BOTH
@pytest.mark.parametrize("options", [{}, {"threshold": "column"}, {"threshold": 0.5, "C": 1.0}])
def test_a_world_of_bits_is_named_without_an_error(kind, options):
    X, y, table, unseen = world_of_bits()
    model = kind(table, **options).fit(X[~unseen], y[~unseen])
    assert model.score(X[unseen], y[unseen]) == 1
    np.testing.assert_array_equal(model.predict(X[unseen], "unseen"), y[unseen])


@BOTH
def test_attributes_that_tell_nothing_contribute_nothing(kind):
    X, y, S = problem(3)
    names = range(len(S))
    more = np.concatenate([S, np.full((len(S), 1), 100.0), np.zeros((len(S), 1))], axis=1)
    more[5:, 4], more[5:, 5] = 0, 100  # the unseen classes differ from all seen ones
    scores = [
        kind((names, table), threshold=50).fit(X, y).decision_function(X, "all")
        for table in (S, more)
    ]
    np.testing.assert_allclose(*scores, atol=1e-5)
    assert np.ptp(scores[0], axis=1).min() > 0


@BOTH
def test_no_attribute_at_all_is_an_error(kind):
    X, y, S = problem(0)
    message = f"{kind.__name__} got class_embeddings in which no attribute tells .* threshold=100"
    with pytest.raises(ValueError, match=message):
        kind((range(len(S)), S), threshold=100).fit(X, y)


@BOTH
@pytest.mark.parametrize("threshold", ["mean", "column"])
def test_unseen_classes_change_nothing_but_their_own_scores(kind, threshold):
    X, y, S = problem(5)
    few = kind((range(6), S[:6]), threshold=threshold).fit(X, y)
    S[6] = 5000  # would move a mean over all classes
    many = kind((range(7), S), threshold=threshold).fit(X, y)
    assert few.thresholds_.tobytes() == many.thresholds_.tobytes()
    assert few.coef_.tobytes() == many.coef_.tobytes()
    scores = many.decision_function(X, "all")
    np.testing.assert_allclose(few.decision_function(X, "all"), scores[:, :6], atol=1e-5)
    new = ClassEmbeddings(["new"], S[6:], name="att")
    np.testing.assert_allclose(few.decision_function(X, new), scores[:, 6:], atol=1e-5)
    assert (few.predict(X, new) == "new").all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_at_the_threshold_are_absent(dtype):
    X, y, _ = problem(0, n_seen=3)
    S = np.array([[0.1, 0.1], [0.2, 0.7], [0.3, 0.1]])
    model = DAP((range(3), S), threshold=0.1, dtype=dtype).fit(X, y)
    np.testing.assert_allclose(model.prior_, [2 / 3, 1 / 3], rtol=1e-6)


def test_order_does_not_move_a_threshold():
    rng = np.random.default_rng(0)
    X, y, _ = problem(0)
    S = rng.uniform(size=(5, 12))
    for threshold, _ in itertools.product(("mean", "column"), range(5)):
        model = IAP((range(5), S), threshold=threshold, dtype="float64").fit(X, y)
        plain, columns = model.thresholds_, rng.permutation(12)
        model.set_params(class_embeddings=(range(5), rng.permutation(S)[:, columns])).fit(X, y)
        assert model.thresholds_.tobytes() == plain[columns].tobytes()


def test_threads_change_nothing():
    X, y, S = problem(7, n_attributes=9)
    one, three = (DAP((range(len(S)), S), n_threads=n).fit(X, y) for n in (1, 3))
    assert one.coef_.tobytes() == three.coef_.tobytes()
    assert one.n_iter_ == three.n_iter_ > 1


@BOTH
def test_progress_is_shown_if_wanted(kind, monkeypatch):
    shown = []

    @contextlib.contextmanager
    def bar(wanted, title, **options):
        yield lambda: shown.append((wanted, title, options["unit"]))

    monkeypatch.setattr("latem.models.attributes.progress_bar", bar)
    X, y, S = problem(0)
    model = kind((range(len(S)), S), verbose=True).fit(X, y)
    unit = "attributes" if kind is DAP else "iterations"
    assert set(shown) == {(True, "training", unit)}
    assert kind is IAP or len(shown) == ((model.prior_ > 0) & (model.prior_ < 1)).sum()


def test_scores_stay_finite_when_the_classifier_is_certain():
    X, y, table, unseen = world_of_bits()
    for kind in (DAP, IAP):
        model = kind(table, C=1e6).fit(X[~unseen], y[~unseen])
        assert np.isfinite(model.decision_function(1e4 * X, "all")).all()


# -- what is not attributes -------------------------------------------------------------------

NAMED = [f"trait {i}" for i in range(4)]
NUMBERED = [f"dim_{i:03d}" for i in range(4)]


@BOTH
@pytest.mark.parametrize(
    ("name", "columns", "lowest"),
    [
        ("w2v", None, -1),
        ("GLO", NAMED, 0),
        ("text", NAMED, 0),
        ("hie", NAMED, 0),
        ("att+glo", NAMED, 0),
        ("", None, -1),
        ("mine", NUMBERED, -1),
    ],
)
def test_other_vectors_cause_a_warning(kind, name, columns, lowest):
    X, y, S = problem(0)
    table = ClassEmbeddings(range(len(S)), S / 100 + lowest, name=name, columns=columns)
    with pytest.warns(UserWarning, match=f"{kind.__name__} got a class table.* not look like"):
        kind(table).fit(X, y)


@BOTH
@pytest.mark.parametrize(
    ("name", "columns", "lowest"),
    [
        ("att", None, -1),
        ("", None, 0),
        ("", NAMED, 0),
        ("birds", NAMED, -1),  # standardised traits
        ("texture", NUMBERED, 0),
    ],
)
def test_attributes_cause_none(kind, name, columns, lowest):
    X, y, S = problem(0)
    table = ClassEmbeddings(range(len(S)), S / 100 + lowest, name=name, columns=columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind(table).fit(X, y)
        kind().fit(X, y)


# -- files and input --------------------------------------------------------------------------


@BOTH
def test_files_and_permutations(kind, tmp_path):
    X, y, table, unseen = world_of_bits()
    model = kind(table, threshold="column").fit(X[~unseen], y[~unseen])
    model.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    scores = model.decision_function(X, "all")
    np.testing.assert_array_equal(again.decision_function(X, "all"), scores)
    assert (type(again), again.n_iter_) == (kind, model.n_iter_)
    other = table.iloc[::-1, [3, 0, 4, 1, 2]]
    turned = kind(other, threshold="column").fit(X[~unseen], y[~unseen])
    np.testing.assert_allclose(turned.decision_function(X, list(table.index)), scores, atol=1e-4)


@BOTH
@pytest.mark.parametrize(
    ("tensor", "change"),
    [
        ("prior", lambda t: t + 1),
        ("thresholds", lambda t: t[:-1]),
        ("coef", lambda t: t * np.nan),
        ("intercept", lambda t: t.astype("float64")),
    ],
)
def test_damaged_files(kind, tensor, change, tmp_path):
    X, y, S = problem(0)
    tensors, meta = kind((range(len(S)), S)).fit(X, y).pack()
    tensors[tensor] = change(tensors[tensor])
    storage.write_file(tmp_path / "m", "model", tensors, meta)
    with pytest.raises(FileFormatError, match=f"damaged: {tensor}"):
        latem.load(tmp_path / "m")


@BOTH
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("threshold", "median"),
        ("threshold", math.nan),
        ("prior", "flat"),
        ("C", 0),
        ("max_iter", 0),
    ],
)
def test_bad_parameters(kind, name, value):
    X, y, _ = problem(0)
    with pytest.raises(ValueError, match=f"'{name}' parameter of {kind.__name__}"):
        kind(**{name: value}).fit(X, y)
