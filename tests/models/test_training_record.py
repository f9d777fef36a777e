"""A model knows which images it has learned from."""

import pickle

import numpy as np
import pytest
from helpers import REPOSITORY, rewrite
from model_suite import EVERY, make
from sklearn.base import clone

import latem
from latem import ClassEmbeddings, LateFusion, LatEm, SemanticOutputCodes, make_latent_world
from latem.models.training_record import row_hashes


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_seen=12, n_images=6, random_state=0)


@pytest.fixture(scope="module")
def table(world):
    """Class vectors without negative numbers, which some models want."""
    found = world.embeddings["att"]
    return ClassEmbeddings(found.names, found.vectors - found.vectors.min(), name="att")


def quick(table, **params):
    return LatEm(table, n_epochs=2, random_state=0, **params)


def test_hashes_depend_on_values_only(tmp_path):
    X = np.random.default_rng(0).normal(size=(2100, 5)).astype(np.float16)
    expected = row_hashes(X)
    assert expected.dtype == np.uint64
    assert len(np.unique(expected)) == len(X)
    np.save(tmp_path / "x.npy", X)
    wide = np.zeros((2100, 10), np.float32)
    wide[:, ::2] = X
    for same in (
        X.astype(np.float32),
        X.astype(np.float64),
        np.asfortranarray(X),
        wide[:, ::2],
        X.astype(">f4"),
        np.load(tmp_path / "x.npy", mmap_mode="r"),
    ):
        np.testing.assert_array_equal(row_hashes(same), expected)
    np.testing.assert_array_equal(row_hashes(X[::-1]), expected[::-1])


def test_zero_has_no_sign_and_huge_numbers_are_taken():
    hashes = row_hashes(np.array([[0.0, 1.0], [-0.0, 1.0], [1e300, 1.0]]))
    assert hashes[0] == hashes[1] != hashes[2]
    assert row_hashes(np.empty((0, 3))).shape == (0,)


@pytest.mark.parametrize("kind", EVERY)
def test_every_model_keeps_the_record(kind, world, table, tmp_path):
    X, y = world.training()
    model = make(kind, table)
    assert model.training_digest_ is None
    assert model.training_rows() is None
    model.fit(X, y)
    np.testing.assert_array_equal(model.training_rows(), np.unique(row_hashes(X)))
    model.save(tmp_path / "m")
    for other in (latem.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        assert other.training_digest_ == model.training_digest_
        np.testing.assert_array_equal(other.training_rows(), model.training_rows())
    for unfitted in (clone(model), model.twin(0)):
        assert unfitted.training_digest_ is None


def test_the_digest_is_of_the_set_of_images(world, table):
    X, y = world.training()
    digest = SemanticOutputCodes(table).fit(X, y).training_digest_
    order = np.random.default_rng(0).permutation(len(X))
    assert SemanticOutputCodes(table).fit(X[order], y[order]).training_digest_ == digest
    single = np.asfortranarray(X.astype(np.float32))
    assert SemanticOutputCodes(table).fit(single, y).training_digest_ == digest
    assert SemanticOutputCodes(table).fit(X[1:], y[1:]).training_digest_ != digest


def test_further_images_are_added_and_a_fresh_fit_begins_anew(world, table):
    X, y = world.training()
    model = quick(table)
    for part in (slice(0, 20), slice(20, None)):
        model.partial_fit(X[part], y[part], classes=np.unique(y))
    whole = quick(table).fit(X, y)
    assert model.training_digest_ == whole.training_digest_
    warm = quick(table, warm_start=True).fit(X, y).fit(X[::2], y[::2])
    assert warm.training_digest_ == whole.training_digest_
    assert model.fit(X[::2], y[::2]).training_digest_ != whole.training_digest_


def test_a_refused_fit_adds_nothing(world, table):
    X, y = world.training()
    model = quick(table).fit(X, y)
    digest = model.training_digest_
    new, names = world.testing()
    with pytest.raises(ValueError, match="are not among them"):
        model.partial_fit(new, names)
    assert model.training_digest_ == digest


def test_it_can_be_switched_off(world, table, tmp_path):
    X, y = world.training()
    for kind in ("LatEm", "ESZSL", "HeldOutSearch"):
        model = make(kind, table)
        model.records_training = False
        model = clone(model).fit(X, y)
        assert model.training_digest_ is None
        model.save(tmp_path / kind)
        assert latem.load(tmp_path / kind).training_digest_ is None


def test_a_part_of_the_images_is_no_record(world, table):
    """A model whose earlier images are not known stays without a record."""
    X, y = world.training()
    model = quick(table)
    model.records_training = False
    model.fit(X, y)
    model.records_training = True
    assert model.partial_fit(X[:5], y[:5]).training_digest_ is None
    known = quick(table).fit(X, y)
    fusion = LateFusion([("a", model), ("b", known)], prefit=True).fit(X, y)
    assert fusion.training_digest_ is None


def test_a_fusion_knows_the_images_of_all_members(world, table):
    X, y = world.training()
    halves = [quick(table).fit(X[part::2], y[part::2]) for part in (0, 1)]
    fusion = LateFusion([("a", halves[0]), ("b", halves[1])], prefit=True).fit(X, y)
    assert fusion.training_digest_ == quick(table).fit(X, y).training_digest_


def test_files_of_earlier_code_have_none():
    for path in sorted((REPOSITORY / "tests" / "data" / "files").glob("*.safetensors")):
        assert latem.load(path).training_digest_ is None


def test_a_damaged_record_is_told(world, table, tmp_path):
    model = quick(table).fit(*world.training())
    path = tmp_path / "m.safetensors"

    def reverse(tensors, meta):
        tensors["training.rows"] = np.ascontiguousarray(tensors["training.rows"][::-1])

    model.save(path)
    rewrite(path, reverse)
    with pytest.raises(ValueError, match="record of training images"):
        latem.load(path)
