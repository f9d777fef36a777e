"""What training chose is what an evaluation measures."""

from dataclasses import replace

import numpy as np
import pytest

from latem import ESZSL, evaluate, make_latent_world, train
from latem.datasets import hold_out
from latem.models.answers import VERDICTS


@pytest.fixture(scope="module")
def world():
    world = make_latent_world(n_poses=1, n_seen=24, n_unseen=6, n_images=10, random_state=0)
    return replace(world, splits={"standard": hold_out(world, world.split())})


@pytest.fixture(scope="module")
def result(world):
    return evaluate(train(world, kind="ESZSL"), world, generalized=True, calibrate=True)


def test_penalty_and_temperature_are_the_models_own(world):
    model = train(world, kind="ESZSL")
    model.seen_penalty_, model.temperature_ = 0.125, 3.0
    found = evaluate(model, world, generalized=True, calibrate=True)
    assert found.generalized.gamma == 0.125
    assert found.probabilities.test.temperature == found.probabilities.val.temperature == 3.0
    assert hasattr(model, "acceptance_")


def test_verdicts_by_hand(world, result):
    model = train(world, kind="ESZSL")
    test = np.array(world.split().test)
    images = {"unseen": world.testing()[0], "seen": world.features[list(world.split().held_out)]}
    assert set(result.probabilities.verdicts) == set(images)
    for part, X in images.items():
        given = [answer.verdict for answer in model.answer(X, test)]
        shares = {verdict: given.count(verdict) / len(X) for verdict in VERDICTS}
        assert result.probabilities.verdicts[part] == pytest.approx(shares)
    named = {part: shares["named"] for part, shares in result.probabilities.verdicts.items()}
    assert named["unseen"] > named["seen"] + 0.1


def test_verdicts_are_told(result):
    assert "images of seen classes" in result.to_text()
    assert result.to_dict()["probabilities"]["verdicts"] == result.probabilities.verdicts
    assert ("verdicts, seen", "doubtful") in [row[:2] for row in result.to_rows()]


def test_a_model_that_cannot_tell_has_none(world):
    plain = evaluate(ESZSL(world.embeddings["att"]), world, calibrate=True)
    assert plain.probabilities.verdicts is None
    assert "Verdicts" not in plain.to_text()
