"""Temperatures, calibration errors and thresholds, on worlds whose probabilities are known."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import log_loss

from latem.metrics.calibration import (
    CalibrationReport,
    class_codes,
    expected_calibration_error,
    fit_temperature,
    log_loss_of,
    probabilities_of,
    risk_coverage_curve,
    threshold_for,
)

patient = settings(deadline=None, max_examples=60)


def exact_world(seed, n_images=20, n_classes=4):
    """Each image ten times, labelled in exact proportion to its probabilities (tenths)."""
    rng = np.random.default_rng(seed)
    tenths = 1 + rng.multinomial(10 - n_classes, np.ones(n_classes) / n_classes, n_images)
    codes = np.concatenate([np.repeat(np.arange(n_classes), row) for row in tenths])
    return np.repeat(tenths / 10, 10, axis=0), codes


def random_world(seed, n=40_000, n_classes=5):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n_classes), n)
    codes = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return p, codes


# -- temperature ------------------------------------------------------------------------------


@patient
@given(st.integers(0, 1000), st.floats(-9, 9), st.floats(-100, 100))
def test_the_temperature_of_a_known_world_is_found(seed, log_temperature, shift):
    p, codes = exact_world(seed)
    temperature = math.exp(log_temperature)
    scores = temperature * np.log(p) + temperature * shift
    assert fit_temperature(scores, codes) == pytest.approx(temperature, rel=1e-6)


def test_probabilities_of_a_random_world_are_recovered():
    p, codes = random_world(0)
    scores = 0.3 * np.log(p) + np.arange(len(p))[:, None]
    temperature = fit_temperature(scores, codes)
    assert temperature == pytest.approx(0.3, rel=0.02)
    assert np.abs(probabilities_of(scores, temperature) - p).max() < 0.01
    report = CalibrationReport.of(scores, codes, temperature)
    assert report.log_loss_after < report.log_loss_before
    assert report.ece_after < 0.01 < report.ece_before
    assert (report.n_images, report.n_classes) == p.shape


@patient
@given(st.integers(0, 1000), st.floats(0.1, 10))
def test_no_other_temperature_has_a_smaller_loss(seed, scale):
    rng = np.random.default_rng(seed)
    scores = scale * rng.normal(size=(30, 3))
    codes = np.where(rng.random(30) < 0.6, scores.argmax(axis=1), rng.integers(0, 3, 30))
    assume((codes != scores.argmax(axis=1)).any())  # else there is no minimum; see below
    best = fit_temperature(scores, codes)
    loss = log_loss_of(probabilities_of(scores, best), codes)
    for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2):
        assert loss <= log_loss_of(probabilities_of(scores, best * factor), codes) + 1e-12


def test_when_all_names_are_right_probabilities_stay_short_of_certain():
    """The loss has no minimum; a share 1/(n + 1) of each label is spread over all classes."""
    scores, codes = np.array([[1.0, 0, 0], [0, 2.0, 0]] * 2), np.array([0, 1] * 2)
    temperature = fit_temperature(scores, codes)
    smooth = np.full(scores.shape, 1 / 15)
    smooth[np.arange(4), codes] += 4 / 5
    grid = temperature * np.linspace(0.5, 2, 301)
    losses = [-(smooth * np.log(probabilities_of(scores, t))).sum() for t in grid]
    assert grid[np.argmin(losses)] == pytest.approx(temperature, rel=0.01)
    assert probabilities_of(scores, temperature).max() < 0.999


def test_scores_that_tell_nothing():
    scores = np.array([[1.0, 0], [1.0, 0]])
    useless = fit_temperature(scores, [0, 1])
    assert probabilities_of(scores, useless) == pytest.approx(0.5, abs=0.001)
    misleading = fit_temperature(scores, [1, 1])
    assert probabilities_of(scores, misleading) == pytest.approx(0.5, abs=0.001)
    assert fit_temperature(np.zeros((3, 2)), [0, 1, 1]) == 1


# -- log-loss and calibration error -----------------------------------------------------------


@patient
@given(st.integers(0, 1000))
def test_log_loss_is_that_of_scikit_learn(seed):
    p, codes = random_world(seed, n=50)
    assert log_loss_of(p, codes) == pytest.approx(log_loss(codes, p, labels=np.arange(5)))


def test_an_impossible_truth_costs_much_but_not_everything():
    assert 700 < log_loss_of([[1.0, 0.0]], [1]) < 710


def test_a_calibrated_world_has_no_calibration_error():
    p, codes = random_world(1)
    assert expected_calibration_error(p, codes) < 0.01
    sharper = probabilities_of(np.log(p), 0.5)
    assert expected_calibration_error(sharper, codes) > 0.1


@patient
@given(st.integers(0, 1000), st.integers(1, 20))
def test_calibration_error_bin_by_bin(seed, n_bins):
    rng = np.random.default_rng(seed)
    p, codes = rng.dirichlet(np.ones(3), 40), rng.integers(0, 3, 40)
    confidence, right = p.max(axis=1), p.argmax(axis=1) == codes
    expected = 0
    for b in range(n_bins):
        own = (confidence > b / n_bins) & (confidence <= (b + 1) / n_bins)
        if own.any():
            expected += own.mean() * abs(confidence[own].mean() - right[own].mean())
    assert expected_calibration_error(p, codes, n_bins) == pytest.approx(expected)


def test_certain_answers_count():
    assert expected_calibration_error([[1.0, 0.0]] * 4, [0, 0, 0, 1]) == 0.25


# -- risk and coverage ------------------------------------------------------------------------

answers = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=25)


@patient
@given(answers)
def test_risk_at_every_threshold(pairs):
    confidence, correct = (np.array(column) for column in zip(*pairs, strict=True))
    curve = risk_coverage_curve(confidence, correct)
    assert curve.thresholds.tolist() == sorted(set(confidence.tolist()), reverse=True)
    area, before = 0, 0
    for threshold, coverage, risk in zip(curve.thresholds, curve.coverage, curve.risk, strict=True):
        answered = confidence >= threshold
        assert coverage == pytest.approx(answered.mean())
        assert risk == pytest.approx((~correct[answered]).mean())
        area += risk * (coverage - before)
        before = coverage
    assert curve.area == pytest.approx(area)
    assert curve.at(1) == pytest.approx((~correct).mean())


def test_area_without_ties_is_the_mean_risk():
    rng = np.random.default_rng(0)
    confidence, correct = rng.permutation(50) / 50, rng.random(50) < 0.7
    order = np.argsort(-confidence)
    risks = [(~correct[order[:k]]).mean() for k in range(1, 51)]
    curve = risk_coverage_curve(confidence, correct)
    assert curve.area == pytest.approx(np.mean(risks))
    assert [curve.at(k / 50) for k in range(1, 51)] == pytest.approx(risks)
    assert repr(curve) == f"RiskCoverage(50 points, area={np.mean(risks):.4f})"


@patient
@given(answers, st.integers(1, 20))
def test_threshold_for_a_coverage(pairs, twentieths):
    confidence = np.array([c for c, _ in pairs], float)
    threshold = threshold_for(confidence, coverage=twentieths / 20)
    needed = math.ceil(twentieths * len(pairs) / 20 - 1e-9)
    assert (confidence >= threshold).sum() >= needed
    assert (confidence >= np.nextafter(threshold, 9)).sum() < needed  # the largest such


@patient
@given(answers, st.integers(0, 19))
def test_threshold_for_a_false_accept_rate(pairs, twentieths):
    confidence = np.array([c for c, _ in pairs], float)
    threshold = threshold_for(confidence, false_accept_rate=twentieths / 20)
    allowed = math.floor(twentieths * len(pairs) / 20 + 1e-9)
    assert (confidence >= threshold).sum() <= allowed
    assert (confidence >= np.nextafter(threshold, -9)).sum() > allowed  # the smallest such


@pytest.mark.parametrize("n", [3, 10, 30, 49])
def test_shares_that_are_not_whole_in_floating_point(n):
    """Such as 0.07 * 100, which is a little more than 7."""
    confidence = np.arange(n) / n
    for k in range(1, n + 1):
        assert (confidence >= threshold_for(confidence, coverage=k * (1 / n))).sum() == k
        if k < n:
            threshold = threshold_for(confidence, false_accept_rate=k * (1 / n))
            assert (confidence >= threshold).sum() == k


# -- bad input --------------------------------------------------------------------------------


def test_bad_scores_and_codes():
    with pytest.raises(ValueError, match=r"shapes are \(1, 2\) and \(2,\)"):
        fit_temperature([[0, 1]], [0, 1])
    with pytest.raises(ValueError, match=r"shapes are \(0,\)"):
        fit_temperature([], [])
    with pytest.raises(ValueError, match="NaN or inf"):
        fit_temperature([[0, np.nan]], [0])
    for codes in ([2], [-1], [0.5], ["a"]):
        with pytest.raises(ValueError, match="whole numbers from 0 to 1; see class_codes"):
            log_loss_of([[0.5, 0.5]], codes)
    with pytest.raises(ValueError, match="n_bins must be a whole number of at least 1, not 0"):
        expected_calibration_error([[0.5, 0.5]], [0], n_bins=0)
    with pytest.raises(ValueError, match="y holds 'c', not among the candidate classes"):
        class_codes(["a", "c"], ["a", "b"])


def test_bad_shares():
    for coverage in (0, 1.1, "half", np.nan, True):
        with pytest.raises(ValueError, match="coverage must be a share above 0 and up to 1, not"):
            threshold_for([0.5], coverage=coverage)
    for rate in (-0.1, 1, np.nan):
        with pytest.raises(ValueError, match="false_accept_rate must be a share from 0 to below 1"):
            threshold_for([0.5], false_accept_rate=rate)
    with pytest.raises(ValueError, match="give one of them, not none"):
        threshold_for([0.5])
    with pytest.raises(ValueError, match="give one of them, not both"):
        threshold_for([0.5], coverage=0.5, false_accept_rate=0.5)
    with pytest.raises(ValueError, match="no images"):
        threshold_for([], coverage=0.5)
    with pytest.raises(ValueError, match="NaN or inf"):
        risk_coverage_curve([np.nan], [True])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        risk_coverage_curve([0.5, 0.4], [True])
    with pytest.raises(ValueError, match="coverage must be a share"):
        risk_coverage_curve([0.5], [True]).at(0)
