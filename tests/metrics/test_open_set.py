"""None of these: membership, kinship, and thresholds by the number of candidates."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import softmax

from latem.metrics.open_set import RATES, Kinship, Outsiders, membership, rival_energy


@given(st.integers(1, 6), st.integers(1, 6), st.floats(0.1, 10), st.integers(0, 99))
@example(4, 1, 0.1015625, 1)  # so far inside that 1 - p has few digits left
def test_membership_is_a_log_odds(n_candidates, n_rivals, temperature, seed):
    rng = np.random.default_rng(seed)
    scores, rivals = rng.normal(size=(5, n_candidates)), rng.normal(size=(5, n_rivals))
    both = np.hstack([scores, rivals - temperature * np.log(n_rivals)])  # as much as one class
    shares = softmax(both / temperature, axis=1)
    inside, outside = (part.sum(axis=1) for part in np.split(shares, [n_candidates], axis=1))
    found = membership(scores, rivals, temperature)
    np.testing.assert_allclose(found, np.log(inside / outside), rtol=1e-6, atol=1e-9)


def test_rivals_twice_are_the_same_rivals():
    rivals = np.random.default_rng(0).normal(size=(4, 3))
    np.testing.assert_allclose(rival_energy(rivals, 0.5), rival_energy(np.tile(rivals, 2), 0.5))


def kin_world(seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(8, 20))
    y = np.repeat([f"class {i}" for i in range(8)], 30)
    shared = 3 * rng.normal(size=20)
    return centres.repeat(30, axis=0) + 0.3 * rng.normal(size=(240, 20)) + shared, y, shared


def test_kinship_by_hand():
    X, y, _ = kin_world()
    kinship = Kinship.of(X, y)
    means = np.array([X[y == name].mean(axis=0) for name in np.unique(y)])
    centre = means.mean(axis=0)
    plain = (X - centre) @ (means - centre).T
    plain /= np.linalg.norm(X - centre, axis=1)[:, None] * np.linalg.norm(means - centre, axis=1)
    np.testing.assert_allclose(kinship(X), plain.max(axis=1), atol=1e-5)
    own = np.arange(8).repeat(30)
    plain[np.arange(240), own] = -1
    assert kinship.threshold == pytest.approx(np.quantile(plain.max(axis=1), 0.05), abs=1e-5)


def test_what_is_of_another_kind_is_no_kin():
    """Classes that share a few directions, and images that lie in others."""
    rng = np.random.default_rng(1)
    directions = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    means = rng.normal(size=(30, 4)) @ directions[:4]
    y = np.repeat(np.arange(30), 20)
    X = means[y] + 0.05 * rng.normal(size=(600, 40))
    kinship = Kinship.of(X[y < 24], y[y < 24])
    others = rng.normal(size=(200, 30)) @ directions[10:]
    assert (kinship(others) < kinship.threshold).mean() > 0.9
    assert (kinship(X[y >= 24]) >= kinship.threshold).mean() > 0.8  # classes not learned


def test_only_the_largest_of_very_many_classes_are_kept(monkeypatch):
    monkeypatch.setattr("latem.metrics.open_set._MOST", 3)
    X, y, _ = kin_world()
    X, y = X[15:], y[15:]  # the first class is the smallest
    kinship = Kinship.of(X, y)
    assert len(kinship.means) == 3
    assert kinship(X).shape == (225,)


def sampled(n, rng, size=4000):
    outside = rng.normal(size=(size, n)).max(axis=1)
    return outside, np.ones(size), 2 + rng.normal(size=500)


def test_thresholds_are_quantiles_of_outsiders():
    rng = np.random.default_rng(0)
    samples = {n: sampled(n, rng) for n in (2, 8)}
    outsiders = Outsiders.measured(samples)
    for n, (outside, _, inside) in samples.items():
        for rate in (0.05, 0.2, 0.5):
            bound = outsiders.threshold(n, rate)
            assert (outside >= bound).mean() == pytest.approx(rate, abs=0.001)
            assert outsiders.covered(n, rate) == pytest.approx((inside >= bound).mean(), abs=0.01)
        shares = outsiders.rates(outside, n)
        for rate in (0.05, 0.2):
            assert (shares <= rate).mean() == pytest.approx(rate, abs=0.002)


def test_a_number_of_candidates_in_between_and_beyond():
    """The largest of n normal numbers: thresholds for 4 and 32 follow from 2, 8 and 16."""
    rng = np.random.default_rng(1)
    outsiders = Outsiders.measured({n: sampled(n, rng) for n in (2, 8, 16)})
    for n, tolerance in ((4, 0.02), (32, 0.02)):
        outside = sampled(n, rng)[0]
        assert (outsiders.rates(outside, n) <= 0.05).mean() == pytest.approx(0.05, abs=tolerance)
    without = Outsiders.measured({2: sampled(2, rng)})
    assert (without.rates(sampled(32, rng)[0], 32) <= 0.05).mean() > 0.3  # why it must adapt


def test_shares_never_fall_as_membership_falls():
    rng = np.random.default_rng(2)
    outsiders = Outsiders.measured({n: sampled(n, rng, 60) for n in (1, 4, 16)})
    for n in (1, 3, 16, 500):
        shares = outsiders.rates(np.linspace(6, -6, 200), n)
        assert (np.diff(shares) >= 0).all()
        assert (shares[0], shares[-1]) == (RATES[0], 1.0)


def test_weights_and_images_that_are_no_kin():
    outside = np.array([3.0, 2.0, 1.0, -np.inf])
    outsiders = Outsiders.measured({2: (outside, np.array([1, 1, 2, 4.0]), np.array([2.5, 0.5]))})
    assert np.isfinite(outsiders.thresholds).all()
    assert outsiders.rates(np.array([3.0, 2.0, -np.inf]), 2).tolist() == pytest.approx(
        [0.12, 0.25, 1.0], abs=0.02
    )
    assert outsiders.rate_for(2, 0.5) <= 0.25
    assert outsiders.rate_for(2, 1.0) == 0.5  # from there on everything but -inf
