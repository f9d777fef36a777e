"""`ESZSL`: the embarrassingly simple approach (Romera-Paredes and Torr, ICML 2015), in closed form.

With images X (n × d_x), labels Y (n × C) and class vectors S (C × d_y), the single map is

    W = (XᵀX + γI)⁻¹ Xᵀ Y S (SᵀS + λI)⁻¹.

Labels are 0/1 or -1/1: the appendix of the LatEm paper shows how much that matters (its ESZSL* is
0/1). One eigendecomposition of XᵀX and one of SᵀS give W for every (γ, λ): `ESZSLCV` gets a whole
grid for little more than the price of one fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.utils._param_validation import Interval, StrOptions

from latem.embeddings.table import ClassEmbeddings
from latem.metrics import mean_class_accuracy
from latem.models.balance import METRIC, read_metric, spreads
from latem.models.folds import Fold, class_folds, image_folds
from latem.models.scaling import FeatureScaler, Scaling
from latem.models.scoring import MapScorer
from latem.models.tabled import TableClassifier
from latem.threads import single_threaded_blas

_ROWS = 1024
_GRID = tuple(10.0**power for power in range(-3, 4))


class ESZSL(TableClassifier):
    """Embarrassingly simple zero-shot learning: one map, in closed form.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
        Descriptions of the classes, seen and unseen; None means one-hot.
    gamma, lam : float
        Regularisation of the image side (γ) and of the class side (λ), above zero.
    labels : {"01", "±1"}
        How labels are written as numbers.
    feature_scaling : {"zmax", "zscore", "l2", "l2-centered"} or None
    normalize_classes : bool
        Whether class vectors are divided by their length.
    balance_classes : bool
        Whether, in answers, class vectors are scaled so that the scores of every class have the
        same mean square over the training images; else classes whose scores vary more are named
        more often. Best with centred features.
    n_threads : int or None
        Threads for scoring; results do not depend on it.
    dtype : {"float32", "float64"}
        Precision of the map and of scores; it is computed in float64.

    Attributes
    ----------
    classes_ : ndarray of shape (n_seen,)
    class_table_ : ClassEmbeddings
    map_ : ndarray of shape (n_features, n_dimensions)
    class_metric_ : ndarray of shape (n_dimensions, n_dimensions)
        M of the mean square yᵀ M y of a class's scores; only if `balance_classes`.
        The map W.
    scaler_ : FeatureScaler

    Examples
    --------
    >>> from latem import ESZSL, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> model = ESZSL(world.embeddings["att"]).fit(*world.training())
    >>> model.score(*world.testing()) > 0.9
    True
    """

    _parameter_constraints = TableClassifier._parameter_constraints | {
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "lam": [Interval(Real, 0, None, closed="neither")],
        "labels": [StrOptions({"01", "±1"})],
        "balance_classes": ["boolean"],
    }
    _learned = "map_"
    map_: np.ndarray

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        gamma: float = 1.0,
        lam: float = 1.0,
        labels: str = "01",
        feature_scaling: Scaling | None = "zmax",
        normalize_classes: bool = True,
        balance_classes: bool = False,
        n_threads: int | None = None,
        dtype: str = "float32",
    ):
        self.class_embeddings = class_embeddings
        self.gamma = gamma
        self.lam = lam
        self.labels = labels
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.balance_classes = balance_classes
        self.n_threads = n_threads
        self.dtype = dtype

    def fit(self, X: Any, y: Any) -> ESZSL:
        """Solve for the map.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        self._validate_params()
        X, y = self._begin_anew(X, y)
        with single_threaded_blas():
            problem = Problem(X, self._codes(y), self._exact_vectors(), self.scaler_, self.labels)
            self._solve(problem, self.gamma, self.lam, len(X))
        return self

    def _solve(self, problem: Problem, gamma: float, lam: float, n_images: int) -> None:
        exact = problem.solve(gamma, lam)
        self.map_ = exact.astype(self.dtype_, order="C")
        if self.balance_classes:
            self.class_metric_ = exact.T @ problem.images @ exact / n_images

    def _vectors(self, table: ClassEmbeddings) -> np.ndarray:
        vectors = super()._vectors(table)
        if hasattr(self, "class_metric_"):
            vectors /= spreads(vectors, self.class_metric_)[:, None]
        return vectors

    def _block_scorer(
        self, vectors: np.ndarray, n_samples: int
    ) -> Callable[[np.ndarray], np.ndarray]:
        return MapScorer(self.map_[None], vectors, n_samples).scores

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors = {"map": self.map_}
        if hasattr(self, "class_metric_"):
            tensors[METRIC] = self.class_metric_
        return tensors, {}

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        shape = (self.n_features_in_, self.class_table_.n_dimensions)
        self.map_ = self._check_tensor(tensors, "map", shape)
        if self.balance_classes:
            self.class_metric_ = read_metric(tensors, shape[1])


