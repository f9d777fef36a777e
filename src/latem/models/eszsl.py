"""`ESZSL`: the embarrassingly simple approach (Romera-Paredes and Torr, ICML 2015), in closed form.

With images X (n × d_x), labels Y (n × C) and class vectors S (C × d_y), the single map is

    W = (XᵀX + γI)⁻¹ Xᵀ Y S (SᵀS + λI)⁻¹.

Labels are 0/1 or -1/1: the appendix of the LatEm paper shows how much that matters (its ESZSL* is
0/1). One eigendecomposition of XᵀX and one of SᵀS give W for every (γ, λ): `ESZSLCV` gets a whole
grid for little more than the price of one fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone

from latem.core.threads import single_threaded_blas
from latem.core.validation import Interval, StrOptions, validated
from latem.metrics import mean_class_accuracy
from latem.models.balance import BalanceMixin, score_moment
from latem.models.folds import Fold, class_folds, image_folds
from latem.models.from_sums import FromSums
from latem.models.grid_edges import as_dict, edges_in_array, warn_of_edges
from latem.models.map_model import MapModel, read_only
from latem.models.normal_equations import ImageSums, NormalEquations
from latem.models.scaling import Scaling
from latem.models.shared_images import SharedImages

if TYPE_CHECKING:
    from typing_extensions import Self

_GRID = tuple(10.0**power for power in range(-3, 4))


class ESZSL(BalanceMixin, FromSums, MapModel):
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
    center_classes : bool
        Whether the mean of the seen classes' vectors is subtracted from all class vectors.
    class_kernel : float or None
        Width of a kernel on the class side: class vectors are replaced by their similarities to
        the seen classes, see `latem.models.kernel_features`. Try 0.5 and 1 for unit vectors; None
        leaves them as they are.
    balance_classes : bool
        Whether, in answers, class vectors are scaled so that the scores of every class have the
        same mean square over the training images; otherwise classes whose scores vary more are
        named more often. Best with centred features.
    n_threads : int or None
        Threads for scoring; results do not depend on it.
    dtype : {"float32", "float64"}
        Precision of the map and of scores; it is computed in float64.

    Attributes
    ----------
    classes_ : ndarray of shape (n_seen,)
    class_table_ : ClassEmbeddings
    map_ : ndarray of shape (n_features, n_dimensions), read-only
        The map W.
    class_view_ : ClassView
        What classes look like to the model; it holds their balance.
    scaler_ : FeatureScaler

    Examples
    --------
    >>> from latem import ESZSL, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> model = ESZSL(world.embeddings["att"]).fit(*world.training())
    >>> model.score(*world.testing()) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = MapModel._parameter_constraints | {
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "lam": [Interval(Real, 0, None, closed="neither")],
        "labels": [StrOptions({"01", "±1"})],
        "center_classes": ["boolean"],
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
        center_classes: bool = False,
        class_kernel: float | None = None,
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
        self.center_classes = center_classes
        self.class_kernel = class_kernel
        self.balance_classes = balance_classes
        self.n_threads = n_threads
        self.dtype = dtype

    @validated
    def fit(self, X: Any, y: Any = None) -> Self:
        """Solve for the map.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or images that come in blocks
            A Dask array or DataFrame, a `pyarrow` dataset, or an iterator of pairs of images and
            labels: see `latem.core.blocks`.
        y : array-like of shape (n_samples,)
            Of a `pyarrow` dataset the name of its column; None beside an iterator.

        Returns
        -------
        self
        """
        images = self._begin_images(X, y)
        with single_threaded_blas():
            self.learn(images)
        return self

    def learn(self, images: SharedImages) -> None:
        """Solve for the map, from images that others may learn from, too.

        Parameters
        ----------
        images : SharedImages
            The images that the model was prepared for.
        """
        vectors = self.class_view_.training(np.float64)
        self._solve(NormalEquations(images.sums, vectors, self.labels), self.gamma, self.lam)

    def _solve(self, equations: NormalEquations, gamma: float, lam: float) -> None:
        exact = equations.solve(gamma, lam)
        if self.balance_classes:
            moment = score_moment(exact[None], equations.images)
            self.class_view_ = self.class_view_.balanced(moment)
        self.map_ = read_only(exact.astype(self.dtype_, order="C"))

    def bilinear_maps(self) -> np.ndarray:
        """The map, of shape (1, n_features, n_dimensions)."""
        return self.map_[None]

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors, record = super()._state()
        return {"map": self.map_, **tensors}, record

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        shape = (self.n_features_in_, self.class_view_.width)
        self.map_ = read_only(self._check_tensor(tensors, "map", shape))
        super()._restore(tensors, record)


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
    labels, feature_scaling, normalize_classes, center_classes, class_kernel, balance_classes,
    n_threads, dtype
        As for `ESZSL`.
    random_state : int, RandomState or None
        How classes are assigned to the folds.

    Attributes
    ----------
    gamma_, lam_ : float
        The best pair; of equally good ones the largest.
    cv_scores_ : ndarray of shape (n_gammas, n_lams)
        Mean accuracy over the folds.
    grid_edges_ : dict of "gamma", "lam" to "lowest" or "highest"
        Those of the two that are at the end of their grid and better there than anywhere else; a
        `GridEdgeWarning` says so.
    map_ : ndarray of shape (n_features, n_dimensions)
        Fitted to all images with the best pair.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        name: rule
        for name, rule in ESZSL._parameter_constraints.items()
        if name not in ("gamma", "lam")
    } | {
        "gammas": ["array-like"],
        "lams": ["array-like"],
        "cv": [Interval(Integral, 2, None, closed="left"), "array-like"],
        "random_state": ["random_state"],
    }
    takes_blocks = False

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
        center_classes: bool = False,
        class_kernel: float | None = None,
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
        self.center_classes = center_classes
        self.class_kernel = class_kernel
        self.balance_classes = balance_classes
        self.n_threads = n_threads
        self.dtype = dtype
        self.random_state = random_state

    @validated
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose γ and λ on held-out classes, then fit all images.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        gammas, lams = (np.sort(np.asarray(v, dtype=float)) for v in (self.gammas, self.lams))
        for name, values in (("gammas", gammas), ("lams", lams)):
            if not len(values) or not np.isfinite(values).all() or values[0] <= 0:
                raise ValueError(f"{name} of ESZSLCV must be numbers above zero; got {values}.")
        X, codes = self._begin_anew(X, y)
        vectors, labels = self.class_view_.training(np.float64), self.classes_[codes]
        if self.class_embeddings is None:
            folds = image_folds(labels, self.cv, self.random_state)
        else:
            folds = class_folds(labels, self.cv, self.random_state, "ESZSLCV")
        with single_threaded_blas():
            scores = [self._fold_scores(X, labels, fold, gammas, lams) for fold in folds]
            if scores:
                self.cv_scores_ = np.mean(scores, axis=0)
                best = np.argwhere(self.cv_scores_ == self.cv_scores_.max())[-1]
                axes = {"gamma": gammas.tolist(), "lam": lams.tolist()}
                edges = edges_in_array(self.cv_scores_, axes, best)
            else:
                self.cv_scores_ = np.full((len(gammas), len(lams)), np.nan)
                best, edges = np.array([len(gammas) // 2, len(lams) // 2]), []
            self.gamma_, self.lam_ = float(gammas[best[0]]), float(lams[best[1]])
            sums = ImageSums.over(X, codes, len(vectors), self.scaler_)
            equations = NormalEquations(sums, vectors, self.labels)
            self._solve(equations, self.gamma_, self.lam_)
        self.grid_edges_ = as_dict(edges)
        warn_of_edges("ESZSLCV", edges)
        return self

    def twin(self, seed: int) -> ESZSL:
        """Unfitted `ESZSL` with the penalties that were chosen."""
        fresh = super().twin(seed)
        shared = {
            name: getattr(fresh, name) for name in ESZSL().get_params() if name in vars(fresh)
        }
        twin = ESZSL(**shared, gamma=self.gamma_, lam=self.lam_)
        twin.encoder_ = self.encoder_
        return twin

    def _fold_scores(
        self,
        X: np.ndarray,
        y: np.ndarray,
        fold: Fold,
        gammas: np.ndarray,
        lams: np.ndarray,
    ) -> np.ndarray:
        """Accuracy on the held-out images for the whole grid."""
        out, fresh = fold.out, clone(self).set_params(dtype="float64")
        fresh.prepare(X[~out], y[~out])  # it must not know of the held-out classes
        view, codes = fresh.class_view_, fresh.class_codes(y[~out])
        sums = ImageSums.over(X[~out], codes, len(fresh.classes_), fresh.scaler_)
        equations = NormalEquations(sums, view.training(), self.labels)
        images = fresh.scaler_.transform(X[out], np.float64)
        candidates = view.candidates(fold.candidates)
        accuracy = np.empty((len(gammas), len(lams)))
        grid = equations.grid_scores(
            images, candidates.vectors, gammas, lams, balanced=self.balance_classes
        )
        for i, j, scores in grid:
            named = candidates.names[scores.argmax(axis=1)]
            accuracy[i, j] = mean_class_accuracy(y[out], named)
        return accuracy

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors, record = super()._state()
        tensors["cv_scores"] = self.cv_scores_
        chosen = {"gamma": self.gamma_, "lam": self.lam_, "grid_edges": self.grid_edges_}
        return tensors, {**record, **chosen}

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        super()._restore(tensors, record)
        self.cv_scores_ = tensors["cv_scores"]
        self.gamma_, self.lam_ = float(record["gamma"]), float(record["lam"])
        self.grid_edges_ = dict(record.get("grid_edges", {}))  # earlier files have none
