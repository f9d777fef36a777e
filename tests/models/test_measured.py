"""How good a model was when it was trained travels with it."""

import pytest
from helpers import rewrite
from model_suite import EVERY, make
from sklearn.base import clone

import latem
from latem import FileFormatError, Measured, make_latent_world
from latem.workflows.train import train_model

RECORD = Measured("birds", "standard", "att", {"gamma": 1.0}, 0.5, 0.25, 4)


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_seen=12, n_images=6, random_state=0)


@pytest.fixture(scope="module")
def table(world):
    att = world.embeddings["att"]
    return latem.ClassEmbeddings(att.names, att.vectors - att.vectors.min(), name="att")


@pytest.mark.parametrize("kind", EVERY)
def test_every_model_keeps_it_in_its_file(kind, world, table, tmp_path):
    model = make(kind, table).fit(*world.training())
    assert not hasattr(model, "measured_")
    model.save(tmp_path / "m")
    assert not hasattr(latem.load(tmp_path / "m"), "measured_")
    model.measured_ = RECORD
    model.save(tmp_path / "m")
    assert latem.load(tmp_path / "m").measured_ == RECORD
    assert not hasattr(clone(model), "measured_")
    assert not hasattr(model.fit(*world.training()), "measured_")  # another model


def test_training_measures(world, tmp_path):
    done = train_model(world, kind="ESZSL")
    found = done.model.measured_
    assert found.held_out_score == done.held_out_score
    assert found.unseen_score == done.unseen_score
    assert (found.n_unseen, found.chosen) == (done.n_unseen, done.chosen)
    assert (found.dataset, found.split, found.embedding) == (world.name, "standard", "att")
    done.model.save(tmp_path / "m")
    assert latem.load(tmp_path / "m").measured_ == found
    whole = train_model(world, kind="ESZSL", split=None, calibrate=False).model.measured_
    assert (whole.unseen_score, whole.n_unseen, whole.split) == (None, 0, None)
    given = train_model(world, kind="ESZSL", given={"gamma": 1.0, "lam": 1.0}, calibrate=False)
    assert (given.model.measured_.held_out_score, given.model.measured_.chosen) == (None, {})


def test_a_committee_s_choices_are_plain_data(world, tmp_path):
    model = latem.train(world, calibrate=False)
    model.save(tmp_path / "m")
    assert latem.load(tmp_path / "m").measured_.to_dict() == model.measured_.to_dict()


def test_learning_more_forgets_it_and_calibrating_does_not(world, table):
    X, y = world.training()
    model = make("SJE", table).fit(X, y)
    model.measured_ = RECORD
    model.calibrate(*world.testing())
    assert model.with_classes({"new": table.vectors[0]}).measured_ == RECORD
    assert model.measured_ == RECORD
    model.partial_fit(X, y)
    assert not hasattr(model, "measured_")
    fusion = make("LateFusion", table).fit(X, y)
    fusion.measured_ = RECORD
    fusion.choose_weights(*world.testing())
    assert not hasattr(fusion, "measured_")


@pytest.mark.parametrize(
    "odd",
    [
        {"unseen_score": 1.5}, {"held_out_score": "x"}, {"held_out_score": True}, {"chosen": 3},
        {"n_unseen": 1.5}, {"dataset": 3}, {"n_unseen": True},
    ],
)  # fmt: skip
def test_records_that_cannot_be(odd, world, table, tmp_path):
    with pytest.raises(FileFormatError, match="a record of training"):
        Measured.from_dict(odd)
    make("ESZSL", table).fit(*world.training()).save(tmp_path / "m")
    rewrite(tmp_path / "m", lambda tensors, meta: meta.update(measured=odd))
    with pytest.raises(FileFormatError, match="is damaged: a record of training"):
        latem.load(tmp_path / "m")


def test_entries_of_later_versions_do_not_matter():
    assert Measured.from_dict({**RECORD.to_dict(), "mood": "good"}) == RECORD
