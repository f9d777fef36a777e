"""Weights of models that answer together."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latem.metrics import mean_class_accuracy
from latem.models.weights import HeldOutScores, best_weights, checked_weights, simplex


def random_fold(seed, n_members=3, n_classes=4):
    """Scores in which the first member is right more often than the others."""
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 26)])
    scores = rng.normal(size=(n_members, len(codes), n_classes))
    scores[0, np.arange(len(codes)), codes] += 1.0
    classes = np.array([f"class {c}" for c in range(n_classes)])
    return HeldOutScores(scores, classes[codes], classes)


@given(st.integers(1, 4), st.integers(1, 6))
def test_a_simplex_holds_every_share_once(n, steps):
    grid = simplex(n, steps)
    whole = [w for w in itertools.product(range(steps + 1), repeat=n) if sum(w) == steps]
    assert len(grid) == len(whole)
    assert {tuple(np.round(w * steps).astype(int)) for w in grid} == set(whole)
    np.testing.assert_allclose([w.sum() for w in grid], 1)


def test_a_simplex_of_too_many():
    with pytest.raises(ValueError, match="steps must be at least 1, but is 0"):
        simplex(2, 0)
    with pytest.raises(ValueError, match="4 members and steps=200 give too many weights to try"):
        simplex(4, 200)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=6).filter(any))
def test_weights_add_up_to_one_and_keep_their_ratios(weights):
    found = checked_weights(weights, len(weights), "Committee")
    assert found.sum() == pytest.approx(1)
    np.testing.assert_allclose(found * sum(weights), weights, rtol=1e-9, atol=1e-300)
    np.testing.assert_array_equal(checked_weights(None, 4, "Committee"), [0.25] * 4)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2, 3], r"Fusion needs one weight per member, 2, none negative; got \[1, 2, 3\]"),
        ([[1, 2]], "one weight per member, 2"),
        ([1, -1], "none negative"),
        ([1, np.inf], "one weight per member"),
        ([1, np.nan], "one weight per member"),
        (["a", "b"], r"one weight per member, 2, none negative; got \['a', 'b'\]"),
        ({"a": 1, "b": 2}, "one weight per member, 2"),
        ([0, 0], "Fusion needs at least one weight above zero"),
    ],
)
def test_weights_that_are_none(weights, message):
    with pytest.raises(ValueError, match=message):
        checked_weights(weights, 2, "Fusion")


def test_accuracy_is_that_of_the_weighted_sum():
    fold = random_fold(0)
    weights = np.array([0.5, 0.3, 0.2])
    named = []
    for i in range(len(fold.y)):
        total = [
            sum(weights[m] * fold.scores[m, i, c] for m in range(3))
            for c in range(len(fold.classes))
        ]
        named.append(fold.classes[int(np.argmax(total))])
    assert fold.accuracy(weights) == mean_class_accuracy(fold.y, np.array(named))


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 9999), st.integers(1, 3), st.sampled_from([1, 3, 5]))
def test_no_other_weights_of_the_grid_are_better(seed, n_folds, steps):
    folds = [random_fold(seed + i) for i in range(n_folds)]
    found = best_weights(folds, steps=steps)

    def accuracy(weights):
        return np.mean([fold.accuracy(weights) for fold in folds])

    grid = simplex(3, steps)
    assert accuracy(found) == max(accuracy(weights) for weights in grid)
    as_good = [weights for weights in grid if accuracy(weights) == accuracy(found)]

    def unevenness(weights):
        return int(np.square(np.rint(steps * weights)).sum())

    as_even = [w for w in as_good if unevenness(w) == min(map(unevenness, as_good))]
    np.testing.assert_array_equal(found, as_even[0])


def test_of_equally_good_weights_the_most_even():
    y = np.array(["a", "b"])
    sure = np.array([[2.0, 0.0], [0.0, 2.0]])
    folds = [HeldOutScores(np.stack([sure, sure]), y, y)]
    np.testing.assert_array_equal(best_weights(folds, steps=4), [0.5, 0.5])
    only = [HeldOutScores(np.stack([sure, -sure]), y, y)]
    assert best_weights(only, steps=4)[0] > 0.5


def test_of_equally_even_weights_the_first_of_the_simplex():
    """Whether 0.7² + 0.2² + 0.1² comes out a little larger in another order does not decide."""
    y = np.array(["a", "b", "c"])
    scores = np.zeros((3, 3, 3))  # member, image, class
    for member in range(3):
        np.fill_diagonal(scores[member], -0.65)
        scores[member, member, member] = 0.35  # each image needs one member's weight above 0.65
    found = best_weights([HeldOutScores(scores, y, y)], steps=10)
    np.testing.assert_array_equal(found, [0.1, 0.2, 0.7])


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 9999), st.integers(1, 3), st.floats(0, 1e4))
def test_a_prior_draws_towards_equal_weights(seed, n_folds, prior):
    folds = [random_fold(seed + i, n_classes=3 + i) for i in range(n_folds)]
    n_classes = sum(3 + i for i in range(n_folds))
    best = best_weights(folds, steps=4)
    drawn = best_weights(folds, steps=4, prior=prior)
    assert drawn.sum() == pytest.approx(1)
    expected = [(n_classes * w + prior / 3) / (n_classes + prior) for w in best]
    np.testing.assert_allclose(drawn, expected, atol=1e-12)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=6).filter(any))
def test_weights_that_add_up_to_one_stay_as_they_are(given_weights):
    once = checked_weights(given_weights, len(given_weights), "Committee")
    again = checked_weights(once.tolist(), len(once), "Committee")
    np.testing.assert_array_equal(again, once)
