"""Models that are learned by ranking SGD over maps W_k: everything but how rivals are chosen.

Compatibility is F(x, y) = max_k xᵀ W_k y (equation 4 of the paper). `LatEm` draws one rival class
per visit; the bilinear models look at all classes. Fitting, continuing, checkpoints, choosing the
best epoch on held-out classes and the model file are the same for all of them.
"""

from __future__ import annotations

import hashlib
import logging
from abc import abstractmethod
from contextlib import ExitStack
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, column_or_1d

from latem.core.memory import check_memory
from latem.core.messages import first_few
from latem.core.progress import progress_bar
from latem.core.storage import FileFormatError
from latem.core.threads import single_threaded_blas
from latem.core.validation import Interval, validated
from latem.models.base import forget_learned
from latem.models.class_view import ClassView
from latem.models.from_sums import FromSums
from latem.models.map_model import MapModel, read_only
from latem.models.scoring import MapScorer
from latem.models.sgd.best_epoch import BestEpoch, EpochScores
from latem.models.sgd.checkpoint import Checkpoint
from latem.models.sgd.loop import (
    LONGEST_BLOCK,
    Callback,
    EpochInfo,
    Progress,
    RunEpoch,
    Schedule,
    Space,
    diverged,
    train,
)
from latem.models.sgd.visits import random_maps
from latem.models.training_images import TrainingImages

if TYPE_CHECKING:
    from typing_extensions import Self

_log = logging.getLogger(__name__)


