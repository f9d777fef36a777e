"""Linear classifiers by squared hinge loss, one class against the others, all classes together.

For every class, with targets t_i = 1 for its images and -1 for all others, minimise

    1/n Σ_i max(0, 1 - t_i (w·x_i + b))² + λ/2 ‖w‖²;

the offset b is free. The loss is quadratic as long as the same images are within their margin, so
Newton's method comes to the minimum in a few steps. A step is found by conjugate gradients, in
which a block of classes shares two matrix products with the images, and in the images' principal
axes (`latem.models.axes`), where a diagonal is a good first guess of the second derivatives. Single
precision does the first steps at half the cost; double precision goes on from there.
"""

from __future__ import annotations

import logging
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from latem.core.threads import run_all, single_threaded_blas
from latem.models.axes import PrincipalAxes

TOLERANCE = 1e-8  # of gradients, compared with those at the start
_ROUGH = 1e-3  # the same in single precision
_BLOCK = 64  # classes side by side
_INNER = 100  # most conjugate gradients in a step
_CLOSER = 0.1  # a step is found once the gradient that is left is at most this share of what it was
_SEARCHES = 30  # most steps of a line search
_log = logging.getLogger(__name__)


def fit_one_versus_rest(
    X: np.ndarray,
    codes: np.ndarray,
    *,
    lam: float,
    max_iter: int,
    n_threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Learn one linear classifier per class.

    Parameters
    ----------
    X : ndarray of shape (n, n_features), float64
    codes : ndarray of shape (n,), int
        Number of each row's class; every class occurs.
    lam : float
        Weight λ of the squared length of coefficients, above zero.
    max_iter : int
        Most Newton steps; a ConvergenceWarning tells if they do not suffice.
    n_threads : int, optional
        Blocks of classes go side by side; results do not depend on it.

    Returns
    -------
    coefficients : ndarray of shape (n_features, n_classes)
    intercepts : ndarray of shape (n_classes,)
    n_iter : int
        Most Newton steps that a class took.
    """
    n_classes = int(codes.max()) + 1
    with single_threaded_blas():
        axes = PrincipalAxes(X)
    rough = axes.Z.astype(np.float32)
    parameters = np.zeros((len(axes.eigenvalues) + 1, n_classes))
    counts, ended = np.zeros(n_classes, int), np.zeros(n_classes, bool)

    def learn(start: int) -> None:
        columns = np.arange(start, min(start + _BLOCK, n_classes))
        wanted = codes[:, None] == columns
        found = parameters[:, columns]
        lengths = _Margins(rough, axes.eigenvalues, wanted, lam, found).lengths()
        for Z, share in ((rough, _ROUGH), (axes.Z, TOLERANCE)):
            problem = _Margins(Z, axes.eigenvalues, wanted, lam, found)
            left = max_iter - counts[columns].max()
            more, ended[columns] = problem.descend(share * lengths, left)
            counts[columns] += more
            found = problem.parameters
        parameters[:, columns] = found

    with single_threaded_blas():
        run_all(learn, range(0, n_classes, _BLOCK), n_threads)
        coefficients, intercepts = axes.back(parameters)
    if not ended.all():
        warnings.warn(
            f"{int((~ended).sum())} of {n_classes} classifiers did not converge in "
            f"max_iter={max_iter} steps; raise max_iter, or raise lam.",
            ConvergenceWarning,
            stacklevel=3,
        )
    _log.debug("%d classifiers learned in up to %d steps", n_classes, counts.max())
    return coefficients, intercepts, max(int(counts.max()), 1)


class _Margins:
    """What a block of k classes minimises, and where it stands.

    Arrays of parameters have shape (r + 1, k): a column per class, the intercept last. Z has one
    column per principal axis, and `eigenvalues` are the squared lengths of these.
    """

    def __init__(
        self,
        Z: np.ndarray,
        eigenvalues: np.ndarray,
        wanted: np.ndarray,
        lam: float,
        start: np.ndarray,
    ):
        self.Z, self.eigenvalues = Z, eigenvalues
        self.targets = np.where(wanted, 1, -1).astype(Z.dtype)
        self.penalty = np.full((len(start), 1), lam)
        self.penalty[-1] = 0
        self.parameters = start.copy()
        self.scores = self._project(start)

    def lengths(self) -> np.ndarray:
        """Length of each class's gradient."""
        return np.linalg.norm(self._gradient(), axis=0)

    def descend(self, limit: np.ndarray, max_iter: int) -> tuple[int, np.ndarray]:
        """Take Newton steps until gradients are as short as `limit`.

        Returns
        -------
        n_steps : int
        ended : ndarray of shape (k,), bool
            Whether each class's gradient is that short.
        """
        for n_steps in range(max_iter + 1):
            gradient = self._gradient()
            ended = np.linalg.norm(gradient, axis=0) <= limit
            if ended.all() or n_steps == max_iter:
                break
            going = np.flatnonzero(~ended)
            direction = self._newton(gradient[:, going], going, limit[going])
            self._move(direction, gradient[:, going], going)
        return n_steps, ended

    def _project(self, parameters: np.ndarray) -> np.ndarray:
        """Scores by some parameters, of shape (n, k)."""
        kind = self.Z.dtype
        return self.Z @ parameters[:-1].astype(kind) + parameters[-1].astype(kind)

    def _collect(self, weights: np.ndarray) -> np.ndarray:
        """Sums of images with these weights, of shape (n, k): the transpose of `_project`."""
        sums = (self.Z.T @ weights).astype(np.float64)
        return np.concatenate([sums, weights.sum(axis=0, keepdims=True, dtype=np.float64)])

    def _gradient(self) -> np.ndarray:
        slack = np.maximum(1 - self.targets * self.scores, 0)
        return -2 / len(self.Z) * self._collect(self.targets * slack) + (
            self.penalty * self.parameters
        )

    def _newton(self, gradient: np.ndarray, going: np.ndarray, limit: np.ndarray) -> np.ndarray:
        """Where second derivatives point, by conjugate gradients; the closer the later."""
        within = (self.targets[:, going] * self.scores[:, going] < 1).astype(self.Z.dtype)
        share = within.mean(axis=0, dtype=np.float64)
        squares = np.append(self.eigenvalues / len(self.Z), 1)[:, None]
        diagonal = 2 * squares * np.maximum(share, 1 / len(self.Z)) + self.penalty
        direction, rest = np.zeros_like(gradient), -gradient
        now = np.linalg.norm(gradient, axis=0)
        goal = np.clip(now * np.sqrt(now), limit / 2, _CLOSER * now)
        ahead = rest / diagonal
        slope = (rest * ahead).sum(axis=0)
        for _ in range(_INNER):
            bent = 2 / len(self.Z) * self._collect(within * self._project(ahead))
            bent += self.penalty * ahead
            curvature = (ahead * bent).sum(axis=0)
            length = np.where(curvature > 0, slope / np.where(curvature > 0, curvature, 1), 0)
            direction += length * ahead
            rest -= length * bent
            if (np.linalg.norm(rest, axis=0) <= goal).all():
                break
            turned = rest / diagonal
            before, slope = slope, (rest * turned).sum(axis=0)
            ahead = (
                turned + np.where(before > 0, slope / np.where(before > 0, before, 1), 0) * ahead
            )
        return direction

    def _move(self, direction: np.ndarray, gradient: np.ndarray, going: np.ndarray) -> None:
        """Go along the direction as far as it goes down, by Newton's method between bounds."""
        n, targets, scores = len(self.Z), self.targets[:, going], self.scores[:, going]
        change = self._project(direction)
        here = (self.penalty * self.parameters[:, going] * direction).sum(axis=0)
        more = (self.penalty * direction * direction).sum(axis=0)
        steep = np.abs((gradient * direction).sum(axis=0))
        low, high, length = np.zeros(len(going)), np.full(len(going), np.inf), np.ones(len(going))
        for _ in range(_SEARCHES):
            slack = np.maximum(1 - targets * (scores + length.astype(change.dtype) * change), 0)
            slope = here + length * more - 2 / n * (targets * slack * change).sum(axis=0)
            settled = np.abs(slope) <= _CLOSER * steep
            if settled.all():
                break
            low, high = np.where(slope < 0, length, low), np.where(slope < 0, high, length)
            bend = 2 / n * ((slack > 0) * np.square(change)).sum(axis=0) + more
            target = length - slope / np.where(bend > 0, bend, 1)
            middle = np.where(np.isinf(high), 2 * length, (low + high) / 2)
            inside = (target > low) & (target < high)
            length = np.where(settled, length, np.where(inside, target, middle))
        self.parameters[:, going] += length * direction
        self.scores[:, going] += length.astype(change.dtype) * change
