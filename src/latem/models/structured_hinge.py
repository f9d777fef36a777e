"""Linear classifiers by the squared hinge loss of Crammer and Singer, with a margin for every pair.

With margins Δ(c, y) between classes, minimise over the classifiers w_c of all classes together

    1/n Σ_i max(0, max_{c ≠ y_i} Δ(c, y_i) + w_c·x_i - w_{y_i}·x_i)² + λ/2 Σ_c ‖w_c‖².

The maximum has kinks, so this is solved by its dual, which is smooth: with weights B_ic ≥ 0,

    w_c = Σ_{i: y_i = c} (Σ_r B_ir) x_i - Σ_{i: y_i ≠ c} B_ic x_i,

maximise Σ_ic B_ic Δ(c, y_i) - ½ Σ_c ‖w_c‖² - λn/4 Σ_i (Σ_c B_ic)². The weights of one image have a
closed form while all others stay, so images are visited in turn, as often as it takes (Lee and Lin:
A study on L2-loss multi-class SVM, 2013). The difference of the two objectives tells how far the
minimum can be away, and decides the end.
"""

from __future__ import annotations

import logging
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from latem.core.threads import single_threaded_blas
from latem.models.sgd.kernels import axpy, dot, plain

TOLERANCE = 1e-5  # largest gap of the objectives, as a share of the one that is minimised
_ROUND = 10  # passes over the images before the gap is looked at again
_log = logging.getLogger(__name__)


def fit_structured(
    X: np.ndarray, codes: np.ndarray, margins: np.ndarray, *, lam: float, max_iter: int
) -> tuple[np.ndarray, int]:
    """Learn one linear classifier per class, without an offset.

    Parameters
    ----------
    X : ndarray of shape (n, n_features), float64
    codes : ndarray of shape (n,), int
        Number of each row's class.
    margins : ndarray of shape (n_classes, n_classes)
        Δ, above or at zero.
    lam : float
        Weight λ of the squared length of coefficients, above zero.
    max_iter : int
        Most rounds of ten passes over the images; a ConvergenceWarning tells if they are too few.

    Returns
    -------
    coefficients : ndarray of shape (n_features, n_classes)
    n_iter : int
        Rounds that were needed.

    Examples
    --------
    >>> X, margins = np.array([[1.0], [-1.0]]), 1 - np.eye(2)
    >>> coefficients, _ = fit_structured(X, np.array([0, 1]), margins, lam=1.0, max_iter=100)
    >>> coefficients.round(3)
    array([[ 0.4, -0.4]])
    """
    X, codes = np.ascontiguousarray(X), codes.astype(np.int64)
    weights = np.zeros((len(X), len(margins)))
    W = np.zeros((len(margins), X.shape[1]))
    squares = np.einsum("ij,ij->i", X, X)
    damping = lam * len(X) / 2
    order = np.random.default_rng(0)
    n_iter, gap = 0, np.inf
    while gap > TOLERANCE and n_iter < max_iter:
        for _ in range(_ROUND):
            visits = order.permutation(len(X))
            visit_images(X, codes, squares, margins, damping, visits, weights, W)
        gap = _gap(X, codes, margins, lam, weights, W)
        n_iter += 1
    if gap > TOLERANCE:
        warnings.warn(
            f"The classifiers did not converge in max_iter={max_iter} rounds: the objective may be "
            f"{gap:.1g} of itself above its minimum; raise max_iter, or raise lam.",
            ConvergenceWarning,
            stacklevel=3,
        )
    _log.debug("%d classifiers learned in %d rounds", len(W), n_iter)
    return W.T, n_iter


@plain
def visit_images(
    X: np.ndarray,
    codes: np.ndarray,
    squares: np.ndarray,
    margins: np.ndarray,
    damping: float,
    visits: np.ndarray,
    weights: np.ndarray,
    W: np.ndarray,
) -> None:
    """Find the best weights of each image in turn, and keep the classifiers W in step.

    `squares` holds x·x of each image, and `damping` is λn/2. Arrays are as in `fit_structured`;
    `weights` (n, C) and `W` (C, d) are changed.
    """
    C = len(W)
    lead = np.empty(C)  # Δ + w_c·x - w_y·x as if the image had no weights
    for i in visits:
        x, y, q, b = X[i], codes[i], squares[i], weights[i]
        if q == 0:  # its loss is its largest margin, whatever the classifiers are
            far = margins[:, y].argmax()
            b[far] = margins[far, y] / damping
            continue
        total = b.sum()
        own = dot(W[y], x) - q * total
        for c in range(C):
            lead[c] = -np.inf if c == y else margins[c, y] + dot(W[c], x) + q * b[c] - own
        stiff = q + damping
        ranked = np.sort(lead)[::-1]
        sums = best = 0.0
        for t in range(C - 1):  # classes that get a weight: the first few by lead
            if ranked[t] <= stiff * best:
                break
            sums += ranked[t]
            best = sums / (q + (t + 1) * stiff)
        for c in range(C):
            if c == y:
                continue
            new = max(0.0, (lead[c] - stiff * best) / q)
            if new != b[c]:
                axpy(b[c] - new, x, W[c])
                b[c] = new
        axpy(b.sum() - total, x, W[y])


def _gap(
    X: np.ndarray,
    codes: np.ndarray,
    margins: np.ndarray,
    lam: float,
    weights: np.ndarray,
    W: np.ndarray,
) -> float:
    """How far the minimum can be below the objective, as a share of the objective."""
    rows = np.arange(len(X))
    with single_threaded_blas():
        scores = X @ W.T
    lead = margins.T[codes] + scores - scores[rows, codes][:, None]
    lead[rows, codes] = 0  # also what a margin that is kept counts
    length = lam / 2 * np.sum(W * W)
    upper = np.mean(np.square(lead.max(axis=1))) + length
    totals = weights.sum(axis=1)
    gain = np.sum(weights * margins.T[codes]) - lam * len(X) / 4 * np.sum(totals * totals)
    lower = lam * gain - length
    return float((upper - lower) / upper) if upper > 0 else 0.0
