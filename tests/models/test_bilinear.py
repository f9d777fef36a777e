"""SJE, ALE and DeViSE against the authors' code and against plain NumPy."""

import numpy as np
import pytest
import reference
from helpers import GOLDEN, random_problem
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

import latem
from latem import ALE, SJE, DeViSE, LatEm, make_latent_world
from latem.models.bilinear import draw_weights, warp_weights
from latem.models.sgd import dense
from latem.models.sgd.dense import DenseClassSpace, DenseEmbeddingSpace, dense_form, dense_length
from latem.models.sgd.loop import LONGEST_BLOCK, SHORTEST_BLOCK

FORMS = {"class": DenseClassSpace, "embedding": DenseEmbeddingSpace}
PLAIN = {"feature_scaling": None, "normalize_classes": False, "dtype": "float64"}


@parametrize_with_checks(
    [SJE(random_state=0), SJE(normalize_projection=True, n_maps=2, random_state=0),
     ALE(random_state=0), ALE(weighting="draws", n_maps=2, random_state=0),
     DeViSE(random_state=0), DeViSE(violators="all", n_maps=2, random_state=0)]
)  # fmt: skip
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def scripted(kind, maps, visits, form, **params):
    """A model of this kind whose random choices are given: initial maps, orders and draws."""

    class Scripted(kind):
        def __init__(self):
            super().__init__(**params)

        def _initial_maps(self, shape):
            assert shape == maps.shape
            return maps.astype(self.dtype)

        def _order(self, rng, n_samples):
            self.epoch = getattr(self, "epoch", -1) + 1
            return visits[self.epoch][0]

        def _draws(self, rng):
            keys = iter(visits[self.epoch][1])
            return lambda n, c: np.array([next(keys)[:c] for _ in range(n)])

        def _space(self, maps, vectors):
            project = {"project": True} if params.get("normalize_projection") else {}
            return FORMS[form](maps, vectors, **project)

    return Scripted()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("length", [1, 3, 60, 61])
def test_golden_sje(form, length, monkeypatch):
    monkeypatch.setattr(dense, "dense_length", lambda *_: length)
    with np.load(GOLDEN) as golden:
        maps, Y = golden["W0"][:1], golden["S"]
        visits = [(order, np.zeros((60, 0))) for order in golden["perm"]]
        params = {"learning_rate": float(golden["eta"]), "n_epochs": len(visits), **PLAIN}
        model = scripted(SJE, maps, visits, form, class_embeddings=(range(len(Y)), Y), **params)
        model.fit(golden["X"], golden["y"])
        np.testing.assert_allclose(model.maps_[0], golden["W_sje_final"], rtol=0, atol=1e-10)
        accuracy = model.score(golden["X_test"], golden["y_test"])
        assert accuracy == pytest.approx(float(golden["sje_acc"]), abs=1e-12)


