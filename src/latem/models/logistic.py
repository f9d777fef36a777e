"""Logistic regressions on the same features: many binary ones at a time, or one over many classes.

The objective is scikit-learn's, C times the sum of the log-losses plus half the squared length of
the coefficients; the intercept is free. What many regressions share is computed once:

- Centred features X are turned into their principal axes, Z = X Q. Coefficients turn along and
  keep their length, so the objective is the same one, and the matrix of second derivatives at the
  start is diagonal: C v Λ + 1, where Λ holds the eigenvalues of XᵀX and v = p (1 - p) is the
  variance of a target. Its inverse is where L-BFGS begins.
- An iteration is two matrix products for a whole block of regressions, each of which has its own
  memory, its own line search and its own end. A line search needs no further product: scores along
  a direction are sums of two arrays.
- L-BFGS in single precision comes near the optimum at half the cost. Newton's method goes on from
  there: its gradients are in double precision and decide where the optimum is, and its directions
  are found by conjugate gradients in single precision, as they only decide how soon it is reached.

A regression ends when its gradient is shorter than `TOLERANCE` times what it was at the start (plus
C n v, so that a start at the optimum counts as one), or when rounding lets it get no shorter. The
objective is strongly convex in the coefficients: with the best intercept for them, they are no
farther from the optimum than the gradient is long.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax
from sklearn.exceptions import ConvergenceWarning

from latem.core.threads import run_all, single_threaded_blas
from latem.models.axes import PrincipalAxes

TOLERANCE = 1e-10
_log = logging.getLogger(__name__)
_BLOCK = 64  # regressions side by side
_MEMORY = 20  # earlier steps that L-BFGS remembers
_FLATTER = 0.1  # a line search ends where the slope is this share of what it was
_SEARCHES = 30  # most steps of a line search
_ROUGH = 1e-5  # what `TOLERANCE` is in single precision
_PATIENCE = 20  # iterations in single precision in which a gradient must have become half as long
_STALLED = 3  # the same in double precision
_CLOSER = 1e-2  # a direction is found once this share of the gradient is left
_INNER = 100  # most conjugate gradients in an iteration

Learned = tuple[np.ndarray, np.ndarray, int]


def fit_binary(
    X: np.ndarray,
    targets: np.ndarray,
    *,
    C: float,
    max_iter: int,
    n_threads: int | None = None,
    done: Callable[[], None] = lambda: None,
) -> Learned:
    """Learn one binary logistic regression per column of `targets`.

    Parameters
    ----------
    X : ndarray of shape (n, n_features), float64
    targets : ndarray of shape (n, n_targets), bool
        Every column has both values.
    C : float
        Inverse regularisation.
    max_iter : int
        Most iterations; a ConvergenceWarning tells if they do not suffice.
    n_threads : int, optional
        Blocks of columns go side by side; results do not depend on it.
    done : callable
        Called once for every column that has been learned.

    Returns
    -------
    coefficients : ndarray of shape (n_features, n_targets)
    intercepts : ndarray of shape (n_targets,)
    n_iter : int
        Most iterations that a column took.
    """
    n_targets = targets.shape[1]
    share = targets.mean(axis=0)
    # alike ones together: they take about as many iterations
    order = np.argsort(share * (1 - share), kind="stable")
    with single_threaded_blas():
        axes = PrincipalAxes(X)
    parameters = np.zeros((len(axes.eigenvalues) + 1, n_targets))
    counts = np.zeros(n_targets, int)

    def learn(start: int) -> None:
        columns = order[start : start + _BLOCK]
        wanted = targets[:, columns].astype(np.float64)
        problem = _Problem(axes, wanted, C, separate=True)
        parameters[:, columns], counts[columns] = _solve(problem, max_iter, done)

    run_all(learn, range(0, n_targets, _BLOCK), n_threads)
    _warn(counts, max_iter)
    _log.debug("%d regressions learned in up to %d iterations", n_targets, counts.max(initial=0))
    with single_threaded_blas():
        return *axes.back(parameters), int(counts.max(initial=0))


def fit_softmax(
    X: np.ndarray,
    codes: np.ndarray,
    *,
    C: float,
    max_iter: int,
    done: Callable[[], None] = lambda: None,
) -> Learned:
    """Learn one logistic regression over several classes.

    Parameters
    ----------
    X : ndarray of shape (n, n_features), float64
    codes : ndarray of shape (n,), int
        Number of each row's class; every class occurs. With two classes the regression is the
        binary one, as in scikit-learn, and the first class has the logit 0.
    C, max_iter
        As for `fit_binary`.
    done : callable
        Called once after every iteration.

    Returns
    -------
    coefficients : ndarray of shape (n_features, n_classes)
    intercepts : ndarray of shape (n_classes,)
    n_iter : int
    """
    n_classes = int(codes.max()) + 1
    if n_classes == 2:
        found, free, n_iter = fit_binary(X, codes[:, None] == 1, C=C, max_iter=max_iter, done=done)
        return np.column_stack([0 * found, found]), np.concatenate([0 * free, free]), n_iter
    wanted = (codes[:, None] == np.arange(n_classes)).astype(np.float64)
    with single_threaded_blas():
        axes = PrincipalAxes(X)
        problem = _Problem(axes, wanted, C, separate=False)
        parameters, counts = _solve(problem, max_iter, done)
        _warn(counts, max_iter)
        _log.debug("%d classes learned in %d iterations", n_classes, counts[0])
        coefficients, intercepts = axes.back(parameters)
        # a number added to all of them changes nothing; theirs is the mean 0
        return coefficients, intercepts - intercepts.mean(), int(counts[0])


def _warn(counts: np.ndarray, max_iter: int) -> None:
    late = int((counts > max_iter).sum())
    np.minimum(counts, max_iter, out=counts)
    if late:
        warnings.warn(
            f"{late} of {len(counts)} logistic regressions did not converge in "
            f"max_iter={max_iter} iterations; raise max_iter, or lower C.",
            ConvergenceWarning,
            stacklevel=4,
        )


class _Problem:
    """What a block of regressions minimises.

    Arrays of parameters have shape (r + 1, k): a column per target, the intercept last. With
    `separate`, columns are problems of their own; otherwise they are the classes of one problem,
    and what there is one of per problem has length 1.
    """

    def __init__(self, axes: PrincipalAxes, wanted: np.ndarray, C: float, *, separate: bool):
        self.axes, self.wanted, self.C, self.separate = axes, wanted, C, separate
        share = wanted.mean(axis=0)
        self.start = np.zeros((len(axes.eigenvalues) + 1, len(share)))
        self.start[-1] = logit(share) if separate else np.log(share) - np.log(share).mean()
        self.curvature = np.append(axes.eigenvalues, len(wanted))[:, None] * C * share * (1 - share)
        self.curvature[:-1] += 1


def _solve(
    problem: _Problem, max_iter: int, done: Callable[[], None]
) -> tuple[np.ndarray, np.ndarray]:
    """Parameters, and iterations of each problem: more than `max_iter` if they do not suffice."""
    first = _Search(problem, problem.axes.Z.astype(np.float32), problem.start)
    reference = first.reference()
    nearer = (lambda: None) if problem.separate else done  # columns are not learned yet
    found, counts, _ = first.run(max_iter, _ROUGH * reference, patience=_PATIENCE, done=nearer)
    second = _Newton(problem, problem.axes.Z, found, rough=first.Z)
    left = max_iter - int(counts.max(initial=0))
    limit = TOLERANCE * reference
    found, more, lengths = second.run(left, limit, patience=_STALLED, done=done)
    # rounding may be all that is left before the limit is reached
    ended = (lengths <= limit) | ((lengths <= _ROUGH * reference) & (more < left))
    return found, np.where(ended, np.maximum(counts + more, 1), max_iter + 1)


class _Search:
    """L-BFGS for a block of regressions, with features in one precision."""

    def __init__(self, problem: _Problem, Z: np.ndarray, start: np.ndarray):
        self.Z, self.C, self.separate = Z, problem.C, problem.separate
        self.wanted, self.curvature = problem.wanted, problem.curvature
        self.parameters = start.copy()
        self.penalty = np.ones((len(start), 1))  # which entries are regularised
        self.penalty[-1] = 0
        self.scores = self._project(start)
        self.memory: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.gradient = self._gradient(self._chances(self.scores))

    def reference(self) -> np.ndarray:
        """What the gradients of the problems are compared with."""
        return self._lengths() + self._sums(self.curvature[-1:])

    def run(
        self, max_iter: int, limit: np.ndarray, *, patience: int, done: Callable[[], None]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Go on until gradients are as short as `limit`, or get no shorter any more.

        Returns
        -------
        parameters
            Of all columns.
        counts, lengths
            Iterations of each problem, and the length of its gradient after them.
        """
        found = self.parameters.copy()
        columns = np.arange(found.shape[1])  # those that are still being learned
        counts = np.zeros(len(limit), int)
        final = np.zeros(len(limit))
        best, best_at = np.full(len(limit), np.inf), 0
        for iteration in range(max_iter + 1):
            lengths = self._lengths()
            ended = lengths <= limit
            if ended.any():
                keep = ~ended if self.separate else np.zeros(len(columns), bool)
                final[columns[ended] if self.separate else ended] = lengths[ended]
                found[:, columns[~keep]] = self.parameters[:, ~keep]
                columns, limit = columns[keep], limit[~ended]
                best, lengths = best[~ended], lengths[~ended]
                self._narrow(keep)
                for _ in range(int(ended.sum()) if self.separate else 0):
                    done()
            if (lengths < best / 2).any():
                best, best_at = np.where(lengths < best / 2, lengths, best), iteration
            if len(columns) == 0 or iteration == max_iter or iteration - best_at > patience:
                break
            self._step()
            counts[columns if self.separate else 0] += 1
            if not self.separate:
                done()
        found[:, columns] = self.parameters
        final[columns if self.separate else slice(len(lengths))] = lengths
        for _ in range(len(columns) if self.separate else 0):
            done()
        return found, counts, final

    # -- one iteration ------------------------------------------------------------------------

    def _step(self) -> None:
        """Move along a direction of descent."""
        direction = self._direction(self.gradient)
        slope = self._sums(self.gradient * direction)
        length, chances = self._search_line(direction, slope)
        step = length * direction
        self.parameters += step
        before, self.gradient = self.gradient, self._gradient(chances)
        self._remember(step, self.gradient - before)

    def _remember(self, step: np.ndarray, change: np.ndarray) -> None:
        """Note how the gradient changed along a step."""
        product = self._sums(step * change)
        sound = product > 0  # not so where rounding is all there is; nothing is remembered then
        kept = (np.where(sound, step, 0), change, np.where(sound, product, 1))
        self.memory = [*self.memory[1 - _MEMORY :], kept]

    def _direction(self, gradient: np.ndarray) -> np.ndarray:
        """Minus the gradient times what the memory says of the inverse second derivatives."""
        direction, shares = -gradient, []
        for step, change, product in reversed(self.memory):
            share = self._sums(step * direction) / product
            direction = direction - share * change
            shares.append(share)
        direction = direction / self.curvature
        for (step, change, product), share in zip(self.memory, reversed(shares), strict=True):
            back = self._sums(change * direction) / product
            direction = direction + (share - back) * step
        return direction

    def _search_line(
        self, direction: np.ndarray, slope: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """How far to go, by Newton's method between bounds, and the probabilities there.

        Moves the scores along. The slope grows along the line: the objective is convex.
        """
        change = self._project(direction)
        here = self._sums(self.penalty * self.parameters * direction)
        more = self._sums(self.penalty * direction * direction)
        low, high, length = np.zeros_like(slope), np.full_like(slope, np.inf), np.ones_like(slope)
        for _ in range(_SEARCHES):
            chances = self._chances(self.scores + length * change)
            new = self.C * self._sums((chances - self.wanted) * change) + here + length * more
            settled = np.abs(new) <= _FLATTER * np.abs(slope)
            if settled.all():
                break
            low, high = np.where(new < 0, length, low), np.where(new < 0, high, length)
            target = length - new / (self.C * self._bends(chances, change) + more)
            middle = np.where(np.isinf(high), 4 * length, (low + high) / 2)
            outside = (target <= low) | (target >= np.minimum(high, 10 * length))
            length = np.where(settled, length, np.where(outside, middle, target))
        else:
            chances = self._chances(self.scores + length * change)
        self.scores += length * change
        return length, chances

    # -- the loss -----------------------------------------------------------------------------

    def _project(self, parameters: np.ndarray) -> np.ndarray:
        """Scores by some parameters, of shape (n, k)."""
        return self.Z @ parameters[:-1].astype(self.Z.dtype) + parameters[-1]

    def _gradient(self, chances: np.ndarray) -> np.ndarray:
        surplus = self.C * (chances - self.wanted)
        loss = self.Z.T @ surplus.astype(self.Z.dtype)
        everywhere = surplus.sum(axis=0, keepdims=True)
        return np.concatenate([loss, everywhere]) + self.penalty * self.parameters

    def _lengths(self) -> np.ndarray:
        """Length of each problem's gradient."""
        return np.sqrt(self._sums(self.gradient * self.gradient))

    def _chances(self, scores: np.ndarray) -> Any:
        return expit(scores) if self.separate else softmax(scores, axis=1)

    def _bends(self, chances: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Second derivative of the loss along a change of the scores."""
        if self.separate:
            return self._sums(chances * (1 - chances) * change * change)
        mean = (chances * change).sum(axis=1)
        return self._sums(chances * change * change) - mean @ mean

    def _sums(self, values: np.ndarray) -> np.ndarray:
        """Sum of each problem's entries."""
        return values.sum(axis=0) if self.separate else values.sum(keepdims=True).reshape(1)

    def _narrow(self, keep: np.ndarray) -> None:
        """Go on with some of the columns."""
        self.parameters, self.scores = self.parameters[:, keep], self.scores[:, keep]
        self.wanted, self.curvature = self.wanted[:, keep], self.curvature[:, keep]
        self.gradient = self.gradient[:, keep]
        if self.separate:  # otherwise there is one problem, and it has come to its end
            self.memory = [(a[:, keep], b[:, keep], product[keep]) for a, b, product in self.memory]


class _Newton(_Search):
    """Newton's method: gradients in double precision, directions by rough features."""

    def __init__(self, problem: _Problem, Z: np.ndarray, start: np.ndarray, *, rough: np.ndarray):
        super().__init__(problem, Z, start)
        self.rough = rough

    def _remember(self, step: np.ndarray, change: np.ndarray) -> None:
        """Nothing: every direction is found anew."""

    def _direction(self, gradient: np.ndarray) -> np.ndarray:
        """Minus the inverse second derivatives times the gradient, by conjugate gradients."""
        chances = self._chances(self.scores).astype(self.rough.dtype)
        spread = self.C * chances * (1 - chances)
        weights = spread if self.separate else self.C * chances
        squares = np.square(self.rough).T @ spread
        diagonal = np.concatenate([squares, spread.sum(axis=0, keepdims=True)]) + self.penalty
        goal = _CLOSER**2 * self._sums(gradient * gradient)
        direction, rest = np.zeros_like(gradient), -gradient
        ahead = rest / diagonal
        slope = self._sums(rest * ahead)
        for _ in range(_INNER):
            bent = self._bend(chances, weights, ahead)
            length = _share(slope, self._sums(ahead * bent))
            direction = direction + length * ahead
            rest = rest - length * bent
            if (self._sums(rest * rest) <= goal).all():
                break
            turned = rest / diagonal
            before, slope = slope, self._sums(rest * turned)
            ahead = turned + _share(slope, before) * ahead
        return direction

    def _bend(self, chances: np.ndarray, weights: np.ndarray, ahead: np.ndarray) -> np.ndarray:
        """Second derivatives times a change of the parameters."""
        kind = self.rough.dtype
        change = self.rough @ ahead[:-1].astype(kind)
        change += ahead[-1].astype(kind)
        if not self.separate:
            change -= (chances * change).sum(axis=1, keepdims=True)
        change *= weights
        everywhere = change.sum(axis=0, keepdims=True, dtype=np.float64)
        return np.concatenate([self.rough.T @ change, everywhere]) + self.penalty * ahead


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """``part / whole``, or 0 where rounding leaves nothing to divide by."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1), 0)
