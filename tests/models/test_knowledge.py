"""What a model knows travels with it: the encoder of its features."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from model_suite import EVERY, make, with_table
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold

import latem
from latem import ESZSL, make_latent_world, read_folder, write_folder
from latem.datasets.features import EncodedFeatures, with_encoder


@pytest.fixture(scope="module")
def spec():
    world = make_latent_world(n_poses=1, n_seen=12, n_images=6, random_state=0)
    return {"name": "efficientnet-lite0", "n_features": world.features.shape[1]}


@pytest.fixture(scope="module")
def dataset(spec):
    """A dataset that says which encoder made its features."""
    world = make_latent_world(n_poses=1, n_seen=12, n_images=6, random_state=0)
    table = world.embeddings["att"]
    shifted = latem.ClassEmbeddings(
        table.names, table.vectors - table.vectors.min(), name="att", columns=list("abcdefgh")
    )
    info = {"encoder_spec": json.dumps(spec)}
    return replace(world, embeddings={"att": shifted}, info=info)


@pytest.mark.parametrize("kind", EVERY)
def test_every_model_takes_the_encoder_from_the_dataset_and_keeps_it(kind, dataset, spec, tmp_path):
    X, y = dataset.training()
    model = make(kind, dataset.embeddings["att"])
    assert model.encoder_ is None
    model.fit(X, y)
    assert model.encoder_ == spec
    model.save(tmp_path / "m")
    fresh = clone(model)
    plain = np.asarray(X)
    for other in (
        latem.load(tmp_path / "m"),
        pickle.loads(pickle.dumps(model)),
        fresh,
        clone(fresh).fit(plain, y),  # a refit to plain features of the same width
        model.twin(0),
        with_table(model, dataset.embeddings["att"]),
    ):
        assert other.encoder_ == spec
    if kind != "LateFusion":
        assert model.with_classes({"new": dataset.embeddings["att"].vectors[0]}).encoder_ == spec
    inner = getattr(model, "best_estimator_", model)
    assert inner.encoder_ == spec


def test_other_features_make_it_forget(dataset, spec):
    X, y = dataset.training()
    model = ESZSL(dataset.embeddings["att"]).fit(X, y)
    model.fit(np.asarray(X)[:, :5], y)
    assert model.encoder_ is None
    model.fit(X, y).fit(with_encoder(np.asarray(X), {"name": "other"}), y)
    assert model.encoder_ == {"name": "other"}
    model.encoder_ = None
    assert model.encoder_ is None


def test_scikit_learn_s_search_keeps_it(dataset, spec):
    X, y = dataset.training()
    search = GridSearchCV(
        ESZSL(dataset.embeddings["att"]), {"gamma": [0.1, 1.0]}, cv=GroupKFold(3)
    ).fit(X, y, groups=y)  # fmt: skip
    assert search.best_estimator_.encoder_ == spec


def test_a_dataset_folder_brings_it(dataset, spec, tmp_path):
    again = read_folder(write_folder(dataset, tmp_path / "d"))
    assert again.encoder == spec
    for X, _ in (again.training(), again.testing(), again.validation(), again.all_images()):
        assert X.encoder == spec


@pytest.mark.parametrize("text", ["{", "3", "[]", "{}", '{"name": 3}'])
def test_a_bad_spec_is_told_before_anything_is_trained(dataset, text):
    odd = replace(dataset, info={"encoder_spec": text})
    with pytest.raises(ValueError, match="must be an encoder's spec as JSON"):
        odd.training()


def test_features_without_an_encoder_are_plain(dataset):
    X, _ = replace(dataset, info={}).training()
    assert type(X) is np.ndarray


def test_what_is_chosen_keeps_the_encoder_and_what_is_computed_does_not(dataset, spec):
    X, _ = dataset.training()
    assert isinstance(X, EncodedFeatures)
    for part in (X[3:9], X[[1, 2]], X[::2], X.astype(np.float64), X.copy(), np.take(X, [1], 0)):
        assert part.encoder == spec
    for other in (2 * X, X + X, np.sqrt(np.abs(X)), -X):
        assert type(other) is np.ndarray
    assert pickle.loads(pickle.dumps(X)).encoder == spec
    out = X.copy()
    np.add(X, 1, out=out)
    np.testing.assert_array_equal(np.asarray(out), np.asarray(X) + 1)
    assert np.asarray(X).base is not None  # the same memory
