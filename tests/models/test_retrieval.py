"""The best images of a class: those of a plain sort, in whatever blocks and threads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from latem import (
    CMT,
    ESZSL,
    EXEM,
    Committee,
    ConSE,
    HeldOutSearch,
    LateFusion,
    LatEm,
    make_latent_world,
)
from latem.models import block_scoring, retrieval, scoring
from latem.models.retrieval import RowScorer, first_rows


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_seen=12, n_unseen=5, n_images=8, random_state=0)


def fitted(world, kind, **options):
    table = world.embeddings["att"]
    kinds = {
        "ESZSL": lambda: ESZSL(table, **options),
        "LatEm": lambda: LatEm(table, n_maps=3, n_epochs=2, random_state=0, **options),
        "Committee": lambda: Committee(table, [("a", ESZSL()), ("b", EXEM())], **options),
        "LateFusion": lambda: LateFusion([("a", ESZSL(table)), ("b", LatEm(table, n_epochs=1))]),
        "ConSE": lambda: ConSE(table, **options),
        "CMT": lambda: CMT(table, n_hidden=8, novelty="gaussian", max_iter=5, random_state=0),
        "search": lambda: HeldOutSearch(ESZSL(table), {"gamma": [1, 10]}, cv=2),
    }
    return kinds[kind]().fit(*world.training())


@pytest.fixture
def compiled(monkeypatch):
    """Even few images are scanned as many are."""
    monkeypatch.setattr(block_scoring, "MANY", 0)


@given(st.data())
def test_it_is_a_plain_sort(data):
    """Also with ties, and whatever the blocks."""
    scores = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=1, max_size=60)), float)
    n = len(scores)
    rows = None
    if data.draw(st.booleans()):
        rows = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1))))
    among = np.arange(n) if rows is None else rows
    k = data.draw(st.integers(1, len(among)))
    size = data.draw(st.integers(1, 20))
    table = np.column_stack([scores, -scores])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            retrieval,
            "row_blocks",
            lambda n, _: [slice(i, min(i + size, n)) for i in range(0, n, size)],
        )
        found, best = RowScorer(n, 2, lambda some: table[some]).best(k, rows, 2)
    for i, column in enumerate(table.T):
        expected = among[np.argsort(-column[among], kind="stable")[:k]]
        assert found[i].tolist() == expected.tolist()
        assert best[i].tolist() == column[expected].tolist()


@given(st.integers(0, 2**32 - 1), st.sampled_from([np.float16, np.float32]))
def test_scans_find_what_a_sort_finds(seed, stored):
    rng = np.random.default_rng(seed)
    model = _small()
    X = rng.normal(size=(rng.integers(1, 200), 12)).astype(stored)
    k = int(rng.integers(1, len(X) + 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_scoring, "MANY", 0)
        rows, scores = model.best_images(X, "unseen", k)
    exact = model.decision_function(X, "unseen").T
    for found, told, all_scores in zip(rows, scores, exact, strict=True):
        assert len(set(found.tolist())) == k
        np.testing.assert_allclose(told, all_scores[found], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(told, np.sort(all_scores)[::-1][:k], rtol=1e-4, atol=1e-5)
        assert (np.diff(told) <= 0).all()


_kept = []


def _small():
    if not _kept:
        world = make_latent_world(n_seen=6, n_unseen=3, n_images=5, n_features=12, random_state=0)
        table = world.embeddings["att"]
        model = LatEm(table, n_maps=3, n_epochs=2, feature_scaling="l2-centered", random_state=0)
        _kept.append(model.fit(*world.training()))
    return _kept[0]


KINDS = ["ESZSL", "LatEm", "Committee", "LateFusion", "ConSE", "CMT", "search"]


@pytest.mark.parametrize("kind", KINDS)
def test_best_images_are_those_of_the_scores(world, kind, compiled):
    model = fitted(world, kind)
    X = np.asarray(world.testing()[0], np.float32)
    exact = model.class_scores(X, "unseen")
    rows, scores = model.best_images(X, "unseen", 4)
    assert rows.shape == scores.shape == (exact.shape[1], 4)
    assert rows.tolist() == np.argsort(-exact, axis=0, kind="stable")[:4].T.tolist()
    np.testing.assert_allclose(scores, np.sort(-exact, axis=0)[:4].T * -1, rtol=1e-4, atol=1e-5)
    among = [3, 9, 1, 20]
    some, _ = model.best_images(X, "unseen", 2, rows=among)
    expected = np.sort(among)[np.argsort(-exact[np.sort(among)], axis=0, kind="stable")[:2]]
    assert some.tolist() == expected.T.tolist()
    name = world.split().test[0]
    one, best = model.rank_images(X, name, 4)
    assert one.tolist() == rows[0].tolist()
    np.testing.assert_allclose(best, scores[0], rtol=1e-5)
    everything, _ = model.rank_images(X, name)
    assert sorted(everything.tolist()) == list(range(len(X)))


@pytest.mark.parametrize("kind", ["ESZSL", "LatEm"])
def test_threads_change_nothing(world, kind, compiled):
    X = np.tile(np.asarray(world.testing()[0], np.float16), (300, 1))
    model = fitted(world, kind)
    found = [model.set_params(n_threads=n).best_images(X, "unseen", 50) for n in (1, 2)]
    assert len(scoring.row_blocks(len(X), 5)) > 1
    for one, other in zip(*found, strict=True):
        assert one.tobytes() == other.tobytes()


def test_of_equal_images_the_first_comes_first(world, compiled):
    X = np.repeat(np.asarray(world.testing()[0], np.float16), 3, axis=0)
    rows, _ = fitted(world, "LatEm").rank_images(X, world.split().test[0], 9)
    assert (rows.reshape(3, 3) % 3 == [0, 1, 2]).all()


def test_mapped_files_are_not_copied(world, compiled, tmp_path):
    X = np.tile(np.asarray(world.testing()[0], np.float16), (50, 1))
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model, name = fitted(world, "Committee"), world.split().test[0]
    for one, other in zip(
        model.rank_images(mapped, name, 7), model.rank_images(X, name, 7), strict=True
    ):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("kind", ["ESZSL", "ConSE", "LateFusion"])
def test_bad_images_are_told_by_their_first_row(world, kind, compiled):
    X = np.tile(np.asarray(world.testing()[0], np.float32), (300, 1))
    X[[5000, 9000], 1] = np.nan
    with pytest.raises(ValueError, match="NaN in row 5000, column 1"):
        fitted(world, kind).rank_images(X, world.split().test[0], 3)


def test_scores_that_are_too_large_are_told(world, compiled):
    model = fitted(world, "ESZSL", feature_scaling=None, normalize_classes=False)
    X = np.full((10, model.n_features_in_), 1e20, np.float32)
    huge = {"huge": world.embeddings["att"].vectors[0] * 1e30}
    with pytest.raises(ValueError, match="scores that are not finite"):
        model.rank_images(X, huge, 3)


def test_images_of_zeros_are_scored(world, compiled):
    model = fitted(world, "ESZSL", feature_scaling="l2-centered")
    X = np.array(world.testing()[0], np.float32)
    X[3] = 0
    name = world.split().test[0]
    rows, scores = model.rank_images(X, name)
    exact = model.decision_function(X, [name])[:, 0]
    np.testing.assert_allclose(scores, exact[rows], rtol=1e-4, atol=1e-6)


def test_bad_questions(world):
    model = fitted(world, "ESZSL")
    X, _ = world.testing()
    with pytest.raises(ValueError, match=f"number of images, {len(X)}, but is 0"):
        model.best_images(X, "unseen", 0)
    with pytest.raises(ValueError, match="number of images, 2, but is 3"):
        model.best_images(X, "unseen", 3, rows=[1, 2])
    with pytest.raises(TypeError, match=r"whole number, not 2\.0"):
        model.best_images(X, "unseen", 2.0)
    for rows in ([], [0.5], [[True]]):
        with pytest.raises(ValueError, match="rows must be row numbers"):
            model.best_images(X, "unseen", 1, rows=rows)
    for rows in ([-1], [len(X)]):
        with pytest.raises(ValueError, match="rows must be between 0 and"):
            model.best_images(X, "unseen", 1, rows=rows)
    with pytest.raises(ValueError, match="fitted"):
        clone(model).best_images(X, "unseen", 1)


def test_first_rows_prefers_the_first():
    rows, scores = first_rows(np.array([4, 2, 9]), np.array([1.0, 1.0, 0.5]), 2)
    assert rows.tolist() == [2, 4]
    assert scores.tolist() == [1.0, 1.0]
