"""What each map has learned: images, classes, attributes."""

import numpy as np
import pytest

from latem import ESZSL, SJE, LatEm, make_latent_world, map_overlap, map_profiles, top_images


@pytest.fixture(scope="module")
def fitted():
    world = make_latent_world(random_state=0)
    model = LatEm(world.embeddings["att"], n_maps=2, random_state=0).fit(*world.training())
    return world, model


def test_top_images_are_those_of_the_ranked_pairs(fitted):
    world, model = fitted
    X, _ = world.testing()
    scaled = model.scaler_.transform(X, "float32")
    names = world.split().test
    vectors = world.embeddings["att"].select(names).unit_vectors()
    for k, images in enumerate(top_images(model, X, names, n=7)):
        scores = scaled @ model.maps_[k] @ vectors.T
        expected = []
        for pair in np.argsort(-scores, axis=None):
            row, _ = divmod(int(pair), len(names))
            if row not in expected:
                expected.append(row)
        assert [image.row for image in images] == expected[:7]
        for image in images:
            assert image.named == names[scores[image.row].argmax()]
            assert image.score == pytest.approx(scores[image.row].max(), rel=1e-4)


def test_maps_specialise_on_poses(fitted):
    world, model = fitted
    rows = world.rows(world.split().test)
    galleries = top_images(model, world.features[rows], n=10)
    poses = [{str(world.images[rows[i.row]]).split()[-1] for i in images} for images in galleries]
    assert sorted(map(len, poses)) == [1, 1]
    assert poses[0] != poses[1]


def test_profiles(fitted):
    world, model = fitted
    X, _ = world.testing()
    profiles = map_profiles(model, X)
    winners, named = model.latent_map(X, "unseen"), model.predict(X, "unseen")
    assert sum(p.share for p in profiles) == pytest.approx(1)
    for k, profile in enumerate(profiles):
        assert profile.share == pytest.approx((winners == k).mean())
        assert profile.classes.sum() == (winners == k).sum()
        for name, count in profile.classes.items():
            assert count == ((winners == k) & (named == name)).sum()
        scores = model.decision_function(X[winners == k], "unseen").max(axis=1)
        assert profile.attributes.sum() == pytest.approx(scores.mean(), rel=1e-4)


def test_profiles_of_directions(fitted):
    world, _ = fitted
    model = SJE(world.embeddings["att"], n_maps=2, n_epochs=3, normalize_projection=True)
    model.fit(*world.training())
    X, _ = world.testing()
    scores = model.decision_function(X, "unseen").max(axis=1)
    profiles = map_profiles(model, X)
    total = sum(p.share * p.attributes.sum() for p in profiles)
    assert total == pytest.approx(scores.mean(), rel=1e-4)


def test_overlap(fitted):
    _, model = fitted
    overlap = map_overlap(model)
    np.testing.assert_allclose(np.diag(overlap), 1)
    W = model.maps_.astype(float)
    cosine = (W[0] * W[1]).sum() / np.linalg.norm(W[0]) / np.linalg.norm(W[1])
    assert overlap[0, 1] == pytest.approx(cosine)


def test_only_models_with_maps(fitted):
    world, _ = fitted
    model = ESZSL(world.embeddings["att"]).fit(*world.training())
    with pytest.raises(TypeError, match="not ESZSL"):
        top_images(model, world.testing()[0])
    with pytest.raises(ValueError, match="at least 1"):
        top_images(fitted[1], world.testing()[0], n=0)
