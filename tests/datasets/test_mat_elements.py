"""MATLAB files of version 5 before SciPy reads them."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from latem.datasets.mat_elements import COMPRESSED, check_variable
from latem.datasets.mat_files import MatFile

MATRIX = 14
DESCRIBED = {
    "numbers": np.arange(6.0).reshape(2, 3),
    "bytes": np.ones((1, 3), np.uint8),  # an element that lies in the place of its length
    "truth": np.array([[True, False]]),
    "complex numbers": np.array([[1 + 2j]]),
    "text": "ant",
    "no text": "",
    "cells": np.array([["ant", np.eye(2)], [1.5, np.array([["bee"]], object)]], object),
    "struct": {"att": np.eye(3), "glo": {"deep": "cat"}},
    "structs": np.array([(1, "ant"), (2, "bee")], [("n", object), ("name", object)]),
    "sparse": sparse.eye(4, format="csc"),
    "nothing": np.zeros((0, 0)),
    "no cells": np.zeros((0, 0), object),
}


def variable(value, compressed=False):
    """Type and bytes of the element that holds a value."""
    file = io.BytesIO()
    scipy.io.savemat(file, {"x": value}, do_compression=compressed)
    kind, length = struct.unpack_from("<II", file.getvalue(), 128)
    return kind, file.getvalue()[136 : 136 + length]


def element(kind, content):
    padding = b"" if kind == MATRIX else bytes(-len(content) % 8)
    return struct.pack("<II", kind, len(content)) + content + padding


def matrix(number, shape, *parts, flags=0):
    """Bytes of a matrix of a class: what describes it, and its parts."""
    sides = struct.pack(f"<{len(shape)}i", *shape)
    head = struct.pack("<II", number | flags, 0)
    return element(6, head) + element(5, sides) + element(1, b"x") + b"".join(parts)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("value", DESCRIBED.values(), ids=DESCRIBED)
def test_what_scipy_writes_is_taken(value, compressed):
    kind, content = variable(value, compressed)
    assert kind == (COMPRESSED if compressed else MATRIX)
    check_variable(kind, content, "little")


def test_what_matlab_wrote_is_taken(tmp_path):
    folder = Path(scipy.io.__file__).parent / "matlab" / "tests" / "data"
    files = sorted(folder.glob("test*_7*.mat")) + sorted(folder.glob("test*_6*.mat"))
    if not files:
        pytest.skip("SciPy was installed without the files of its tests")
    for path in files:
        MatFile(path)


NUMBERS = element(9, bytes(8))
BAD = {
    "no matrix": (9, bytes(8), "type 9, not a matrix"),
    "nothing known": (77, b"", "type 77, not a matrix"),
    "not packed": (COMPRESSED, b"ant", "cannot be unpacked"),
    "two in one": (COMPRESSED, zlib.compress(2 * element(MATRIX, b"")), "holds 2 elements"),
    "none in one": (COMPRESSED, zlib.compress(b""), "holds 0 elements"),
    "an unknown type inside": (
        MATRIX,
        matrix(6, (1, 1), element(55, bytes(8))),
        "an element of type 55",
    ),
    "a cut": (MATRIX, matrix(6, (1, 1), NUMBERS)[:-12], "cut short|there are fewer"),
    "a length beyond the end": (
        MATRIX,
        matrix(6, (1, 1), struct.pack("<II", 9, 2**31)),
        "2147483648 bytes where there are fewer",
    ),
    "a long short element": (
        MATRIX,
        matrix(6, (1, 1), struct.pack("<HHI", 1, 5, 0)),
        "5 bytes where there are fewer",
    ),
    "no description": (MATRIX, NUMBERS * 4, "no description"),
    "an unknown class": (MATRIX, matrix(99, (1, 1), NUMBERS), "a matrix of class 99"),
    "no numbers": (MATRIX, matrix(6, (1, 1)), "is not made of what"),
    "half of complex numbers": (
        MATRIX,
        matrix(6, (1, 1), NUMBERS, flags=0x0800),
        "is not made of what",
    ),
    "a sparse one without rows": (MATRIX, matrix(5, (1, 1), NUMBERS), "is not made of what"),
    "a matrix for numbers": (
        MATRIX,
        matrix(6, (1, 1), element(MATRIX, matrix(6, (1, 1), NUMBERS))),
        "is not made of what",
    ),
    "fewer cells than promised": (MATRIX, matrix(1, (30_000, 30_000)), "is not made of what"),
    "more cells than promised": (
        MATRIX,
        matrix(1, (1, 1), 2 * element(MATRIX, b"")),
        "of class 1 is not made of what",
    ),
    "one side": (MATRIX, matrix(6, (1,), NUMBERS), r"of shape \[1\]"),
    "no sides": (MATRIX, matrix(6, (), NUMBERS), r"of shape \[\]"),
    "a struct without names": (MATRIX, matrix(2, (1, 1)), "names of its fields"),
    "names of no length": (
        MATRIX,
        matrix(2, (1, 1), element(5, bytes(4)), element(1, b"ant")),
        "names of 0 bytes in 3",
    ),
    "more fields than promised": (
        MATRIX,
        matrix(
            2,
            (1, 1),
            element(5, (3).to_bytes(4, "little")),
            element(1, b"antbee"),
            3 * element(MATRIX, b""),
        ),
        "of class 2 is not made of what",
    ),
    "a long text of no characters": (
        MATRIX,
        matrix(4, (1, 10**8), element(16, b"")),
        "100000000 parts, and has 0",
    ),
    "many structs without fields": (
        MATRIX,
        matrix(2, (1, 10**8), element(5, (3).to_bytes(4, "little")), element(1, b"")),
        "100000000 parts, and has 5",
    ),
    "a negative shape": (MATRIX, matrix(1, (-1, 1)), "of shape"),
}


@pytest.mark.parametrize(("kind", "content", "message"), BAD.values(), ids=BAD)
def test_what_is_refused(kind, content, message):
    with pytest.raises(ValueError, match=message):
        check_variable(kind, content, "little")


def test_cells_in_cells_have_an_end():
    content = matrix(6, (1, 1), NUMBERS)
    for _ in range(10):
        content = matrix(1, (1, 1), element(MATRIX, content))
    check_variable(MATRIX, content, "little")
    with pytest.raises(ValueError, match="more than 10 deep"):
        check_variable(MATRIX, matrix(1, (1, 1), element(MATRIX, content)), "little")


def test_every_cut_is_refused(tmp_path):
    """Which once ended the process: of a file, and of what a compressed variable holds."""
    for compressed in (False, True):
        file = io.BytesIO()
        scipy.io.savemat(file, {"x": DESCRIBED["cells"]}, do_compression=compressed)
        whole = file.getvalue()
        for end in range(129, len(whole), 7):
            path = tmp_path / "cut.mat"
            path.write_bytes(whole[:end])
            with pytest.raises(ValueError, match="cut.mat"):
                MatFile(path)
    _, content = variable(DESCRIBED["cells"])
    for end in range(1, len(content), 7):
        with pytest.raises(ValueError, match=r"matrix|element|cells"):
            check_variable(MATRIX, content[:end], "little")
