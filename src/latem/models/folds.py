"""Class-disjoint folds: held-out classes stand in for unseen ones."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_random_state


class Fold(NamedTuple):
    """One division of the training images.

    Attributes
    ----------
    out : ndarray of shape (n_samples,), bool
        Which images are held out.
    candidates : ndarray
        The classes they are named among.
    """

    out: np.ndarray
    candidates: np.ndarray


def class_folds(
    y: np.ndarray,
    cv: int | Sequence[Any],
    random_state: int | np.random.RandomState | None,
    owner: str,
) -> list[Fold]:
    """Folds of classes.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Class names.
    cv : int or sequence of class names
        Number of folds, at most half as many as classes, or the classes to hold out once.
    random_state : int, RandomState or None
        How classes are assigned to the folds.
    owner : str
        Who is asking, for error messages.
    """
    classes = np.unique(y)
    n = len(classes)
    if isinstance(cv, Integral):
        order = check_random_state(random_state).permutation(n)
        n_folds = max(min(int(cv), n // 2), 1)
        held = [classes[np.sort(part)] for part in np.array_split(order, n_folds)]
    else:
        odd = np.setdiff1d(cv, classes)
        if len(odd):
            raise ValueError(f"{owner} cannot hold out {odd[:5].tolist()}: they are not in y.")
        held = [np.unique(cv)]
    if any(len(part) < 2 or n - len(part) < 2 for part in held):
        raise ValueError(
            f"{owner} needs at least 2 classes to hold out and 2 to learn from, and y has {n} "
            f"classes in all; use the model itself with parameters of your choice."
        )
    return [Fold(np.isin(y, part), part) for part in held]


def image_folds(
    y: np.ndarray, cv: int | Sequence[Any], random_state: int | np.random.RandomState | None
) -> list[Fold]:
    """Folds of images for one-hot classes, which cannot be held out; none if there are too few."""
    classes, codes = np.unique(y, return_inverse=True)
    wanted = int(cv) if isinstance(cv, Integral) else 5
    n_folds = min(wanted, int(np.bincount(codes).min()))
    if n_folds < 2:
        return []
    seed = check_random_state(random_state).randint(2**31 - 1)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    rows = np.arange(len(y))
    return [Fold(np.isin(rows, held), classes) for _, held in folds.split(codes[:, None], codes)]
