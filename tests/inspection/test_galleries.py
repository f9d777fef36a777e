"""Galleries by class, by trait and by map, as data for the page."""

from dataclasses import replace

import numpy as np
import pytest

from latem import CCA, ESZSL, SJE, ClassEmbeddings, LatEm, make_latent_world, trait_scores
from latem.inspection.galleries import galleries_of, kinds_for


@pytest.fixture(scope="module")
def world():
    world = make_latent_world(n_poses=1, n_unseen=5, n_dimensions=6, random_state=0)
    table = world.embeddings["att"]
    named = ClassEmbeddings(table.names, table.vectors, name="att", columns=list("abcdef"))
    return replace(world, embeddings={"att": named})


@pytest.fixture(scope="module")
def model(world):
    return ESZSL(world.embeddings["att"]).fit(*world.training())


def test_by_class_is_retrieval(world, model):
    (gallery,) = galleries_of(model, world, by=["class"], n=4)
    rows = world.rows(world.split().test)
    named = model.predict(world.features[rows], world.split().test)
    assert [group["title"] for group in gallery["groups"]] == list(world.split().test)
    for group in gallery["groups"]:
        places, scores = model.rank_images(world.features[rows], group["title"], 4)
        assert [image["name"] for image in group["images"]] == [
            str(world.images[rows[i]]) for i in places
        ]
        assert [image["score"] for image in group["images"]] == pytest.approx(scores.tolist())
        for image, place in zip(group["images"], places, strict=True):
            assert image["fits"] == (world.labels[rows[place]] == group["title"])
            assert image["named"] == named[place]
        n_own = sum(image["fits"] for image in group["images"])
        assert group["notes"] == [f"{n_own} of these 4 are of this class, which has 30."]


def test_classes_without_images_are_shown_too(world, model):
    lone = world.split().test[0]
    keep = world.labels != lone
    less = replace(
        world, features=world.features[keep], labels=world.labels[keep], images=world.images[keep]
    )
    (gallery,) = galleries_of(model, less, by=["class"], n=2)
    assert gallery["groups"][0]["notes"] == ["No image is of this class."]
    assert len(gallery["groups"][0]["images"]) == 2


def test_by_trait(world, model):
    (gallery,) = galleries_of(model, world, traits=["c", "a"], by=["trait"], n=3)
    rows = world.rows(world.split().test)
    scores = trait_scores(model, world.features[rows], world.split().test)
    for group, trait in zip(gallery["groups"], "ca", strict=True):
        best = np.argsort(-scores[trait].to_numpy(), kind="stable")[:3]
        assert group["title"] == trait
        assert [i["class"] for i in group["images"]] == world.labels[rows[best]].tolist()
        value = world.embeddings["att"][group["images"][0]["class"]]["abcdef".index(trait)]
        assert group["images"][0]["note"] == f"described as {value:.3g}"
    (usual,) = galleries_of(model, world, by=["trait"])
    assert 1 <= len(usual["groups"]) <= 6


def test_what_a_model_has(world, model):
    table = world.embeddings["att"]
    X, y = world.training()
    options = {"n_epochs": 2, "random_state": 0}
    assert kinds_for(model) == ["class", "trait"]
    one = SJE(table, **options).fit(X, y)
    assert kinds_for(one) == ["class", "trait"]
    assert kinds_for(LatEm(table, n_maps=2, **options).fit(X, y)) == ["class", "trait", "map"]
    assert kinds_for(CCA(table).fit(X, y)) == ["class"]
    numbered = ClassEmbeddings(table.names, table.vectors, columns=[f"w_{i}" for i in range(6)])
    assert kinds_for(ESZSL(numbered).fit(X, y)) == ["class"]
    for kinds in (kinds_for(one), ["map"], ["map", "class"]):
        shown = [g["by"] for g in galleries_of(one, world, by=kinds, n=1)]
        assert sorted(shown) == sorted(kinds)
    assert [g["by"] for g in galleries_of(one, world, traits=["b"], by=["class"])] == [
        "class",
        "trait",
    ]


def test_only_maps_that_have_something_in_common_are_called_near(world):
    model = LatEm(world.embeddings["att"], n_maps=3, n_epochs=2, random_state=0)
    model.fit(*world.training())
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, *model.maps_.shape[1:]))
    model.maps_ = np.stack(
        [first, first + 0.5 * second, second * rng.choice([-1, 1], second.shape)]
    )
    (gallery,) = galleries_of(model, world, by=["map"], n=2)
    lines = [[note for note in group["notes"] if "Nearest" in note] for group in gallery["groups"]]
    assert lines[0][0].startswith("Nearest to map 1 (cosine 0.8")
    assert lines[1][0].startswith("Nearest to map 0")
    assert lines[2] == []


def test_refusals(world, model):
    with pytest.raises(ValueError, match="by class, trait, map, not by 'colour'"):
        galleries_of(model, world, by=["colour"])
    with pytest.raises(ValueError, match="no trait 'z'; the class table has 'a', 'b'"):
        galleries_of(model, world, traits=["z"])
    with pytest.raises(ValueError, match="n must be at least 1"):
        galleries_of(model, world, n=0)
    with pytest.raises(TypeError, match="images per map, not ESZSL"):
        galleries_of(model, world, by=["map"])
    with pytest.raises(ValueError, match="fitted to .*, test classes of split 'standard'"):
        galleries_of(ESZSL(world.embeddings["att"]).fit(*world.all_images()), world)
    empty = replace(world, splits={"standard": replace(world.split(), test=())})
    with pytest.raises(ValueError, match="no images of test classes"):
        galleries_of(model, empty)
    table = world.embeddings["att"]
    plain = ClassEmbeddings(table.names, table.vectors, name="att")
    with pytest.raises(ValueError, match="no names of traits, only numbered columns"):
        galleries_of(ESZSL(plain).fit(*world.training()), world, by=["trait"])
