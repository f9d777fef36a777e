"""How well a model names classes.

The paper's measure is *mean per-class* top-1 accuracy: the accuracy is taken for each class and
then averaged over classes, so that a class with many images counts no more than one with few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from latem.core.slim import needed

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "confusion_matrix",
    "mean_class_accuracy",
    "per_class_accuracy",
    "top_confusions",
    "top_k_accuracy",
]


def per_class_accuracy(y_true: Any, y_pred: Any) -> pd.Series:
    """Share of each true class's images that were given that class.

    >>> per_class_accuracy(["cat", "cat", "dog"], ["cat", "dog", "dog"])
    cat    0.5
    dog    1.0
    dtype: float64
    """
    y_true, y_pred = _check_labels(y_true, y_pred)
    pd = needed("pandas", "Series of accuracies")
    names, share = _mean_by_class(y_true, y_true == y_pred)
    return pd.Series(share, index=names)


def mean_class_accuracy(y_true: Any, y_pred: Any) -> float:
    """Mean over the true classes of the share of their images named correctly.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Class names.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> mean_class_accuracy(["cat", "cat", "cat", "dog"], ["cat", "cat", "cat", "cat"])
    0.5
    """
    y_true, y_pred = _check_labels(y_true, y_pred)
    _, share = _mean_by_class(y_true, y_true == y_pred)
    return float(share.mean())


def top_k_accuracy(y_true: Any, scores: Any, classes: Any, k: int = 5) -> float:
    """Mean over the true classes of the share of images whose class is among the k best scores.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class names, each one of `classes`.
    scores : array-like of shape (n_samples, n_classes)
        As returned by `decision_function(X, classes)`.
    classes : array-like of shape (n_classes,)
        Names of the columns of `scores`.
    k : int

    Returns
    -------
    float
        Between 0 and 1. Of equal scores the first column counts as better.

    Examples
    --------
    >>> top_k_accuracy(["b"], [[0.3, 0.2, 0.1]], ["a", "b", "c"], k=2)
    1.0
    """
    y_true, classes, scores = column_or_1d(y_true), column_or_1d(classes), np.asarray(scores)
    if scores.shape != (len(y_true), len(classes)):
        raise ValueError(
            f"scores must have one row per label and one column per class, "
            f"({len(y_true)}, {len(classes)}), but have shape {scores.shape}."
        )
    if not len(y_true):
        raise ValueError("There are no labels to compare.")
    if np.isnan(scores).any():
        raise ValueError("scores hold NaN and cannot be ranked.")
    _check_unique(classes)
    if not 1 <= k <= len(classes):
        raise ValueError(f"k must be between 1 and {len(classes)}, but is {k}.")
    place = {name: i for i, name in enumerate(classes.tolist())}
    strange = [name for name in np.unique(y_true).tolist() if name not in place]
    if strange:
        raise ValueError(f"y_true holds {strange[:5]}, which are not among the classes.")
    column = np.array([place[name] for name in y_true.tolist()])
    scores_of_true = scores[np.arange(len(column)), column]
    ahead = (scores > scores_of_true[:, None]).sum(axis=1)
    earlier = np.arange(scores.shape[1]) < column[:, None]
    ahead += ((scores == scores_of_true[:, None]) & earlier).sum(axis=1)
    _, share = _mean_by_class(y_true, ahead < k)
    return float(share.mean())


def confusion_matrix(y_true: Any, y_pred: Any, classes: Any = None) -> pd.DataFrame:
    """How often images of each class (row) were given each class (column).

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Class names.
    classes : array-like, optional
        Which classes, in which order; by default all that occur, sorted.

    Returns
    -------
    DataFrame of counts

    Examples
    --------
    >>> confusion_matrix(["cat", "cat", "dog"], ["cat", "dog", "dog"])
    predicted  cat  dog
    true
    cat          1    1
    dog          0    1
    """
    y_true, y_pred = _check_labels(y_true, y_pred)
    found = np.unique(np.concatenate([y_true, y_pred]))
    names = found if classes is None else column_or_1d(classes)
    _check_unique(names)
    strange = np.setdiff1d(found, names)
    if len(strange):
        raise ValueError(f"Labels {strange[:5].tolist()} are not among the classes.")
    pd = needed("pandas", "Confusion matrices")
    counts = pd.crosstab(y_true, y_pred, rownames=["true"], colnames=["predicted"])
    return counts.reindex(
        index=pd.Index(names, name="true"),
        columns=pd.Index(names, name="predicted"),
        fill_value=0,
    )


def top_confusions(counts: pd.DataFrame, n: int | None = 10) -> pd.DataFrame:
    """The most frequent wrong names.

    Parameters
    ----------
    counts : DataFrame
        As returned by `confusion_matrix`: rows are true classes, columns the names given.
    n : int or None
        How many at most; None for all.

    Returns
    -------
    DataFrame
        Columns `true`, `named`, `count`, `of` (images of the true class) and `share`, the most
        frequent first; of equals those that come first in the matrix.

    Examples
    --------
    >>> top_confusions(confusion_matrix(["cat", "cat", "dog"], ["cat", "dog", "dog"]))
      true named  count  of  share
    0  cat   dog      1   2    0.5
    """
    pd = needed("pandas", "Confusion matrices")
    matrix = counts.to_numpy()
    of = matrix.sum(axis=1)
    wrong = np.where(counts.index.to_numpy()[:, None] == counts.columns.to_numpy(), 0, matrix)
    order = np.argsort(-wrong, axis=None, kind="stable")[: np.count_nonzero(wrong)][:n]
    i, j = np.unravel_index(order, wrong.shape)
    return pd.DataFrame(
        {
            "true": counts.index.to_numpy()[i],
            "named": counts.columns.to_numpy()[j],
            "count": wrong[i, j],
            "of": of[i],
            "share": wrong[i, j] / of[i],
        }
    )


def _check_labels(y_true: Any, y_pred: Any) -> tuple[np.ndarray, np.ndarray]:
    y_true, y_pred = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(y_true, y_pred)
    if not len(y_true):
        raise ValueError("There are no labels to compare.")
    text = [isinstance(labels.tolist()[0], str) for labels in (y_true, y_pred)]
    if text[0] != text[1]:
        raise TypeError(
            f"Labels must be of one type, but y_true holds {y_true.tolist()[0]!r} and y_pred "
            f"{y_pred.tolist()[0]!r}."
        )
    return y_true, y_pred


def _check_unique(classes: np.ndarray) -> None:
    names, counts = np.unique(classes, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"classes name {names[counts > 1][:5].tolist()} more than once.")


def _mean_by_class(y_true: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Classes, and the share of each one's images that are right."""
    names, codes = np.unique(y_true, return_inverse=True)
    return names, np.bincount(codes, weights=right) / np.bincount(codes)
