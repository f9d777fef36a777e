"""Small computations on arrays that several rooms need."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

_LINE = 64  # bytes: the width of a cache line, and of the widest vector registers


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Array whose first entry begins a cache line, with any contents.

    NumPy's own begin anywhere, and a vector register that straddles two lines costs two accesses.

    >>> aligned_empty((3, 4), np.float32).ctypes.data % 64
    0
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.empty(size + _LINE, np.uint8)
    first = -room.ctypes.data % _LINE
    return room[first : first + size].view(dtype).reshape(shape)


def aligned(array: np.ndarray) -> np.ndarray:
    """An array itself, if it is contiguous and begins a cache line, else a copy that does.

    >>> array = aligned(np.arange(3))
    >>> aligned(array) is array
    True
    """
    if array.flags.c_contiguous and array.ctypes.data % _LINE == 0:
        return array
    copy = aligned_empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def unit_rows(rows: np.ndarray, *, in_place: bool = False) -> np.ndarray:
    """Rows divided by their Euclidean lengths; rows of zeros stay.

    Numbers of any size are safe: rows are divided by their largest entry first, so that no square
    overflows or vanishes.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0], [1e200, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ],
           [1. , 0. ]])
    """
    largest = np.maximum(
        rows.max(axis=1, keepdims=True, initial=0), -rows.min(axis=1, keepdims=True, initial=0)
    )
    largest[largest == 0] = 1
    rows = np.divide(rows, largest, out=rows if in_place else None)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    lengths[lengths == 0] = 1
    rows /= lengths
    return rows


def all_finite(block: np.ndarray) -> bool:
    """Whether there is neither NaN nor infinity in a contiguous array.

    >>> all_finite(np.array([1e300, 2.0])), all_finite(np.array([1.0, np.nan]))
    (True, False)
    """
    flat = block.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):  # squares may overflow
        return bool(np.isfinite(np.dot(flat, flat)) or np.isfinite(block).all())


def settled(values: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Numbers rounded to ten digits after the point, in units of `scale`.

    What is equal but for rounding becomes equal, and what is zero but for rounding becomes zero:
    classes that a model cannot tell apart then get the same scores on every machine.

    >>> settled(np.array([0.1 + 0.2, 0.3, 1e-17]))
    array([0.3, 0.3, 0. ])
    """
    return np.round(values / scale, 10) * scale if scale > 0 else values


def mapped_file(array: np.ndarray) -> Path | None:
    """The `.npy` file that an array is all of, mapped into memory; None if it is no such thing."""
    owner: Any = array
    while owner is not None and not isinstance(owner, np.memmap):
        owner = getattr(owner, "base", None)
    while isinstance(owner, np.memmap) and isinstance(owner.base, np.memmap):
        owner = owner.base
    if owner is None or owner.filename is None or str(owner.filename)[-4:].lower() != ".npy":
        return None
    whole = owner.shape == array.shape and owner.strides == array.strides
    return Path(owner.filename) if whole and owner.dtype == array.dtype else None


def widen(halves: np.ndarray, out: np.ndarray) -> None:
    """Write numbers of half precision as single precision, several times as fast as NumPy.

    The bits of a half, moved to their places in a single, are the number less a factor of 2¹¹².
    Infinities and NaN, and processors that take the smallest numbers for zero, are left to NumPy.

    Parameters
    ----------
    halves : ndarray of float16
    out : ndarray of float32 and the same shape

    >>> found = np.empty(3, np.float32)
    >>> widen(np.array([1.5, -6e-8, np.inf], np.float16), found)
    >>> found.tolist()
    [1.5, -5.960464477539063e-08, inf]
    """
    bits = out.view(np.int32)
    bits[...] = halves.view(np.int16)
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, _HALF_BITS, out=bits)
    np.multiply(out, _HALF_FACTOR, out=out)
    largest, least = halves.view(np.int16).max(initial=0), halves.view(np.uint16).max(initial=0)
    odd = largest >= _INFINITE_HALF or least >= _INFINITE_HALF | _SIGN_OF_HALF
    if odd or _LEAST_HALF * _HALF_FACTOR != 2.0**-24:
        out[...] = halves


_HALF_BITS = np.uint32(0x8FFFE000).view(np.int32)
_HALF_FACTOR = np.float32(2.0**112)
_INFINITE_HALF = 0x7C00  # beyond it are the NaN
_SIGN_OF_HALF = 0x8000
_LEAST_HALF = np.uint32(1 << 13).view(np.float32)


@contextmanager
def read_at_random(array: np.ndarray) -> Iterator[None]:
    """Tell the system that rows of a mapped file are read here and there, while this lasts.

    It then reads what is asked for, not megabytes around it. Arrays in memory, and systems that
    take no such advice, are left alone.
    """
    found: Any = array
    while isinstance(found, np.ndarray | memoryview):
        found = found.base if isinstance(found, np.ndarray) else found.obj
    advised = isinstance(found, mmap.mmap) and hasattr(mmap, "MADV_RANDOM")
    if advised:
        found.madvise(mmap.MADV_RANDOM)
    try:
        yield
    finally:
        if advised:
            found.madvise(mmap.MADV_NORMAL)
