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

from latem.models.ranking import RankingModel
from latem.models.scaling import Scaling
from latem.models.spaces import ClassSpace, EmbeddingSpace, PairSpace, choose_form
from latem.models.training import (
    RunEpoch,
    Schedule,
    block_length,
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
    feature_scaling : {"zmax", "zscore", "l2"} or None
        "zmax" is what the authors' code does: z-score, then division by the largest entry of
        the training matrix. "zscore" is what the paper's text says. Statistics come from the
        training images and are kept with the model.
    normalize_classes : bool
        Whether class vectors are divided by their length, as in the paper.
    init_scale : float
        Initial maps have standard deviation ``init_scale / sqrt(n_features)``.
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
        space: PairSpace,
        load: Callable[[np.ndarray], np.ndarray],
        labels: np.ndarray,
        schedule: Schedule,
    ) -> RunEpoch:
        def run(epoch: int, rate: float, visits: np.ndarray, violations: np.ndarray) -> float:
            order, rivals = self._visits(epoch, labels)
            length = block_length(len(space.vectors), len(space), rate)
            return sampled_epoch(
                space, load, labels, order, rivals, schedule, length, visits, violations
            )

        return run

    def _visits(self, epoch: int, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return random_visits(self.seed_, epoch, labels, len(self.classes_))

    def _space(self, maps: np.ndarray, vectors: np.ndarray) -> PairSpace:
        n_maps, n_features, n_dimensions = maps.shape
        if choose_form(len(vectors), n_features, n_dimensions, n_maps) == "class":
            return ClassSpace(maps, vectors)
        return EmbeddingSpace(maps, vectors, self.n_threads)
