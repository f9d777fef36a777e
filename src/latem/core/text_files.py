"""Reading small text files that people write by hand."""

from __future__ import annotations

from os import PathLike
from pathlib import Path


def read_utf8(path: str | PathLike[str]) -> str:
    """Content of a text file, without a byte order mark."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8.") from None


def read_lines(path: str | PathLike[str], what: str) -> list[str]:
    """Lines of a text file without surrounding white space and without empty ones.

    Parameters
    ----------
    path : path
    what : str
        What the lines are, for error messages, such as "class names".
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a text file of {what}, one per line.")
    try:
        lines = read_utf8(path).splitlines()
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file of {what} {str(path)!r}.") from None
    except OSError as error:
        raise OSError(f"{path}, a file of {what}, cannot be read: {error.strerror}.") from None
    found = [line.strip() for line in lines if line.strip()]
    if not found:
        raise ValueError(f"{path} holds no {what}; write one per line.")
    return found
