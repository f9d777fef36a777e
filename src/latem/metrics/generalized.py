"""The generalised setting: images of seen and unseen classes, each named among all classes.

A model favours the classes it learned from, so both sides are measured: mean per-class accuracy on
images of seen classes, on images of unseen classes, and the harmonic mean H of the two (Xian et
al., TPAMI 2019). *Calibrated stacking* (Chao et al., ECCV 2016) subtracts a number γ from the
scores of all seen classes. Letting γ go from -∞ to ∞ gives a curve of the two accuracies, and the
area under it, AUSUC, tells how well a model can do both whatever γ is used.

An image is named by its best seen class while its *margin*, the best seen score minus the best
unseen one, is above γ, and by its best unseen class when it is below. So only the margins matter,
and sorting them gives the whole curve. At γ equal to the margin the two classes tie, and the one
that comes first in `classes` is the answer, as for argmax.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import auc
from sklearn.utils.validation import column_or_1d

from latem.core.messages import first_few
from latem.metrics.accuracy import mean_class_accuracy

__all__ = [
    "GeneralizedScores",
    "SeenUnseenCurve",
    "ausuc",
    "best_gamma",
    "calibrated_stacking",
    "generalized_accuracy",
    "harmonic_mean",
    "seen_unseen_curve",
]

_DIGITS = 12  # harmonic means that agree to this many decimals count as equal


@dataclass(frozen=True)
class GeneralizedScores:
    """Accuracies in the generalised setting, between 0 and 1.

    Attributes
    ----------
    seen : float
        Mean per-class accuracy on images of seen classes.
    unseen : float
        Mean per-class accuracy on images of unseen classes.
    harmonic : float
        H, the harmonic mean of the two.
    """

    seen: float
    unseen: float
    harmonic: float


@dataclass(frozen=True)
class SeenUnseenCurve:
    """The two accuracies for every γ.

    They change only at the critical values, which cut the line into intervals.

    Attributes
    ----------
    critical : ndarray of shape (n_critical,)
        The images' margins without repetition, rising.
    gammas : ndarray of shape (n_points,)
        A value of γ inside each interval, rising: 0 in the interval that holds 0, -inf and inf
        in the outer two, otherwise the middle. There are ``n_critical + 1`` intervals; one between
        critical values so close that no number lies between them is left out.
    seen, unseen : ndarray of shape (n_points,)
        Accuracies in those intervals; `seen` falls to 0 and `unseen` rises from 0.
    """

    critical: np.ndarray
    gammas: np.ndarray
    seen: np.ndarray
    unseen: np.ndarray

    @property
    def area(self) -> float:
        """AUSUC: area under `seen` over `unseen`, by trapezoids."""
        return min(float(auc(self.unseen, self.seen)), 1.0)  # not a rounding error above


class _Sides(NamedTuple):
    """What naming by any γ depends on."""

    best_seen: np.ndarray  # columns, of shape (n_samples,)
    best_unseen: np.ndarray
    margin: np.ndarray

    def named(self, gamma: float) -> np.ndarray:
        """Columns of the answers."""
        seen_first = self.best_seen < self.best_unseen
        seen = (self.margin > gamma) | ((self.margin == gamma) & seen_first)
        return np.where(seen, self.best_seen, self.best_unseen)


def harmonic_mean(seen: Any, unseen: Any) -> Any:
    """H = 2·seen·unseen / (seen + unseen), and 0 if both are.

    Parameters
    ----------
    seen, unseen : float or array-like
        Accuracies.

    Returns
    -------
    float, or ndarray if arrays are given

    Examples
    --------
    >>> harmonic_mean(0.75, 0.25)
    0.375
    """
    seen, unseen = np.asarray(seen, np.float64), np.asarray(unseen, np.float64)
    if not ((seen >= 0).all() and (unseen >= 0).all()):
        raise ValueError(f"Accuracies are not negative, but are {seen} and {unseen}.")
    both = np.asarray(seen + unseen)
    mean = np.divide(2 * seen * unseen, both, out=np.zeros(both.shape), where=both > 0)
    return mean if mean.ndim else float(mean)


def calibrated_stacking(scores: Any, classes: Any, seen: Any, gamma: float = 0.0) -> np.ndarray:
    """Names of the images when γ is subtracted from the scores of the seen classes.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_classes)
        As returned by `decision_function(X, classes)`.
    classes : array-like of shape (n_classes,)
        Names of the columns of `scores`.
    seen : array-like
        Which of the classes are seen ones; names that are not among `classes` do not matter.
    gamma : float
        0 changes nothing; -inf leaves only seen classes, inf only unseen ones.

    Returns
    -------
    ndarray of shape (n_samples,)
        Class names. Of equal scores the first column counts as better.

    Examples
    --------
    >>> scores, classes = [[0.9, 0.7], [0.8, 0.1]], ["horse", "zebra"]
    >>> calibrated_stacking(scores, classes, seen=["horse"], gamma=0.5).tolist()
    ['zebra', 'horse']
    """
    classes = column_or_1d(classes)
    sides, _ = _two_sides(scores, classes, seen)
    return classes[sides.named(_check_gamma(gamma))]


def generalized_accuracy(
    scores: Any, y: Any, classes: Any, seen: Any, gamma: float = 0.0
) -> GeneralizedScores:
    """Accuracies on seen and on unseen classes, with γ subtracted from the scores of the seen.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_classes)
        As returned by `decision_function(X, classes)`.
    y : array-like of shape (n_samples,)
        True class names, of seen and of unseen classes.
    classes : array-like of shape (n_classes,)
        Names of the columns of `scores`.
    seen : array-like
        Which of the classes are seen ones.
    gamma : float

    Returns
    -------
    GeneralizedScores

    Examples
    --------
    >>> scores, classes = [[0.9, 0.7], [0.8, 0.1]], ["horse", "zebra"]
    >>> generalized_accuracy(scores, ["zebra", "horse"], classes, seen=["horse"])
    GeneralizedScores(seen=1.0, unseen=0.0, harmonic=0.0)
    >>> generalized_accuracy(scores, ["zebra", "horse"], classes, seen=["horse"], gamma=0.5)
    GeneralizedScores(seen=1.0, unseen=1.0, harmonic=1.0)
    """
    classes = column_or_1d(classes)
    sides, is_seen = _two_sides(scores, classes, seen)
    truth = _columns(y, classes, is_seen, len(sides.margin))
    of_seen, named = is_seen[truth], sides.named(_check_gamma(gamma))
    on_seen = mean_class_accuracy(truth[of_seen], named[of_seen])
    on_unseen = mean_class_accuracy(truth[~of_seen], named[~of_seen])
    return GeneralizedScores(on_seen, on_unseen, harmonic_mean(on_seen, on_unseen))


def seen_unseen_curve(scores: Any, y: Any, classes: Any, seen: Any) -> SeenUnseenCurve:
    """Both accuracies for all values of γ at once, by sorting the margins.

    Parameters
    ----------
    scores, y, classes, seen
        As for `generalized_accuracy`.

    Returns
    -------
    SeenUnseenCurve

    Examples
    --------
    >>> scores, classes = [[0.9, 0.7], [0.8, 0.1]], ["horse", "zebra"]
    >>> curve = seen_unseen_curve(scores, ["zebra", "horse"], classes, seen=["horse"])
    >>> curve.seen.tolist(), curve.unseen.tolist()
    ([1.0, 1.0, 0.0], [0.0, 1.0, 1.0])
    """
    classes = column_or_1d(classes)
    sides, is_seen = _two_sides(scores, classes, seen)
    truth = _columns(y, classes, is_seen, len(sides.margin))
    critical, place = np.unique(sides.margin, return_inverse=True)
    lost, won = (
        _shares(truth, is_seen == side, best, place, len(critical))
        for side, best in ((True, sides.best_seen), (False, sides.best_unseen))
    )
    # From the far ends, so that the sums start at exactly 0.
    on_seen = np.append(np.cumsum(lost[::-1])[::-1], 0.0).clip(max=1.0)
    on_unseen = np.append(0.0, np.cumsum(won)).clip(max=1.0)
    edges = np.concatenate([[-np.inf], critical, [np.inf]])
    low, high = edges[:-1], edges[1:]
    gammas = np.concatenate([[-np.inf], critical[:-1] + np.diff(critical) / 2, [np.inf]])
    gammas[(low < 0) & (high > 0)] = 0.0
    inside = ((low < gammas) & (gammas < high)) | np.isinf(gammas)
    return SeenUnseenCurve(critical, gammas[inside], on_seen[inside], on_unseen[inside])


def ausuc(scores: Any, y: Any, classes: Any, seen: Any) -> float:
    """Area under the curve of seen over unseen accuracy (Chao et al., ECCV 2016).

    Parameters
    ----------
    scores, y, classes, seen
        As for `generalized_accuracy`.

    Returns
    -------
    float
        Between 0 and 1. Subtracting a number from the scores of all seen classes leaves it as it
        is, so it is the same with and without calibrated stacking.

    Examples
    --------
    >>> scores, classes = [[0.9, 0.7], [0.8, 0.1]], ["horse", "zebra"]
    >>> ausuc(scores, ["zebra", "horse"], classes, seen=["horse"])
    1.0
    """
    return seen_unseen_curve(scores, y, classes, seen).area


def best_gamma(scores: Any, y: Any, classes: Any, seen: Any) -> float:
    """The γ of largest harmonic mean, to be chosen on held-out classes.

    Parameters
    ----------
    scores, y, classes, seen
        As for `generalized_accuracy`; the unseen classes are held-out ones.

    Returns
    -------
    float
        One of `SeenUnseenCurve.gammas`; of equally good ones the nearest to 0, and 0 if none of
        them names images of both sides correctly.

    Examples
    --------
    >>> scores, classes = [[0.75, 0.5], [0.75, 0.0]], ["horse", "zebra"]
    >>> best_gamma(scores, ["zebra", "horse"], classes, seen=["horse"])
    0.5
    """
    curve = seen_unseen_curve(scores, y, classes, seen)
    harmonic = np.round(harmonic_mean(curve.seen, curve.unseen), _DIGITS)
    if not harmonic.any():
        return 0.0
    equals = curve.gammas[harmonic == harmonic.max()]
    return float(equals[np.abs(equals).argmin()])


def _two_sides(scores: Any, classes: np.ndarray, seen: Any) -> tuple[_Sides, np.ndarray]:
    """Best classes of both sides, and which columns are seen classes."""
    scores = np.asarray(scores, np.float64)
    if scores.ndim != 2 or scores.shape[1] != len(classes):
        raise ValueError(
            f"scores must have one row per image and one column per class, (n, {len(classes)}), "
            f"but have shape {scores.shape}."
        )
    if not np.isfinite(scores).all():
        raise ValueError("scores hold NaN or inf and cannot be compared.")
    names, counts = np.unique(classes, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"classes name {first_few(names[counts > 1].tolist())} more than once.")
    known = set(column_or_1d(seen).tolist())
    is_seen = np.array([name in known for name in classes.tolist()], bool)
    if is_seen.all() or not is_seen.any():
        raise ValueError(
            f"The generalised setting needs seen and unseen classes, but "
            f"{'none' if not is_seen.any() else 'all'} of the {len(classes)} classes are seen."
        )
    rows = np.arange(len(scores))
    best_seen, best_unseen = (
        columns[scores[:, columns].argmax(axis=1)]
        for columns in (np.flatnonzero(is_seen), np.flatnonzero(~is_seen))
    )
    margin = scores[rows, best_seen] - scores[rows, best_unseen]
    return _Sides(best_seen, best_unseen, margin), is_seen


def _columns(y: Any, classes: np.ndarray, is_seen: np.ndarray, n_images: int) -> np.ndarray:
    """Columns of the true classes; both sides must have images."""
    y = column_or_1d(y)
    if len(y) != n_images:
        raise ValueError(f"There are scores of {n_images} images but {len(y)} labels.")
    place = {name: i for i, name in enumerate(classes.tolist())}
    strange = [name for name in np.unique(y).tolist() if name not in place]
    if strange:
        raise ValueError(f"y holds {first_few(strange)}, not among the classes.")
    columns = np.array([place[name] for name in y.tolist()], np.intp)
    of_seen = is_seen[columns]
    if of_seen.all() or not of_seen.any():
        missing = "seen" if not of_seen.any() else "unseen"
        raise ValueError(
            f"The generalised setting needs images of seen and of unseen classes, but y has none "
            f"of {missing} ones."
        )
    return columns


def _shares(
    truth: np.ndarray, side: np.ndarray, best: np.ndarray, place: np.ndarray, n_places: int
) -> np.ndarray:
    """What the images at each critical value add to the accuracy of one side, if named by it."""
    counts = np.bincount(truth, minlength=len(side)) * side
    worth = np.zeros(len(side))
    np.divide(1 / np.count_nonzero(counts), counts, out=worth, where=counts > 0)
    return np.bincount(place, weights=worth[truth] * (best == truth), minlength=n_places)


def _check_gamma(gamma: Any) -> float:
    if isinstance(gamma, bool) or not isinstance(gamma, int | float | np.number) or gamma != gamma:
        raise ValueError(f"gamma must be a number, not {gamma!r}.")
    return float(gamma)
