"""From images to answers: penalty, probabilities, verdicts. Pictures: tests/workflows."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from latem import ESZSL, LatEm, calibrate_answers, make_latent_world, train
from latem.datasets import hold_out
from latem.models.answering import Asked
from latem.models.answers import VERDICTS


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_seen=24, n_unseen=8, n_images=10, random_state=0)


@pytest.fixture(scope="module")
def model(world):
    return train(world, kind="ESZSL")


def test_answers_by_hand(world, model):
    X, _ = world.testing()
    scores = model.decision_function(X, "unseen")
    names = model.candidate_names("unseen")
    p = softmax(scores.astype(np.float64) / model.temperature_, axis=1)
    for answer, row, sure in zip(model.answer(X, top=3), scores, p, strict=True):
        best = np.argsort(-row, kind="stable")[:3]
        assert answer.names == names[best].tolist()
        assert answer.scores == row[best].tolist()
        np.testing.assert_allclose(answer.probabilities, sure[best], rtol=1e-6)


def test_verdicts_follow_from_strangeness(world, model):
    X = np.concatenate([world.testing()[0], world.training()[0]])
    usual = model.usual_strangeness("unseen", 0.92)
    for rate in (0.0, 0.05, 0.4, 1.0):
        for answer in model.answer(X, "unseen", false_accept_rate=rate):
            doubtful = answer.strangeness > rate or (answer.probabilities[0] < 0.5 and rate < 1)
            place = 2 if answer.strangeness > max(usual, rate) else int(doubtful)
            assert answer.verdict == VERDICTS[place]
    assert model.answer(X, false_accept_rate=1).count("named") == len(X)
    counts = [model.answer(X).count(verdict) for verdict in VERDICTS]
    assert sum(counts) == len(X)
    assert min(counts[0], counts[2]) > 0


def test_the_penalty_is_used_where_seen_and_unseen_classes_meet(world, model):
    X, _ = world.testing()
    assert Asked(model, "all").penalty == model.seen_penalty_
    assert Asked(model, ["unseen", world.split().train[0]]).penalty == model.seen_penalty_
    for classes in ("seen", "unseen", list(world.split().test[:3])):
        assert Asked(model, classes).penalty == 0
    assert Asked(model, "all", seen_penalty=0).penalty == 0
    by_hand = model.class_scores(X, "all") - model.seen_penalty_ * np.isin(
        model.candidate_names("all"), model.classes_
    )
    named = model.candidate_names("all")[by_hand.argmax(axis=1)]
    assert [a.names[0] for a in model.answer(X, "all")] == named.tolist()


def test_candidates_are_looked_up_once(world, model, tmp_path):
    """A table that changes meanwhile changes nothing; None are the unseen classes."""
    path = tmp_path / "new.csv"
    model.class_table_.select(list(world.split().test[:3])).to_frame().to_csv(path)
    asked = Asked(model, path)
    path.write_text("class\n")
    X, _ = world.testing()
    names = set(world.split().test[:3])
    assert all(set(a.names) == names for a in asked.answers(X, [""] * len(X)))
    assert Asked(model, None).names.tolist() == model.candidate_names("unseen").tolist()
    assert Asked(model, iter(world.split().test[:2])).names.tolist() == list(world.split().test[:2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top": 0}, "top must be a whole number"),
        ({"top": True}, "top must be a whole number"),
        ({"seen_penalty": float("nan")}, "seen_penalty must be a finite number"),
        ({"seen_penalty": "1"}, "seen_penalty must be a finite number"),
        ({"false_accept_rate": float("nan")}, "false_accept_rate must be a finite number"),
        ({"false_accept_rate": 1.5}, "a share from 0 to 1"),
    ],
)
def test_bad_requests(world, model, options, message):
    with pytest.raises(ValueError, match=message):
        model.answer(world.testing()[0], **options)


def test_any_model_on_a_dataset_that_knows_its_encoder_can_try(world):
    plain = LatEm(world.embeddings["att"], n_epochs=1, random_state=0).fit(*world.training())
    with pytest.raises(ValueError, match="does not know which encoder"):
        plain.name_pictures([])
    assert plain.answer(world.testing()[0][:2])[0].probabilities is None


def test_false_accept_rate_are_as_many_as_wanted():
    """On images that nothing was chosen on, for several numbers of candidates."""
    world = make_latent_world(n_poses=1, n_seen=60, n_unseen=24, n_images=12, random_state=3)
    world = replace(world, splits={"standard": hold_out(world, world.split(), 0.3)})
    X, y = world.training()
    model = ESZSL(world.embeddings["att"]).fit(X, y)
    calibrate_answers(model, X, y, cv=5)
    X, y = world.testing()
    seen = world.features[list(world.split().held_out)]
    test = np.array(world.split().test)
    for n in (4, 8, 16):
        found = []
        for draw in range(6):
            some = np.random.default_rng(draw).permutation(test)[:n].tolist()
            near = model.strangeness(X[~np.isin(y, some)], some)
            of_seen = model.strangeness(seen, some)
            found.append(((near <= 0.2).mean() + (of_seen <= 0.2).mean()) / 2)
        assert np.mean(found) == pytest.approx(0.2, abs=0.08)
