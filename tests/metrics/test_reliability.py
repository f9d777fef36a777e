"""Reliability: bins by hand, and the error that follows from them."""

import numpy as np
import pytest

from latem.metrics import reliability_curve


def test_bins_by_hand():
    confidence = [0.2, 0.5, 0.3, 0.9, 0.8, 1.0, 0.7]
    correct = [False, True, False, True, True, True, False]
    curve = reliability_curve(confidence, correct, n_bins=2)  # 0.5 belongs to the lower bin
    np.testing.assert_allclose(curve.confidence, [1 / 3, 0.85])
    np.testing.assert_allclose(curve.accuracy, [1 / 3, 0.75])
    assert curve.counts.tolist() == [3, 4]
    assert curve.error == pytest.approx(4 * 0.1 / 7)


def test_empty_bins_are_left_out():
    curve = reliability_curve([0.05, 0.95], [False, True], n_bins=10)
    assert curve.counts.tolist() == [1, 1]
    assert curve.accuracy.tolist() == [0, 1]
    assert curve.error == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5], [True], 0), "n_bins must be a whole number of at least 1, not 0"),
        (([], []), "no answers"),
        (([1.5], [True]), "between 0 and 1"),
        (([float("nan")], [True]), "between 0 and 1"),
        (([0.5, 0.5], [True]), "inconsistent numbers"),
    ],
)
def test_mistakes(arguments, message):
    with pytest.raises(ValueError, match=message):
        reliability_curve(*arguments)
