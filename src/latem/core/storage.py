"""Files that hold models and checkpoints: one `.safetensors` file, data only.

Arrays are stored as tensors; everything else is one JSON text in the file's metadata. Reading
one parses numbers and JSON and can run no code. Files are written whole or not at all
(`latem.core.atomic`).
"""

from __future__ import annotations

import json
import logging
import math
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from latem.core.atomic import atomic_path
from latem.core.memory import text_array
from latem.core.paths import as_path, no_file
from latem.core.plain_json import LARGEST as LARGEST_HEADER
from latem.core.plain_json import check_json, parse_json
from latem.core.version import __version__

FORMAT_VERSION = 1
MOST_ARRAYS = 10_000
_KEY = "latem"
_VERSIONS = ("numpy", "numba", "scipy", "scikit-learn", "safetensors")

_log = logging.getLogger(__name__)


class FileFormatError(ValueError):
    """A file is not what it should be; the message says which and why."""


def library_versions() -> dict[str, str]:
    """Versions of Python and of the libraries a result depends on, as far as they are installed."""
    versions = {"python": platform.python_version(), "latem": __version__}
    for name in _VERSIONS:
        with suppress(PackageNotFoundError):  # an installation that only answers
            versions[name] = version(name)
    return versions


def write_file(
    path: str | PathLike[str], kind: str, tensors: dict[str, np.ndarray], meta: dict[str, Any]
) -> None:
    """Write arrays and JSON data as one file, atomically."""
    head = {"format": FORMAT_VERSION, "kind": kind, **meta, "versions": library_versions()}
    try:
        text = json.dumps(head, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{path}: this {kind} cannot be stored as plain data: {error}.") from None
    if len(text) > LARGEST_HEADER // 2:  # which holds it as a text in a text, and all arrays' names
        raise ValueError(
            f"{path}: the names and parameters of this {kind} take {len(text):,} characters, and "
            f"at most {LARGEST_HEADER // 2:,} can be stored; give classes and columns shorter "
            f"names."
        )
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    with atomic_path(path, in_folder=True) as temporary:
        try:
            save_file(arrays, temporary, metadata={_KEY: text})
        except SafetensorError as error:
            raise OSError(f"{path} cannot be written: {error}.") from None
    _log.log(logging.INFO if kind == "model" else logging.DEBUG, "wrote the %s %s", kind, path)


def read_file(path: str | PathLike[str], kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and JSON data of a file that `write_file` wrote for the same `kind`."""
    with _opened(path, kind) as file:
        meta, names = _description(path, kind, file)
        tensors = {name: file.get_tensor(name) for name in names}
    _log.info("read the %s %s", kind, path)
    return tensors, meta


class TensorShape(NamedTuple):
    """What a file's header says of an array: its type in safetensors' words, and its shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


def read_header(
    path: str | PathLike[str], kind: str
) -> tuple[dict[str, TensorShape], dict[str, Any]]:
    """Shapes of arrays and JSON data of a file, as `read_file` checks them; reads no array."""
    with _opened(path, kind) as file:
        meta, names = _description(path, kind, file)
        slices = {name: file.get_slice(name) for name in names}
        shapes = {
            name: TensorShape(str(one.get_dtype()), tuple(one.get_shape()))
            for name, one in slices.items()
        }
    return shapes, meta


@contextmanager
def _opened(path: str | PathLike[str], kind: str) -> Iterator[Any]:
    """An open safetensors file; whatever is wrong with it is told in one sentence."""
    path = as_path(path, f"a {kind} file")
    if not path.is_file():
        raise no_file(path, f"{kind} file")
    try:
        _check_header(path)
        with safe_open(path, framework="numpy") as file:
            yield file
    except (SafetensorError, OSError, TypeError, AttributeError, _HeaderError) as error:
        reason = str(error).removeprefix("Error while deserializing header: ")
        raise FileFormatError(f"{path} is damaged or not a latem {kind} file: {reason}.") from None


class _HeaderError(ValueError):
    """A header that is not given to the parser."""


def _check_header(path: Path) -> None:
    """Refuse a safetensors file whose header would take too much to be parsed."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > LARGEST_HEADER:
            raise _HeaderError(
                f"it does not begin as such a file does, with a header of at most "
                f"{LARGEST_HEADER // 2**20} MB"
            )
        head = file.read(length)
    if (n := head.count(b'"data_offsets"')) > MOST_ARRAYS:
        raise _HeaderError(f"{n:,} arrays, where at most {MOST_ARRAYS:,} are read")
    try:
        check_json(head)
    except ValueError as error:
        raise _HeaderError(f"its header holds {error}") from None


def _description(
    path: str | PathLike[str], kind: str, file: Any
) -> tuple[dict[str, Any], list[str]]:
    """JSON data of an open file and the names of its arrays, if it is one of this kind."""
    head = (file.metadata() or {}).get(_KEY)
    if head is None:
        raise FileFormatError(f"{path} is a safetensors file, but not one that latem wrote.")
    try:
        meta = parse_json(head)
    except ValueError as error:
        raise FileFormatError(
            f"{path} is damaged: its description cannot be read ({error})."
        ) from None
    if not isinstance(meta, dict) or not {"format", "kind"} <= meta.keys():
        raise FileFormatError(
            f"{path} is damaged: its description cannot be read (it does not say what it holds)."
        )
    written, found = meta["format"], meta["kind"]
    if not isinstance(written, int) or isinstance(written, bool) or written < 1:
        raise FileFormatError(f"{path} is damaged: {written!r} is not a format version.")
    if written > FORMAT_VERSION:
        raise FileFormatError(
            f"{path} was written by a newer latem (file format {written}; this one reads up to "
            f"{FORMAT_VERSION}): upgrade latem to open it."
        )
    if found != kind:
        raise FileFormatError(f"{path} holds a latem {found}, not a {kind}.")
    return meta, list(file.keys())


def stored_labels(names: list[Any], kind: str) -> np.ndarray:
    """Labels that a file holds as a list and the type of their array.

    Parameters
    ----------
    names : list
    kind : str
        As `dtype.str` of NumPy says it. Only the types that labels can have are allowed, and texts
        take no more room than the longest of them, or than was promised up to 256 characters.
    """
    known = isinstance(kind, str) and re.fullmatch(r"\|O|\|b1|[<>|][iuf][1248]|[<>]U\d{1,9}", kind)
    if not known or not isinstance(names, list):
        raise FileFormatError(f"class names of type {str(kind)[:40]!r} cannot be")
    if "U" not in kind:
        return np.array(names, dtype=kind)
    found = text_array([str(name) for name in names], "class names")
    longest = found.dtype.itemsize // 4
    width = min(int(kind[2:]), max(longest, 256))
    return found.astype(f"{kind[0]}U{width}")
