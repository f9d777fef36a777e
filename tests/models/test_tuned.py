"""LatEm's options beyond the paper, each against its definition."""

import numpy as np
import pytest
from helpers import random_problem, rewrite
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

import latem
from latem import ESZSL, ESZSLCV, FileFormatError, LatEm, LatEmCV, make_latent_world
from latem.metrics import mean_class_accuracy
from latem.models.sgd.dense import DenseClassSpace, DenseEmbeddingSpace
from latem.models.sgd.visits import more_rivals

PLAIN = {"feature_scaling": None, "normalize_classes": False, "dtype": "float64"}
TUNED = {
    "n_maps": 1, "learning_rate": 0.03, "n_epochs": 2, "init_scale": 0.0,
    "feature_scaling": "l2-centered", "balance_classes": True,
    "start": "eszsl", "n_rivals": 10, "center_classes": True, "average": True,
}  # fmt: skip


@parametrize_with_checks(
    [LatEm(**TUNED, random_state=0), LatEm(n_rivals=3, average=True, random_state=0),
     LatEmCV(preset="tuned", random_state=0)]
)  # fmt: skip
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def plain(X, y, Y, W, visits, step, margin, average):
    """Hardest of the drawn rivals; the mean of the maps as they stand after every visit."""
    total, n = np.zeros_like(W), 0
    for order, drawn in visits:
        for row, rivals in zip(order, drawn, strict=True):
            by_map = X[row] @ W @ Y.T  # (K, C)
            F, best = by_map.max(axis=0), by_map.argmax(axis=0)
            rival = rivals[np.argmax(F[rivals])]
            if F[rival] + margin > F[y[row]]:
                W[best[y[row]]] += np.outer(step * X[row], Y[y[row]])
                W[best[rival]] -= np.outer(step * X[row], Y[rival])
            total += W
            n += 1
    return total / n if average else W


@settings(deadline=None, max_examples=60)
@given(
    st.fixed_dictionaries(
        {"seed": st.integers(0, 9999), "n": st.integers(8, 50), "d": st.integers(1, 8),
         "c": st.integers(3, 8), "e": st.integers(1, 6), "k": st.integers(1, 4),
         "epochs": st.integers(1, 4)}
    ),
    st.integers(1, 4), st.booleans(), st.booleans(),
)  # fmt: skip
def test_training_is_its_definition(size, n_rivals, average, by_class):
    p = random_problem(**size)
    n_rivals = min(n_rivals, size["c"] - 2)
    visits = []

    class Scripted(LatEm):
        def __init__(self):
            super().__init__(
                (range(size["c"]), p["Y"]), n_maps=size["k"], learning_rate=0.1,
                n_epochs=size["epochs"], n_rivals=n_rivals, average=average, random_state=0,
                **PLAIN,
            )  # fmt: skip

        def _initial_maps(self, shape):
            return p["W"].copy()

        def _visits(self, epoch, labels):
            order, first = p["visits"][epoch - 1]
            more = more_rivals(self.seed_, epoch, labels[order], size["c"], n_rivals - 1)
            visits.append((order, np.column_stack([first, more])))
            return order, first

        def _space(self, maps, vectors):
            kind = DenseClassSpace if by_class else DenseEmbeddingSpace
            return kind(maps, vectors, average=average)

    model = Scripted().fit(p["X"], p["y"])
    expected = plain(p["X"], p["y"], p["Y"], p["W"].copy(), visits, 0.1, 1.0, average)
    np.testing.assert_allclose(model.maps_, expected, rtol=1e-8, atol=1e-8)


def test_both_engines_agree_on_the_paper_s_algorithm(monkeypatch):
    world = make_latent_world(n_images=8, random_state=0)
    X, y = world.training()
    model = LatEm(world.embeddings["att"], n_maps=3, n_epochs=5, random_state=0, dtype="float64")
    expected = model.fit(X, y).maps_
    monkeypatch.setattr(LatEm, "_space", lambda self, maps, vectors: DenseClassSpace(maps, vectors))
    np.testing.assert_allclose(model.fit(X, y).maps_, expected, atol=1e-8)


def test_enough_rivals_are_all_classes():
    world = make_latent_world(n_images=4, n_seen=10, random_state=0)
    X, y = world.training()
    models = [
        LatEm(world.embeddings["att"], n_rivals=n, n_epochs=3, random_state=0).fit(X, y).maps_
        for n in (9, 500)
    ]
    np.testing.assert_array_equal(*models)


