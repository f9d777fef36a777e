"""None of these: telling pictures of the candidate classes from all others.

Two questions, because strangers are of two sorts (measured in `docs/accuracy.md`):

*Kinship*: is the picture of the kind that was learned from at all? It is the largest cosine of the
picture's features and the mean features of a seen class, after the mean of all is subtracted.
Pictures of quite other things have little of it.

*Membership*: is the picture one of the candidates rather than one of the seen classes beside them?
With the energy E(C) = T log Σ exp(score / T) over the classes C it is (E(candidates) - E(rivals)) /
T + log n, the log-odds of "any of these" in a softmax over both, if the n rivals together weigh as
much as one class. The rivals are the seen classes that are not candidates. Where nearly all of them
are, there are no rivals and it is E(candidates) / T.

Membership grows with the number of candidates. So how large it is for *outsiders*, pictures of none
of the candidates, is kept for several numbers of them, and read off in between.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from latem.core.arrays import unit_rows
from latem.metrics.calibration import LogSum

__all__ = ["RATES", "Kinship", "Outsiders", "membership", "rival_energy"]

RATES = np.concatenate([[0.001, 0.002, 0.005], np.arange(1, 100) / 100])
_FLOOR = 50.0  # below the least membership of an outsider that is kin; everything is above it
_MOST = 1000  # seen classes whose means are kept


def membership(scores: Any, rivals: Any, temperature: float) -> np.ndarray:
    """Log-odds of "any of the candidates" against "one of the rivals".

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_candidates)
    rivals : array-like of shape (n_samples, n_rivals), or None
    temperature : float

    Returns
    -------
    ndarray of shape (n_samples,), float64

    Examples
    --------
    >>> membership([[1.0, 1.0]], [[1.0, 1.0, 1.0]], 1.0).round(3)  # two against the mean of three
    array([0.693])
    """
    inside = _log_sum_exp(np.asarray(scores, np.float64) / temperature)
    if rivals is None:
        return inside
    return inside - rival_energy(rivals, temperature)


def rival_energy(scores: Any, temperature: float) -> np.ndarray:
    """log mean exp(score / T) of each image's rivals: it hardly depends on their number."""
    scores = np.asarray(scores, np.float64)
    return _log_sum_exp(scores / temperature) - np.log(scores.shape[1])


def _log_sum_exp(values: np.ndarray) -> np.ndarray:
    """log Σ exp of each row; the values are used up.

    SciPy's takes many times as long for a few rows, as an answer about one image needs it.

    >>> _log_sum_exp(np.array([[0.0, 0.0], [1e4, -np.inf], [-np.inf, -np.inf]]))
    array([6.93147181e-01, 1.00000000e+04,           -inf])
    """
    total = LogSum()
    total.add(values)
    return total.value()


def _blocks(n: int) -> list[slice]:
    return [slice(first, first + 1024) for first in range(0, n, 1024)]


