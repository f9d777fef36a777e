"""Probabilities that mean what they say, and answers that are withheld.

Scores become probabilities by a softmax at a *temperature* T, p ∝ exp(score / T), which changes no
answer. T is the one of least log-loss on images of held-out classes (Guo et al., ICML 2017), and
the expected calibration error tells how far confidence and accuracy still lie apart.

An answer can be withheld ("none of these") when the largest probability is below a threshold. The
*coverage* is the share of images that get an answer and the *risk* the share of wrong ones among
those (El-Yaniv and Wiener, JMLR 2010); an image of none of the classes that gets an answer is a
*false accept*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.utils.validation import check_consistent_length, column_or_1d

from latem.core.messages import first_few
from latem.metrics.reliability import reliability_curve

__all__ = [
    "CalibrationReport",
    "RejectionReport",
    "RiskCoverage",
    "class_codes",
    "expected_calibration_error",
    "fit_temperature",
    "log_loss_of",
    "probabilities_of",
    "risk_coverage_curve",
    "threshold_for",
]

_WIDEST = 1000.0  # temperatures lie within this factor of the scores' mean range
_SLACK = 1e-9  # of an image: shares such as 0.1 * 30 are not whole in floating point


@dataclass(frozen=True)
class CalibrationReport:
    """How well probabilities fit, at temperature 1 (before) and at the chosen one (after).

    Attributes
    ----------
    temperature : float
    n_images, n_classes : int
        What it was measured on.
    log_loss_before, log_loss_after : float
        Mean negative logarithm of the true class's probability.
    ece_before, ece_after : float
        Expected calibration error.
    """

    temperature: float
    n_images: int
    n_classes: int
    log_loss_before: float
    log_loss_after: float
    ece_before: float
    ece_after: float

    @classmethod
    def of(cls, scores: Any, codes: Any, temperature: float) -> CalibrationReport:
        """Report on some scores.

        Parameters
        ----------
        scores : array-like of shape (n_samples, n_classes)
        codes : array-like of shape (n_samples,)
            Columns of the true classes.
        temperature : float
        """
        scores, codes = _check_scores(scores, codes)
        before, after = (probabilities_of(scores, t) for t in (1.0, temperature))
        return cls(
            temperature=temperature,
            n_images=len(scores),
            n_classes=scores.shape[1],
            log_loss_before=log_loss_of(before, codes),
            log_loss_after=log_loss_of(after, codes),
            ece_before=expected_calibration_error(before, codes),
            ece_after=expected_calibration_error(after, codes),
        )


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Risk for every coverage that a threshold can give.

    Attributes
    ----------
    thresholds : ndarray of shape (n_points,)
        The confidences without repetition, falling; images at or above one are answered.
    coverage : ndarray of shape (n_points,)
        Share of images that are answered, rising to 1.
    risk : ndarray of shape (n_points,)
        Share of wrong answers among them.
    """

    thresholds: np.ndarray
    coverage: np.ndarray
    risk: np.ndarray

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RiskCoverage):
            return NotImplemented
        names = ("thresholds", "coverage", "risk")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"RiskCoverage({len(self.risk)} points, area={self.area:.4f})"

    @property
    def area(self) -> float:
        """Mean risk over all coverages (AURC): small if wrong answers are unsure ones."""
        return float(self.risk @ np.diff(self.coverage, prepend=0.0))

    def at(self, coverage: float) -> float:
        """Risk when at least this share of images is answered."""
        n_below = np.searchsorted(self.coverage, _check_coverage(coverage) - _SLACK)
        return float(self.risk[n_below])


@dataclass(frozen=True)
class RejectionReport:
    """A threshold for "none of these", and what it does to the images it was chosen on.

    Attributes
    ----------
    threshold : float
        Images whose largest probability is below it get no answer.
    n_images, n_outsiders : int
        Images of candidate classes, and of none of them.
    coverage : float or None
        Share of the former that get an answer.
    risk : float or None
        Share of wrong ones among these answers; None if the classes are not known.
    false_accept_rate : float or None
        Share of the outsiders that get an answer.
    curve : RiskCoverage or None
        Risk for every other coverage.
    """

    threshold: float
    n_images: int
    n_outsiders: int
    coverage: float | None
    risk: float | None
    false_accept_rate: float | None
    curve: RiskCoverage | None = field(repr=False)


def probabilities_of(scores: Any, temperature: float = 1.0) -> np.ndarray:
    """Softmax of the scores over a temperature, in float64.

    >>> probabilities_of([[0.0, np.log(3)]]).round(2)
    array([[0.25, 0.75]])
    """
    return softmax(np.asarray(scores, np.float64) / temperature, axis=1)


