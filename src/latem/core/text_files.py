"""Reading small text files that people write by hand."""

from __future__ import annotations

from os import PathLike
from pathlib import Path


def read_lines(path: str | PathLike[str], what: str) -> list[str]:
    """Lines of a text file without surrounding white space and without empty ones.

    Parameters
    ----------
    path : path
    what : str
        What the lines are, for error messages, such as "class names".
    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file of {what} {str(path)!r}.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8.") from None
    found = [line.strip() for line in lines if line.strip()]
    if not found:
        raise ValueError(f"{path} holds no {what}; write one per line.")
    return found
