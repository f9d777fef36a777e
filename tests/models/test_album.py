"""The arithmetic of albums: what they gain, and what keeps them from losing."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from latem.models.album import directions, fit_album, model_log_probabilities


def clusters(seed, sizes, width=40, error=1.0, noise=1.0, temperature=8.0):
    """Clusters of pictures, and a model whose idea of every class is somewhat wrong."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(len(sizes), width))
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = 3 + means[y] + noise * rng.normal(size=(len(y), width))
    ideas = 3 + means + error * rng.normal(size=means.shape)
    scores = -((X[:, None] - ideas[None]) ** 2).sum(axis=2) / 2
    return X, log_softmax(scores / temperature, axis=1), y


def accuracy(y, names):
    return np.mean([(names[y == c] == c).mean() for c in np.unique(y)])


def gain(X, L, y, **options):
    found = fit_album(X, L, **options).probabilities
    return accuracy(y, found.argmax(axis=1)) - accuracy(y, L.argmax(axis=1))


HARD = {"error": 1.6, "noise": 1.4}
ALBUMS = {
    "all classes": [30] * 20,
    "five of twenty": [30] * 5 + [0] * 15,
    "two of twenty": [30] * 2 + [0] * 18,
    "uneven": [max(1, 60 // (1 + i)) for i in range(20)],
    "small": [3] * 20,
}


@pytest.mark.parametrize("sizes", ALBUMS.values(), ids=ALBUMS.keys())
def test_no_kind_of_album_loses(sizes):
    gains = [gain(*clusters(seed, sizes, **HARD)) for seed in range(4)]
    assert np.mean(gains) > -0.01


def test_an_album_of_all_classes_gains():
    before = [
        accuracy(y, L.argmax(1)) for _, L, y in (clusters(s, [30] * 20, **HARD) for s in range(4))
    ]
    gains = [gain(*clusters(seed, [30] * 20, **HARD)) for seed in range(4)]
    assert 0.4 < np.mean(before) < 0.9
    assert np.mean(gains) > 0.05


def test_features_that_resemble_nothing_change_hardly_anything():
    _, L, y = clusters(0, [30] * 20, **HARD)
    X = np.random.default_rng(1).normal(size=(len(y), 40))
    fit = fit_album(X, L)
    changed = fit.probabilities.argmax(axis=1) != L.argmax(axis=1)
    assert fit.likeness < 0.05
    assert abs(gain(X, L, y)) < 0.03
    assert changed.mean() < 0.15


def test_absent_classes_get_hardly_any_pictures():
    X, L, _ = clusters(2, [40] * 4 + [0] * 16, **HARD)
    shares = fit_album(X, L).shares
    assert shares.sum() == pytest.approx(1)
    assert shares[4:].sum() < softmax(L, axis=1)[:, 4:].mean(axis=0).sum()


def test_one_picture_has_the_models_answer():
    X, L, _ = clusters(3, [2] * 6)
    for row in range(len(X)):
        alone = fit_album(X[row : row + 1], L[row : row + 1]).probabilities[0]
        np.testing.assert_allclose(alone, np.exp(L[row]), atol=1e-6)


def test_equal_pictures_have_the_models_answer():
    X, L, _ = clusters(3, [2] * 6)
    found = fit_album(np.repeat(X[:1], 5, axis=0), np.repeat(L[:1], 5, axis=0)).probabilities
    assert (found.argmax(axis=1) == L[0].argmax()).all()


@pytest.mark.parametrize("width", [40, 150])
def test_order_of_rows_and_classes_does_not_matter(width):
    X, L, y = clusters(4, [9] * 14, width=width)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(len(y)), rng.permutation(14)
    fit = fit_album(X, L)
    other = fit_album(X[rows], L[rows][:, columns])
    np.testing.assert_allclose(other.probabilities, fit.probabilities[rows][:, columns], atol=1e-4)
    np.testing.assert_allclose(other.shares, fit.shares[columns], atol=1e-5)


@pytest.mark.parametrize("width", [40, 150])
@pytest.mark.parametrize("block", [1, 7, 1000])
def test_blocks_of_any_size_give_the_same(width, block):
    X, L, _ = clusters(5, [9] * 14, width=width)
    fit, other = fit_album(X, L), fit_album(X, L, block=block)
    np.testing.assert_allclose(other.probabilities, fit.probabilities, atol=1e-4)
    np.testing.assert_allclose(other.shares, fit.shares, atol=1e-5)
    assert other.likeness == pytest.approx(fit.likeness, rel=1e-5)


def test_the_same_album_has_the_same_bytes():
    X, L, _ = clusters(6, [9] * 14, width=150)
    found = [fit_album(X, L).probabilities.tobytes() for _ in range(2)]
    assert found[0] == found[1]


def test_labels_stay_and_spread():
    gains, kept = [], []
    for seed in range(4):
        X, L, y = clusters(seed, [20] * 12, error=2.5, noise=1.2)
        rows = np.array([20 * c + i for c in range(12) for i in range(2)])
        labels = {int(row): int(y[row]) for row in rows}
        rest = np.setdiff1d(np.arange(len(y)), rows)
        plain, helped = (fit_album(X, L, labels=given).probabilities for given in (None, labels))
        kept.append((helped[rows].argmax(axis=1) == y[rows]).all())
        np.testing.assert_array_equal(helped[rows].max(axis=1), 1)
        gains.append(
            accuracy(y[rest], helped[rest].argmax(1)) - accuracy(y[rest], plain[rest].argmax(1))
        )
    assert all(kept)
    assert np.mean(gains) > 0.1


def test_a_wrong_label_is_kept_too():
    X, L, y = clusters(7, [10] * 6)
    found = fit_album(X, L, labels={0: 3}).probabilities
    assert y[0] != 3
    assert found[0].argmax() == 3


def test_pictures_that_do_not_count_change_nothing_for_the_others():
    X, L, y = clusters(8, [10] * 6)
    odd, odd_L, _ = clusters(9, [10] * 6)
    both, both_L = np.concatenate([X, odd]), np.concatenate([L, odd_L])
    counted = np.arange(len(both)) < len(y)
    fit, other = fit_album(X, L), fit_album(both, both_L, counted=counted)
    np.testing.assert_allclose(other.probabilities[: len(y)], fit.probabilities, atol=1e-3)
    np.testing.assert_allclose(other.shares, fit.shares, atol=1e-4)
    none = fit_album(X, L, counted=np.zeros(len(y), bool)).probabilities
    np.testing.assert_allclose(none, np.exp(L), atol=1e-5)


def test_expected_shares_rule():
    X, L, _ = clusters(10, [10] * 6)
    shares = np.array([0, 0.2, 0.2, 0.2, 0.2, 0.2])
    found = fit_album(X, L, shares=shares).probabilities
    assert (found[:, 0] == 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)


def test_knowing_that_few_classes_occur_helps():
    gains = []
    for seed in range(4):
        X, L, y = clusters(seed, [30] * 2 + [0] * 18, **HARD)
        few, many = (gain(X, L, y, occupancy=share) for share in (0.1, 1.0))
        gains.append(few - many)
    assert np.mean(gains) > 0


def test_scores_without_a_temperature_are_brought_to_a_usual_spread():
    scores = np.random.default_rng(0).normal(size=(50, 6))
    found = model_log_probabilities(scores, None)
    np.testing.assert_allclose(model_log_probabilities(1000 * scores + 5, None), found, rtol=1e-4)
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(
        model_log_probabilities(scores, 0.5), log_softmax(scores / 0.5, axis=1), rtol=1e-5
    )
    equal = model_log_probabilities(np.ones((3, 4)), None)
    np.testing.assert_allclose(equal, np.log(0.25), rtol=1e-6)


def test_directions_are_unit_vectors_whatever_the_scale():
    X = clusters(11, [40] * 6, width=300)[0]
    everything = np.ones(len(X), bool)
    Z = directions(X, everything)
    assert Z.shape == (240, 100)
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(
        np.abs(directions(1000 * X, everything)), np.abs(Z), atol=1e-4
    )  # axes may turn round
    assert directions(X[:, :40], everything).shape == (240, 40)


def test_directions_even_out_the_variances():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5)) * [9, 1, 1, 1, 1] + 50
    spread = directions(X, np.ones(400, bool)).std(axis=0)
    whole = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    assert spread.max() / spread.min() < whole.max() / whole.min()
