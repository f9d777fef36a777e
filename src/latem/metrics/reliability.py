"""How sure answers are against how often they are right: the numbers of a reliability diagram.

Answers are put into bins of equal width by their confidence. In each bin the mean confidence is
compared with the share of right answers; where the two agree, a probability means what it says
(Guo et al., ICML 2017).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

__all__ = ["ReliabilityCurve", "reliability_curve"]

_SLACK = 1e-6  # probabilities in single precision may be this much above 1


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Confidence and accuracy in bins; bins without answers are left out.

    Attributes
    ----------
    confidence : ndarray of shape (n_filled,)
        Mean confidence of each bin, rising.
    accuracy : ndarray of shape (n_filled,)
        Share of right answers.
    counts : ndarray of shape (n_filled,)
        Number of answers.
    """

    confidence: np.ndarray
    accuracy: np.ndarray
    counts: np.ndarray

    @property
    def error(self) -> float:
        """Expected calibration error: mean distance of the two, weighted by the counts."""
        gaps = np.abs(self.confidence - self.accuracy)
        return float(self.counts @ gaps / self.counts.sum())


def reliability_curve(confidence: Any, correct: Any, n_bins: int = 15) -> ReliabilityCurve:
    """Confidence and accuracy of answers, in bins of equal width.

    Parameters
    ----------
    confidence : array-like of shape (n_samples,)
        Probability of each answer.
    correct : array-like of shape (n_samples,), bool
        Whether it was right.
    n_bins : int
        Bins between 0 and 1; a bin holds its upper edge.

    Returns
    -------
    ReliabilityCurve

    Examples
    --------
    >>> curve = reliability_curve([0.75, 0.75, 0.75, 0.75], [True, True, True, False], n_bins=2)
    >>> curve.confidence, curve.accuracy, curve.error
    (array([0.75]), array([0.75]), 0.0)
    """
    if isinstance(n_bins, bool) or not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise ValueError(f"n_bins must be a whole number of at least 1, not {n_bins!r}.")
    confidence = column_or_1d(confidence).astype(np.float64)
    correct = column_or_1d(correct).astype(bool)
    check_consistent_length(confidence, correct)
    if not len(confidence):
        raise ValueError("There are no answers to compare with their confidence.")
    if not ((confidence >= 0) & (confidence <= 1 + _SLACK)).all():
        raise ValueError("Confidences must be probabilities between 0 and 1.")
    edges = np.linspace(0, 1, n_bins + 1)[1:-1]
    place = np.digitize(confidence, edges, right=True)
    counts = np.bincount(place, minlength=n_bins)
    filled = counts > 0
    sums = [np.bincount(place, weights=w, minlength=n_bins) for w in (confidence, correct)]
    sure, right = (total[filled] / counts[filled] for total in sums)
    return ReliabilityCurve(sure, right, counts[filled])
