"""What an evaluation keeps of the answers, and the tables made of them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from latem import ESZSL, evaluate, make_latent_world
from latem.datasets import hold_out
from latem.evaluation import Scored, obstacles


@pytest.fixture(scope="module")
def world():
    world = make_latent_world(
        n_poses=1, n_seen=12, n_unseen=5, n_dimensions=12, n_images=8, noise=1.5, random_state=0
    )
    return replace(world, splits={"standard": hold_out(world, world.split(), 0.25)})


@pytest.fixture(scope="module")
def model(world):
    return ESZSL(world.embeddings["att"]).fit(*world.training())


@pytest.fixture(scope="module")
def result(world, model):
    return evaluate(model, world, generalized=True, calibrate=True)


def test_answers_are_those_of_the_model(world, model, result):
    answers, (X, y) = result.scored, world.testing()
    assert len(answers) == len(y) == result.n_images
    np.testing.assert_array_equal(world.labels[answers.rows], answers.y)
    np.testing.assert_array_equal(answers.named, model.predict(X, world.split().test))
    assert answers.right.mean() == pytest.approx((answers.named == y).mean())
    proba = model.predict_proba(X, world.split().test).max(axis=1)
    np.testing.assert_allclose(answers.confidence(model.temperature_), proba)


def test_places_and_probabilities_of_the_true_classes():
    scores = np.array([[3.0, 1, 2], [3, 3, 0], [0, 1, 2]])
    answers = Scored(np.arange(3), np.array(["a", "b", "a"]), np.array(["a", "b", "c"]), scores)
    assert answers.codes.tolist() == [0, 1, 0]
    assert answers.ranks.tolist() == [1, 1, 3]  # of equals the best
    shares = np.exp(scores / 2) / np.exp(scores / 2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(answers.of_own(2.0), shares[[0, 1, 2], [0, 1, 0]])


def test_best_images_are_those_of_rank_images(world, model, result):
    X, _ = world.testing()
    for name in world.split().test:
        rows, _ = model.rank_images(X, name, 5)
        assert result.scored.best_images(name, 5).tolist() == rows.tolist()


def test_frame_by_hand():
    y, named = np.array(list("aaabbc")), np.array(list("abbbba"))
    classes = np.array(list("abcd"))
    answers = Scored(np.arange(6), y, classes, (named[:, None] == classes).astype(float))
    base = evaluate_of(y, named)
    frame = replace(base, scored=answers).to_frame()
    assert frame.index.tolist() == ["a", "b", "c"]
    assert frame["accuracy"].tolist() == [pytest.approx(1 / 3), 1, 0]
    assert frame["images"].tolist() == [3, 2, 1]
    assert frame["named"].tolist() == [2, 4, 0]
    assert frame["mistaken_for"].tolist() == ["b", None, "a"]
    assert frame["mistakes"].tolist() == [2, 0, 1]
    assert list(base.to_frame().columns) == ["accuracy"]


def evaluate_of(y, named):
    from latem.evaluation import Evaluation
    from latem.metrics import per_class_accuracy

    per_class = per_class_accuracy(y, named)
    return Evaluation("M", "d", "s", len(y), 4, per_class.mean(), None, per_class.to_dict())


def test_plain_data_has_the_confusions_and_no_arrays(result):
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert {"answers", "curve"}.isdisjoint(data | data["generalized"])
    worst = result.scored.top_confusions().iloc[0]
    assert data["confusions"][0] == {
        "true": worst["true"],
        "named": worst["named"],
        "images": worst["count"],
        "of": worst["of"],
    }


def test_the_curve_holds_both_points(result):
    found = result.generalized
    for scores, gamma in ((found.plain, 0.0), (found.stacked, found.gamma)):
        place = np.searchsorted(found.curve.critical, gamma)
        assert found.curve.seen[place] == pytest.approx(scores.seen)
        assert found.curve.unseen[place] == pytest.approx(scores.unseen)
    assert found.curve.area == found.ausuc


def test_obstacles_say_what_evaluate_would(world, model):
    assert obstacles(model, world) == {"generalized": "", "calibrate": ""}
    split = world.split()
    bare = replace(split, held_out=())
    found = obstacles(model, world, bare)
    assert found["calibrate"] == ""
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        evaluate(model, world, bare, generalized=True)
    assert found["generalized"] == str(refused.value)
    no_val = replace(split, train=split.train + split.val, val=())
    assert "it needs at least 2" in obstacles(model, world, no_val)["calibrate"]
    part = ESZSL(world.embeddings["att"]).fit(*world.training(val=False))
    assert "was fitted to other classes" in obstacles(part, world)["generalized"]
    fresh = ESZSL(world.embeddings["att"])
    assert obstacles(fresh, world)["generalized"] == ""
    assert not fresh.__sklearn_is_fitted__()
