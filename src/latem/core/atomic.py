"""Files and folders that appear as a whole, or not at all.

What is written goes to a temporary file beside the target, which is synced and renamed into place:
a reader sees the old file or the new one, never half of either. Folders are made in the same way.
Temporary files are locked while their writers live, so that what a killed one left behind is known.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_FORBIDDEN = (errno.EACCES, errno.EPERM)
_DAY = 24 * 60 * 60.0


def _read_umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


_log = logging.getLogger(__name__)
UMASK = _read_umask()  # once, at import: asking for it changes it for a moment


@contextmanager
def atomic_path(path: str | PathLike[str], *, in_folder: bool = False) -> Iterator[Path]:
    """Path of a temporary file that replaces `path` when the block ends well.

    If the block raises, the temporary file is removed and `path` is left as it was. What writers
    of the same file left behind when they were killed is removed first.

    Parameters
    ----------
    path : path
    in_folder : bool
        Whether the temporary file, which does not exist yet, has a temporary folder to itself: for
        libraries that write to a file of their own beside it and rename that one.
    """
    path = Path(path)
    _check_place(path)
    _remove_left_over(path)
    with writing(path), _temporary_beside(path, folder=in_folder) as made:
        temporary = made / "file" if in_folder else made
        try:
            yield temporary
            os.chmod(temporary, 0o666 & ~UMASK)
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            with suppress(OSError):  # as a rule the file is at its place
                _remove(made)
    _sync_folder(path.parent)
    _log.debug("wrote %s", path)


@contextmanager
def atomic_folder(path: str | PathLike[str]) -> Iterator[Path]:
    """Path of a temporary folder that becomes `path` when the block ends well.

    If the block raises, the temporary folder is removed. What was left by others who were killed
    while they made the same folder is removed first. A `path` that exists is refused.
    """
    path = Path(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_over(path)
    refuse_existing(path)
    with writing(path), _temporary_beside(path, folder=True) as temporary:
        try:
            yield temporary
            temporary.chmod(0o777 & ~UMASK)
            try:
                temporary.rename(path)
            except OSError:
                refuse_existing(path)  # somebody else was quicker
                raise
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    _sync_folder(path.parent)
    _log.debug("wrote %s", path)


def refuse_existing(folder: Path) -> None:
    """Refuse a folder to make that is there already."""
    if folder.exists():
        raise FileExistsError(f"{folder} exists already; name a new folder.")


def write_text(path: str | PathLike[str], text: str) -> None:
    """Write a text file atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_array(path: str | PathLike[str], array: np.ndarray) -> None:
    """Write an array as an NPY file, atomically."""
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        np.save(_Writer(file), array, allow_pickle=False)


class _Writer:
    """A file that NumPy writes to piece by piece: its own way hides why a disk takes no more."""

    def __init__(self, file: BinaryIO):
        self.write = file.write


def check_target(
    path: str | PathLike[str], inputs: Iterable[str | PathLike[str] | None] = ()
) -> None:
    """Raise now what writing this file would raise after long work.

    Parameters
    ----------
    path : path of the file
    inputs : iterable of path or None
        Files that are read for it, and must not be written over.
    """
    path = Path(path)
    _check_place(path)
    for source in inputs:
        if source is not None and path.is_file() and _is_same(path, Path(source)):
            raise FileExistsError(f"{path} is what is read; name another file to write to.")
    with writing(path), tempfile.TemporaryFile(prefix=_prefix(path), dir=path.parent):
        pass


def _is_same(path: Path, other: Path) -> bool:
    return other.is_file() and path.samefile(other)


def _check_place(path: Path) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(path.parent)!r} to write {path.name} in.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file.")
    if path.exists() and not path.is_file():
        raise OSError(
            f"{path} is a device, a pipe or the like, which a file would replace; name a file."
        )


@contextmanager
def writing(path: str | PathLike[str]) -> Iterator[None]:
    """Say what could not be written when a disk is full or a folder is read-only.

    The system does not tell, or names a temporary file.
    """
    try:
        yield
    except OSError as error:
        if not _is_about(error, Path(path)):
            raise
        reason = os.strerror(error.errno or errno.EIO)
        told = type(error)(f"{path} cannot be written: {reason}.")
        told.errno = error.errno  # for who writes a whole of which this is a part
        raise told from None


def is_unwritable(error: Exception) -> bool:
    """Whether an error says that a disk is full or read-only."""
    return isinstance(error, OSError) and error.errno in _FULL


def _is_about(error: OSError, path: Path) -> bool:
    """Whether an error says that a file, or something below a folder, cannot be written."""
    if is_unwritable(error):
        return True
    if error.errno not in _FORBIDDEN or not isinstance(error.filename, str | PathLike):
        return False
    path, named = path.absolute(), Path(os.fsdecode(error.filename)).absolute()
    temporary = named.parent == path.parent and named.name.startswith(".")
    return temporary or path in (named, *named.parents) or named in path.parents


@contextmanager
def _temporary_beside(path: Path, *, folder: bool = False) -> Iterator[Path]:
    """A new file or folder beside `path`, locked while its writer lives, where it can be."""
    names: dict[str, Any] = {"prefix": _prefix(path), "suffix": ".tmp", "dir": path.parent}
    while True:
        handle, name = _new_folder(names) if folder else tempfile.mkstemp(**names)
        if handle is not None and os.name != "posix":
            os.close(handle)  # elsewhere an open file cannot be renamed
            handle = None
        try:
            if handle is None or _is_held(handle, name):
                yield Path(name)
                return
        finally:
            if handle is not None:
                os.close(handle)


def _new_folder(names: dict[str, Any]) -> tuple[int | None, str]:
    """A new folder, open where folders can be, and its name."""
    while True:
        name = tempfile.mkdtemp(**names)
        if os.name != "posix":
            return None, name
        with suppress(FileNotFoundError):  # it has just been removed as left over
            return os.open(name, os.O_RDONLY), name


def _is_held(handle: int, name: str) -> bool:
    """Whether a new temporary file is this writer's: not if it was removed before it was locked."""
    try:
        lock(handle)
    except BlockingIOError:
        return False  # it is just being removed as left over
    except OSError as error:
        _log.debug("%s cannot be locked: %s", name, error)
    return os.path.exists(name)


def _prefix(path: Path) -> str:
    return f".{path.name[:50]}."


def _remove_left_over(path: Path) -> None:
    """Remove temporary files and folders of the same target whose writers were killed."""
    pattern = re.compile(re.escape(_prefix(path)) + r"\w{8}\.tmp")
    for name in filter(pattern.fullmatch, os.listdir(path.parent)):
        with suppress(OSError):  # another writer was quicker, or it belongs to somebody else
            _remove_if_abandoned(path.parent / name)


def _remove_if_abandoned(temporary: Path) -> None:
    """Remove a temporary file or folder that nobody has locked; without locks, an old one."""
    old = time.time() - temporary.stat().st_mtime > _DAY
    if os.name != "posix":
        if old:
            _remove(temporary)
        return
    handle = os.open(temporary, os.O_RDONLY)
    try:
        try:
            lock(handle)
        except BlockingIOError:
            return
        except OSError:  # a file system without locks
            if not old:
                return
        _remove(temporary)  # still locked, so that no writer begins to use it
    finally:
        os.close(handle)
    _log.info("removed %s, which a killed run left behind", temporary)


def _remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def lock(descriptor: int) -> None:
    """Lock an open file, or folder, for this process; BlockingIOError if another one has."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sync_folder(folder: Path) -> None:
    """Make a rename in `folder` durable, where the system can open folders."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
