"""Small computations on arrays."""

import numpy as np

from latem.core.arrays import settled, unit_rows


def test_unit_rows_have_length_one_unless_they_are_zero():
    rows = np.array([[3e200, 4e200], [0.0, 0.0], [1e-300, 0.0]])
    np.testing.assert_allclose(unit_rows(rows), [[0.6, 0.8], [0, 0], [1, 0]])
    assert rows[0, 0] == 3e200
    assert unit_rows(rows, in_place=True) is rows


def test_settled_numbers_are_equal_if_they_differ_by_rounding_alone():
    one = np.array([0.1 + 0.2, 1e-13, -0.25])
    two = np.array([0.3, 0.0, -0.25])
    assert not np.array_equal(one, two)
    np.testing.assert_array_equal(settled(one), settled(two))
    np.testing.assert_array_equal(settled(1e6 * one, 1e6), settled(1e6 * two, 1e6))
    np.testing.assert_allclose(settled(one), one, atol=1e-10)
    assert settled(np.array([1e-8]))[0] > 0  # more than rounding
    np.testing.assert_array_equal(settled(one, 0.0), one)
    assert settled(one.astype(np.float32)).dtype == np.float32