def test_more_rivals_are_never_the_true_class():
    true = np.random.default_rng(0).integers(0, 5, 2000)
    rivals = more_rivals(0, 1, true, 5, 3)
    assert rivals.shape == (2000, 3)
    assert (rivals != true[:, None]).all()
    counts = np.bincount(rivals.ravel(), minlength=5)
    assert counts.min() > 0.8 * counts.max()


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_images=8, random_state=0)


def test_the_start_is_eszsl_with_a_mean_lead_of_one(world):
    X, y = world.training()
    table = world.embeddings["att"]
    seen = []
    LatEm(
        table, **{**TUNED, "center_classes": False, "learning_rate": 1e-12, "dtype": "float64"},
        start_gamma=2.0, start_lam=0.5,
    ).fit(X, y, callback=lambda info: seen.append(info.maps()[0]) and None)  # fmt: skip
    closed = ESZSL(
        table, gamma=2.0, lam=0.5, feature_scaling="l2-centered", dtype="float64"
    ).fit(X, y)  # fmt: skip
    cosine = (seen[0] * closed.map_).sum() / np.linalg.norm(seen[0]) / np.linalg.norm(closed.map_)
    assert cosine == pytest.approx(1, abs=1e-9)
    scaled = X / np.linalg.norm(X, axis=1, keepdims=True)
    scaled -= scaled.mean(axis=0)
    names = np.unique(y)
    scores = scaled @ seen[0] @ table.select(names).unit_vectors().T
    own = scores[np.arange(len(y)), np.searchsorted(names, y)]
    assert (own - scores.mean(axis=1)).mean() == pytest.approx(1, abs=1e-6)


def test_centred_classes(world):
    X, y = world.training()
    table = world.embeddings["att"]
    model = LatEm(table, center_classes=True, n_maps=1, n_epochs=2, random_state=0).fit(X, y)
    mean = table.select(np.unique(y)).vectors.mean(axis=0)
    centred = table.vectors - mean
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    expected = model.scaler_.transform(X, "float32") @ model.maps_[0] @ centred.T
    np.testing.assert_allclose(model.decision_function(X, "all"), expected, atol=1e-5)


@pytest.mark.parametrize("kind", [ESZSL, ESZSLCV])
def test_balanced_eszsl(world, kind, tmp_path):
    X, y = world.training()
    table, params = world.embeddings["att"], {"feature_scaling": "l2-centered", "dtype": "float64"}
    params |= {"random_state": 0} if kind is ESZSLCV else {}
    model = kind(table, balance_classes=True, **params).fit(X, y)
    np.testing.assert_allclose((model.decision_function(X, "all") ** 2).mean(axis=0), 1)
    model.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    assert again.balance_classes
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("n_maps", [1, 3])
def test_balanced_classes_have_scores_of_equal_size(world, n_maps):
    X, y = world.training()
    params = {"n_maps": n_maps, "n_epochs": 3, "random_state": 0, "dtype": "float64"}
    plain = LatEm(world.embeddings["att"], **params).fit(X, y)
    model = LatEm(world.embeddings["att"], balance_classes=True, **params).fit(X, y)
    np.testing.assert_allclose(model.maps_, plain.maps_, atol=1e-9)  # training is the same
    features = model.scaler_.transform(X, "float64")
    vectors = model.class_view_.candidates("all").vectors
    by_map = np.einsum("nd,kde,ce->knc", features, model.maps_, vectors)
    np.testing.assert_allclose((by_map**2).mean(axis=(0, 1)), 1)
    np.testing.assert_allclose(model.decision_function(X, "all"), by_map.max(axis=0))
    unit = plain.class_view_.candidates("all").vectors
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors / lengths, unit)  # only lengths have changed


def test_balanced_answers_in_training_are_those_of_the_model(world):
    """Epochs are chosen by what the model of that epoch would answer."""
    X, y = world.training(val=False)
    X_val, y_val = world.validation()
    noisy = X_val + np.random.default_rng(0).normal(size=X_val.shape) * 0.5
    table, names = world.embeddings["att"], np.unique(y_val)
    seen = []
    params = {**TUNED, "n_epochs": 1, "random_state": 0, "dtype": "float64"}
    model = LatEm(table, **params)
    model.fit(X, y, callback=lambda info: seen.append(info.predict(noisy, names)))
    np.testing.assert_array_equal(seen[0], model.predict(noisy, names))


