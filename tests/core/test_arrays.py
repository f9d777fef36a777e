"""Small computations on arrays."""

import mmap

import numpy as np
import pytest

from latem.core.arrays import mapped_file, read_at_random, settled, unit_rows
from latem.datasets.features import with_encoder


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


def test_the_file_that_an_array_is_mapped_from(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, np.arange(12.0).reshape(4, 3))
    mapped = np.load(path, mmap_mode="r")
    assert mapped_file(mapped) == path
    assert mapped_file(np.asarray(mapped)) == path
    for other in (mapped[1:], mapped[::2], mapped.T, mapped[:, :2], np.array(mapped)):
        assert mapped_file(other) is None
    assert mapped_file(np.arange(3.0)) is None
    assert mapped_file(with_encoder(mapped, {"name": "x"})) == path


@pytest.mark.skipif(not hasattr(mmap, "MADV_RANDOM"), reason="the system takes no advice")
def test_a_mapped_file_is_read_at_random_for_a_while(tmp_path):
    class Map(mmap.mmap):
        def madvise(self, *advice):
            said.append(advice)
            return super().madvise(*advice)

    said = []
    path = tmp_path / "rows"
    path.write_bytes(bytes(range(200)))
    with open(path, "rb") as file:
        rows = np.frombuffer(Map(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    rows = rows.reshape(20, 10)[1:].view(np.int8)
    with read_at_random(np.asarray(rows)):
        assert said == [(mmap.MADV_RANDOM,)]
    assert said == [(mmap.MADV_RANDOM,), (mmap.MADV_NORMAL,)]
    with read_at_random(np.ones(3)):
        pass
    assert len(said) == 2
