"""Images that cannot be answered: errors that say which rows they are in."""

from __future__ import annotations

import numpy as np


def bad_rows(template: str, first: int, last: int) -> ValueError:
    """An error about some rows, which `shifted` can count from elsewhere.

    Parameters
    ----------
    template : str
        What is said, with FIRST and LAST in the places of their numbers.
    first, last : int
    """
    error = ValueError(template.replace("FIRST", str(first)).replace("LAST", str(last)))
    error.rows = (template, first, last)  # type: ignore[attr-defined]
    return error


def shifted(error: ValueError, n_rows: int) -> ValueError:
    """The same error where so many rows came before; others are left as they are.

    >>> error = bad_rows("NaN in row FIRST; drop it.", 3, 3)
    >>> str(error), str(shifted(error, 100))
    ('NaN in row 3; drop it.', 'NaN in row 103; drop it.')
    """
    if not hasattr(error, "rows"):
        return error
    template, first, last = error.rows
    return bad_rows(template, first + n_rows, last + n_rows)


def check_finite(X: np.ndarray, owner: str) -> None:
    """Refuse images with values that are not finite, naming the first one.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    owner : str
        Who was given them.
    """
    for first in range(0, len(X), 1024):
        finite = np.isfinite(X[first : first + 1024])
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            value = "NaN" if np.isnan(X[first + row, column]) else "inf (infinity)"
            where = first + int(row)
            raise bad_rows(
                f"{owner} got X with {value} in row FIRST, column {column}; drop such rows or fill "
                f"in finite values.",
                where,
                where,
            )
