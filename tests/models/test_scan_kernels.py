"""Compiled products of stored rows: those of NumPy."""

import numpy as np
import pytest

from latem.models import scan_kernels


@pytest.mark.parametrize("n_vectors", [1, 3, 4, 6, 8])
@pytest.mark.parametrize("half", [True, False])
def test_products_and_lengths(n_vectors, half):
    rng = np.random.default_rng(n_vectors)
    X = rng.normal(size=(50, 19)).astype(np.float16 if half else np.float32)
    V = rng.normal(size=(n_vectors, 19)).astype(np.float32)
    rows, room = np.array([3, 3, 49, 0, 17, 5, 8]), np.empty((4, 19), np.float32)
    for shift in (np.empty(0, np.float32), rng.normal(size=19).astype(np.float32)):
        S, squares = np.empty((n_vectors, 7), np.float32), np.empty(7, np.float32)
        if half:
            bits = room.view(np.uint32)
            scan_kernels.scan_half(X.view(np.uint16), rows, bits, room, shift, V, S, squares)
        else:
            scan_kernels.scan_single(X, rows, room, shift, V, S, squares)
        exact = X[rows].astype(np.float64)
        np.testing.assert_allclose(squares, np.square(exact).sum(axis=1), rtol=1e-5)
        moved = exact - (shift if len(shift) else 0)
        np.testing.assert_allclose(S, V @ moved.T, rtol=1e-4, atol=1e-5)


def test_every_half_precision_number_is_widened():
    every = np.arange(2**16, dtype=np.uint16).reshape(-1, 1)
    room, rows = np.empty((8, 1), np.float32), np.arange(2**16)
    S, empty = np.empty((1, 2**16), np.float32), np.empty(0, np.float32)
    V = np.ones((1, 1), np.float32)
    scan_kernels.scan_half(every, rows, room.view(np.uint32), room, empty, V, S, empty)
    expected = every[:, 0].view(np.float16).astype(np.float32)
    expected[~np.isfinite(expected)] = np.nan
    np.testing.assert_array_equal(S[0], expected)
