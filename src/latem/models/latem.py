"""`LatEm`: latent embeddings for zero-shot classification (Xian et al., CVPR 2016).

Compatibility of image x and class y is F(x, y) = max_k xᵀ W_k y (equation 4). The K maps are
learned by Algorithm 1: visit an image, draw a rival class, and if the rival comes within the
margin of the true class, push the map that scored the rival best away from it and pull the map
that scored the true class best towards it. With K = 1 this is a bilinear ranking model.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from latem.embeddings.table import ClassEmbeddings
from latem.models.balance import METRIC, read_metric, spreads
from latem.models.eszsl import Problem
from latem.models.full_pass import (
    RULES,
    FullClassSpace,
    FullEmbeddingSpace,
    FullSpace,
    full_epoch,
    full_form,
    full_length,
    iter_rows,
)
from latem.models.ranking import RankingModel
from latem.models.regression import unit_rows
from latem.models.scaling import Scaling
from latem.models.spaces import ClassSpace, EmbeddingSpace, PairSpace, choose_form
from latem.models.training import (
    RunEpoch,
    Schedule,
    block_length,
    more_rivals,
    random_visits,
    sampled_epoch,
)

_COUNTS = ("violations", "visits")


class LatEm(RankingModel):
    """Latent embedding model: names classes from their descriptions alone.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
        Descriptions of the classes, seen and unseen. None means one-hot vectors of the seen
        classes: an ordinary multiclass classifier.
    n_maps : int
        Number of maps K; with `prune_below`, the number to start from.
    learning_rate : float
        Step size η, constant. The paper's values, for "zmax" features: CUB 0.1, AWA 0.001,
        Dogs 0.01.
    n_epochs : int
        Passes over the training images.
    margin : float
        By how much the true class should beat a rival.
    feature_scaling : {"zmax", "zscore", "l2", "l2-centered"} or None
        "zmax" is what the authors' code does: z-score, then division by the largest entry of
        the training matrix. "zscore" is what the paper's text says. "l2" divides by the length;
        "l2-centered" then subtracts the mean. Statistics come from the training images and are
        kept with the model.
    normalize_classes : bool
        Whether class vectors are divided by their length, as in the paper.
    init_scale : float
        Initial maps have standard deviation ``init_scale / sqrt(n_features)``.
    start : {"random", "eszsl"}
        Maps at the start: random, as in the paper, or ESZSL's map for these images, scaled so that
        the true class leads the mean of all by 1 on average, plus the random ones.
    gamma, lam : float
        ESZSL's penalties for that start.
    n_rivals : int
        Rival classes drawn per visit, with replacement; the one that scores best is the rival.
        The paper draws 1. As many as there are other classes, or more, means all of them.
    center_classes : bool
        Whether the mean of the seen classes' vectors is subtracted from all class vectors.
    balance_classes : bool
        Whether, in answers, class vectors are scaled so that the scores of every class have the
        same mean square over the training images, in the mean over maps; else classes whose
        scores vary more are named more often. Best with centred features. Training itself uses
        the plain class vectors. `partial_fit` counts the images of all its calls, but a model
        from a file only those of later calls.
    average : bool
        Whether the model is the mean of the maps after every visit instead of the last ones. With
        `partial_fit` and `warm_start` every call begins from the model so far, and averages over
        its own visits.
    prune_below : float or None
        Drop maps that were chosen for less than this share of the counted visits so far (the
        paper: 0.05, starting from 16 maps). None keeps all maps.
    prune_every : int
        Epochs between prunings.
    prune_count : {"violations", "visits"}
        Which visits count: those that violated the margin, as in the paper, or all.
    warm_start : bool
        Whether `fit` continues from the maps of the previous `fit` for another `n_epochs`.
        What was fixed then stays: the number of maps, class table and feature scaling.
    n_threads : int or None
        Threads for matrix products; None uses all cores. Results do not depend on it.
    dtype : {"float32", "float64"}
        Precision of training and of the maps.
    verbose : bool
        Whether to show a progress bar.
    random_state : int, RandomState or None
        Seed of the initial maps, the visiting order and the rivals.

    Attributes
    ----------
    classes_ : ndarray of shape (n_seen,)
        Classes seen in training.
    class_table_ : ClassEmbeddings
        All classes that can be named.
    maps_ : ndarray of shape (n_maps, n_features, n_dimensions)
        The maps W_k.
    scaler_ : FeatureScaler
        Feature scaling and its statistics.
    class_metric_ : ndarray of shape (n_dimensions, n_dimensions)
        M of the mean square yᵀ M y of a class's scores, mean over maps; only if
        `balance_classes`.
    history_ : dict of lists
        Per epoch: "violation_rate", "mean_loss", "n_maps" and "map_usage".
    n_iter_ : int
        Epochs trained so far.
    map_visits_, map_violations_ : ndarray of shape (n_maps,)
        How often each map scored the true class best, over all visits and over those that
        violated the margin.
    seed_ : int
        Seed that all random numbers were derived from.

    Examples
    --------
    >>> from latem import LatEm, make_latent_world
    >>> world = make_latent_world(random_state=0)
    >>> X, y = world.training("standard")
    >>> model = LatEm(world.embeddings["att"], n_maps=2, random_state=0).fit(X, y)
    >>> X_new, y_new = world.testing("standard")
    >>> model.score(X_new, y_new, classes="unseen") > 0.9
    True
    """

    _parameter_constraints = RankingModel._parameter_constraints | {
        "start": [StrOptions({"random", "eszsl"})],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "lam": [Interval(Real, 0, None, closed="neither")],
        "n_rivals": [Interval(Integral, 1, None, closed="left")],
        "center_classes": ["boolean"],
        "balance_classes": ["boolean"],
        "average": ["boolean"],
        "prune_below": [Interval(Real, 0, 1, closed="neither"), None],
        "prune_every": [Interval(Integral, 1, None, closed="left")],
        "prune_count": [StrOptions(set(_COUNTS))],
    }

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        n_maps: int = 6,
        learning_rate: float = 0.1,
        n_epochs: int = 150,
        margin: float = 1.0,
        feature_scaling: Scaling | None = "zmax",
        normalize_classes: bool = True,
        init_scale: float = 1.0,
        start: str = "random",
        gamma: float = 1.0,
        lam: float = 1.0,
        n_rivals: int = 1,
        center_classes: bool = False,
        balance_classes: bool = False,
        average: bool = False,
        prune_below: float | None = None,
        prune_every: int = 5,
        prune_count: str = "violations",
        warm_start: bool = False,
        n_threads: int | None = None,
        dtype: str = "float32",
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.class_embeddings = class_embeddings
        self.n_maps = n_maps
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.margin = margin
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.init_scale = init_scale
        self.start = start
        self.gamma = gamma
        self.lam = lam
        self.n_rivals = n_rivals
        self.center_classes = center_classes
        self.balance_classes = balance_classes
        self.average = average
        self.prune_below = prune_below
        self.prune_every = prune_every
        self.prune_count = prune_count
        self.warm_start = warm_start
        self.n_threads = n_threads
        self.dtype = dtype
        self.verbose = verbose
        self.random_state = random_state

    def _schedule(self, n_epochs: int) -> Schedule:
        return Schedule(
            step=self.learning_rate,
            margin=self.margin,
            n_epochs=n_epochs,
            prune_below=self.prune_below,
            prune_every=self.prune_every,
            prune_count=self.prune_count,
        )

    def _epoch_runner(
        self,
        space: PairSpace | FullSpace,
        load: Callable[[np.ndarray], np.ndarray],
        labels: np.ndarray,
        schedule: Schedule,
    ) -> RunEpoch:
        if not isinstance(space, FullClassSpace | FullEmbeddingSpace):
            pairs = space

            def run_pairs(
                epoch: int, rate: float, visits: np.ndarray, violations: np.ndarray
            ) -> float:
                order, rivals = self._visits(epoch, labels)
                length = block_length(len(pairs.vectors), len(pairs), rate)
                return sampled_epoch(
                    pairs, load, labels, order, rivals, schedule, length, visits, violations
                )

            return run_pairs
        whole = space
        n_classes = len(whole.vectors)
        everything = self.n_rivals >= n_classes - 1
        rule = RULES["worst" if everything else "drawn"]
        weights = np.ones(n_classes, whole.vectors.dtype)

        def run(epoch: int, rate: float, visits: np.ndarray, violations: np.ndarray) -> float:
            order, first = self._visits(epoch, labels)
            n_more = 0 if everything else self.n_rivals - 1
            more = more_rivals(self.seed_, epoch, labels[order], n_classes, n_more)
            drawn = np.column_stack([first, more]).astype(np.float32)
            parts = iter_rows(drawn[:, :0] if everything else drawn)
            length = full_length(n_classes, len(whole), rate)
            return full_epoch(
                whole, load, labels, order, parts, rule, weights, schedule, length, visits,
                violations,
            )  # fmt: skip

        return run

    def _visits(self, epoch: int, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return random_visits(self.seed_, epoch, labels, len(self.classes_))

    def _space(self, maps: np.ndarray, vectors: np.ndarray) -> PairSpace | FullSpace:
        n_maps, n_features, n_dimensions = maps.shape
        sizes = len(vectors), n_features, n_dimensions, n_maps
        if self.n_rivals > 1 or self.average:
            if full_form(*sizes) == "class":
                return FullClassSpace(maps, vectors, average=self.average)
            return FullEmbeddingSpace(maps, vectors, average=self.average)
        if choose_form(*sizes) == "class":
            return ClassSpace(maps, vectors)
        return EmbeddingSpace(maps, vectors, self.n_threads)

    def _train(self, X: np.ndarray, y: np.ndarray, *how: Any) -> None:
        before = vars(self).get("_moment_")
        try:
            if self.balance_classes or not hasattr(self, "maps_"):
                self._look_at(X, y)
            super()._train(X, y, *how)
            metric = self._metric(self.maps_) if self.balance_classes else None
            _set_or_drop(self, "class_metric_", metric)
        except BaseException:
            _set_or_drop(self, "_moment_", before)  # what was learned before stays as it was
            raise
        finally:
            _set_or_drop(self, "_problem_", None)

    def _look_at(self, X: np.ndarray, y: np.ndarray) -> None:
        """Take from the images what the closed form and the balance need."""
        if not (self.balance_classes or self.start == "eszsl"):
            return
        vectors = self._training_vectors().astype(np.float64)
        self._problem_ = Problem(X, self._codes(y), vectors, self.scaler_, "01")
        if self.balance_classes:
            images, n = vars(self).get("_moment_", (0.0, 0))
            self._moment_ = (images + self._problem_.images, n + len(X))

    def _first_maps(self, X: np.ndarray, labels: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        maps = super()._first_maps(X, labels, vectors)
        if self.start == "eszsl":
            closed = self._problem_.solve(self.gamma, self.lam)
            lead = self._mean_lead(X, labels, vectors.astype(np.float64), closed)
            maps += (closed / lead).astype(maps.dtype)
        return maps

    def _metric(self, maps: np.ndarray) -> np.ndarray:
        """Mean over maps of W_kᵀ E[x xᵀ] W_k: yᵀ M y is the mean square of a class's scores."""
        images, n = self._moment_
        exact = maps.astype(np.float64)
        return sum(own.T @ images @ own for own in exact) / (n * len(exact))

    def _predict_by(self, maps: np.ndarray, X: np.ndarray, classes: Any) -> np.ndarray:
        if not self.balance_classes:
            return super()._predict_by(maps, X, classes)
        before = vars(self).get("class_metric_")
        self.class_metric_ = self._metric(maps)
        try:
            return super()._predict_by(maps, X, classes)
        finally:
            _set_or_drop(self, "class_metric_", before)

    def _mean_lead(
        self, X: np.ndarray, labels: np.ndarray, vectors: np.ndarray, closed: np.ndarray
    ) -> float:
        """By how much a map scores the true class above the mean of all seen ones, on average."""
        targets = closed @ (vectors - vectors.mean(axis=0)).T  # (n_features, n_classes)
        total = 0.0
        for first in range(0, len(X), 1024):
            rows = self.scaler_.transform(X[first : first + 1024], np.float64)
            total += float(np.einsum("ij,ji->", rows, targets[:, labels[first : first + 1024]]))
        lead = total / len(X)
        return lead if lead > 0 else 1.0

    def _training_vectors(self) -> np.ndarray:
        return self._plain_vectors(self.class_table_.select(self.classes_))

    def _plain_vectors(self, table: ClassEmbeddings) -> np.ndarray:
        """Class vectors as training uses them, without balance."""
        if not self.center_classes:
            return super()._vectors(table)
        mean = self.class_table_.select(self.classes_).vectors.mean(axis=0)
        vectors = table.vectors - mean
        rounding = 10 * np.finfo(np.float64).eps * np.abs(table.vectors).max(axis=1)
        vectors[np.abs(vectors).max(axis=1) <= rounding] = 0  # the mean itself, but for rounding
        if self.normalize_classes:
            vectors = unit_rows(vectors)
        return np.ascontiguousarray(vectors, dtype=self.dtype_)

    def _vectors(self, table: ClassEmbeddings) -> np.ndarray:
        vectors = self._plain_vectors(table)
        if hasattr(self, "class_metric_"):
            exact = vectors.astype(np.float64)
            vectors = (exact / spreads(exact, self.class_metric_)[:, None]).astype(self.dtype_)
        return vectors

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors, record = super()._state()
        if hasattr(self, "class_metric_"):
            tensors[METRIC] = self.class_metric_
        return tensors, record

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        super()._restore(tensors, record)
        if self.balance_classes:
            self.class_metric_ = read_metric(tensors, self.class_table_.n_dimensions)


def _set_or_drop(model: Any, name: str, value: Any) -> None:
    if value is None:
        vars(model).pop(name, None)
    else:
        setattr(model, name, value)