@dataclass(frozen=True, eq=False)
class Kinship:
    """How much a picture is of the kind that was learned from.

    Attributes
    ----------
    centre : ndarray of shape (n_features,)
        Mean of the seen classes' mean features.
    means : ndarray of shape (n_means, n_features)
        Those means less the centre, of length 1; at most a thousand classes are kept.
    threshold : float
        What counts as kin has at least this kinship.
    """

    centre: np.ndarray
    means: np.ndarray
    threshold: float = -1.0

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray, strange: float = 0.05) -> Kinship:
        """Means of the classes of some images.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
        strange : float
            Share of these images that would not count as kin if their own class had not been
            learned: the threshold follows from it.
        """
        classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        sums = np.zeros((len(classes), X.shape[1]))
        for part in _blocks(len(X)):
            np.add.at(sums, codes[part], np.asarray(X[part], np.float64))
        means = sums / counts[:, None]
        centre = means.mean(axis=0)
        kept = np.sort(np.argsort(-counts, kind="stable")[:_MOST])
        place = np.full(len(classes), len(kept))  # one more than there are: of no mean
        place[kept] = np.arange(len(kept))
        directions = unit_rows(means[kept] - centre).astype(np.float32)
        known = cls(centre.astype(np.float32), directions)
        without_own = np.empty(len(X))
        for part in _blocks(len(X)):
            cosines = np.pad(known.cosines(X[part]), ((0, 0), (0, 1)), constant_values=-1.0)
            cosines[np.arange(len(cosines)), place[codes[part]]] = -1.0
            without_own[part] = cosines.max(axis=1)
        return replace(known, threshold=float(np.quantile(without_own, strange)))

    def __call__(self, X: Any) -> np.ndarray:
        """Kinship of images, between -1 and 1.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
        """
        return self.cosines(X).max(axis=1)

    def cosines(self, X: Any) -> np.ndarray:
        """Cosines of images and class means, of shape (n_samples, n_means)."""
        own = unit_rows(np.asarray(X, np.float32) - self.centre)
        return (own @ self.means.T).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Outsiders:
    """Membership of outsiders, by the number of candidates.

    Attributes
    ----------
    sizes : ndarray of shape (n_sizes,)
        Numbers of candidates, rising.
    thresholds : ndarray of shape (n_sizes, n_rates)
        For each of `RATES` the membership that this share of the outsiders reaches.
    coverage : ndarray of shape (n_sizes, n_rates)
        Share of the pictures of candidates that reach it.
    """

    sizes: np.ndarray
    thresholds: np.ndarray
    coverage: np.ndarray

    @classmethod
    def measured(cls, samples: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Outsiders:
        """From memberships by number of candidates.

        Parameters
        ----------
        samples : dict of int to (outside, weights, inside)
            Memberships of outsiders with their weights, and of pictures of candidates; those
            that are no kin have -inf.
        """
        sizes = sorted(samples)
        thresholds = [_quantiles(*samples[n][:2]) for n in sizes]
        coverage = [
            [float((samples[n][2] >= t).mean()) if len(samples[n][2]) else 0.0 for t in row]
            for n, row in zip(sizes, thresholds, strict=True)
        ]
        return cls(np.array(sizes, np.float64), np.array(thresholds), np.array(coverage))

    def at(self, n_candidates: int) -> np.ndarray:
        """Thresholds for all rates among this many candidates, falling.

        Between two measured numbers they are interpolated by the logarithm of the number; beyond
        the largest they go on as between the last two.
        """
        found = self._between(self.thresholds, n_candidates)
        return np.minimum.accumulate(found)  # lines that go on may cross

    def threshold(self, n_candidates: int, rate: float) -> float:
        """Membership that this share of the outsiders reaches."""
        return float(np.interp(rate, RATES, self.at(n_candidates)))

    def covered(self, n_candidates: int, rate: float) -> float:
        """Share of the pictures of candidates that are then still named."""
        inside = self._between(self.coverage, n_candidates, go_on=False)
        return float(np.interp(rate, RATES, inside))

    def rate_for(self, n_candidates: int, coverage: float) -> float:
        """Smallest rate at which this share of the pictures of candidates is named, or 1."""
        inside = np.maximum.accumulate(self._between(self.coverage, n_candidates, go_on=False))
        return float(RATES[inside >= coverage][0]) if inside[-1] >= coverage else 1.0

    def rates(self, values: np.ndarray, n_candidates: int) -> np.ndarray:
        """Share of the outsiders that reach each of some memberships; from 0.001 to 1."""
        falling = self.at(n_candidates)
        return np.interp(-np.asarray(values), -falling, RATES, right=1.0)

    def _between(self, table: np.ndarray, n: int, *, go_on: bool = True) -> np.ndarray:
        places = np.log(self.sizes)
        x = np.log(max(n, 1))
        if len(places) == 1 or x <= places[0]:
            return table[0]
        i = min(int(np.searchsorted(places, x)), len(places) - 1)
        share = (x - places[i - 1]) / (places[i] - places[i - 1])
        share = share if go_on else min(share, 1.0)
        return table[i - 1] + share * (table[i] - table[i - 1])


def _quantiles(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """For each rate the smallest number that at most this share of the weight reaches."""
    order = np.argsort(-values, kind="stable")
    values, weights = values[order], weights[order]
    reached = np.cumsum(weights) / weights.sum()
    place = np.searchsorted(reached, RATES * (1 + 1e-12), side="right")
    lowest = np.minimum(place, len(values) - 1)
    found = np.nextafter(values[lowest], np.inf)
    finite = values[np.isfinite(values)]
    floor = (finite.min() if len(finite) else 0.0) - _FLOOR
    return np.maximum(found, floor)
