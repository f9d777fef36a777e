"""Models that are served: by name, and replaced while they are."""

import os

import numpy as np
import pytest

pytest.importorskip("fastapi")

from latem import ESZSL, LatEm, make_latent_world
from latem.models.answering import Asked
from latem.server.problems import ProblemError
from latem.server.shelf import Shelf, Source


@pytest.fixture(scope="module")
def world():
    return make_latent_world(random_state=0)


@pytest.fixture
def path(world, tmp_path):
    path = tmp_path / "birds.safetensors"
    ESZSL(world.embeddings["att"]).fit(*world.training()).save(path)
    return path


def test_models_by_name(world, path):
    other = LatEm(world.embeddings["att"], n_epochs=1, n_maps=2, random_state=0)
    shelf = Shelf({"birds": path, "other": other.fit(*world.training())}, Source(world))
    assert shelf.names == ["birds", "other"]
    assert shelf.get() is shelf.get("birds")
    assert shelf.get("other").facts["n_maps"] == 2
    with pytest.raises(ProblemError, match="no model 'x'; there are birds, other") as refused:
        shelf.get("x")
    assert refused.value.status == 404
    with pytest.raises(ValueError, match="no model to serve"):
        Shelf({}, Source())


def test_a_replaced_file_is_read_again(world, path):
    noted = []
    shelf = Shelf({"birds": path}, Source(world), lambda *facts: noted.append(facts))
    before = shelf.get()
    assert shelf.refresh() == []
    again = path.with_name("new.safetensors")
    LatEm(world.embeddings["att"], n_epochs=1, n_maps=3, random_state=0).fit(
        *world.training()
    ).save(again)
    os.replace(again, path)
    assert shelf.refresh() == ["birds"]
    assert shelf.get().version == 2
    assert shelf.get().facts["kind"] == "LatEm"
    assert before.facts["kind"] == "ESZSL"  # who has it may go on asking it
    path.write_bytes(b"nonsense")
    assert shelf.refresh() == []
    assert shelf.get().version == 2
    path.unlink()
    assert shelf.refresh() == []
    assert noted == [("birds", "ok", 1), ("birds", "ok", 2), ("birds", "failed", 2)]


def test_a_model_that_does_not_fit_the_dataset_is_not_taken_over(world, path):
    shelf = Shelf({"birds": path}, Source(world))
    X, y = world.training()
    ESZSL(world.embeddings["att"]).fit(X[:, 1:], y).save(path)
    assert shelf.refresh() == []
    assert shelf.get().version == 1


def test_questions_are_kept(world, path):
    served = Shelf({"birds": path}, Source()).get()
    made = []

    def make():
        made.append(1)
        return Asked(served.model)

    first = served.asked("key", make)
    assert served.asked("key", make) is first
    assert len(made) == 1
    for number in range(100):
        served.asked(number, make)
    assert served.asked("key", make) is not first  # only so many are


def test_facts_without_encoder_and_words(world, path):
    facts = Shelf({"birds": path}, Source(world)).get().facts
    assert facts["names_pictures"] is False
    assert "does not know which encoder" in facts["why_no_pictures"]
    assert facts["words"] is None
    assert facts["n_features"] == world.features.shape[1]
    assert facts["n_seen"] + facts["n_unseen"] == len(world.embeddings["att"])


def test_scores_are_measured_or_it_is_said_why_not(world, path):
    served = Shelf({"birds": path}, Source(world)).get()
    served.measure()
    assert served.scores["status"] == "ready"
    assert 0 <= served.scores["result"]["top_1"] <= 1
    alone = Shelf({"birds": path}, Source()).get()
    alone.measure()
    assert alone.scores["status"] == "unavailable"
    assert "dataset" in alone.scores["why"]
    X, y = world.all_images()
    greedy = ESZSL(world.embeddings["att"]).fit(X, y)
    cheat = Shelf({"birds": greedy}, Source(world)).get()
    cheat.measure()
    assert cheat.scores["status"] == "unavailable"
    assert np.isin(world.split().test, greedy.classes_).all()
