"""Naming the pictures of an album together, by the model and by what resembles what.

A model names every picture by itself. Pictures of one class also resemble each other, whatever the
model makes of them, and an album shows which classes occur at all. Both are used here by a mixture
of classes over directions of features z (unit vectors from the album's centre), in rounds of soft
names and class means:

    log p(c | z) = log p_model(c | z) + β (z·m_c − |m_c|²/2) + γ log(n_c + 1) + constant.

What keeps small, partial and uneven albums safe is that nothing is believed without pictures:

- *m_c is a posterior mean.* The mean of n_c pictures counts with the share n_c / (n_c + κ); the
  rest is the model's own idea of the class, whose likeness to a picture is the model's score,
  brought to the spread of likenesses. So a class with little mass moves little, and a class that
  does not occur does not settle in somebody else's pictures.
- *κ is measured.* It is the ratio of variances within and between classes, (1 − R²)/R², where R² is
  the mean likeness of two different pictures of the same name. Where pictures of a class do not
  resemble each other, κ is large, and the model's names stay.
- *No picture supports itself.* Whatever is compared with a picture is computed without it, so that
  an album of one picture has the model's own answer.
- *γ is measured.* It is one less the share of the classes that are in use (the perplexity of their
  shares by their number): 0 where shares are even, and then no class is preferred.

The constants below were chosen on seen classes dealt anew, without any test class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.special import log_softmax, softmax

from latem.core.arrays import unit_rows
from latem.core.threads import single_threaded_blas
from latem.models.scoring import row_blocks

ROUNDS = 15
AXES = 100  # principal axes of the features that are looked at
EVENED = 0.25  # share of whitening: 0 leaves the axes' variances, 1 makes them equal
LEAST_WEIGHT, MORE_WEIGHT = 10.0, 40.0  # β of features that tell nothing, and how it grows with R²
SPREAD = 1.3  # of log-probabilities: the median of thirty calibrated models
_LEAST, _MOST = 0.01, 0.9  # bounds of R²
_LEAST_VARIANCE = 1e-3  # of the largest; smaller ones are noise
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class AlbumFit:
    """What the pictures of an album say together.

    Attributes
    ----------
    probabilities : ndarray of shape (n_samples, n_classes), float32
    shares : ndarray of shape (n_classes,)
        Of the pictures that count.
    likeness : float
        R², the mean likeness of two pictures of the same name; 0 is none, 1 is the same picture.
    """

    probabilities: np.ndarray
    shares: np.ndarray
    likeness: float


def fit_album(
    features: np.ndarray,
    log_probabilities: np.ndarray,
    *,
    counted: np.ndarray | None = None,
    labels: dict[int, int] | None = None,
    shares: np.ndarray | None = None,
    occupancy: float | None = None,
    block: int | None = None,
) -> AlbumFit:
    """Probabilities of classes for all pictures of an album, which depend on each other.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    log_probabilities : ndarray of shape (n_samples, n_classes)
        What the model says of each picture by itself.
    counted : ndarray of shape (n_samples,), bool, optional
        Pictures that count for the others; by default all. The rest is answered only.
    labels : dict, optional
        Row numbers and class numbers of pictures whose class is known. One of them weighs as
        much as the model's own idea of the class.
    shares : ndarray of shape (n_classes,), optional
        Expected shares of the classes; by default they are learned.
    occupancy : float, optional
        Share of the classes that are expected to occur; by default it is learned.
    block : int, optional
        Rows that are worked on together. Results depend on it by rounding only.

    Returns
    -------
    AlbumFit
    """
    if counted is None:
        counted = np.ones(len(features), bool)
    with single_threaded_blas():
        return _Mixture(
            directions(features, counted, block),
            log_probabilities,
            counted,
            dict(labels or {}),
            shares,
            occupancy,
            block,
        ).fitted()


def model_log_probabilities(scores: np.ndarray, temperature: float | None) -> np.ndarray:
    """Logarithms of a model's probabilities, in float32.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_classes)
    temperature : float or None
        None for a model that was never calibrated. Scores are then scaled to the spread that
        calibrated models have.
    """
    if temperature is None:
        total = 0.0
        for rows in row_blocks(*scores.shape):
            block = np.asarray(scores[rows], np.float64)
            total += float(((block - block.mean(axis=1, keepdims=True)) ** 2).sum())
        temperature = max(np.sqrt(total / scores.size), _TINY) / SPREAD
    found = np.empty(scores.shape, np.float32)
    for rows in row_blocks(*scores.shape):
        found[rows] = log_softmax(np.asarray(scores[rows], np.float64) / temperature, axis=1)
    return found


def directions(
    features: np.ndarray, counted: np.ndarray, block: int | None = None, n_axes: int = AXES
) -> np.ndarray:
    """Unit vectors from the album's centre, in their principal axes, in float32.

    Directions in which all pictures differ much say less about classes: axes are divided by a power
    of their variances.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    counted : ndarray of shape (n_samples,), bool
        Pictures that decide about centre and axes.
    block : int, optional
        Rows that are worked on together.
    n_axes : int

    Returns
    -------
    ndarray of shape (n_samples, at most n_axes)
    """
    n, width = features.shape
    blocks = _blocks(n, width, block)
    total = np.zeros(width)
    for rows in blocks:
        total += unit_rows(np.asarray(features[rows], np.float64)).T @ counted[rows]
    centre = total / max(counted.sum(), 1)

    def parts() -> Iterator[tuple[slice, np.ndarray]]:
        for rows in blocks:
            found = unit_rows(np.asarray(features[rows], np.float64)) - centre
            found[np.abs(found).max(axis=1, initial=0) < _TINY] = 0  # the centre itself
            yield rows, unit_rows(found, in_place=True)

    second = np.zeros((width, width))
    for rows, part in parts():
        own = part[counted[rows]]
        second += own.T @ own
    n_axes = min(n_axes, width)
    variances, axes = eigh(second, subset_by_index=(width - n_axes, width - 1))
    largest = max(variances[-1], _TINY)
    axes *= np.maximum(variances / largest, _LEAST_VARIANCE) ** (-EVENED / 2)
    kept = np.empty((n, n_axes), np.float32)
    for rows, part in parts():
        kept[rows] = unit_rows(part @ axes, in_place=True)
    return kept


def _blocks(n: int, width: int, block: int | None) -> list[slice]:
    if block is None:
        return row_blocks(n, width)
    return [slice(first, min(first + block, n)) for first in range(0, n, block)]


class _Mixture:
    """Soft names and class sums of an album, improved in rounds.

    Key: Z directions, L the model's log-probabilities, P soft names, N pictures that count; of each
    class `mass` Σ p, `squares` Σ p², `own` Σ p²|z|², `sums` Σ p z.
    """

    def __init__(
        self,
        Z: np.ndarray,
        L: np.ndarray,
        counted: np.ndarray,
        labels: dict[int, int],
        shares: np.ndarray | None,
        occupancy: float | None,
        block: int | None,
    ):
        self.Z, self.L, self.n_classes = Z, L, L.shape[1]
        self.weights = counted.astype(np.float64)
        self.blocks = _blocks(len(L), self.n_classes, block)
        self.labelled = np.full(len(L), -1)
        self.labelled[list(labels)] = list(labels.values())
        self.weights[list(labels)] = 1.0
        self.occupancy = occupancy
        with np.errstate(divide="ignore"):
            self.prior = None if shares is None else np.log(shares * self.n_classes)
        self.P = np.empty(L.shape, np.float32)
        self.spread = self._spread_of_model()
        # of labelled pictures alone, which weigh more than others
        rows = np.flatnonzero(self.labelled >= 0)
        known = np.zeros((len(rows), self.n_classes))
        known[np.arange(len(rows)), self.labelled[rows]] = 1
        self.known_mass = known.sum(axis=0)
        self.known_sums = known.T @ Z[rows].astype(np.float64)

    def fitted(self) -> AlbumFit:
        """All rounds, from the model's own answers."""
        self._start_sums()
        for rows in self.blocks:
            own = np.asarray(self.L[rows], np.float64)
            self._keep(rows, own if self.prior is None else own + self.prior)
        for _ in range(ROUNDS):
            self._improve()
        return AlbumFit(self.P, self.mass / max(self.mass.sum(), _TINY), self._likeness())

    def _start_sums(self) -> None:
        self.mass, self.squares, self.own = (np.zeros(self.n_classes) for _ in range(3))
        self.sums = np.zeros((self.n_classes, self.Z.shape[1]))

    def _keep(self, rows: slice, logits: np.ndarray) -> None:
        """Soft names of a block, and its part of the sums."""
        P = softmax(logits, axis=1)
        known = self.labelled[rows]
        P[known >= 0] = 0
        P[known >= 0, known[known >= 0]] = 1
        self.P[rows] = P
        Z = self.Z[rows].astype(np.float64)
        P = self.P[rows] * self.weights[rows, None]
        squares = P**2
        self.mass += P.sum(axis=0)
        self.squares += squares.sum(axis=0)
        self.own += squares.T @ (Z * Z).sum(axis=1)
        self.sums += P.T @ Z

    def _likeness(self) -> float:
        """R²: the mean of z·z' over pairs of different pictures of the same name."""
        pairs = (self.mass**2 - self.squares).sum()
        alike = ((self.sums**2).sum(axis=1) - self.own).sum()
        return float(np.clip(alike / max(pairs, _TINY), _LEAST, _MOST))

    def _compared(
        self, rows: slice, mass: np.ndarray, sums: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each class without the picture itself: z·Σ, |Σ|, mass."""
        Z = self.Z[rows].astype(np.float64)
        P = np.where(self.labelled[rows, None] >= 0, 0.0, self.P[rows] * self.weights[rows, None])
        length = (Z * Z).sum(axis=1)[:, None]
        product = Z @ sums.T
        norms = (sums**2).sum(axis=1) - 2 * P * product + P**2 * length
        return product - P * length, np.sqrt(np.maximum(norms, _TINY)), mass - P

    def _improve(self) -> None:
        """One round: class means of the names so far, then names by these means."""
        R2 = self._likeness()
        kappa = max((1 - R2) / R2, 1.0)
        beta = LEAST_WEIGHT + MORE_WEIGHT * R2
        gamma = self._preference()
        more = kappa - 1  # a label weighs as much as the model's idea of its class
        mass, sums = self.mass + more * self.known_mass, self.sums + more * self.known_sums
        scale = np.sqrt(R2) * self._spread_of_likeness(mass, sums) / max(self.spread, _TINY)
        self._start_sums()
        for rows in self.blocks:
            product, length, others = self._compared(rows, mass, sums)
            L = np.asarray(self.L[rows], np.float64)
            idea = scale * (L - L.mean(axis=1, keepdims=True)) - R2 / 2
            believed = others / (others + kappa)
            seen = product / (others + kappa) - (length / (others + kappa)) ** 2 / 2
            logits = L + beta * (seen + (1 - believed) * idea)
            if self.prior is not None:
                logits += self.prior
            elif gamma:
                logits += gamma * np.log(others + 1)
            self._keep(rows, logits)

    def _preference(self) -> float:
        """γ: how much classes with many pictures are preferred."""
        if self.occupancy is not None:
            return 1 - self.occupancy
        shares = self.mass / max(self.mass.sum(), _TINY)
        used = float(np.exp(-(shares * np.log(shares + _TINY)).sum()))
        return float(np.clip(1 - used / self.n_classes, 0, 1))

    def _spread_of_model(self) -> float:
        """Standard deviation of the model's log-probabilities around their means by picture."""
        total = 0.0
        for rows in self.blocks:
            L = np.asarray(self.L[rows], np.float64)
            total += float(((L - L.mean(axis=1, keepdims=True)) ** 2).sum())
        return float(np.sqrt(total / self.L.size))

    def _spread_of_likeness(self, mass: np.ndarray, sums: np.ndarray) -> float:
        """The same of the cosines of pictures and class means."""
        total = 0.0
        for rows in self.blocks:
            product, length, _ = self._compared(rows, mass, sums)
            cosines = product / length
            total += float(((cosines - cosines.mean(axis=1, keepdims=True)) ** 2).sum())
        return float(np.sqrt(total / self.L.size))
