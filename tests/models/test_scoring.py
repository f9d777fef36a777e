"""Very many classes, part by part: the same answers as all at once, in bounded memory."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

import latem
from latem.core.arrays import widen
from latem.models import scoring
from latem.models.scoring import BestSoFar, MapScorer, best_k, block_rows, class_parts


def by_sorting(scores, k):
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("n_classes", [1, 2, 40, 200, 1000, 5000])
@pytest.mark.parametrize(
    "kind", ["different", "ties", "equal", "infinite", "one is infinite", "NaN"]
)
def test_the_best_are_those_of_a_stable_sort(n_classes, kind):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(9, n_classes)).astype(np.float32)
    if kind == "ties":
        scores = np.round(scores)
    if kind == "equal":
        scores[:] = 1
    if kind == "infinite":
        scores[:, ::2] = -np.inf
    if kind == "NaN":
        scores[3, n_classes // 2 :] = np.nan
    if kind == "one is infinite":
        scores[3, n_classes // 2] = np.inf
    for k in {1, 2, 5, 17, n_classes}:
        if k <= n_classes:
            np.testing.assert_array_equal(best_k(scores, k), by_sorting(scores, k))


@pytest.mark.parametrize("ties", [False, True])
def test_parts_come_to_the_best_of_all(ties):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(20, 500)).astype(np.float32)
    scores = np.round(scores) if ties else scores
    for k in (1, 3, 130):
        best = BestSoFar(k)
        for first in (0, 100, 120, 300):
            best.add(first, scores[:, first : {0: 100, 100: 120, 120: 300, 300: 500}[first]])
        np.testing.assert_array_equal(best.places, by_sorting(scores, k))
        np.testing.assert_array_equal(best.scores, np.take_along_axis(scores, best.places, axis=1))


def test_parts_are_whole_and_none_is_narrow():
    for n in (1, 16_384, 16_385, 20_000, 20_481, 65_537, 200_000):
        parts = class_parts(n)
        assert parts[0].start == 0
        assert parts[-1].stop == n
        assert all(a.stop == b.start for a, b in pairwise(parts))
        assert len(parts) == 1 or min(p.stop - p.start for p in parts) > 2000
        assert block_rows(n, in_parts=True) * max(p.stop for p in parts[:1]) <= 2**23


@pytest.mark.parametrize("by_direction", [False, True])
@pytest.mark.parametrize(("n_maps", "width"), [(1, 300), (3, 300), (3, 6)])
def test_a_part_has_the_scores_of_the_whole(monkeypatch, n_maps, width, by_direction):
    rng = np.random.default_rng(0)
    maps = rng.normal(size=(n_maps, 20, width)).astype(np.float32)
    vectors = rng.normal(size=(1000, width)).astype(np.float32)
    X = rng.normal(size=(70, 20)).astype(np.float32)
    whole = MapScorer(maps, vectors, by_direction=by_direction).scores(X)
    monkeypatch.setattr(scoring, "_WIDEST", 500)
    monkeypatch.setattr(scoring, "_PART", 300)
    parts = MapScorer(maps, vectors, by_direction=by_direction).parts(X)
    found = [(columns, block.copy()) for columns, block in parts]
    assert len(found) == 4
    together = np.hstack([block for _, block in found])
    np.testing.assert_allclose(together, whole, rtol=1e-3, atol=1e-4)


def many(n_classes, **options):
    """A model that knows very many classes, some of which are alike."""
    rng = np.random.default_rng(0)
    names = [f"class {i}" for i in range(n_classes)]
    vectors = rng.normal(size=(n_classes, 8))
    vectors[n_classes // 2 :: 3] = vectors[: len(vectors[n_classes // 2 :: 3])]
    X, y = rng.normal(size=(40, 16)).astype(np.float32), np.array(names[:4] * 10)
    return latem.LatEm((names, vectors), n_maps=2, n_epochs=1, random_state=0, **options).fit(X, y)


def test_answers_among_very_many_classes_are_those_of_a_sort():
    model = many(17_000)
    X = np.random.default_rng(1).normal(size=(270, 16)).astype(np.float32)
    scores = model.decision_function(X, "all")
    wanted = by_sorting(scores, 7)
    assert (np.diff(np.take_along_axis(scores, wanted, axis=1)) == 0).any()  # there are equals
    names, found = model.top_k(X, 7, "all", return_scores=True)
    np.testing.assert_array_equal(names, model.candidate_names("all")[wanted])
    np.testing.assert_array_equal(found, np.take_along_axis(scores, wanted, axis=1))
    np.testing.assert_array_equal(model.predict(X, "all"), names[:, 0])
    model.temperature_ = 0.5
    answers = model.answer(X[:40], "all", top=7)
    np.testing.assert_array_equal([one.names for one in answers], names[:40])
    probabilities = model.predict_proba(X[:40], "all")
    for one, row, places in zip(answers, probabilities, wanted, strict=False):
        np.testing.assert_allclose(one.probabilities, row[places], rtol=1e-4)


@pytest.mark.slow
def test_memory_is_bounded_among_very_many_classes():
    """All scores of these rows would take a gigabyte."""
    model = many(200_000, n_threads=2)
    X = np.random.default_rng(1).normal(size=(1300, 16)).astype(np.float32)
    model.temperature_ = 0.5
    for ask in (model.predict, model.top_k, model.answer):
        options = {"k": 5} if ask == model.top_k else {}
        ask(X[:1], classes="unseen", **options)  # prepares the classes
        tracemalloc.start()
        ask(X, classes="unseen", **options)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 150e6, ask


def test_halves_become_singles_to_the_bit():
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for part in (every, every[np.isfinite(every)]):
        found = np.empty(part.shape, np.float32)
        widen(part, found)
        wanted = part.astype(np.float32)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
