"""Variables of MATLAB files: version 5, or HDF5 if they were saved with -v7.3.

A file may be cut, made by another program, or made to do harm. What it unpacks to is checked
before anything is kept (`core/memory.py` has the rule).
"""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from latem.core.memory import TooLargeError, check_unpacked
from latem.core.paths import no_file
from latem.core.storage import FileFormatError
from latem.datasets.mat_elements import COMPRESSED, Order, check_variable

_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_BLOCK = 1 << 20
_LONGEST_TEXT = 100_000  # characters of a text in a cell
_DEEPEST = 3  # structs in structs
_REMEDY = "save it again without compression (in MATLAB: save -v6, or -v7.3 -nocompression)"


class MatFile:
    """Variables of a MATLAB file, in MATLAB's orientation.

    Numbers come as 2-d arrays, cell arrays of text as lists of str, structs of numbers as dicts.
    """

    def __init__(self, path: str | PathLike[str]):
        self.path = Path(path)
        if not self.path.is_file():
            raise no_file(self.path, "MATLAB file")
        with open(self.path, "rb") as file:
            start = file.read(1024)
        first = next((at for at in (0, 512) if start.startswith(_HDF5_SIGNATURE, at)), None)
        if first is not None:
            _check_superblock(start[first:], self.path)
            self.variables = _read_hdf5(self.path)
        else:
            self.variables = _read_version_5(self.path)

    def __contains__(self, name: str) -> bool:
        return name in self.variables

    def get(self, name: str) -> Any:
        """Variable by name; a missing one is an error that lists what there is."""
        if name not in self.variables:
            raise ValueError(
                f"{self.path} has no variable {name!r}; it has "
                f"{', '.join(sorted(self.variables)) or 'none'}."
            )
        return self.variables[name]

    def matrix(self, name: str) -> np.ndarray:
        """Variable that must be a matrix of numbers."""
        value = self.get(name)
        if hasattr(value, "toarray"):
            raise ValueError(
                f"{self.path}: {name} is a sparse matrix; save it in full: {name} = full({name})."
            )
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub" or value.ndim != 2:
            raise ValueError(f"{self.path}: {name} is not a matrix of numbers.")
        if not np.isfinite(value).all():
            raise ValueError(f"{self.path}: {name} holds NaN or infinity.")
        return value

    def numbers(self, name: str, largest: int, of: str) -> np.ndarray:
        """Variable of MATLAB indices 1..largest, as indices from 0."""
        value = self.matrix(name).ravel()
        whole = value.astype(np.int64)
        if not (whole == value).all():
            raise ValueError(f"{self.path}: {name} must hold whole numbers.")
        if len(whole) and whole.min() < 1:
            raise ValueError(
                f"{self.path}: {name} counts {of} from {whole.min()}, but MATLAB counts from 1; "
                f"add {1 - whole.min()} before saving the file."
            )
        if len(whole) and whole.max() > largest:
            raise ValueError(
                f"{self.path}: {name} goes up to {whole.max()}, but there are only {largest} {of}."
            )
        return whole - 1


# -- version 5 --------------------------------------------------------------------------------


def _read_version_5(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat

    check_unpacked(path, _unpacked_size(path), _REMEDY)
    try:
        _check_elements(path)
        with warnings.catch_warnings():  # of the kind that sparse matrices will be of some day
            warnings.filterwarnings("ignore", "The default value for `spmatrix`")
            content = loadmat(path, squeeze_me=False, struct_as_record=True, chars_as_strings=True)
        plain = {key: _plain_v5(value) for key, value in content.items()}
    except Exception as error:  # SciPy raises many kinds for files that are cut or not MATLAB's
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path} is cut short or not a MATLAB file: {reason}.") from None
    return {key: value for key, value in plain.items() if not key.startswith("__")}


def _unpacked_size(path: Path) -> int:
    """Bytes of the compressed variables of a version-5 file, counted without keeping them."""
    with open(path, "rb") as file:
        return sum(
            _inflated_size(file, size)
            for kind, size, _ in _variables(file, path)
            if kind == COMPRESSED
        )


def _check_elements(path: Path) -> None:
    """Refuse a version-5 file that would make SciPy's reader fail hard."""
    with open(path, "rb") as file:
        if b"\0" in file.read(4):  # version 4, whose reader is written in Python
            return
        for kind, size, order in _variables(file, path):
            content = file.read(size)
            if len(content) < size:
                raise ValueError("a variable is cut short")
            check_variable(kind, content, order)


