"""Files that hold models and checkpoints: one `.safetensors` file, data only.

Arrays are stored as tensors; everything else is one JSON text in the file's metadata. Reading
one parses numbers and JSON and can run no code. Writing goes to a temporary file beside the
target, which is synced and renamed into place: a reader sees the old file or the new one,
never half of either.
"""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import platform
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from latem.core.memory import text_array
from latem.core.version import __version__

FORMAT_VERSION = 1
LARGEST_HEADER = 64 * 2**20  # bytes of names, parameters and shapes that are parsed
_KEY = "latem"
_VERSIONS = ("numpy", "numba", "scipy", "scikit-learn", "safetensors")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DAY = 24 * 60 * 60.0


def _read_umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


_log = logging.getLogger(__name__)
UMASK = _read_umask()  # once, at import: asking for it changes it for a moment


class FileFormatError(ValueError):
    """A file is not what it should be; the message says which and why."""


def library_versions() -> dict[str, str]:
    """Versions of Python and of the libraries a result depends on, as far as they are installed."""
    versions = {"python": platform.python_version(), "latem": __version__}
    for name in _VERSIONS:
        with suppress(PackageNotFoundError):  # an installation that only answers
            versions[name] = version(name)
    return versions


@contextmanager
def atomic_path(path: str | PathLike[str]) -> Iterator[Path]:
    """Path of a temporary file that replaces `path` when the block ends well.

    If the block raises, the temporary file is removed and `path` is left as it was. What writers
    of the same file left behind when they were killed is removed first.
    """
    path = Path(path)
    _check_place(path)
    _remove_left_over(path)
    with writing(path), _temporary_beside(path) as temporary:
        try:
            yield temporary
            os.chmod(temporary, 0o666 & ~UMASK)
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    _sync_folder(path.parent)
    _log.debug("wrote %s", path)


@contextmanager
def writing(path: str | PathLike[str]) -> Iterator[None]:
    """Say what could not be written when the disk is full, which the system does not tell."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise OSError(f"{path} cannot be written: {error.strerror}.") from None


@contextmanager
def _temporary_beside(path: Path) -> Iterator[Path]:
    """A new file beside `path`, locked for as long as its writer lives, where files can be."""
    while True:
        handle, name = tempfile.mkstemp(prefix=_prefix(path), suffix=".tmp", dir=path.parent)
        if os.name != "posix":
            os.close(handle)  # elsewhere an open file cannot be renamed
            yield Path(name)
            return
        with os.fdopen(handle, "rb") as file:
            try:
                _lock(file.fileno())
            except BlockingIOError:
                continue  # it is being removed as left over: this writer had not locked it yet
            except OSError as error:
                _log.debug("%s cannot be locked: %s", name, error)
            if os.path.exists(name):
                yield Path(name)
                return


def _prefix(path: Path) -> str:
    return f".{path.name[:50]}."


def _remove_left_over(path: Path) -> None:
    """Remove temporary files of the same target whose writers were killed."""
    pattern = re.compile(re.escape(_prefix(path)) + r"\w{8}\.tmp")
    for name in filter(pattern.fullmatch, os.listdir(path.parent)):
        with suppress(OSError):  # another writer was quicker, or it belongs to somebody else
            _remove_if_abandoned(path.parent / name)


def _remove_if_abandoned(temporary: Path) -> None:
    """Remove a temporary file that no process has locked; without locks, an old one."""
    old = time.time() - temporary.stat().st_mtime > _DAY
    if os.name != "posix":
        if old:
            temporary.unlink()
        return
    with open(temporary, "rb") as file:
        try:
            _lock(file.fileno())
        except BlockingIOError:
            return
        except OSError:  # a file system without locks
            if not old:
                return
        temporary.unlink()  # still locked, so that no writer begins to use it
    _log.info("removed %s, which a killed run left behind", temporary)


@contextmanager
def only_one(path: str | PathLike[str], message: str, *, remove: bool = False) -> Iterator[None]:
    """Hold a lock file while the block runs; a second holder is refused with the message.

    The lock belongs to the process: if it is killed, the next one can have the file.

    Parameters
    ----------
    path : path of the lock file
    message : str
    remove : bool
        Whether to remove the lock file afterwards.
    """
    with open(path, "a") as file:
        try:
            _lock(file.fileno())
        except (BlockingIOError, PermissionError):
            raise BlockingIOError(message) from None
        except OSError as error:
            warnings.warn(
                f"{path} cannot be locked ({error.strerror}): make sure that no other run "
                f"writes to the same folder.",
                stacklevel=3,
            )
        if remove and not _is_at(file.fileno(), path):  # its holder has just removed it
            raise BlockingIOError(message)
        try:
            yield
        finally:
            if remove:
                with suppress(OSError):  # some systems remove no file that is open
                    os.unlink(path)


def _is_at(descriptor: int, path: str | PathLike[str]) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def check_target(path: str | PathLike[str]) -> None:
    """Raise now what writing this file would raise after long work."""
    path = Path(path)
    _check_place(path)
    with tempfile.TemporaryFile(dir=path.parent):
        pass


def _check_place(path: Path) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(path.parent)!r} to write {path.name} in.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file.")
    if path.exists() and not path.is_file():
        raise OSError(
            f"{path} is a device, a pipe or the like, which a file would replace; name a file."
        )


def write_text(path: str | PathLike[str], text: str) -> None:
    """Write a text file atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


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
    with atomic_path(path) as temporary:
        try:
            save_file(arrays, temporary, metadata={_KEY: text})
        except SafetensorError as error:
            raise OSError(f"{path} cannot be written: {error}.") from None
    _log.log(logging.INFO if kind == "model" else logging.DEBUG, "wrote the %s %s", kind, path)