class RankingModel(FromSums, MapModel):
    """Base of `LatEm` and the bilinear models.

    A subclass has the parameters below besides those of every model, and fills in `_space` and
    `_epoch_runner`.

    Attributes
    ----------
    maps_ : ndarray of shape (n_maps, n_features, n_dimensions), read-only
        The maps W_k.
    history_ : dict of lists
        Per epoch: "violation_rate", "mean_loss", "n_maps" and "map_usage", and with held-out
        images "validation_score".
    n_iter_ : int
        Epochs trained so far.
    best_epoch_ : int
        Epoch whose maps were kept; without held-out images the last one.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = MapModel._parameter_constraints | {
        "n_maps": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "margin": [Interval(Real, 0, None, closed="left")],
        "init_scale": [Interval(Real, 0, None, closed="left")],
        "shuffle_buffer": [Interval(Integral, 1, None, closed="left"), None],
        "warm_start": ["boolean"],
        "verbose": ["boolean"],
        "random_state": ["random_state"],
    }

    _learned = "maps_"
    takes_blocks = False  # unless a model has a use for sums
    n_maps: int
    learning_rate: float
    n_epochs: int
    margin: Any  # a number, or None where a model has a rule for it
    init_scale: float
    shuffle_buffer: int | None
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
    def _epoch_runner(self, space: Any, images: TrainingImages, schedule: Schedule) -> RunEpoch:
        """Function that visits all images once; see `latem.models.sgd.loop.train`."""

    def _schedule(self, n_epochs: int) -> Schedule:
        return Schedule(self.learning_rate, self.margin, n_epochs)

    def _initial_maps(self, shape: tuple[int, int, int]) -> np.ndarray:
        return random_maps(self.seed_, shape, self.init_scale, self.dtype_)

    def _first_maps(self, images: TrainingImages) -> np.ndarray:
        """Maps at the start of a training."""
        return self._initial_maps((self.n_maps, images.X.shape[1], images.vectors.shape[1]))

    def _check_size(self, images: TrainingImages) -> None:
        """Refuse more maps than the machine can hold.

        They are drawn in double precision, kept three times, and applied to blocks of images.
        """
        size = np.dtype(self.dtype_).itemsize
        column = images.X.shape[1] * (8 + 3 * size) + LONGEST_BLOCK // 8 * size
        what = f"Training {type(self).__name__} with n_maps={self.n_maps}"
        check_memory(self.n_maps * images.vectors.shape[1] * column, what)

    def _images(self, X: np.ndarray, labels: np.ndarray, *, partial: bool) -> TrainingImages:
        """The images of a training; `partial` is one of several calls of `partial_fit`."""
        vectors, buffer = self.class_view_.training(), self.shuffle_buffer
        return TrainingImages(X, labels, vectors, self.scaler_, partial=partial, buffer=buffer)

    def _view_by(self, maps: np.ndarray, images: TrainingImages) -> ClassView:
        """What classes look like when these maps answer."""
        return self.class_view_

    # -- learning -----------------------------------------------------------------------------

    @validated
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: int = 10,
        validation: tuple[Any, Any] | None = None,
        n_iter_no_change: int | None = None,
    ) -> Self:
        """Learn the maps from images of seen classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Image features; float16, float32 or float64 rows (a memory map, for instance) are
            read as they are, without a copy. `LatEm` also takes images that come in blocks (see
            `latem.core.blocks`): closed form and balance are those of all images, and epochs go
            over a sample of them, of at most 1 GB.
        y : array-like of shape (n_samples,)
            Class names, each with a row in `class_embeddings`.
        callback : callable, optional
            Called with an `EpochInfo` after each epoch; training stops if it returns True.
        checkpoint : path, optional
            File to keep the state of the training in. If it exists, training continues from
            it, to the same bytes as without interruption; it must come from the same data and
            parameters (only `n_epochs` may differ). A training that its callback stopped stays
            stopped. One training at a time writes to a file.
        checkpoint_every : int
            Epochs between checkpoints.
        validation : (X, y), optional
            Images of held-out classes, none of them among those of `y`. They are scored after
            every epoch, among their own classes, and the maps of the best epoch are kept. Not
            together with a checkpoint, pruning or `warm_start`.
        n_iter_no_change : int, optional
            Early stopping: training ends when this many epochs in a row have named the images of
            `validation` no better than the best epoch before them. None trains all `n_epochs`.

        Returns
        -------
        self
        """
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be a function of an EpochInfo, not {callback!r}.")
        more = self.warm_start and hasattr(self, "maps_")
        blocks = self.blocks_of(X, y)
        if blocks is not None:
            if more or checkpoint is not None or validation is not None:
                raise ValueError(
                    "Images that come in blocks go with neither warm_start, checkpoint nor "
                    "validation; give an array, for instance a memory map."
                )
            self._fit_blocks(blocks, X, callback)
            return self
        if more:
            if checkpoint is not None:
                raise ValueError("A checkpoint belongs to one training: use it without warm_start.")
            X, y = self.check_training_images(X, y, reset=False)
        else:
            forget_learned(self)
            X, y = self.check_training_images(X, y)
            self.prepare(X, y)
        n_epochs = (self.n_iter_ if more else 0) + self.n_epochs
        watch = self._watch(validation, n_iter_no_change, conflict=more or checkpoint)
        images = self._images(X, self.class_codes(y), partial=False)
        with ExitStack() as held:
            keeper = None
            if checkpoint is not None:
                keeper = Checkpoint(checkpoint, checkpoint_every, self._fingerprint(images, y))
                held.enter_context(keeper.held())
            with single_threaded_blas():  # not by the stack, whose frame would not be running
                self._train(images, n_epochs, callback, keeper, watch)
        return self

    def _fit_blocks(self, blocks: Any, given: Any, callback: Callback | None) -> None:
        """Learn from sums over all images, where sums will do, and from a sample of them."""
        forget_learned(self)
        images = self._prepare_blocks(blocks, given, sample=True)
        self._draw_seed()
        rows = self.training_rows()
        own = self._images(images.X, images.codes, partial=False)
        own.shared = images
        _log.info("ranking looks at %d of %d images", len(images.X), images.counts.sum())
        with single_threaded_blas():
            self._train(own, self.n_epochs, callback)
        if rows is not None:
            self.training_rows_ = rows  # of all images, not of the sample

    @validated
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
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
        if hasattr(self, "maps_"):
            if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(
                    "partial_fit got other classes than in its first call; call fit to change them."
                )
            X, y = self.check_training_images(X, y, reset=False)
        else:
            forget_learned(self)
            X, y = self.check_training_images(X, y)
            self.prepare(X, y, classes)
        images = self._images(X, self.class_codes(y), partial=True)
        with single_threaded_blas():
            self._train(images, getattr(self, "n_iter_", 0) + 1)
        return self

    def prepare(self, X: np.ndarray, y: np.ndarray, classes: Any = None) -> None:
        """Set what a model knows of validated images and labels before it learns."""
        super().prepare(X, y, classes)
        self._draw_seed()

    def _draw_seed(self) -> None:
        self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))

    def _train(
        self,
        images: TrainingImages,
        n_epochs: int,
        callback: Callback | None = None,
        keeper: Checkpoint | None = None,
        watch: BestEpoch | None = None,
    ) -> None:
        if hasattr(self, "maps_"):
            maps, progress = self.maps_.copy(), self._progress()
        else:
            self._check_size(images)
            maps, progress = self._first_maps(images), Progress.new(self.seed_, self.n_maps)
        space = self._space(maps, images.vectors)
        if keeper is not None:
            keeper.resume(space, progress, n_epochs, fixed_seed=self.random_state is not None)
            self.seed_ = progress.seed
        schedule = self._schedule(n_epochs)
        run_epoch = self._epoch_runner(space, images, schedule)

        def predict(maps: np.ndarray, X: Any, classes: Any) -> np.ndarray:
            return self._predict_by(maps, self._view_by(maps, images), X, classes)

        n_left = n_epochs - progress.epoch
        with progress_bar(self.verbose, "training", total=n_left, unit="epochs") as advance:

            def after_epoch(info: EpochInfo) -> None:
                advance(text=f"{info.violation_rate:.1%} violations, {info.n_maps} maps")
                if watch is not None and watch.look(info, progress.history):
                    progress.stopped = True
                if keeper is not None:
                    last = progress.stopped or info.epoch == n_epochs
                    keeper.write(space, progress, last=last)

            with images.visiting():
                train(
                    space, run_epoch, len(images), schedule, progress, callback, after_epoch,
                    predict,
                )  # fmt: skip
        _log.debug("%s trained for %d epochs", type(self).__name__, progress.epoch)
        maps = space.maps() if watch is None else watch.maps()
        if not np.isfinite(maps).all():
            raise diverged(progress.epoch, self.learning_rate)
        self._keep(maps, images, progress)
        self.best_epoch_ = progress.epoch if watch is None else watch.epoch

    def _progress(self) -> Progress:
        """Where the training stands that is to be continued."""
        return Progress(
            self.seed_,
            visits=self.map_visits_.copy(),
            violations=self.map_violations_.copy(),
            epoch=self.n_iter_,
            history={name: list(values) for name, values in self.history_.items()},
        )

    def _keep(self, maps: np.ndarray, images: TrainingImages, progress: Progress) -> None:
        """Take over what a training has learned."""
        self.record_training(images.X, more=hasattr(self, "maps_"))
        self.class_view_ = self._view_by(maps, images)
        self.maps_ = read_only(maps)
        self.n_iter_ = progress.epoch
        self.history_ = progress.history
        self.map_visits_ = progress.visits
        self.map_violations_ = progress.violations
        self.forget_measured()

    def _watch(
        self, validation: tuple[Any, Any] | None, patience: int | None, *, conflict: Any
    ) -> BestEpoch | None:
        """What looks at held-out images after every epoch, if there are any."""
        whole = isinstance(patience, Integral) and not isinstance(patience, bool)
        if patience is not None and (not whole or patience < 1):
            raise ValueError(f"n_iter_no_change must be a whole number from 1, not {patience!r}.")
        if validation is None:
            if patience is not None:
                raise ValueError(
                    f"n_iter_no_change={patience} needs held-out images to tell when to stop: give "
                    f"validation, too."
                )
            return None
        if conflict or self._schedule(0).prune_below is not None:
            raise ValueError(
                "The best epoch on held-out images can be kept in one fresh training only: give "
                "validation without checkpoint, warm_start and prune_below."
            )
        X, y = validation
        known = np.intersect1d(np.unique(y), self.classes_)
        if len(known):
            raise ValueError(
                f"validation holds images of classes that are trained on, "
                f"{first_few(known.tolist())}; only held-out classes show how unseen ones will be "
                f"named."
            )
        X, y = self._check_features(X), column_or_1d(y)
        check_consistent_length(X, y)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"validation holds images of one class only, {classes.tolist()}, and any model "
                f"would name them correctly; hold out at least two classes."
            )
        return BestEpoch(EpochScores(X, y, classes, patience=patience))

    def _predict_by(self, maps: np.ndarray, view: ClassView, X: Any, classes: Any) -> np.ndarray:
        """Most compatible classes by other maps than the model has, during training."""
        X = self._check_features(X)
        chosen = view.candidates(classes)
        scorer = MapScorer(maps, chosen.vectors, by_direction=self.by_direction)
        named = np.empty(len(X), np.intp)

        def work(rows: slice, features: np.ndarray) -> None:
            named[rows] = scorer.scores(features).argmax(axis=1)

        self.each_block(X, len(chosen), work)
        return chosen.names[named]

    def _fingerprint(self, images: TrainingImages, y: np.ndarray) -> str:
        """Digest of everything that decides the course of a training, except its length."""
        free = {
            "n_epochs",
            "n_threads",
            "verbose",
            "warm_start",
            "class_embeddings",
            "random_state",
        }
        X = images.X
        if self.shuffle_buffer is None:  # as in checkpoints from before it was a parameter
            free.add("shuffle_buffer")
        params = {k: _canonical(v) for k, v in self.get_params(deep=False).items() if k not in free}
        digest = hashlib.blake2b(repr(sorted(params.items())).encode(), digest_size=16)
        digest.update(repr((X.shape, X.dtype.str, np.asarray(y).tolist())).encode())
        digest.update(images.vectors.tobytes())
        for first in range(0, len(X), 4096):
            digest.update(np.ascontiguousarray(X[first : first + 4096]).tobytes())
        return digest.hexdigest()

    def twin(self, seed: int) -> Any:
        """Unfitted model with the parameters that this fitted one ended up with."""
        return super().twin(seed).set_params(n_epochs=self.best_epoch_, verbose=False)

    def bilinear_maps(self) -> np.ndarray:
        """The maps W_k, of shape (n_maps, n_features, n_dimensions)."""
        return self.maps_

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
        shape = (n_maps, self.n_features_in_, self.class_view_.width)
        if not n_maps or maps.shape != shape or maps.dtype != self.dtype:
            raise FileFormatError(
                f"maps of shape {maps.shape} and type {maps.dtype}, not {shape} and {self.dtype}"
            )
        if not np.isfinite(maps).all():
            raise FileFormatError("maps that are not finite")
        for name in ("map_visits", "map_violations"):
            if tensors[name].shape != (n_maps,) or tensors[name].dtype != np.int64:
                raise FileFormatError(
                    f"{name} of shape {tensors[name].shape} and type {tensors[name].dtype}"
                )
        self.maps_ = read_only(maps)
        self.map_visits_ = tensors["map_visits"]
        self.map_violations_ = tensors["map_violations"]
        self.n_iter_ = int(record["n_iter"])
        self.best_epoch_ = int(record.get("best_epoch", self.n_iter_))
        self.seed_ = int(record["seed"])
        self.history_ = dict(record["history"])


def _canonical(value: Any) -> str:
    """Text that is equal for equal parameters, such as 1 and 1.0."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    return repr(float(value)) if number else str(value)