class LogSum:
    """log Σ exp of rows whose columns come in parts; of a single part, what `softmax` computes.

    >>> total = LogSum()
    >>> total.add(np.log([[1.0, 2.0]]))
    >>> total.add(np.log([[5.0]]))
    >>> np.exp(total.value()).round(2), total.shares(np.log([[2.0]])).round(2)
    (array([8.]), array([[0.25]]))
    """

    def __init__(self) -> None:
        self._top: np.ndarray | None = None
        self._total: np.ndarray = np.zeros(())

    def add(self, values: np.ndarray) -> None:
        """Further columns, of shape (n_rows, n_columns) and float64; they are changed in place."""
        top = values.max(axis=1, keepdims=True)
        if self._top is not None:
            top = np.maximum(top, self._top)
        finite = np.where(np.isfinite(top), top, 0.0)
        values -= finite
        np.exp(values, out=values)
        total = values.sum(axis=1, keepdims=True)
        if self._top is not None:
            total += self._total * np.exp(self._top - finite)
        self._top, self._total = finite, total

    def value(self) -> np.ndarray:
        """log Σ exp of each row, of shape (n_rows,)."""
        assert self._top is not None
        with np.errstate(divide="ignore"):
            return (self._top + np.log(self._total))[:, 0]

    def shares(self, values: np.ndarray) -> np.ndarray:
        """exp of some values of each row, as shares of the sum."""
        assert self._top is not None
        return np.exp(values - self._top) / self._total


def class_codes(y: Any, classes: Any) -> np.ndarray:
    """Columns of the true classes.

    >>> class_codes(["b", "a", "b"], classes=["a", "b"])
    array([1, 0, 1])
    """
    place = {name: i for i, name in enumerate(column_or_1d(classes).tolist())}
    y = column_or_1d(y)
    strange = [name for name in np.unique(y).tolist() if name not in place]
    if strange:
        raise ValueError(
            f"y holds {first_few(strange)}, not among the candidate classes; drop those images or "
            f"add their classes."
        )
    return np.array([place[name] for name in y.tolist()], np.intp)


def fit_temperature(scores: Any, codes: Any) -> float:
    """Temperature of least log-loss.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_classes)
        As returned by `decision_function(X, classes)`.
    codes : array-like of shape (n_samples,)
        Columns of the true classes.

    Returns
    -------
    float
        Above zero, and within a factor of 1000 of the scores' mean range: scores that tell nothing
        get the largest. If all images are named correctly, the log-loss keeps falling as T nears
        0; labels are then smoothed, a share 1/(n + 1) of each spread over all classes. If all
        scores of every image are equal it is 1.

    Examples
    --------
    >>> scores, codes = [[2.0, 0.0]] * 4, [0, 0, 0, 1]
    >>> T = fit_temperature(scores, codes)
    >>> probabilities_of(scores, T)[0].round(6)
    array([0.75, 0.25])
    """
    scores, codes = _check_scores(scores, codes)
    best = scores.max(axis=1, keepdims=True)
    spread = float((best[:, 0] - scores.min(axis=1)).mean())
    if not spread:
        return 1.0
    relative = (scores - best) / spread
    of_true = float(relative[np.arange(len(codes)), codes].mean())
    uniform = float(relative.mean())

    def slope(log_inverse: float, target: float) -> float:
        """Derivative of the log-loss by 1/T, which never falls: the log-loss is convex in 1/T."""
        p = softmax(math.exp(log_inverse) * relative, axis=1)
        return float(np.einsum("ij,ij->i", p, relative).mean()) - target

    least, most = -math.log(_WIDEST), math.log(_WIDEST)
    target = of_true
    if slope(most, target) <= 0:
        share = 1 / (len(codes) + 1)
        target = (1 - share) * of_true + share * uniform
    if slope(least, target) >= 0:
        return spread * _WIDEST
    if slope(most, target) <= 0:
        return spread / _WIDEST
    return spread / math.exp(brentq(slope, least, most, args=(target,), xtol=1e-13))


def log_loss_of(probabilities: Any, codes: Any) -> float:
    """Mean negative logarithm of the true class's probability.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_classes)
    codes : array-like of shape (n_samples,)
        Columns of the true classes.

    Returns
    -------
    float
        In nats. A probability of 0 counts as the smallest normal number.

    Examples
    --------
    >>> round(log_loss_of([[0.5, 0.5], [1.0, 0.0]], [0, 0]), 4)
    0.3466
    """
    probabilities, codes = _check_scores(probabilities, codes)
    of_true = probabilities[np.arange(len(codes)), codes]
    return float(-np.log(np.maximum(of_true, np.finfo(np.float64).tiny)).mean())


def expected_calibration_error(probabilities: Any, codes: Any, n_bins: int = 15) -> float:
    """Mean distance of confidence and accuracy, in bins of equal width (Guo et al., ICML 2017).

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_classes)
        The largest of each row is the confidence.
    codes : array-like of shape (n_samples,)
        Columns of the true classes.
    n_bins : int

    Returns
    -------
    float
        Between 0 and 1; bins are weighted by their numbers of images.

    Examples
    --------
    >>> expected_calibration_error([[0.75, 0.25]] * 4, [0, 0, 0, 1])
    0.0
    """
    probabilities, codes = _check_scores(probabilities, codes)
    right = probabilities.argmax(axis=1) == codes
    return reliability_curve(probabilities.max(axis=1), right, n_bins).error