def read_file(path: str | PathLike[str], kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and JSON data of a file that `write_file` wrote for the same `kind`."""
    with _opened(path, kind) as file:
        head = (file.metadata() or {}).get(_KEY)
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    meta = _description(path, kind, head)
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
        head = (file.metadata() or {}).get(_KEY)
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        shapes = {
            name: TensorShape(str(one.get_dtype()), tuple(one.get_shape()))
            for name, one in slices.items()
        }
    return shapes, _description(path, kind, head)


@contextmanager
def _opened(path: str | PathLike[str], kind: str) -> Iterator[Any]:
    """An open safetensors file; whatever is wrong with it is told in one sentence."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a {kind} file.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no {kind} file {str(path)!r}.")
    try:
        with open(path, "rb") as start:
            length = int.from_bytes(start.read(8), "little")
        if length > LARGEST_HEADER:
            raise FileFormatError(
                f"{path} is damaged or not a latem {kind} file: a header of {length:,} bytes, "
                f"where at most {LARGEST_HEADER:,} are read."
            )
        with safe_open(path, framework="numpy") as file:
            yield file
    except (SafetensorError, OSError, TypeError, AttributeError) as error:
        raise FileFormatError(f"{path} is damaged or not a latem {kind} file: {error}.") from None


def _description(path: str | PathLike[str], kind: str, head: str | None) -> dict[str, Any]:
    """JSON data of a file, if it is one of this kind."""
    if head is None:
        raise FileFormatError(f"{path} is a safetensors file, but not one that latem wrote.")
    try:
        meta = json.loads(head)
        written, found = meta["format"], meta["kind"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise FileFormatError(f"{path} is damaged: its description cannot be read.") from None
    if not isinstance(written, int) or isinstance(written, bool) or written < 1:
        raise FileFormatError(f"{path} is damaged: {written!r} is not a format version.")
    if written > FORMAT_VERSION:
        raise FileFormatError(
            f"{path} was written by a newer latem (file format {written}; this one reads up to "
            f"{FORMAT_VERSION}): upgrade latem to open it."
        )
    if found != kind:
        raise FileFormatError(f"{path} holds a latem {found}, not a {kind}.")
    return meta


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


def _sync_folder(folder: Path) -> None:
    """Make a rename in `folder` durable, where the system can open folders."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