def test_balance_survives_files_and_further_training(world, tmp_path):
    X, y = world.training()
    model = LatEm(world.embeddings["att"], **TUNED, random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    X_new, _ = world.testing()
    expected = model.decision_function(X_new, "unseen")
    np.testing.assert_array_equal(again.decision_function(X_new, "unseen"), expected)
    again.partial_fit(X, y)
    scores = again.decision_function(X, "all")
    np.testing.assert_allclose((scores**2).mean(axis=0), 1, rtol=1e-4)
    rewrite(tmp_path / "m", lambda t, m: t.update(class_metric=t["class_metric"][1:]))
    with pytest.raises(FileFormatError, match="class_metric"):
        latem.load(tmp_path / "m")


def test_a_further_training_that_fails_changes_nothing(world):
    X, y = world.training()
    X_new, _ = world.testing()
    model = LatEm(world.embeddings["att"], **{**TUNED, "warm_start": True}, random_state=0)
    before = model.fit(X, y).decision_function(X_new, "unseen")

    def interrupt(info):
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            model.fit(X[:9], y[:9], callback=interrupt)
        np.testing.assert_array_equal(model.decision_function(X_new, "unseen"), before)
    assert "image_moment_" not in vars(model)


def test_further_training_uses_plain_class_vectors(world):
    X, y = world.training()
    params = {"n_maps": 2, "n_epochs": 2, "warm_start": True, "random_state": 0, "dtype": "float64"}
    plain = LatEm(world.embeddings["att"], **params).fit(X, y).fit(X, y)
    model = LatEm(world.embeddings["att"], balance_classes=True, **params).fit(X, y).fit(X, y)
    np.testing.assert_allclose(model.maps_, plain.maps_, atol=1e-9)


def test_balance_can_end_with_further_training(world):
    X, y = world.training()
    model = LatEm(world.embeddings["att"], **{**TUNED, "warm_start": True}, random_state=0)
    model.fit(X, y).set_params(balance_classes=False).fit(X, y)
    plain = model.scaler_.transform(X, "float32") @ model.maps_[0] @ model.class_view_.training().T
    np.testing.assert_allclose(model.decision_function(X), plain, rtol=1e-4, atol=1e-5)


def test_balance_counts_the_images_of_all_calls(world):
    X, y = world.training()
    model = LatEm(world.embeddings["att"], **TUNED, random_state=0)
    for rows in np.array_split(np.random.default_rng(0).permutation(len(X)), 4):
        model.partial_fit(X[rows], y[rows], classes=np.unique(y))
    model.partial_fit(X[:1], y[:1])
    assert model.score(*world.testing()) > 0.9


@pytest.mark.parametrize("make", [
    lambda t: ESZSL(t, balance_classes=True),
    lambda t: LatEm(t, **TUNED, random_state=0),
])  # fmt: skip
def test_scores_that_are_nothing_are_not_blown_up(make):
    """Classes that have nothing in common with seen ones get no say by balance."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(25, 25)))[0]
    y = np.arange(800) % 20
    X = basis[y] + 0.1 * rng.normal(size=(800, 25)) @ basis[:20].T @ basis[:20]
    model = make((np.arange(25), basis)).set_params(feature_scaling="l2").fit(X, y)
    scores = model.decision_function(X, "all")
    assert (scores.argmax(axis=1) == y).mean() > 0.99


def test_balance_is_decided_when_fitting(world, tmp_path):
    X, y = world.training()
    for before in (True, False):
        model = LatEm(world.embeddings["att"], **{**TUNED, "balance_classes": before})
        expected = model.fit(X, y).decision_function(X, "all")
        model.set_params(balance_classes=not before)
        np.testing.assert_array_equal(model.decision_function(X, "all"), expected)
        model.save(tmp_path / "m")
        again = latem.load(tmp_path / "m")
        assert again.balance_classes is before
        np.testing.assert_array_equal(again.decision_function(X, "all"), expected)


def test_eszslcv_chooses_by_balanced_scores(world):
    X, y = world.training()
    noisy = X + np.random.default_rng(0).normal(size=X.shape) * 0.7
    val = np.array(world.split().val)
    out = np.isin(y, val)
    params = {"feature_scaling": "l2-centered", "dtype": "float64", "balance_classes": True}
    search = ESZSLCV(world.embeddings["att"], cv=val, **params).fit(noisy, y)
    for i, gamma in enumerate(np.sort(search.gammas)):
        model = ESZSL(world.embeddings["att"], gamma=gamma, lam=1.0, **params)
        own = model.fit(noisy[~out], y[~out]).score(noisy[out], y[out], val)
        j = int(np.flatnonzero(np.sort(search.lams) == 1.0)[0])
        assert search.cv_scores_[i, j] == pytest.approx(own)


def test_averaging_goes_on_after_a_checkpoint(world, tmp_path):
    X, y = world.training()
    params = {**TUNED, "n_maps": 2, "init_scale": 0.1, "random_state": 0}
    whole = LatEm(world.embeddings["att"], **{**params, "n_epochs": 6}).fit(X, y)
    path = tmp_path / "c"
    LatEm(world.embeddings["att"], **params).fit(X, y, checkpoint=path)
    part = LatEm(world.embeddings["att"], **{**params, "n_epochs": 6}).fit(X, y, checkpoint=path)
    np.testing.assert_array_equal(whole.maps_, part.maps_)
    again = LatEm(world.embeddings["att"], **{**params, "n_epochs": 6}).fit(X, y, checkpoint=path)
    np.testing.assert_array_equal(whole.maps_, again.maps_)


def test_tuned_preset_names_every_image_of_an_easy_world(world):
    search = LatEmCV(world.embeddings["att"], preset="tuned", cv=world.split().val, random_state=0)
    search.fit(*world.training())
    assert search.score(*world.testing()) == 1.0
    assert search.best_estimator_.start == "eszsl"
    assert set(search.best_params_) == {
        *("start_gamma", "start_lam", "n_epochs", "n_maps", "learning_rate")
    }
    assert search.best_params_["n_epochs"] in (2, 6)
    assert (search.best_params_["n_maps"], search.best_params_["learning_rate"]) == (1, 0.03)


def test_what_is_given_beats_the_preset(world):
    search = LatEmCV(
        world.embeddings["att"], preset="tuned", n_maps=(2, 3), n_epochs=1, learning_rate=[0.01],
        cv=world.split().val, random_state=0,
    ).fit(*world.training())  # fmt: skip
    best = search.best_estimator_
    assert best.maps_.shape[0] in (2, 3)
    assert (best.n_epochs, best.learning_rate) == (1, 0.01)
    assert not np.allclose(best.maps_[0], best.maps_[1])


def test_tuned_preset_chooses_as_eszsl_does(world):
    """The penalties are those that the closed form alone likes best on the held-out classes."""
    X, y = world.training()
    val = list(world.split().val)
    noisy = X + np.random.default_rng(0).normal(size=X.shape).astype(X.dtype) * 0.5
    table = world.embeddings["att"]
    search = LatEmCV(table, preset="tuned", cv=val, random_state=0).fit(noisy, y)
    out = np.isin(y, val)
    mean = table.select(np.unique(y[~out])).vectors.mean(axis=0)
    from latem import ClassEmbeddings

    centred = ClassEmbeddings(table.names, table.vectors - mean)
    scores = {}
    for gamma in 10.0 ** np.arange(-3, 5):
        for lam in 10.0 ** np.arange(-2, 3):
            model = ESZSL(
                centred, gamma=gamma, lam=lam, feature_scaling="l2-centered", dtype="float64"
            ).fit(noisy[~out], y[~out])
            spread = np.sqrt((model.decision_function(noisy[~out], val) ** 2).mean(axis=0))
            named = np.array(val)[(model.decision_function(noisy[out], val) / spread).argmax(1)]
            scores[gamma, lam] = mean_class_accuracy(y[out], named)
    best, chosen = max(scores.values()), search.best_params_
    assert scores[chosen["start_gamma"], chosen["start_lam"]] == pytest.approx(best)


def test_classes_that_are_the_mean_are_nothing_instead_of_noise():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 4)), np.arange(20) % 4
    table = (range(4), np.tile([0.1, 0.7, 0.3], (4, 1)))
    model = LatEm(table, center_classes=True, n_epochs=2, random_state=0).fit(X, y)
    assert not model.decision_function(X).any()
