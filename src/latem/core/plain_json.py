"""JSON of files that others may have made: its size and depth are looked at before it is parsed.

Parsed, a text can take many times its size: an empty list of three characters is 64 bytes. So what
it will take is estimated from its brackets and commas, and bounded as what packed files unpack to
(`core/memory.py`).
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from latem.core.memory import LARGEST_RATIO, LARGEST_UNPACKED, in_bytes

DEEPEST = 100  # lists and objects in each other
LARGEST = 64 * 2**20  # bytes
_HOLDER, _VALUE = 200, 64  # bytes of an object and of a value, in memory
_DEEPER = np.zeros(256, np.int8)
_DEEPER[list(b"[{")], _DEEPER[list(b"]}")] = 1, -1


def parse_json(text: str | bytes) -> Any:
    """What a JSON text holds; ValueError if it is none, too large or nested too deeply.

    >>> parse_json('{"maps": [1, 2]}')
    {'maps': [1, 2]}
    >>> parse_json("[" * 101 + "]" * 101)
    Traceback (most recent call last):
        ...
    ValueError: lists in lists, more than 100 deep
    """
    if not isinstance(text, str | bytes):
        raise TypeError(f"JSON is text, not {type(text).__name__}")
    content = text.encode() if isinstance(text, str) else text
    check_json(content)
    return json.loads(content.decode())


def check_json(content: bytes) -> None:
    """Raise ValueError for a JSON text that is too large or nested too deeply to be parsed.

    Whether it is JSON otherwise, the parser tells.
    """
    if len(content) > LARGEST:
        raise ValueError(f"{in_bytes(len(content))} of JSON, where {in_bytes(LARGEST)} are read")
    plain = np.frombuffer(content.replace(rb"\\", b"").replace(rb"\"", b""), np.uint8)
    outside = ~np.logical_xor.accumulate(plain == ord('"'))  # of the texts
    deeper = _DEEPER[plain]
    deeper[~outside] = 0
    n_bytes = _HOLDER * int((deeper > 0).sum())
    n_bytes += _VALUE * int(((plain == ord(",")) & outside).sum())
    if n_bytes > max(LARGEST_UNPACKED, LARGEST_RATIO * len(content)):
        raise ValueError(f"JSON of {in_bytes(len(content))} that takes {in_bytes(n_bytes)}")
    if np.cumsum(deeper[deeper != 0], dtype=np.int64).max(initial=0) > DEEPEST:
        raise ValueError(f"lists in lists, more than {DEEPEST} deep")
