"""Tensors of the Open Inference Protocol, in JSON and as bytes."""

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi")

from latem.server.problems import ProblemError
from latem.server.tensors import BYTES, DTYPES, join_texts, read_tensor, split_texts, written


@given(st.lists(st.binary(max_size=20), max_size=8))
def test_texts_there_and_back(texts):
    assert split_texts("x", join_texts(texts)) == texts
    again = [base64.b64encode(one).decode() for one in texts]
    if texts:
        assert read_tensor("x", BYTES, [len(texts)], again, None) == texts


@pytest.mark.parametrize("datatype", list(DTYPES))
def test_numbers_there_and_back(datatype):
    values = np.arange(6).reshape(2, 3)
    raw = written(values, datatype)
    found = read_tensor("x", datatype, [2, 3], None, raw)
    np.testing.assert_array_equal(found, values)
    for data in (values.tolist(), values.ravel().tolist()):
        np.testing.assert_array_equal(read_tensor("x", datatype, [2, 3], data, None), values)


def test_texts_are_written_as_bytes():
    assert split_texts("x", written(np.array([["a", "ü"]], object), BYTES)) == [
        b"a",
        "ü".encode(),
    ]


@pytest.mark.parametrize(
    ("datatype", "shape", "data", "raw", "message"),
    [
        ("FP32", [2], [1, 2], b"12345678", "not both"),
        ("FP32", [2], None, None, "needs data"),
        ("FP32", [3], [1, 2], None, "must hold 3 numbers"),
        ("FP32", [2], ["1", "2"], None, "must hold 2 numbers"),
        ("FP32", [2], [True, False], None, "must hold 2 numbers"),
        ("FP32", [2, 2], [[1, 2], [3]], None, "different lengths"),
        ("FP32", [2], None, b"123", "has 3 bytes, not 8"),
        ("BF16", [1], [1], None, "datatype 'BF16'"),
        ("FP32", [1, 1, 1], [1], None, "one or two axes"),
        ("FP32", [-1], [1], None, "one or two axes"),
        ("FP32", [2**40, 2**40], None, b"", "has 0 bytes"),
        ("BYTES", [1], ["not base64!"], None, "base64"),
        ("BYTES", [1], [7], None, "base64"),
        ("BYTES", [2], ["aGk="], None, "has 1 entries, not 2"),
        ("BYTES", [1], None, b"\x05\x00\x00\x00ab", "shorter than it says"),
        ("BYTES", [1], None, b"\x05\x00", "middle of a length"),
    ],
)
def test_tensors_that_do_not_fit(datatype, shape, data, raw, message):
    with pytest.raises(ProblemError, match=message) as refused:
        read_tensor("x", datatype, shape, data, raw)
    assert refused.value.status == 400
