"""What a model takes for one of the candidates; it travels with the model."""

import pickle

import numpy as np
import pytest
from helpers import rewrite
from scipy.special import logsumexp
from sklearn.base import clone

import latem
from latem import ESZSL, HeldOutSearch, LateFusion, LatEmCV, calibrate_answers, make_latent_world
from latem.models.acceptance import ahead_of_rivals


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_seen=24, n_unseen=8, n_images=10, random_state=0)


@pytest.fixture(scope="module")
def model(world):
    fitted = ESZSL(world.embeddings["att"]).fit(*world.training())
    calibrate_answers(fitted, *world.training(), cv=world.split().val)
    return fitted


def strangers(world, n=200):
    rng = np.random.default_rng(9)
    X = world.training()[0]
    return X.mean(axis=0) + rng.normal(size=(n, X.shape[1])) * X.std(axis=0)


def test_outsiders_are_strange_and_own_images_are_not(world, model):
    X, y = world.testing()
    own = model.strangeness(X, "unseen")
    assert np.median(own) < 0.1
    half = list(world.split().test[:4])
    left_out = ~np.isin(y, half)
    assert model.strangeness(X[left_out], half).mean() > 5 * own.mean()
    seen = world.training()[0]
    assert model.strangeness(seen, "unseen").mean() > own.mean() + 0.2
    assert np.median(model.strangeness(strangers(world), "unseen")) > 0.5


def test_a_single_candidate(world, model):
    X, y = world.testing()
    name = world.split().test[0]
    strange = model.strangeness(X, [name])
    assert strange[y == name].mean() < strange[y != name].mean() - 0.2


def test_probabilities_of_single_classes(world, model):
    X, y = world.testing()
    names = list(world.split().test)
    each = model.predict_proba_each(X, names)
    assert each.shape == (len(X), 8)
    own = each[np.arange(len(X)), [names.index(name) for name in y]]
    assert own.mean() > 0.7
    assert (each.sum() - own.sum()) / (each.size - len(own)) < 0.2
    alone = model.predict_proba_each(X, names[2:3])  # whatever the others are
    np.testing.assert_allclose(alone[:, 0], each[:, 2], rtol=1e-5)
    assert model.predict_proba_each(strangers(world), names).sum(axis=1).mean() < own.mean() * 3
    seen = model.predict_proba_each(world.training()[0][:20], "seen")
    assert np.isfinite(seen).all()


def test_ahead_of_rivals_leaves_out_the_class_itself():
    rng = np.random.default_rng(0)
    of_seen = rng.normal(size=(5, 4))
    scores = np.column_stack([of_seen[:, 2], rng.normal(size=5)])
    found = ahead_of_rivals(scores, of_seen, [2, None], 0.5)
    for place, column in ((2, 0), (None, 1)):
        others = of_seen if place is None else np.delete(of_seen, place, axis=1)
        rivals = logsumexp(others / 0.5, axis=1) - np.log(others.shape[1])
        np.testing.assert_allclose(found[:, column], scores[:, column] / 0.5 - rivals)


def test_it_travels(world, model, tmp_path):
    X, _ = world.testing()
    model.save(tmp_path / "m.safetensors")
    for other in (latem.load(tmp_path / "m.safetensors"), pickle.loads(pickle.dumps(model))):
        for classes in ("unseen", "all", "seen"):
            assert other.answer(X, classes).to_dicts() == model.answer(X, classes).to_dicts()
        np.testing.assert_array_equal(
            other.predict_proba_each(X, "all"), model.predict_proba_each(X, "all")
        )
        assert other.seen_penalty_ == model.seen_penalty_
    more = model.with_classes({"new": np.ones(model.class_table_.n_dimensions)})
    assert len(more.answer(X, "unseen", top=99)[0].names) == 9
    assert not hasattr(clone(model), "acceptance_")
    again = pickle.loads(pickle.dumps(model)).fit(*world.training())
    assert not hasattr(again, "acceptance_")
    assert not hasattr(again, "seen_penalty_")


@pytest.mark.parametrize("kind", ["search", "tuned", "fusion"])
def test_searches_and_fusions_too(world, kind, tmp_path):
    table, val = world.embeddings["att"], list(world.split().val)
    made = {
        "search": lambda: HeldOutSearch(ESZSL(table), {"gamma": [1.0], "lam": [1.0]}, cv=val),
        "tuned": lambda: LatEmCV(table, cv=val, random_state=0),
        "fusion": lambda: LateFusion([("a", ESZSL(table)), ("b", ESZSL(table, gamma=10.0))]),
    }[kind]()
    X, y = world.training()
    made.fit(X, y)
    calibrate_answers(made, X, y, cv=val)
    made.save(tmp_path / "m.safetensors")
    loaded = latem.load(tmp_path / "m.safetensors")
    X, _ = world.testing()
    assert loaded.answer(X).to_dicts() == made.answer(X).to_dicts()
    assert loaded.answer(X)[0].verdict is not None


@pytest.mark.parametrize(
    "change",
    [{"temperature": 0.0}, {"temperature": "x"}, {"false_accept_rate": 2.0}, {"kinship": None}],
)
def test_damaged_files_are_refused(model, change, tmp_path):
    path = tmp_path / "m.safetensors"
    model.save(path)
    rewrite(path, lambda tensors, meta: meta["acceptance"].update(change))
    with pytest.raises(latem.FileFormatError):
        latem.load(path)


def test_without_it_a_model_says_so(world):
    fitted = ESZSL(world.embeddings["att"]).fit(*world.training())
    X, _ = world.testing()
    with pytest.raises(ValueError, match=r"latem\.train, or call latem\.calibrate_answers"):
        fitted.strangeness(X, "unseen")
    with pytest.raises(ValueError, match="cannot keep a false-accept rate"):
        fitted.answer(X, false_accept_rate=0.1)
    answer = fitted.answer(X, false_accept_rate=1)[0]
    assert (answer.verdict, answer.strangeness, answer.probabilities) == (None, None, None)
