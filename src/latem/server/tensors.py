"""Tensors of the Open Inference Protocol (V2), in JSON and in its binary extension.

A tensor has a name, a shape and a datatype. Its values are in JSON (flat or nested), or follow the
JSON part of the body as raw bytes; texts (BYTES) are then preceded by their length, four bytes,
little end first.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import Any

import numpy as np

from latem.server.problems import ProblemError

DTYPES = {
    **{"FP16": np.float16, "FP32": np.float32, "FP64": np.float64},
    **{"INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64},
    **{"UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64},
}
BYTES = "BYTES"
_N_AXES = 2


def read_tensor(name: str, datatype: str, shape: list[int], data: Any, raw: bytes | None) -> Any:
    """Values of a tensor.

    Parameters
    ----------
    name, datatype, shape
        As the request says.
    data : list or None
        Values from JSON; texts are base64.
    raw : bytes or None
        Values from behind the JSON.

    Returns
    -------
    ndarray of that shape, or for BYTES a list of bytes
    """
    if (data is None) == (raw is None):
        raise ProblemError(400, f"Tensor {name!r} needs data, or binary_data_size, not both.")
    if not shape or len(shape) > _N_AXES or min(shape) < 0:
        raise ProblemError(400, f"Tensor {name!r} must have one or two axes, not {shape}.")
    n = int(np.prod(shape, dtype=object))
    if datatype == BYTES:
        found = _texts(name, data) if raw is None else split_texts(name, raw)
        if len(found) != n:
            raise ProblemError(400, f"Tensor {name!r} has {len(found)} entries, not {n}.")
        return found
    if datatype not in DTYPES:
        raise ProblemError(
            400, f"Tensor {name!r} has the datatype {datatype!r}; known are {', '.join(DTYPES)}."
        )
    dtype = np.dtype(DTYPES[datatype])
    if raw is not None:
        if len(raw) != n * dtype.itemsize:
            raise ProblemError(
                400, f"Tensor {name!r} has {len(raw)} bytes, not {n * dtype.itemsize}."
            )
        return np.frombuffer(raw, dtype.newbyteorder("<")).reshape(shape)
    try:
        values = np.array(data)
    except ValueError:
        raise ProblemError(400, f"Tensor {name!r} has rows of different lengths.") from None
    if values.size != n or values.dtype.kind not in "fiu":
        raise ProblemError(400, f"Tensor {name!r} must hold {n} numbers, as its shape says.")
    return values.reshape(shape)


def _texts(name: str, data: Any) -> list[bytes]:
    flat = data if isinstance(data, list) else [data]
    while flat and isinstance(flat[0], list):
        flat = [one for part in flat if isinstance(part, list) for one in part]
    try:
        return [base64.b64decode(one, validate=True) for one in flat]
    except (binascii.Error, ValueError, TypeError):
        raise ProblemError(
            400, f"Tensor {name!r}: the entries of BYTES are base64 in JSON."
        ) from None


def split_texts(name: str, raw: bytes) -> list[bytes]:
    """Texts that are each preceded by their length.

    >>> split_texts("x", join_texts([b"okapi", b""]))
    [b'okapi', b'']
    """
    found, place = [], 0
    while place < len(raw):
        if place + 4 > len(raw):
            raise ProblemError(400, f"Tensor {name!r} ends in the middle of a length.")
        (length,) = struct.unpack_from("<I", raw, place)
        place += 4
        if place + length > len(raw):
            raise ProblemError(400, f"Tensor {name!r} is shorter than it says.")
        found.append(raw[place : place + length])
        place += length
    return found


def join_texts(texts: list[bytes]) -> bytes:
    """Texts, each preceded by its length."""
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)


def written(values: Any, datatype: str) -> bytes:
    """Values of an output as raw bytes."""
    if datatype == BYTES:
        return join_texts([str(one).encode() for one in np.ravel(values).tolist()])
    dtype = np.dtype(DTYPES[datatype])
    return np.ascontiguousarray(values, dtype.newbyteorder("<")).tobytes()
