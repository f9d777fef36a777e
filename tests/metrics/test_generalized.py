"""The generalised setting, against a plain computation for one γ after another."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latem.metrics.generalized import (
    ausuc,
    best_gamma,
    calibrated_stacking,
    generalized_accuracy,
    harmonic_mean,
    seen_unseen_curve,
)

# Scores are whole numbers from 0 to 5, so margins are too: γ in halves falls on every critical
# value and into every interval between them, and all sums are exact.
CRITICAL = np.arange(-6, 7)
BETWEEN = np.arange(-6.5, 7)

patient = settings(deadline=None, max_examples=60)


@st.composite
def problems(draw):
    """Scores with many ties, labels, class names in any order, and which classes are seen."""
    n_seen, n_unseen = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    n_classes = n_seen + n_unseen
    names = draw(st.permutations([f"class {i}" for i in range(n_classes)]))
    seen = draw(st.permutations(names))[:n_seen]
    unseen = [name for name in names if name not in seen]
    more = draw(st.lists(st.sampled_from(names), max_size=15))
    y = [draw(st.sampled_from(seen)), draw(st.sampled_from(unseen)), *more]
    rows = st.lists(st.integers(0, 5), min_size=n_classes, max_size=n_classes)
    scores = draw(st.lists(rows, min_size=len(y), max_size=len(y)))
    return scores, y, names, seen


def plainly(scores, y, classes, seen, gamma):
    """Seen and unseen accuracy, image by image."""
    right = {name: [] for name in y}
    for row, true in zip(scores, y, strict=True):
        moved = [s - gamma if c in seen else s for s, c in zip(row, classes, strict=True)]
        right[true].append(classes[moved.index(max(moved))] == true)
    accuracy = {name: sum(hits) / len(hits) for name, hits in right.items()}
    on_seen = [value for name, value in accuracy.items() if name in seen]
    on_unseen = [value for name, value in accuracy.items() if name not in seen]
    return sum(on_seen) / len(on_seen), sum(on_unseen) / len(on_unseen)


def harmonic(seen, unseen):
    return 2 * seen * unseen / (seen + unseen) if seen + unseen else 0


@patient
@given(problems())
def test_accuracies_for_every_gamma(problem):
    for gamma in [*CRITICAL, *BETWEEN]:
        found = generalized_accuracy(*problem, gamma)
        expected = plainly(*problem, gamma)
        assert (found.seen, found.unseen) == pytest.approx(expected)
        assert found.harmonic == pytest.approx(harmonic(*expected))


@patient
@given(problems())
def test_names_are_those_of_argmax(problem):
    scores, _, classes, seen = problem
    for gamma in (0, 1, -2, 0.5):
        moved = np.array(scores) - gamma * np.isin(classes, seen)
        expected = np.array(classes)[moved.argmax(axis=1)]
        assert calibrated_stacking(scores, classes, seen, gamma).tolist() == expected.tolist()


@patient
@given(problems())
def test_curve_and_area_by_sweeping(problem):
    scores, _, classes, seen = problem
    curve = seen_unseen_curve(*problem)
    is_seen, values = np.isin(classes, seen), np.array(scores)
    margins = values[:, is_seen].max(axis=1) - values[:, ~is_seen].max(axis=1)
    assert curve.critical.tolist() == np.unique(margins).tolist()
    assert len(curve.gammas) == len(curve.critical) + 1
    assert (np.diff(curve.gammas) > 0).all()
    for gamma, *point in zip(curve.gammas.clip(-9, 9), curve.seen, curve.unseen, strict=True):
        assert point == pytest.approx(plainly(*problem, gamma))

    sweep = [plainly(*problem, gamma) for gamma in BETWEEN]
    area = 0
    for (seen_1, unseen_1), (seen_2, unseen_2) in pairwise(sweep):
        area += (unseen_2 - unseen_1) * (seen_1 + seen_2) / 2
    assert ausuc(*problem) == pytest.approx(area)


@patient
@given(problems())
def test_the_best_gamma_by_sweeping(problem):
    harmonics = {gamma: harmonic(*plainly(*problem, gamma)) for gamma in BETWEEN}
    most = max(harmonics.values())
    best = best_gamma(*problem)
    # where no interval is any good, 0 is taken, and a tie there may even be broken luckily
    assert harmonic(*plainly(*problem, best)) >= most - 1e-12
    if most:  # no interval nearer to 0 is as good
        nearer = [g for g in seen_unseen_curve(*problem).gammas if abs(g) < abs(best)]
        assert all(harmonic(*plainly(*problem, g)) < most - 1e-9 for g in nearer)
    else:
        assert best == 0


@patient
@given(st.integers(0, 1000), st.sampled_from(["float32", "float64"]))
def test_area_and_harmonic_mean_of_real_scores(seed, dtype):
    """A fine sweep: every image's own margin, a little less, and a little more."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(30, 6)).astype(dtype)
    scores[:, :4] += 1
    classes, seen = np.arange(6), np.arange(4)
    y = np.concatenate([np.arange(6), rng.integers(0, 6, 24)])
    exact = scores.astype(np.float64)
    margins = np.sort(exact[:, :4].max(axis=1) - exact[:, 4:].max(axis=1))
    sweep = np.sort(np.concatenate([margins - 1e-9, margins + 1e-9]))
    points = [plainly(exact.tolist(), y, classes.tolist(), seen, gamma) for gamma in sweep]
    on_seen, on_unseen = np.array(points).T
    area = ((on_seen[1:] + on_seen[:-1]) / 2 * np.diff(on_unseen)).sum()
    assert ausuc(scores, y, classes, seen) == pytest.approx(area)
    found = generalized_accuracy(scores, y, classes, seen, best_gamma(scores, y, classes, seen))
    assert found.harmonic == pytest.approx(max(harmonic(*p) for p in points))
    plain = scores.argmax(axis=1)
    assert calibrated_stacking(scores, classes, seen).tolist() == plain.tolist()


