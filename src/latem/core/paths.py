"""Paths that people give: what is none, and what is not where it should be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def as_path(given: Any, what: str) -> Path:
    """A path from what was given as one.

    Parameters
    ----------
    given : anything
    what : str
        What it leads to, such as "a model file".

    Raises
    ------
    TypeError
        If it is neither a text nor a path.
    """
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"The path of {what} must be a text or a Path, not {given!r:.40}.")
    return Path(given)


def no_file(path: str | os.PathLike[str], what: str) -> OSError:
    """The error for a file that is needed and not there.

    Parameters
    ----------
    path : path
    what : str
        What the file is, without an article, such as "class table".

    Examples
    --------
    >>> no_file("nowhere.csv", "class table")
    FileNotFoundError("There is no class table 'nowhere.csv'.")
    """
    if os.path.isdir(path):  # False also for what cannot be a name of a file
        return IsADirectoryError(f"{path} is a folder, not a {what}; name the file.")
    return FileNotFoundError(f"There is no {what} {str(path)!r}.")


def no_folder(path: str | os.PathLike[str], what: str) -> OSError:
    """The same for a folder.

    >>> no_folder("nowhere", "dataset folder")
    FileNotFoundError("There is no dataset folder 'nowhere'.")
    """
    if os.path.isfile(path):
        return NotADirectoryError(f"{path} is a file, not a {what}; name the folder.")
    return FileNotFoundError(f"There is no {what} {str(path)!r}.")


def stamp_of(path: str | os.PathLike[str]) -> list[int]:
    """What changes when a file is written to: its size, and its time in nanoseconds."""
    facts = os.stat(path)
    return [facts.st_size, facts.st_mtime_ns]