def _variables(file: Any, path: Path) -> Iterator[tuple[int, int, Order]]:
    """Type, size and byte order of the variables of a version-5 file, which is at each one."""
    length = path.stat().st_size
    file.seek(0)
    order: Order = "big" if file.read(128)[126:] == b"MI" else "little"
    while len(tag := file.read(8)) == 8:
        kind, size = (int.from_bytes(tag[i : i + 4], order) for i in (0, 4))
        end = file.tell() + size
        yield kind, min(size, length), order
        file.seek(end)


def _inflated_size(file: Any, size: int) -> int:
    """Bytes that a zlib stream unpacks to; what is damaged ends it."""
    unpacker, total = zlib.decompressobj(), 0
    while size > 0 and (packed := file.read(min(size, _BLOCK))):
        size -= len(packed)
        while packed:
            try:
                total += len(unpacker.decompress(packed, _BLOCK))
            except zlib.error:  # told by SciPy
                return total
            packed = unpacker.unconsumed_tail
    return total


def _plain_v5(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype == object:
        return [str(np.ravel(cell)[0]) if np.size(cell) else "" for cell in value.ravel()]
    if value.dtype.names and type(value) is np.ndarray and value.size == 1:
        return {field: value[field].ravel()[0] for field in value.dtype.names}
    return value


# -- HDF5 -------------------------------------------------------------------------------------


def _check_superblock(block: bytes, path: Path) -> None:
    """Refuse an HDF5 file that tells of a driver of its own: it may be said to have any size.

    In versions 0 and 1 of this block, the address of what tells of a driver comes after three other
    addresses; it is all ones where there is none. Later versions have no such address.
    """
    version, width = block[8:9], block[13:14]
    if version > b"\x01" or not width:
        return
    place = (24 if version == b"\0" else 28) + 3 * width[0]
    if set(block[place : place + width[0]]) - {0xFF}:
        raise FileFormatError(
            f"{path} is damaged: it tells of a file driver, which no MATLAB file has."
        )


def _read_hdf5(path: Path) -> dict[str, Any]:
    try:
        import h5py
    except ImportError:
        raise ImportError(
            f"Reading {path} (MATLAB v7.3) needs h5py: pip install 'latem[mat]'."
        ) from None
    try:
        with h5py.File(path, "r") as file:
            reader = _Hdf5(h5py, file, path)
            return {key: reader.plain(file, key) for key in file if not key.startswith("#")}
    except (FileFormatError, TooLargeError):
        raise
    except Exception as error:  # h5py raises many kinds for damaged files
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path} is cut short or damaged: {reason}.") from None


class _Hdf5:
    """Reads what MATLAB writes, and nothing that leads out of the file."""

    def __init__(self, h5py: Any, file: Any, path: Path):
        self.h5py, self.file, self.path = h5py, file, path
        self.n_bytes = 0  # of everything read so far

    def plain(self, group: Any, key: str, depth: int = 0) -> Any:
        """A variable in MATLAB's orientation: HDF5 shows MATLAB's arrays transposed."""
        if not isinstance(group.get(key, getlink=True), self.h5py.HardLink):
            raise FileFormatError(f"{self.path}: {key!r} is a link, which no MATLAB file has.")
        value = group[key]
        if isinstance(value, self.h5py.Group):
            if depth == _DEEPEST:
                raise FileFormatError(f"{self.path}: {key!r} lies in too many structs.")
            return {name: self.plain(value, name, depth + 1) for name in value}
        self._check(value, key)
        if self.h5py.check_string_dtype(value.dtype) is not None:
            return [str(text) for text in np.ravel(value.asstr(errors="replace")[()].T)]
        if self.h5py.check_ref_dtype(value.dtype) is not None:
            return [self._text(reference, key) for reference in np.ravel(value[()].T)]
        if value.dtype.kind not in "fiub":
            raise FileFormatError(f"{self.path}: {key!r} holds {value.dtype}, no numbers or texts.")
        return np.atleast_2d(value[()].T)

    def _check(self, value: Any, key: str) -> None:
        """Refuse data that are in other files, or larger than the file could hold."""
        if not isinstance(value, self.h5py.Dataset) or value.external or value.is_virtual:
            raise FileFormatError(f"{self.path}: the data of {key!r} are not in the file.")
        self.n_bytes += math.prod(value.shape or ()) * value.dtype.itemsize
        check_unpacked(self.path, self.n_bytes, _REMEDY)

    def _text(self, reference: Any, key: str) -> str:
        value = self.file[reference]
        self._check(value, key)
        if value.dtype.kind not in "iu" or value.size > _LONGEST_TEXT:
            raise FileFormatError(
                f"{self.path}: {key!r} must be a cell array of texts of up to {_LONGEST_TEXT} "
                f"characters."
            )
        return "".join(map(chr, np.asarray(value[()]).T.ravel().astype(int)))
