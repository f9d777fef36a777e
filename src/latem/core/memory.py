"""Bounds on memory and disk, asked before anything is allocated.

A file can promise more than it holds: a few megabytes that unpack to gigabytes, an array with a
shape that no machine can keep. Readers look at the promise first. The rule for what is unpacked is
the same for all of them: `LARGEST_UNPACKED` bytes are always allowed, more only up to
`LARGEST_RATIO` times the size of the file.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np

LARGEST_UNPACKED = 64 * 10**6  # bytes
LARGEST_RATIO = 10
LARGEST_TEXTS = 10**9  # bytes of an array of texts, in which each takes as much as the longest


class TooLargeError(ValueError):
    """A file promises more than it can be trusted with."""


def check_unpacked(path: str | PathLike[str], unpacked: int, remedy: str) -> None:
    """Refuse a file whose content is far larger than itself.

    Parameters
    ----------
    path : path of the file
    unpacked : int
        Bytes of what it holds.
    remedy : str
        What to do if the file is honest; the rest of a sentence.
    """
    packed = Path(path).stat().st_size
    if unpacked > max(LARGEST_UNPACKED, LARGEST_RATIO * packed):
        raise TooLargeError(
            f"{path} has {in_bytes(packed)} but would unpack to {in_bytes(unpacked)}, more than "
            f"{LARGEST_RATIO} times as much; if it is what you expect, {remedy}."
        )


def check_memory(n_bytes: int, what: str) -> None:
    """Refuse work that needs more memory than the machine has.

    Parameters
    ----------
    n_bytes : int
    what : str
        What needs it, and what to change: the beginning of a sentence.
    """
    there = physical_memory()
    if there is not None and n_bytes > there:
        raise ValueError(
            f"{what} would take {in_bytes(n_bytes)} of memory; this machine has {in_bytes(there)}."
        )


def check_disk(folder: Path, n_bytes: int, what: str) -> None:
    """Refuse to write more to a folder than its disk has left."""
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise OSError(
            f"{what} needs {in_bytes(n_bytes)} on the disk of {folder}, which has {in_bytes(free)} "
            f"left; make room, or name another folder."
        )


def physical_memory() -> int | None:
    """Bytes of memory of this machine; None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def text_array(texts: Sequence[str], what: str) -> np.ndarray:
    """Texts as an array, unless one of them is so long that the array would be huge.

    Parameters
    ----------
    texts : sequence of str
    what : str
        What they are, such as "class names".
    """
    longest = max(texts, key=len, default="")
    if 4 * len(longest) * len(texts) > LARGEST_TEXTS:
        raise ValueError(
            f"One of {len(texts)} {what} has {len(longest)} characters ({longest[:40]!r}…); "
            f"shorten it."
        )
    return np.array(texts, dtype=str)


def in_bytes(n: int) -> str:
    """A number of bytes for people.

    >>> in_bytes(950), in_bytes(4_300_000_000)
    ('950 bytes', '4.3 GB')
    """
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n} bytes"
