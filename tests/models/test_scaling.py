import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler, normalize

from latem.models.scaling import FeatureScaler

KINDS = ["zmax", "zscore", "l2", "l2-centered", None]


@given(st.integers(0, 500), st.integers(2, 600))
def test_zscore_is_scikit_learns(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.normal(5, 3, (n, 4)) * [1, 10, 0.1, 0] + [0, 100, -7, 0.1]
    expected = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(FeatureScaler.fit(X, "zscore").transform(X), expected, atol=1e-9)


def test_zmax_brings_the_largest_training_entry_to_one():
    X = np.random.default_rng(0).normal(size=(50, 3)) ** 3
    scaled = FeatureScaler.fit(X, "zmax").transform(X)
    assert scaled.max() == pytest.approx(1)
    z = FeatureScaler.fit(X, "zscore").transform(X)
    np.testing.assert_allclose(scaled, z / z.max())


def test_l2_is_scikit_learns_and_leaves_zero_rows():
    X = np.random.default_rng(0).normal(size=(5, 3))
    X[2] = 0
    np.testing.assert_allclose(FeatureScaler.fit(X, "l2").transform(X), normalize(X))


def test_l2_centered_has_mean_zero_after_the_division():
    X = np.random.default_rng(0).normal(3, 2, (700, 3))
    scaler = FeatureScaler.fit(X, "l2-centered")
    expected = normalize(X) - normalize(X).mean(axis=0)
    np.testing.assert_allclose(scaler.transform(X), expected, atol=1e-12)
    new = np.array([[0, 3.0, 4.0]])
    np.testing.assert_allclose(scaler.transform(new), [[0, 0.6, 0.8]] - scaler.shift)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0.0, 0.1, -3.7, 1e12])
def test_constant_features_stay_finite_and_quiet(kind, value):
    X = np.full((300, 2), value, np.float32)
    X[:, 1] = np.arange(300)
    scaler = FeatureScaler.fit(X, kind)
    assert np.isfinite(scaler.transform(X)).all()
    if kind in ("zmax", "zscore"):
        assert (scaler.transform(X)[:, 0] == 0).all()
    everything_constant = FeatureScaler.fit(X[:, :1], kind).transform(X[:, :1])
    assert np.isfinite(everything_constant).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given_type", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("wanted", ["float32", "float64"])
def test_load_equals_transform(kind, given_type, wanted):
    X = np.random.default_rng(0).normal(3, 2, (40, 5)).astype(given_type)
    original = X.copy()
    scaler = FeatureScaler.fit(X, kind)
    rows = np.array([7, 3, 3, 39])
    buffer = np.full((6, 5), np.nan, wanted)
    loaded = scaler.load(X, rows, buffer)
    assert loaded.dtype == wanted
    assert loaded.base is buffer
    np.testing.assert_allclose(loaded, scaler.transform(X[rows], wanted), rtol=1e-6)
    assert np.isnan(buffer[4:]).all()
    np.testing.assert_array_equal(X, original)


def test_float64_images_keep_their_precision_on_the_way_to_float32():
    X = 1e6 + np.random.default_rng(0).normal(size=(100, 2)) * 1e-3
    scaled = FeatureScaler.fit(X, "zscore").transform(X, "float32")
    np.testing.assert_allclose(scaled, StandardScaler().fit_transform(X), atol=1e-4)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_l2_at_any_size(size):
    X = np.random.default_rng(0).normal(size=(5, 3))
    scaled = FeatureScaler.fit(X * size, "l2").transform(X * size)
    np.testing.assert_allclose(scaled, normalize(X))


def test_constant_but_for_rounding():
    X = np.array([[0.3, 1.0], [0.1 + 0.2, 2.0]])
    scaled = FeatureScaler.fit(X, "zscore").transform(np.array([[0.3001, 1.5]]))
    assert abs(scaled[0, 0]) < 0.001


def test_features_that_vary_too_little():
    X = np.array([[1e-42, 1.0], [2e-42, 2.0]], np.float32)
    with pytest.raises(ValueError, match="column 0 varies too little"):
        FeatureScaler.fit(X, "zmax")


def test_half_precision_is_scaled_in_single():
    X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float16)
    assert FeatureScaler.fit(X, "zscore").transform(X).dtype == np.float32


def test_values_too_large_to_square_are_named():
    X = np.array([[1.0, 1e300], [2.0, -1e300]])
    with pytest.raises(ValueError, match="column 1 holds values too large"):
        FeatureScaler.fit(X, "zmax")


def test_every_half_precision_number_is_loaded_exactly():
    X = np.arange(2**16, dtype=np.uint16).view(np.float16)
    X = X[np.isfinite(X)].reshape(-1, 8)
    scaler = FeatureScaler(None, np.zeros(8), np.ones(8))
    rows = np.random.default_rng(0).permutation(len(X))
    loaded = scaler.load(X, rows, np.empty(X.shape, np.float32))
    np.testing.assert_array_equal(loaded, X[rows].astype(np.float32))
    np.testing.assert_array_equal(np.signbit(loaded), np.signbit(X[rows]))
