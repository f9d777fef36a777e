"""A model beside a dataset: classes, images, what fits, what is alike, and scores as plain data."""

import json
from dataclasses import replace

import numpy as np
import pytest

from latem import ESZSL, ClassEmbeddings, LatEm, evaluate, hold_out, load_emoji, make_latent_world
from latem.workflows.explore import Explorer
from latem.workflows.score_summary import score_summary


@pytest.fixture(scope="module")
def world():
    world = make_latent_world(n_images=20, random_state=0)
    split = hold_out(world, world.split(), 0.2)
    images = np.array([f"{i}.png" for i in range(len(world.labels))])
    table = world.embeddings["att"]
    columns = [f"trait {letter}" for letter in "abcdefgh"]
    named = ClassEmbeddings(table.names, table.vectors, name="att", columns=columns)
    return replace(
        world, splits={"standard": split}, images=images, name="world", embeddings={"att": named}
    )


@pytest.fixture(scope="module")
def model(world):
    table = world.embeddings["att"]
    return LatEm(table, n_maps=3, n_epochs=5, random_state=0).fit(*world.training())


@pytest.fixture(scope="module")
def explorer(world, model, tmp_path_factory):
    from PIL import Image

    folder = tmp_path_factory.mktemp("pictures")
    for row in range(0, len(world.labels), 2):
        Image.new("RGB", (4, 4), "red").save(folder / f"{row}.png")
    return Explorer(model, world, pictures=folder)


def test_classes(explorer, world, model):
    classes = explorer.classes()
    assert [one["name"] for one in classes] == model.candidate_names("all").tolist()
    assert sum(one["seen"] for one in classes) == len(model.classes_)
    assert sum(one["n_images"] for one in classes) == len(world.labels)
    for one in classes:
        assert one["picture"] is None or world.labels[one["picture"]] == one["name"]
    assert any(one["picture"] is not None for one in classes)
    json.dumps(classes)


def test_symbols():
    emoji = load_emoji()
    X, y = emoji.training()
    explorer = Explorer(ESZSL(emoji.embeddings["att"]).fit(X[:200], y[:200]), emoji)
    assert explorer.card("zebra")["symbol"] == "🦓"
    assert explorer.image(int(emoji.rows(["zebra"])[0]))["symbol"] == "🦓"


def test_rows(explorer, world, model):
    parts = {part: explorer.rows(part) for part in ("unseen", "seen", "all")}
    assert sorted([*parts["unseen"], *parts["seen"]]) == parts["all"].tolist()
    assert not np.isin(world.labels[parts["unseen"]], model.classes_).any()
    name = world.labels[0]
    np.testing.assert_array_equal(explorer.rows(name=name), world.rows([name]))
    assert len(explorer.rows(name="nobody")) == 0
    with pytest.raises(ValueError, match="among must be unseen, seen, all"):
        explorer.rows("some")
    training = explorer.training_rows
    assert not np.isin(training, world.split().held_out).any()
    assert len(training) == len(world.training()[0])


def test_images(explorer, world):
    shown = explorer.image(3)
    assert shown["class"] == world.labels[3]
    assert shown["picture"] is False
    assert explorer.image(4)["picture"] is True
    np.testing.assert_allclose(explorer.features(3), world.features[3], rtol=1e-6)
    for row in (-1, len(world.labels)):
        with pytest.raises(ValueError, match="rows 0 to"):
            explorer.features(row)


def test_what_fits_and_what_is_alike(explorer, world, model):
    X, _ = world.testing()
    name = world.split().test[0]
    found = explorer.find(name, 5, "unseen")
    rows, scores = model.rank_images(X, name, 5)
    assert [one["row"] for one in found] == world.rows(world.split().test)[rows].tolist()
    np.testing.assert_allclose([one["score"] for one in found], scores, rtol=1e-4)
    row = int(explorer.training_rows[0])
    near = explorer.neighbours(explorer.features(row), 4)
    assert near[0]["row"] == row
    others = explorer.neighbours(explorer.features(row), 4, besides=row)
    assert row not in [one["row"] for one in others]
    assert {one["row"] for one in others} <= set(explorer.training_rows.tolist())


def test_galleries(explorer):
    for by in ("class", "trait", "map"):
        found = explorer.gallery(by, 3)
        assert found["kinds"] == ["class", "trait", "map"]
        assert len(found["groups"][0]["images"]) == 3
        assert "path" not in found["groups"][0]["images"][0]  # no path leaves the machine
        json.dumps(found)
    assert explorer.gallery("map")["groups"][0]["title"] == "map 0"


def test_without_a_dataset(model):
    explorer = Explorer(model)
    assert explorer.about is None
    assert explorer.find(model.classes_[0], 5) == []
    assert explorer.neighbours(np.zeros(3), 5) == []
    assert len(explorer.rows()) == 0
    assert explorer.classes()[0]["picture"] is None
    for ask in (lambda: explorer.features(0), lambda: explorer.gallery("class"),
                lambda: score_summary(explorer)):  # fmt: skip
        with pytest.raises(ValueError, match="dataset"):
            ask()


def test_another_dataset_is_refused(model, world):
    other = replace(world, features=world.features[:, 1:])
    with pytest.raises(ValueError, match="give the dataset it was trained on"):
        Explorer(model, other)


def test_scores(explorer, world, model):
    before = dict(vars(model))
    summary = score_summary(explorer)
    json.dumps(summary)
    assert vars(model).keys() == before.keys()  # it is left as it is
    result = evaluate(model, world)
    assert summary["top_1"] == pytest.approx(result.top_1)
    assert {one["class"]: one["accuracy"] for one in summary["per_class"]} == result.per_class
    assert summary["missing"] == {"generalized": "", "calibrate": ""}
    together = summary["together"]
    assert len(together["gammas"]) == len(together["seen"]) == len(together["unseen"]) <= 400
    assert (np.diff(together["seen"]) <= 1e-12).all()
    counts = [sum(one["count"] for one in summary["reliability"][k]) for k in ("before", "after")]
    assert counts == [summary["n_images"]] * 2


def test_scores_that_a_split_does_not_allow(world, model):
    split = world.split()
    bare = replace(world, splits={"standard": replace(split, held_out=())})
    summary = score_summary(Explorer(model, bare))
    assert summary["together"] is None
    assert "holds out no images" in summary["missing"]["generalized"]
