"""`LatEm`: latent embeddings for zero-shot classification (Xian et al., CVPR 2016).

Compatibility of image x and class y is F(x, y) = max_k xᵀ W_k y (equation 4). The K maps are
learned by Algorithm 1: visit an image, draw a rival class, and if the rival comes within the
margin of the true class, push the map that scored the rival best away from it and pull the map
that scored the true class best towards it. With K = 1 this is a bilinear ranking model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from latem import storage
from latem.models.checkpoint import Checkpoint
from latem.models.progress import progress_bar
from latem.models.scaling import FeatureScaler, Scaling
from latem.models.scoring import MapScorer
from latem.models.spaces import ClassSpace, EmbeddingSpace, Space, choose_form
from latem.models.tabled import TableClassifier
from latem.models.training import (
    LONGEST_BLOCK,
    Callback,
    EpochInfo,
    Progress,
    Schedule,
    diverged,
    random_maps,
    random_visits,
    train,
)
from latem.threads import single_threaded_blas

_COUNTS = ("violations", "visits")


class LatEm(TableClassifier):
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

    _parameter_constraints = TableClassifier._parameter_constraints | {
        "n_maps": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "margin": [Interval(Real, 0, None, closed="left")],
        "init_scale": [Interval(Real, 0, None, closed="left")],
        "prune_below": [Interval(Real, 0, 1, closed="neither"), None],
        "prune_every": [Interval(Integral, 1, None, closed="left")],
        "prune_count": [StrOptions(set(_COUNTS))],
        "warm_start": ["boolean"],
        "verbose": ["boolean"],
        "random_state": ["random_state"],
    }

    _learned = "maps_"
    maps_: np.ndarray
    map_visits_: np.ndarray
    map_violations_: np.ndarray
    n_iter_: int
    history_: dict[str, list]

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

    # -- learning -----------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: int = 10,
    ) -> LatEm:
        """Learn the maps from images of seen classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Image features; float16, float32 or float64 rows (a memory map, for instance) are
            read as they are, without a copy.
        y : array-like of shape (n_samples,)
            Class names, each with a row in `class_embeddings`.
        callback : callable, optional
            Called with an `EpochInfo` after each epoch; training stops if it returns True.
        checkpoint : path, optional
            File to keep the state of the training in. If it exists, training continues from
            it, to the same bytes as without interruption; it must come from the same data and
            parameters (only `n_epochs` may differ). A training that its callback stopped stays
            stopped.
        checkpoint_every : int
            Epochs between checkpoints.

        Returns
        -------
        self
        """
        self._validate_params()
        more = self.warm_start and hasattr(self, "maps_")
        if more:
            if checkpoint is not None:
                raise ValueError("A checkpoint belongs to one training: use it without warm_start.")
            X, y = self._check_training_images(X, y, reset=False)
        else:
            self._forget()
            X, y = self._check_training_images(X, y)
            self._begin(X, y)
        n_epochs = (self.n_iter_ if more else 0) + self.n_epochs
        self._train(X, y, n_epochs, callback, checkpoint, checkpoint_every)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> LatEm:
        """Continue training with one pass over some images.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            In the first call, all classes that will occur; by default those in `y`. Feature
            statistics are taken from the images of the first call.

        Returns
        -------
        self
        """
        self._validate_params()
        if hasattr(self, "maps_"):
            if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(
                    "partial_fit got other classes than in its first call; fit anew to change them."
                )
            X, y = self._check_training_images(X, y, reset=False)
        else:
            self._forget()
            X, y = self._check_training_images(X, y)
            self._begin(X, y, classes)
        self._train(X, y, getattr(self, "n_iter_", 0) + 1)
        return self

    def _forget(self) -> None:
        """Drop what an earlier training learned, so that a failing one leaves nothing stale."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _begin(self, X: np.ndarray, y: np.ndarray, classes: Any = None) -> None:
        self._set_classes(y, classes)
        self.dtype_ = self.dtype
        self.scaler_ = FeatureScaler.fit(X, self.feature_scaling)
        self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))

    def _train(
        self,
        X: np.ndarray,
        y: np.ndarray,
        n_epochs: int,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: int = 10,
    ) -> None:
        labels = self._codes(y)
        vectors = self._seen_vectors()
        if hasattr(self, "maps_"):
            maps = self.maps_.copy()
            progress = Progress(
                self.seed_,
                visits=self.map_visits_.copy(),
                violations=self.map_violations_.copy(),
                epoch=self.n_iter_,
                history={name: list(values) for name, values in self.history_.items()},
            )
        else:
            shape = (self.n_maps, X.shape[1], vectors.shape[1])
            maps = self._initial_maps(shape)
            progress = Progress.new(self.seed_, self.n_maps)
        space = self._space(maps, vectors)
        keeper = None
        if checkpoint is not None:
            keeper = Checkpoint(checkpoint, checkpoint_every, self._fingerprint(X, y, vectors))
            keeper.resume(space, progress, n_epochs, fixed_seed=self.random_state is not None)
            self.seed_ = progress.seed
        schedule = Schedule(
            step=self.learning_rate,
            margin=self.margin,
            n_epochs=n_epochs,
            prune_below=self.prune_below,
            prune_every=self.prune_every,
            prune_count=self.prune_count,
        )

        def draw(epoch: int) -> tuple[np.ndarray, np.ndarray]:
            return self._visits(epoch, labels)

        buffer = np.empty((LONGEST_BLOCK, X.shape[1]), self.dtype_)

        def load(rows: np.ndarray) -> np.ndarray:
            return self.scaler_.load(X, rows, buffer)

        with progress_bar(self.verbose, n_epochs - progress.epoch) as show:

            def after_epoch(info: EpochInfo) -> None:
                show(info)
                if keeper is not None:
                    last = progress.stopped or info.epoch == n_epochs
                    keeper.write(space, progress, last=last)

            with single_threaded_blas():
                train(space, load, labels, draw, schedule, progress, callback, after_epoch)
        maps = space.maps()
        if not np.isfinite(maps).all():
            raise diverged(progress.epoch, self.learning_rate)
        self.maps_ = maps
        self.n_iter_ = progress.epoch
        self.history_ = progress.history
        self.map_visits_ = progress.visits
        self.map_violations_ = progress.violations

    def _initial_maps(self, shape: tuple[int, int, int]) -> np.ndarray:
        return random_maps(self.seed_, shape, self.init_scale, self.dtype_)

    def _visits(self, epoch: int, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return random_visits(self.seed_, epoch, labels, len(self.classes_))

    def _space(self, maps: np.ndarray, vectors: np.ndarray) -> Space:
        n_maps, n_features, n_dimensions = maps.shape
        if choose_form(len(vectors), n_features, n_dimensions, n_maps) == "class":
            return ClassSpace(maps, vectors)
        return EmbeddingSpace(maps, vectors, self.n_threads)

    def _fingerprint(self, X: np.ndarray, y: np.ndarray, vectors: np.ndarray) -> str:
        """Digest of everything that decides the course of a training, but its length."""
        free = {
            "n_epochs",
            "n_threads",
            "verbose",
            "warm_start",
            "class_embeddings",
            "random_state",
        }
        params = {k: _same(v) for k, v in self.get_params(deep=False).items() if k not in free}
        digest = hashlib.blake2b(repr(sorted(params.items())).encode(), digest_size=16)
        digest.update(repr((X.shape, X.dtype.str, np.asarray(y).tolist())).encode())
        digest.update(vectors.tobytes())
        for first in range(0, len(X), 4096):
            digest.update(np.ascontiguousarray(X[first : first + 4096]).tobytes())
        return digest.hexdigest()

    # -- answering ----------------------------------------------------------------------------

    def latent_map(self, X: Any, classes: Any = None, *, per_class: bool = False) -> np.ndarray:
        """Which map won.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes may be the answer; see `decision_function`.
        per_class : bool
            Whether to tell it for every class instead of just for the predicted one.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) if `per_class`
            Numbers of maps, the argmax of max_k xᵀ W_k y.
        """
        X = self._check_images(X)
        chosen = self._candidates(classes)
        scorer = MapScorer(self.maps_, chosen.vectors, len(X))
        shape = (len(X), len(chosen.names)) if per_class else (len(X),)
        winners = np.empty(shape, np.intp)

        def work(rows: slice, features: np.ndarray) -> None:
            scores, winner = scorer.winners(features)
            if per_class:
                winners[rows] = winner
            else:
                best = scores.argmax(axis=1)[:, None]
                winners[rows] = np.take_along_axis(winner, best, axis=1)[:, 0]

        self._each_block(X, len(chosen.names), work)
        return winners

    def _block_scorer(
        self, vectors: np.ndarray, n_samples: int
    ) -> Callable[[np.ndarray], np.ndarray]:
        return MapScorer(self.maps_, vectors, n_samples).scores

    # -- files --------------------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors = {
            "maps": self.maps_,
            "map_visits": self.map_visits_,
            "map_violations": self.map_violations_,
        }
        return tensors, {"n_iter": self.n_iter_, "seed": self.seed_, "history": self.history_}

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        maps = tensors["maps"]
        n_maps = len(maps) if maps.ndim == 3 else 0
        shape = (n_maps, self.n_features_in_, self.class_table_.n_dimensions)
        if not n_maps or maps.shape != shape or maps.dtype != self.dtype:
            raise storage.FileFormatError(
                f"maps of shape {maps.shape} and type {maps.dtype}, not {shape} and {self.dtype}"
            )
        if not np.isfinite(maps).all():
            raise storage.FileFormatError("maps that are not finite")
        for name in ("map_visits", "map_violations"):
            if tensors[name].shape != (n_maps,):
                raise storage.FileFormatError(f"{name} of shape {tensors[name].shape}")
        self.maps_ = maps
        self.map_visits_ = tensors["map_visits"]
        self.map_violations_ = tensors["map_violations"]
        self.n_iter_ = int(record["n_iter"])
        self.seed_ = int(record["seed"])
        self.history_ = dict(record["history"])


def _same(value: Any) -> str:
    """Text that is equal for equal parameters, such as 1 and 1.0."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    return repr(float(value)) if number else str(value)
