"""Models that are learned by ranking SGD over maps W_k: everything but how rivals are chosen.

Compatibility is F(x, y) = max_k xᵀ W_k y (equation 4 of the paper). `LatEm` draws one rival class
per visit; the bilinear models look at all classes. Fitting, continuing, checkpoints, choosing the
best epoch on held-out classes, scoring and the model file are the same for all of them.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_consistent_length, column_or_1d

from latem import storage
from latem.models.base import forget_learned
from latem.models.checkpoint import Checkpoint
from latem.models.progress import progress_bar
from latem.models.scaling import FeatureScaler
from latem.models.scoring import MapScorer
from latem.models.spaces import Space
from latem.models.tabled import TableClassifier
from latem.models.training import (
    LONGEST_BLOCK,
    Callback,
    EpochInfo,
    Progress,
    RunEpoch,
    Schedule,
    diverged,
    random_maps,
    train,
)
from latem.models.watch import BestEpoch
from latem.threads import single_threaded_blas
from latem.wording import some


class RankingModel(TableClassifier):
    """Base of `LatEm` and the bilinear models.

    A subclass has the parameters below besides those of every model, and fills in `_space` and
    `_epoch_runner`.

    Attributes
    ----------
    maps_ : ndarray of shape (n_maps, n_features, n_dimensions)
        The maps W_k.
    history_ : dict of lists
        Per epoch: "violation_rate", "mean_loss", "n_maps" and "map_usage", and with held-out
        images "validation_score".
    n_iter_ : int
        Epochs trained so far.
    best_epoch_ : int
        Epoch whose maps were kept; without held-out images the last one.
    """

    _parameter_constraints = TableClassifier._parameter_constraints | {
        "n_maps": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "margin": [Interval(Real, 0, None, closed="left")],
        "init_scale": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "verbose": ["boolean"],
        "random_state": ["random_state"],
    }

    _learned = "maps_"
    n_maps: int
    learning_rate: float
    n_epochs: int
    margin: Any  # a number, or None where a model has a rule for it
    init_scale: float
    warm_start: bool
    verbose: bool
    random_state: int | np.random.RandomState | None
    maps_: np.ndarray
    map_visits_: np.ndarray
    map_violations_: np.ndarray
    n_iter_: int
    best_epoch_: int
    seed_: int
    history_: dict[str, list]

    # -- what a model fills in ----------------------------------------------------------------

    @abstractmethod
    def _space(self, maps: np.ndarray, vectors: np.ndarray) -> Space:
        """Where the maps live during training."""

    @abstractmethod
    def _epoch_runner(
        self,
        space: Any,
        load: Callable[[np.ndarray], np.ndarray],
        labels: np.ndarray,
        schedule: Schedule,
    ) -> RunEpoch:
        """Function that visits all images once; see `latem.models.training.train`."""

    def _schedule(self, n_epochs: int) -> Schedule:
        return Schedule(self.learning_rate, self.margin, n_epochs)

    # -- learning -----------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: int = 10,
        validation: tuple[Any, Any] | None = None,
    ) -> Any:
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
        validation : (X, y), optional
            Images of held-out classes, none of them among those of `y`. They are scored after
            every epoch, among their own classes, and the maps of the best epoch are kept. Not
            together with a checkpoint, pruning or `warm_start`.

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
            forget_learned(self)
            X, y = self._check_training_images(X, y)
            self._begin(X, y)
        n_epochs = (self.n_iter_ if more else 0) + self.n_epochs
        watch = None if validation is None else self._watch(validation, more or checkpoint)
        with single_threaded_blas():
            self._train(X, y, n_epochs, callback, checkpoint, checkpoint_every, watch)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
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
            forget_learned(self)
            X, y = self._check_training_images(X, y)
            self._begin(X, y, classes)
        with single_threaded_blas():
            self._train(X, y, getattr(self, "n_iter_", 0) + 1)
        return self

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
        watch: BestEpoch | None = None,
    ) -> None:
        labels = self._codes(y)
        vectors = self._training_vectors()
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
            maps = self._first_maps(X, labels, vectors)
            progress = Progress.new(self.seed_, self.n_maps)
        space = self._space(maps, vectors)
        keeper = None
        if checkpoint is not None:
            keeper = Checkpoint(checkpoint, checkpoint_every, self._fingerprint(X, y, vectors))
            keeper.resume(space, progress, n_epochs, fixed_seed=self.random_state is not None)
            self.seed_ = progress.seed
        schedule = self._schedule(n_epochs)
        buffer = np.empty((LONGEST_BLOCK, X.shape[1]), self.dtype_)

        def load(rows: np.ndarray) -> np.ndarray:
            return self.scaler_.load(X, rows, buffer)

        run_epoch = self._epoch_runner(space, load, labels, schedule)

        with progress_bar(self.verbose, n_epochs - progress.epoch) as show:

            def after_epoch(info: EpochInfo) -> None:
                show(info)
                if watch is not None:
                    watch.look(info, progress.history)
                if keeper is not None:
                    last = progress.stopped or info.epoch == n_epochs
                    keeper.write(space, progress, last=last)

            train(space, run_epoch, len(X), schedule, progress, callback, after_epoch)
        maps = space.maps() if watch is None else watch.maps()
        if not np.isfinite(maps).all():
            raise diverged(progress.epoch, self.learning_rate)
        self.maps_ = maps
        self.n_iter_ = progress.epoch
        self.best_epoch_ = progress.epoch if watch is None else watch.epoch
        self.history_ = progress.history
        self.map_visits_ = progress.visits
        self.map_violations_ = progress.violations

    def _training_vectors(self) -> np.ndarray:
        """Vectors of the seen classes that the training uses."""
        return self._seen_vectors()

    def _first_maps(self, X: np.ndarray, labels: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Maps at the start of a training."""
        return self._initial_maps((self.n_maps, X.shape[1], vectors.shape[1]))

    def _initial_maps(self, shape: tuple[int, int, int]) -> np.ndarray:
        return random_maps(self.seed_, shape, self.init_scale, self.dtype_)

    def _watch(self, validation: tuple[Any, Any], conflict: Any) -> BestEpoch:
        if conflict or self._schedule(0).prune_below is not None:
            raise ValueError(
                "The best epoch on held-out images can be kept in one fresh training only: give "
                "validation without checkpoint, warm_start and prune_below."
            )
        X, y = validation
        known = np.intersect1d(np.unique(y), self.classes_)
        if len(known):
            raise ValueError(
                f"validation holds images of classes that are trained on, {some(known.tolist())}; "
                f"only held-out classes show how unseen ones will be named."
            )
        X, y = self._check_features(X), column_or_1d(y)
        check_consistent_length(X, y)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"validation holds images of one class only, {classes.tolist()}, which would "
                f"always be named rightly; hold out at least two classes."
            )
        return BestEpoch(y, lambda maps: self._predict_by(maps, X, classes))

    def _predict_by(self, maps: np.ndarray, X: np.ndarray, classes: Any) -> np.ndarray:
        """Most compatible classes by other maps than the model's own, during training."""
        chosen = self._candidates(classes)
        scorer = self._map_scorer(maps, chosen.vectors, len(X))
        named = np.empty(len(X), np.intp)

        def work(rows: slice, features: np.ndarray) -> None:
            named[rows] = scorer.scores(features).argmax(axis=1)

        self._each_block(X, len(chosen.names), work)
        return chosen.names[named]

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
        scorer = self._map_scorer(self.maps_, chosen.vectors, len(X))
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
        return self._map_scorer(self.maps_, vectors, n_samples).scores

    def _map_scorer(self, maps: np.ndarray, vectors: np.ndarray, n_samples: int) -> MapScorer:
        return MapScorer(maps, vectors, n_samples)

    # -- files --------------------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors = {
            "maps": self.maps_,
            "map_visits": self.map_visits_,
            "map_violations": self.map_violations_,
        }
        record = {
            "n_iter": self.n_iter_,
            "best_epoch": self.best_epoch_,
            "seed": self.seed_,
            "history": self.history_,
        }
        return tensors, record

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
        self.best_epoch_ = int(record.get("best_epoch", self.n_iter_))
        self.seed_ = int(record["seed"])
        self.history_ = dict(record["history"])


def _same(value: Any) -> str:
    """Text that is equal for equal parameters, such as 1 and 1.0."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    return repr(float(value)) if number else str(value)