@patient
@given(problems(), st.integers(-4, 4))
def test_moving_the_seen_scores_moves_gamma_only(problem, shift):
    scores, y, classes, seen = problem
    moved = np.array(scores) + shift * np.isin(classes, seen)
    assert ausuc(moved, y, classes, seen) == pytest.approx(ausuc(*problem))
    for gamma in (0, 0.5, 2):
        assert generalized_accuracy(moved, y, classes, seen, gamma + shift) == (
            generalized_accuracy(*problem, gamma)
        )


def test_the_ends_of_the_line():
    scores, classes, seen = [[3, 1, 2], [0, 1, 5]], ["a", "b", "c"], ["a", "b"]
    assert calibrated_stacking(scores, classes, seen, -np.inf).tolist() == ["a", "b"]
    assert calibrated_stacking(scores, classes, seen, np.inf).tolist() == ["c", "c"]


def test_gamma_is_zero_where_nothing_is_better():
    classes = ["a", "b"]
    assert best_gamma([[4, 0], [0, 4]], ["a", "b"], classes, ["a"]) == 0  # all right already
    assert best_gamma([[4, 0], [0, 4]], ["b", "a"], classes, ["a"]) == 0  # never both right
    assert best_gamma([[4, 0], [3, 0]], ["a", "b"], classes, ["a"]) == 3.5
    assert best_gamma([[0, 4], [0, 6]], ["a", "b"], classes, ["a"]) == -5


def test_margins_without_a_number_between_them():
    low = 1.0
    high = np.nextafter(low, 2)
    problem = [[low, 0], [high, 0]], ["b", "a"], ["a", "b"], ["a"]
    curve = seen_unseen_curve(*problem)
    assert curve.critical.tolist() == [low, high]
    assert len(curve.gammas) == 2
    for gamma, seen, unseen in zip(curve.gammas, curve.seen, curve.unseen, strict=True):
        found = generalized_accuracy(*problem, gamma)
        assert (found.seen, found.unseen) == (seen, unseen)


def test_harmonic_mean():
    assert harmonic_mean(0, 0) == 0
    assert harmonic_mean(0.3, 0.6) == pytest.approx(0.4)
    assert harmonic_mean([0, 1, 0.2], [0.5, 1, 0.2]).tolist() == pytest.approx([0, 1, 0.2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seen": ["a", "b"]}, "all of the 2 classes are seen"),
        ({"seen": ["z"]}, "none of the 2 classes are seen"),
        ({"y": ["a", "a"]}, "y has none of unseen ones"),
        ({"y": ["b", "b"]}, "y has none of seen ones"),
        ({"y": ["a", "z"]}, "y holds 'z', not among the classes"),
        ({"y": ["a"]}, "scores of 2 images but 1 labels"),
        ({"classes": ["a", "a"]}, "classes name 'a' more than once"),
        ({"classes": ["a", "b", "c"]}, r"\(n, 3\), but have shape \(2, 2\)"),
        ({"scores": [[0, np.nan], [1, 1]]}, "NaN or inf"),
        ({"gamma": np.nan}, "gamma must be a number, not nan"),
        ({"gamma": "1"}, "gamma must be a number, not '1'"),
        ({"scores": np.empty((0, 2)), "y": []}, "none of seen ones|y has none"),
    ],
)
def test_bad_input(change, message):
    good = {"scores": [[1, 0], [0, 1]], "y": ["a", "b"], "classes": ["a", "b"], "seen": ["a"]}
    with pytest.raises(ValueError, match=message):
        generalized_accuracy(**good | change)
