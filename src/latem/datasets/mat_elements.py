"""Whether a MATLAB file of version 5 is built as such files are, before SciPy reads it.

SciPy's reader is compiled and takes an element's type from the file as it is: one that it does not
know, or numbers that a matrix lacks, end the whole process. Everything in such a file is an
element, a type and a length and that many bytes; a matrix is made of elements, and so are the
cells and fields in it.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Iterator
from typing import Literal, NamedTuple

Order = Literal["big", "little"]

COMPRESSED = 15  # types of elements
_MATRIX = 14
_INT8, _INT32, _UINT32 = 1, 5, 6
_NUMERIC = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 12, 13})
_PLAIN = _NUMERIC | {16, 17, 18}  # and texts
_WHOLE = frozenset({_INT32, _UINT32})  # some programs write the second for the first
_NAME = frozenset({_INT8, 16})
_CELL, _STRUCT, _OBJECT, _CHAR, _SPARSE = 1, 2, 3, 4, 5  # classes of matrices
_NUMBERS = range(6, 16)
_FUNCTION, _OPAQUE = 16, 17
_COMPLEX = 0x0800
_MOST_SIDES = 32
_MOST_EMPTY = 10_000  # characters or structs that a matrix may say it has, without having them
_DEEPEST = 10  # matrices in matrices


class _Element(NamedTuple):
    kind: int
    content: memoryview


def check_variable(kind: int, content: bytes | memoryview, order: Order) -> None:
    """Raise ValueError for a variable that is not built as MATLAB does.

    Parameters
    ----------
    kind : int
        Type of the element that lies in the file.
    content : bytes
        Its bytes, as they are; what is compressed is unpacked here.
    order : "big" or "little"
    """
    if kind == COMPRESSED:
        try:
            content = zlib.decompressobj().decompress(content)
        except zlib.error as error:
            raise ValueError(f"a variable cannot be unpacked ({error})") from None
        inside = list(_elements(memoryview(content), order))
        if len(inside) != 1:
            raise ValueError(f"a compressed variable holds {len(inside)} elements, not one")
        kind, content = inside[0]
    if kind != _MATRIX:
        raise ValueError(f"a variable is an element of type {kind}, not a matrix")
    _check_matrix(memoryview(content), order, 0)


def _check_matrix(content: memoryview, order: Order, depth: int) -> None:
    """Raise ValueError unless a matrix has the very elements that its class asks for, in order.

    SciPy reads them one after the other and looks neither at the length of the matrix nor, always,
    at their types: one too few or too many, and it reads lengths where there are none.
    """
    if depth > _DEEPEST:
        raise ValueError(f"matrices in matrices, more than {_DEEPEST} deep")
    if not content:  # an empty cell
        return
    parts = list(_elements(content, order))
    if not parts or parts[0].kind != _UINT32 or len(parts[0].content) != 8:
        raise ValueError("a matrix has no description")
    flags = int.from_bytes(parts[0].content[:4], order)
    wanted = _wanted(flags & 0xFF, bool(flags & _COMPLEX), parts, order)
    if len(parts) != len(wanted) or any(
        part.kind not in kinds for part, kinds in zip(parts, wanted, strict=True)
    ):
        raise ValueError(f"a matrix of class {flags & 0xFF} is not made of what such matrices are")
    _check_amount(flags & 0xFF, parts, order)
    for part in parts:
        if part.kind == _MATRIX:
            _check_matrix(part.content, order, depth + 1)


def _wanted(
    kind: int, is_complex: bool, parts: list[_Element], order: Order
) -> list[Collection[int]]:
    """Types that the elements of a matrix of some class must have."""
    if kind == _OPAQUE:
        return [{_UINT32}, _NAME, _NAME, _NAME, {_MATRIX}]
    size = _size(parts, order)
    head: list[Collection[int]] = [{_UINT32}, _WHOLE, _NAME]
    if kind in _NUMBERS:
        return head + [_NUMERIC] * (1 + is_complex)
    if kind == _CHAR:
        return [*head, _PLAIN]
    if kind == _SPARSE:
        return head + [_WHOLE] * 2 + [_NUMERIC] * (1 + is_complex)
    if kind == _CELL:
        return head + [{_MATRIX}] * min(size, len(parts))
    if kind in (_STRUCT, _OBJECT):
        head += [_NAME] if kind == _OBJECT else []
        n_matrices = size * _n_fields(parts[len(head) : len(head) + 2], order)
        return [*head, _WHOLE, _NAME] + [{_MATRIX}] * min(n_matrices, len(parts))
    if kind == _FUNCTION:
        return [*head, {_MATRIX}]
    raise ValueError(f"a matrix of class {kind}")


def _check_amount(kind: int, parts: list[_Element], order: Order) -> None:
    """Refuse what SciPy makes as large as it says to be, whether or not anything is in it."""
    if kind == _CHAR:
        there = len(parts[3].content)
    elif kind in (_STRUCT, _OBJECT):
        there = len(parts)
    else:
        return
    size = _size(parts, order)
    if size > max(there, _MOST_EMPTY):
        raise ValueError(f"a matrix of class {kind} says that it has {size} parts, and has {there}")


def _n_fields(parts: list[_Element], order: Order) -> int:
    """How many fields a struct says that it has, by the length of a name and all names."""
    if len(parts) < 2 or len(parts[0].content) != 4:
        raise ValueError("a struct does not say how long the names of its fields are")
    length = int.from_bytes(parts[0].content, order, signed=True)
    if length < 1 or len(parts[1].content) % length:
        raise ValueError(f"a struct has names of {length} bytes in {len(parts[1].content)}")
    return len(parts[1].content) // length


def _size(parts: list[_Element], order: Order) -> int:
    """How many numbers, cells or structs a matrix says that it has."""
    if len(parts) < 2 or parts[1].kind not in _WHOLE:
        raise ValueError("a matrix has no shape")
    shape = parts[1].content
    sides = [int.from_bytes(shape[i : i + 4], order, signed=True) for i in range(0, len(shape), 4)]
    if len(shape) % 4 or not 2 <= len(sides) <= _MOST_SIDES or min(sides) < 0:
        raise ValueError(f"a matrix of shape {sides}")
    return math.prod(sides)


def _elements(content: memoryview, order: Order) -> Iterator[_Element]:
    """Elements one after the other, each of a known type and within the bytes that are there."""
    place = 0
    while place < len(content):
        if place + 8 > len(content):
            raise ValueError("an element is cut short")
        kind = int.from_bytes(content[place : place + 4], order)
        small, kind = kind >> 16, kind & 0xFFFF
        if small:  # up to four bytes lie in the place of the length
            length, start, end = small, place + 4, place + 8
        else:
            length, start = int.from_bytes(content[place + 4 : place + 8], order), place + 8
            end = start + length if kind == _MATRIX else start + -(-length // 8) * 8
        if kind != _MATRIX and kind not in _PLAIN:
            raise ValueError(f"an element of type {kind}, which there is not")
        if small > 4 or (small and kind == _MATRIX) or start + length > len(content):
            raise ValueError(f"an element of {length} bytes where there are fewer")
        yield _Element(kind, content[start : start + length])
        place = end
