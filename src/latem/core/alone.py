"""One at a time: locks that end with their process, and folders for work in progress."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

from latem.core.atomic import lock, writing

_LOCK = "lock"


@contextmanager
def only_one(
    path: str | PathLike[str],
    message: str,
    *,
    target: str | PathLike[str] | None = None,
    remove: bool = False,
) -> Iterator[None]:
    """Hold a lock file while the block runs; a second holder is refused with the message.

    The lock belongs to the process: if it is killed, the next one can have the file.

    Parameters
    ----------
    path : path of the lock file
    message : str
    target : path, optional
        What the lock is for, to be named if no lock file can be written; by default the lock file.
    remove : bool
        Whether to remove the lock file afterwards.
    """
    try:
        with writing(target or path):
            file = open(path, "a")  # noqa: SIM115 - the block below closes it
    except FileNotFoundError:  # its holder has just removed the folder
        raise BlockingIOError(message) from None
    with file:
        try:
            lock(file.fileno())
        except (BlockingIOError, PermissionError):
            raise BlockingIOError(message) from None
        except OSError as error:
            warnings.warn(
                f"{path} cannot be locked ({error.strerror}): make sure that no other run "
                f"writes to the same folder.",
                stacklevel=3,
            )
        if not _is_at(file.fileno(), path):  # its holder has just removed it
            raise BlockingIOError(message)
        try:
            yield
        finally:
            if remove:
                with suppress(OSError):  # some systems remove no file that is open
                    os.unlink(path)


@contextmanager
def work_folder(
    path: Path, message: str, useless: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Hold a folder for work in progress; it is removed when the block ends well.

    If the block raises, or the process is killed, the folder stays for the next run to go on from.

    Parameters
    ----------
    path : path of the folder
        Made if it does not exist.
    message : str
        Tells a second process that another one holds the folder.
    useless : tuple of exception types
        After these there is nothing to go on from, so the folder is removed as well.
    """
    path.mkdir(parents=True, exist_ok=True)
    lock_file, raised = path / _LOCK, None
    with only_one(lock_file, message, target=path):
        try:
            yield
        except useless as error:
            raised = error
        for entry in sorted(path.iterdir(), key=lambda entry: entry == lock_file):
            with suppress(OSError):  # some systems remove no file that is open or mapped
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    with suppress(OSError):
        if os.name != "posix":
            lock_file.unlink(missing_ok=True)
        path.rmdir()  # unless another run has begun in it
    if raised is not None:
        raise raised


def _is_at(descriptor: int, path: str | PathLike[str]) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