KINDS = {
    "SJE": (SJE, {}, "worst", None),
    "SJE of 2015": (SJE, {"normalize_projection": True}, "worst", None),
    "ALE": (ALE, {"margin": 0.4}, "first", warp_weights),
    "ALE of 2016": (ALE, {"weighting": "draws", "margin": 0.4}, "first", draw_weights),
    "DeViSE": (DeViSE, {"margin": 0.4}, "first", lambda n: np.ones(n)),
    "DeViSE, all": (DeViSE, {"violators": "all", "margin": 0.4}, "all", lambda n: np.ones(n)),
}


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(sorted(KINDS)),
    st.sampled_from(sorted(FORMS)),
    st.fixed_dictionaries(
        {
            "seed": st.integers(0, 2**16),
            "n": st.integers(8, 60),
            "d": st.integers(1, 9),
            "c": st.integers(2, 8),
            "e": st.integers(1, 7),
            "k": st.integers(1, 4),
            "epochs": st.integers(1, 4),
        }
    ),
    st.integers(1, 80),
    st.booleans(),
)
def test_training_is_the_plain_algorithm(name, form, size, length, many_classes):
    kind, options, rule, weights = KINDS[name]
    if "2015" in name:  # in one dimension all directions are ties
        form, size = "embedding", {**size, "e": max(size["e"], 2)}
    p = random_problem(**size)
    rng = np.random.default_rng(size["seed"])
    n, c = len(p["y"]), len(p["Y"])
    visits = [(order, rng.random((n, c))) for order, _ in p["visits"]]
    table = weights(c) if weights else None
    expected = p["W"].copy()
    losses, rates = [], []
    for order, keys in visits:
        violations, loss = reference.dense_epoch(
            p["X"], p["y"], p["Y"], expected, order, keys, rule, 0.1, options.get("margin", 1.0),
            weight=lambda draws: table[draws], normalize="2015" in name,
        )  # fmt: skip
        losses.append(loss / n)
        rates.append(violations / n)
    params = {"n_maps": size["k"], "learning_rate": 0.1, "n_epochs": len(visits), **PLAIN}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "dense_length", lambda *_: length)
        if many_classes:  # as if there were too many for a table of their products
            patch.setattr("latem.models.sgd.dense._LARGEST_GRAM", 1)
        model = scripted(
            kind, p["W"], visits, form, class_embeddings=(range(c), p["Y"]), **options, **params
        ).fit(p["X"], p["y"])
    np.testing.assert_allclose(model.maps_, expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(model.history_["mean_loss"], losses, rtol=1e-8, atol=1e-8)
    assert model.history_["violation_rate"] == pytest.approx(rates)


def test_weights_are_the_published_ones():
    assert warp_weights(5).tolist() == pytest.approx([25 / 12, 25 / 12, 1.5, 1.0, 1.0])
    assert draw_weights(4).tolist() == pytest.approx([1, 1, 1 / 2, 1 / 3])


def test_margin_follows_the_weighting():
    assert ALE()._schedule(1).margin == 1.0
    assert ALE(weighting="draws")._schedule(1).margin == 0.1
    assert ALE(weighting="draws", margin=0.5)._schedule(1).margin == 0.5
    assert DeViSE()._schedule(1).margin == 0.1


def test_forms_and_lengths():
    assert dense_form(150, 1024, 312, 1) == "class"
    assert dense_form(20_000, 1024, 300, 1) == "embedding"
    assert dense_length(150, 1, 1.0) == 48
    assert dense_length(150, 1, 1e-6) == LONGEST_BLOCK
    assert dense_length(50_000_000, 1, 1.0) == SHORTEST_BLOCK


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_images=10, random_state=0)


@pytest.mark.parametrize("kind", [SJE, ALE, DeViSE])
def test_one_map_names_every_image_of_a_world_with_one_pose(world, kind):
    model = kind(world.embeddings["att"], random_state=0).fit(*world.training())
    assert model.score(*world.testing()) == 1.0


@pytest.mark.parametrize("kind", [SJE, ALE, DeViSE])
def test_two_maps_name_what_one_cannot(kind):
    world = make_latent_world(random_state=0)
    scores = [
        kind(world.embeddings["att"], n_maps=n_maps, random_state=0)
        .fit(*world.training())
        .score(*world.testing())
        for n_maps in (1, 2)
    ]
    assert scores[0] < 0.6
    assert scores[1] > 0.9


def test_projection_by_direction_scores_cosines(world):
    table = world.embeddings["att"]
    X, y = world.training()
    model = SJE(table, normalize_projection=True, n_maps=2, n_epochs=5, random_state=0).fit(X, y)
    scores = model.decision_function(X, "all")
    scaled = model.scaler_.transform(X, "float32")
    unit = table.unit_vectors()
    expected = []
    for x in scaled:
        projected = [x @ W for W in model.maps_]
        expected.append(np.max([p @ unit.T / np.linalg.norm(p) for p in projected], axis=0))
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert np.abs(scores).max() <= 1 + 1e-6
    assert model.latent_map(X).max() == 1


def test_images_in_their_own_order(world):
    X, y = world.training()
    model = SJE(world.embeddings["att"], shuffle=False, init_scale=0, n_epochs=3)
    once, twice = (model.fit(X, y).maps_.copy() for _ in range(2))
    np.testing.assert_array_equal(once, twice)  # nothing random is left
    turned = model.fit(X[::-1], y[::-1]).maps_
    assert not np.array_equal(once, turned)


@pytest.mark.parametrize("kind", [SJE, ALE, DeViSE, LatEm])
def test_best_epoch_on_held_out_classes(kind):
    world = make_latent_world(n_poses=1, n_images=6, noise=0.5, random_state=1)
    X, y = world.training(val=False)
    held_out = world.validation()
    seen = []
    model = kind(world.embeddings["att"], n_epochs=12, learning_rate=1.0, random_state=0)
    model.fit(X, y, validation=held_out, callback=lambda info: seen.append(info.maps()) and None)
    scores = model.history_["validation_score"]
    assert len(scores) == 12
    assert model.best_epoch_ == 1 + int(np.argmax(scores))
    np.testing.assert_array_equal(model.maps_, seen[model.best_epoch_ - 1])
    assert model.score(*held_out) == max(scores)
    with pytest.raises(ValueError, match="only held-out classes"):
        model.fit(X, y, validation=(X, y))
    one = held_out[1] == held_out[1][0]
    with pytest.raises(ValueError, match="one class only"):
        model.fit(X, y, validation=(held_out[0][one], held_out[1][one]))
    with pytest.raises(ValueError, match="one fresh training only"):
        model.fit(X, y, validation=held_out, checkpoint="anywhere")