def risk_coverage_curve(confidence: Any, correct: Any) -> RiskCoverage:
    """Share of wrong answers among the most confident ones, for every coverage.

    Parameters
    ----------
    confidence : array-like of shape (n_samples,)
    correct : array-like of shape (n_samples,), bool
        Whether each image was named correctly.

    Returns
    -------
    RiskCoverage
        Images of equal confidence are answered together.

    Examples
    --------
    >>> curve = risk_coverage_curve([0.9, 0.8, 0.8, 0.4], [True, True, False, False])
    >>> curve.coverage.tolist(), curve.risk.round(3).tolist()
    ([0.25, 0.75, 1.0], [0.0, 0.333, 0.5])
    """
    confidence, correct = _check_confidence(confidence), column_or_1d(correct).astype(bool)
    check_consistent_length(confidence, correct)
    rising, place, counts = np.unique(confidence, return_inverse=True, return_counts=True)
    wrong = np.bincount(place, weights=~correct, minlength=len(rising))
    answered = np.cumsum(counts[::-1])
    return RiskCoverage(
        thresholds=rising[::-1],
        coverage=answered / len(confidence),
        risk=np.cumsum(wrong[::-1]) / answered,
    )


def threshold_for(
    confidence: Any, *, coverage: float | None = None, false_accept_rate: float | None = None
) -> float:
    """Threshold for a wanted coverage, or for a wanted false-accept rate.

    Parameters
    ----------
    confidence : array-like of shape (n_samples,)
        Of images of the candidate classes for `coverage`, of images of none of them for
        `false_accept_rate`.
    coverage : float, optional
        At least this share of the images is at or above the threshold, which is the largest such.
    false_accept_rate : float, optional
        At most this share of the images is at or above the threshold, which is the smallest such.

    Returns
    -------
    float

    Examples
    --------
    >>> threshold_for([0.2, 0.4, 0.6, 0.8], coverage=0.75)
    0.4
    >>> threshold_for([0.2, 0.4, 0.6, 0.8], false_accept_rate=0.25)
    0.6000000000000001
    """
    check_wanted(coverage, false_accept_rate)
    confidence = _check_confidence(confidence)
    falling = np.sort(confidence)[::-1]
    if coverage is not None:
        wanted = coverage * len(falling)
        return float(falling[max(math.ceil(wanted - _SLACK), 1) - 1])
    allowed = float(false_accept_rate or 0) * len(falling)
    n_accepted = min(math.floor(allowed + _SLACK), len(falling) - 1)
    return float(np.nextafter(falling[n_accepted], np.inf))


def check_wanted(coverage: float | None, false_accept_rate: float | None) -> None:
    """One of the two must be given, and be a share."""
    if (coverage is None) == (false_accept_rate is None):
        raise ValueError(
            f"A threshold is chosen for a coverage or for a false_accept_rate: give one of them, "
            f"not {'none' if coverage is None else 'both'}."
        )
    if coverage is not None:
        _check_coverage(coverage)
    else:
        check_rate(false_accept_rate)


def check_threshold(threshold: float) -> None:
    """A threshold must be a number that probabilities can be compared with."""
    number = isinstance(threshold, Real) and not isinstance(threshold, bool)
    if not number or np.isnan(float(threshold)):
        raise ValueError(f"threshold must be a probability, but is {threshold!r}.")


def _check_scores(scores: Any, codes: Any) -> tuple[np.ndarray, np.ndarray]:
    scores, codes = np.asarray(scores, np.float64), column_or_1d(codes)
    if scores.ndim != 2 or not scores.size or len(scores) != len(codes):
        raise ValueError(
            f"There must be one row per image and one column per class, and one code per image, "
            f"but shapes are {scores.shape} and {codes.shape}."
        )
    if not np.isfinite(scores).all():
        raise ValueError("Scores and probabilities must be finite, but hold NaN or inf.")
    if codes.dtype.kind not in "iu" or codes.min() < 0 or codes.max() >= scores.shape[1]:
        raise ValueError(
            f"codes must be columns of the true classes, whole numbers from 0 to "
            f"{scores.shape[1] - 1}; see class_codes."
        )
    return scores, codes


def _check_confidence(confidence: Any) -> np.ndarray:
    confidence = column_or_1d(confidence).astype(np.float64)
    if not len(confidence):
        raise ValueError("There are no images to choose a threshold on.")
    if not np.isfinite(confidence).all():
        raise ValueError("Confidences must be finite, but hold NaN or inf.")
    return confidence


def _check_coverage(coverage: Any) -> float:
    if not _is_number(coverage) or not 0 < coverage <= 1:
        raise ValueError(f"coverage must be a share above 0 and up to 1, not {coverage!r}.")
    return float(coverage)


def check_rate(rate: Any) -> float:
    """A false-accept rate must be a share below 1."""
    if not _is_number(rate) or not 0 <= rate < 1:
        raise ValueError(f"false_accept_rate must be a share from 0 to below 1, not {rate!r}.")
    return float(rate)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
