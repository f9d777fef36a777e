"""The contract every model keeps: a scikit-learn classifier that can name unseen classes.

Class descriptions go to the constructor, so that `Pipeline`, `clone` and `GridSearchCV` carry
them along. `classes=` says which classes may be the answer: by default those seen in training,
as for any classifier, or any others that the table, or a new table, describes.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, column_or_1d

from latem.core import storage
from latem.core.slim import is_frame, is_index, is_series
from latem.metrics import mean_class_accuracy
from latem.models import model_rows
from latem.models.album_answers import AlbumMixin
from latem.models.answering import AnsweringMixin
from latem.models.bad_rows import shifted
from latem.models.frames import FrameMixin
from latem.models.lazy import on_blocks
from latem.models.measured import Measured
from latem.models.retrieval import RetrievalMixin
from latem.models.scoring import Keep, row_blocks
from latem.models.training_record import TrainingRecord


class ZeroShotClassifier(
    AlbumMixin,
    AnsweringMixin,
    RetrievalMixin,
    FrameMixin,
    TrainingRecord,
    ClassifierMixin,
    BaseEstimator,
    metaclass=ABCMeta,
):
    """Base of all models: what can be asked of every one of them.

    Attributes
    ----------
    classes_ : ndarray of shape (n_seen,)
        Classes seen in training, sorted.
    encoder_ : dict or None
        Spec of the encoder whose features the model was fitted to, where it is known: then the
        model can name pictures. It is taken from a dataset's features, stays through `clone`,
        further fits to features of the same width, pickling and files, and can be set by hand.
    training_digest_ : str or None
        Digest of the images the model was fitted to; see `TrainingRecord`.
    temperature_ : float
        Of `predict_proba`; only after `calibrate`.
    rejection_threshold_ : float
        Of `predict_or_none`; only after `choose_rejection`.
    seen_penalty_ : float
        γ, subtracted from the scores of seen classes where pictures are named among seen and
        unseen ones; only after `latem.train` or `latem.calibrate_answers`, as is the next.
    acceptance_ : Acceptance
        When a picture is one of the candidates, and when none of these.
    measured_ : Measured
        How good it was when it was trained; only after `latem.train`.
    """

    classes_: np.ndarray
    n_features_in_: int
    measured_: Measured
    _learned: str  # name of the attribute that is there once the model has learned

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._learned)

    # -- what a model fills in ----------------------------------------------------------------

    @abstractmethod
    def decision_function(self, X: Any, classes: Any = None) -> np.ndarray:
        """Compatibility of images and classes, of shape (n_samples, n_classes)."""

    @abstractmethod
    def candidate_names(self, classes: Any = None) -> np.ndarray:
        """Names of the candidates, in the order of the columns of scores."""

    def settled(self, classes: Any) -> Any:
        """A `classes` argument that means the same classes every time, whatever becomes of files.

        Parameters
        ----------
        classes
            See `decision_function`.
        """
        return list(classes) if isinstance(classes, Iterator) else classes

    @abstractmethod
    def _best(self, X: Any, k: int, classes: Any) -> tuple[np.ndarray, np.ndarray]:
        """Names and scores of the k most compatible classes of each image."""

    @abstractmethod
    def pack(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Everything a file of this model holds: arrays, and plain data."""

    @classmethod
    @abstractmethod
    def unpack(cls, tensors: dict[str, np.ndarray], meta: dict[str, Any]) -> Any:
        """Model from what `pack` gave; KeyError, TypeError or ValueError if it does not fit."""

    # -- what a model knows of its images ------------------------------------------------------

    @property
    def encoder_(self) -> Mapping[str, Any] | None:
        """Spec of the encoder whose features the model was fitted to, or None."""
        return vars(self).get("_encoder")

    @encoder_.setter
    def encoder_(self, spec: Mapping[str, Any] | None) -> None:
        self._encoder = None if spec is None else dict(spec)

    def note_encoder(self, X: Any, width: int) -> None:
        """Remember the encoder of features that know it; forget one of another width."""
        known = getattr(X, "encoder", None)
        if isinstance(known, Mapping):
            self.encoder_ = known
        elif self.encoder_ is not None and self.encoder_.get("n_features", width) != width:
            self.encoder_ = None

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()
        if self.encoder_ is not None:
            copy.encoder_ = self.encoder_
        return copy

    # -- answering ----------------------------------------------------------------------------

    def each_scored(
        self,
        X: Any,
        classes: Any,
        keep: Keep,
    ) -> None:
        """Call `keep(rows, parts)` for blocks of images, perhaps in several threads.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes to score; see `decision_function`.
        keep : callable
            Gets a slice of the images, and pairs of a slice of the classes and their scores, as
            of `class_scores`. An array of scores is good until the next one is asked for.
        """
        n_classes = len(self.candidate_names(classes))
        for rows in row_blocks(len(X), n_classes) or [slice(0, 0)]:  # none are refused
            part = X.iloc[rows] if is_frame(X) else X[rows]
            try:
                scores = self.class_scores(part, classes)
            except ValueError as error:
                raise shifted(error, rows.start) from None
            keep(rows, iter([(slice(0, n_classes), scores)]))

    @on_blocks
    def predict(self, X: Any, classes: Any = None) -> np.ndarray:
        """Most compatible class of each image.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes may be the answer; see `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class names.
        """
        names, _ = self._best(X, 1, classes)
        return names[:, 0]

    @on_blocks
    def top_k(
        self, X: Any, k: int, classes: Any = None, *, return_scores: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The k most compatible classes of each image, best first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        k : int
            At most the number of candidate classes.
        classes
            Which classes may be the answer; see `decision_function`.
        return_scores : bool
            Whether to return the scores as well.

        Returns
        -------
        names : ndarray of shape (n_samples, k)
        scores : ndarray of shape (n_samples, k)
            Only if `return_scores`.
        """
        names, scores = self._best(X, k, classes)
        return (names, scores) if return_scores else names

    def _check_k(self, k: Any, n_classes: int) -> None:
        if isinstance(k, bool) or not isinstance(k, int | np.integer):
            raise TypeError(f"k must be a whole number, not {k!r}.")
        if not 1 <= k <= n_classes:
            raise ValueError(
                f"k must be between 1 and the number of candidate classes, {n_classes}, but is {k}."
            )

    def score(self, X: Any, y: Any, classes: Any = None) -> float:
        """Mean per-class top-1 accuracy, the paper's measure.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            True class names.
        classes
            Which classes may be the answer; see `decision_function`. With None, they follow
            from `y`: the seen classes if all of `y` were seen in training; exactly the classes
            in `y` if none was (so that class-disjoint cross-validation, for instance
            ``GridSearchCV(cv=GroupKFold())`` with ``groups=y``, chooses among the held-out
            classes); both together if `y` mixes the two.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        y = column_or_1d(y)
        if classes is None:
            present = np.unique(y)
            seen = np.isin(present, self.classes_)
            if not seen.all():
                classes = present if not seen.any() else np.union1d(self.classes_, present)
                if len(classes) == 1:
                    raise ValueError(
                        f"score would choose among one class only, {classes.tolist()}, and always "
                        f"be right; score images of several unseen classes together, or name the "
                        f"candidates with classes=."
                    )
        return mean_class_accuracy(y, self.predict(X, classes))

    def twin(self, seed: int) -> Any:
        """Unfitted model with the parameters that this fitted one ended up with.

        Parameters
        ----------
        seed : int
            Its `random_state`, if this model's is no number: then it can be fitted to other images
            with the same result every time.
        """
        check_is_fitted(self)
        fresh = clone(self)
        if not isinstance(fresh.get_params(deep=False).get("random_state", 0), int | np.integer):
            fresh.set_params(random_state=seed)
        return fresh

    # -- files --------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one `.safetensors` file, atomically; see `latem.load`."""
        check_is_fitted(self)
        kind = type(self)
        row = model_rows.row_of(self)
        if row is None or row.name != kind.__name__:
            raise TypeError(
                f"{kind.__name__} is not registered, so its file could not be opened again; call "
                f"latem.register({kind.__name__}) first."
            )
        storage.write_file(Path(path), "model", *self.pack())

    def pack_knowledge(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """What a model knows besides what it learned, for its file."""
        known: dict[str, Any] = {}
        if self.encoder_ is not None:
            known["encoder"] = dict(self.encoder_)
        if hasattr(self, "measured_"):
            known["measured"] = self.measured_.to_dict()
        if self.training_digest_ is not None:
            known["training_digest"] = self.training_digest_  # for those who read no arrays
        arrays, acceptance = self.pack_acceptance()
        return arrays, {**known, **self._pack_calibration(), **acceptance}

    def unpack_knowledge(self, tensors: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        """Take back what `pack_knowledge` gave."""
        self._unpack_calibration(meta)
        self.unpack_acceptance(tensors, meta)
        if "encoder" in meta:
            self.encoder_ = dict(meta["encoder"])
        if "measured" in meta:  # files of earlier versions have none
            self.measured_ = Measured.from_dict(meta["measured"])

    def forget_measured(self) -> None:
        """Forget calibration and how good the model was: it has changed since."""
        self.forget_calibration()
        self.__dict__.pop("measured_", None)


def plain_params(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters as plain data, without what belongs to a session: a random state object."""
    plain = {name: _plain_data(value) for name, value in params.items()}
    if "verbose" in plain:
        plain["verbose"] = False
    if not isinstance(plain.get("random_state", 0), int):
        plain["random_state"] = None
    return plain


def _plain_data(value: Any) -> Any:
    """Lists, dicts, numbers and texts instead of arrays and the like; other things as they are."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(name): _plain_data(part) for name, part in value.items()}
    if isinstance(value, np.ndarray) or is_index(value) or is_series(value):
        value = value.tolist()
    if isinstance(value, list | tuple | range | set):
        return [_plain_data(part) for part in value]
    return value


def forget_learned(model: Any) -> None:
    """Drop what an earlier training learned, so that a failing one leaves nothing stale."""
    for name in [name for name in vars(model) if name.endswith("_")]:
        delattr(model, name)