@pytest.mark.parametrize("kind", [SJE, ALE, DeViSE, LatEm])
def test_training_stops_when_held_out_classes_gain_no_more(kind):
    world = make_latent_world(n_poses=1, n_images=6, noise=0.5, random_state=1)
    data, held_out = world.training(val=False), world.validation()
    model = kind(world.embeddings["att"], n_epochs=30, learning_rate=1.0, random_state=0)
    whole = model.fit(*data, validation=held_out).history_["validation_score"]
    best, maps = model.best_epoch_, model.maps_
    model.fit(*data, validation=held_out, n_iter_no_change=30)  # never reached
    assert (model.n_iter_, model.best_epoch_) == (30, best)
    np.testing.assert_array_equal(model.maps_, maps)
    for patience in (1, 2, 3):
        model.fit(*data, validation=held_out, n_iter_no_change=patience)
        scores = model.history_["validation_score"]
        stop = next(
            n for n in range(patience + 1, 31) if max(whole[:n]) == max(whole[: n - patience])
        )
        assert model.n_iter_ == len(scores) == stop < 30
        assert scores == whole[:stop]
        assert model.best_epoch_ == 1 + int(np.argmax(scores)) == stop - patience
        assert model.score(*held_out) == max(scores)


def test_early_stopping_needs_held_out_images(world):
    X, y = world.training(val=False)
    model = SJE(world.embeddings["att"], n_epochs=2)
    with pytest.raises(ValueError, match="n_iter_no_change=3 needs held-out images.* validation"):
        model.fit(X, y, n_iter_no_change=3)
    for odd in (0, 1.5, True, "2"):
        with pytest.raises(ValueError, match=f"whole number from 1, not {odd!r}"):
            model.fit(X, y, validation=world.validation(), n_iter_no_change=odd)


def test_checkpoint_continues_to_the_same_bytes(world, tmp_path):
    X, y = world.training()
    whole = ALE(world.embeddings["att"], n_epochs=8, random_state=0).fit(X, y)
    path = tmp_path / "c"
    part = ALE(world.embeddings["att"], n_epochs=3, random_state=0).fit(X, y, checkpoint=path)
    part.set_params(n_epochs=8).fit(X, y, checkpoint=path)
    np.testing.assert_array_equal(whole.maps_, part.maps_)
    with pytest.raises(ValueError, match="belongs to a training with other"):
        ALE(world.embeddings["att"], weighting="draws").fit(X, y, checkpoint=path)


def test_more_epochs_by_partial_fit_and_warm_start(world):
    X, y = world.training()
    model = SJE(world.embeddings["att"], n_epochs=2, warm_start=True, random_state=0)
    model.fit(X, y).fit(X, y)
    assert model.n_iter_ == 4
    steps = SJE(world.embeddings["att"], random_state=0)
    for _ in range(4):
        steps.partial_fit(X, y)
    np.testing.assert_allclose(model.maps_, steps.maps_, atol=1e-5)


def test_bad_parameters(world):
    X, y = world.training()
    with pytest.raises(ValueError, match="'weighting' parameter of ALE"):
        ALE(weighting="best").fit(X, y)
    with pytest.raises(ValueError, match="'violators' parameter of DeViSE"):
        DeViSE(violators="worst").fit(X, y)
    with pytest.raises(ValueError, match="diverged"):
        SJE(world.embeddings["att"], learning_rate=1e38).fit(X, y)


def test_files(world, tmp_path):
    X, y = world.training()
    for kind in (SJE(normalize_projection=True), ALE(), DeViSE()):
        model = kind.set_params(class_embeddings=world.embeddings["att"], n_epochs=3).fit(X, y)
        model.save(tmp_path / "m")
        again = latem.load(tmp_path / "m")
        assert type(again) is type(model)
        assert again.best_epoch_ == 3
        np.testing.assert_array_equal(
            again.decision_function(X, "all"), model.decision_function(X, "all")
        )