class ESZSLCV(ESZSL):
    """ESZSL with γ and λ chosen on held-out classes.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
    gammas, lams : sequence of float
        Values to try.
    cv : int or sequence of class names
        Number of class-disjoint folds, or the classes to hold out once. Each candidate is
        scored among the held-out classes only, by mean per-class accuracy. With one-hot
        classes, which cannot be held out, folds of images are used instead; if there are too
        few for that, the middle values are taken.
    labels, feature_scaling, normalize_classes, balance_classes, n_threads, dtype
        As for `ESZSL`.
    random_state : int, RandomState or None
        How classes are dealt to the folds.

    Attributes
    ----------
    gamma_, lam_ : float
        The best pair; of equally good ones the largest.
    cv_scores_ : ndarray of shape (n_gammas, n_lams)
        Mean accuracy over the folds.
    map_ : ndarray of shape (n_features, n_dimensions)
        Fitted to all images with the best pair.
    """

    _parameter_constraints = {
        name: rule
        for name, rule in ESZSL._parameter_constraints.items()
        if name not in ("gamma", "lam")
    } | {
        "gammas": ["array-like"],
        "lams": ["array-like"],
        "cv": [Interval(Integral, 2, None, closed="left"), "array-like"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        gammas: Sequence[float] = _GRID,
        lams: Sequence[float] = _GRID,
        cv: int | Sequence[Any] = 5,
        labels: str = "01",
        feature_scaling: Scaling | None = "zmax",
        normalize_classes: bool = True,
        balance_classes: bool = False,
        n_threads: int | None = None,
        dtype: str = "float32",
        random_state: int | np.random.RandomState | None = None,
    ):
        self.class_embeddings = class_embeddings
        self.gammas = gammas
        self.lams = lams
        self.cv = cv
        self.labels = labels
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.balance_classes = balance_classes
        self.n_threads = n_threads
        self.dtype = dtype
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ESZSLCV:
        """Choose γ and λ on held-out classes, then fit all images.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        self._validate_params()
        gammas, lams = (np.sort(np.asarray(v, dtype=float)) for v in (self.gammas, self.lams))
        for name, values in (("gammas", gammas), ("lams", lams)):
            if not len(values) or not np.isfinite(values).all() or values[0] <= 0:
                raise ValueError(f"{name} of ESZSLCV must be numbers above zero; got {values}.")
        X, y = self._begin_anew(X, y)
        codes, vectors = self._codes(y), self._exact_vectors()
        if self.class_embeddings is None:
            folds = image_folds(y, self.cv, self.random_state)
        else:
            folds = class_folds(y, self.cv, self.random_state, "ESZSLCV")
        with single_threaded_blas():
            scores = [self._fold_scores(X, codes, vectors, fold, gammas, lams) for fold in folds]
            if scores:
                self.cv_scores_ = np.mean(scores, axis=0)
                best = np.argwhere(self.cv_scores_ == self.cv_scores_.max())[-1]
            else:
                self.cv_scores_ = np.full((len(gammas), len(lams)), np.nan)
                best = np.array([len(gammas) // 2, len(lams) // 2])
            self.gamma_, self.lam_ = float(gammas[best[0]]), float(lams[best[1]])
            problem = Problem(X, codes, vectors, self.scaler_, self.labels)
            self._solve(problem, self.gamma_, self.lam_, len(X))
        return self

    def _fold_scores(
        self,
        X: np.ndarray,
        codes: np.ndarray,
        vectors: np.ndarray,
        fold: Fold,
        gammas: np.ndarray,
        lams: np.ndarray,
    ) -> np.ndarray:
        """Accuracy on the held-out images for the whole grid."""
        out, candidates = fold.out, np.searchsorted(self.classes_, fold.candidates)
        kept, y_seen = np.unique(codes[~out], return_inverse=True)
        scaler = FeatureScaler.fit(X[~out], self.feature_scaling)
        problem = Problem(X[~out], y_seen, vectors[kept], scaler, self.labels)
        images = scaler.transform(X[out], np.float64)
        accuracy = np.empty((len(gammas), len(lams)))
        grid = problem.grid_scores(
            images, vectors[candidates], gammas, lams, balanced=self.balance_classes
        )
        for i, j, scores in grid:
            named = candidates[scores.argmax(axis=1)]
            accuracy[i, j] = mean_class_accuracy(codes[out], named)
        return accuracy

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors = {**super()._state()[0], "cv_scores": self.cv_scores_}
        return tensors, {"gamma": self.gamma_, "lam": self.lam_}

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        super()._restore(tensors, record)
        self.cv_scores_ = tensors["cv_scores"]
        self.gamma_, self.lam_ = float(record["gamma"]), float(record["lam"])


class Problem:
    """The products that a solution for any (γ, λ) needs, in float64."""

    def __init__(
        self,
        X: np.ndarray,
        codes: np.ndarray,
        vectors: np.ndarray,
        scaler: FeatureScaler,
        labels: str,
    ):
        width = X.shape[1]
        self.images = np.zeros((width, width))  # XᵀX
        sums = np.zeros((len(vectors), width))  # images added up by class
        for first in range(0, len(X), _ROWS):
            rows = scaler.transform(X[first : first + _ROWS], np.float64)
            self.images += rows.T @ rows
            np.add.at(sums, codes[first : first + _ROWS], rows)
        if labels == "±1":
            sums = 2 * sums - sums.sum(axis=0)
        self.classes = vectors.T @ vectors  # SᵀS
        self.both = sums.T @ vectors  # XᵀYS

    def solve(self, gamma: float, lam: float) -> np.ndarray:
        """The map for one pair."""
        left = self.images + gamma * np.eye(len(self.images))
        right = self.classes + lam * np.eye(len(self.classes))
        half = linalg.solve(left, self.both, assume_a="pos")
        return linalg.solve(right, half.T, assume_a="pos").T

    def grid_scores(
        self,
        X: np.ndarray,
        vectors: np.ndarray,
        gammas: np.ndarray,
        lams: np.ndarray,
        *,
        balanced: bool = False,
    ) -> Any:
        """Yield (i, j, scores of X against `vectors`) for every pair of the grid.

        Balanced scores of a class are divided by their root mean square over the training images.
        """
        d, q = linalg.eigh(self.images)
        e, r = linalg.eigh(self.classes)
        core = q.T @ self.both @ r
        images, classes = X @ q, r.T @ vectors.T
        for i, gamma in enumerate(gammas):
            left = core / (d + gamma)[:, None]
            projected = images @ left
            squares = left.T @ (left * d[:, None]) if balanced else None
            for j, lam in enumerate(lams):
                scores = (projected / (e + lam)) @ classes
                if squares is not None:
                    scores /= spreads(classes.T, squares / np.outer(e + lam, e + lam))
                yield i, j, scores
