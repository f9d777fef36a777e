"""Models with one class table: everything but the learning.

Parameters, candidates, the class table and the model file are the same for all of them; scoring in
blocks is that of `latem.models.block_scoring`. What classes look like is told by their `ClassView`.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from inspect import signature
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latem.core.messages import first_few
from latem.core.storage import FileFormatError, stored_labels
from latem.core.validation import Interval, StrOptions, check_params
from latem.embeddings.table import ClassEmbeddings
from latem.embeddings.traits import TraitEncoding
from latem.models.base import forget_learned, plain_params
from latem.models.block_scoring import BlockScoring
from latem.models.class_view import Candidates, ClassView
from latem.models.scaling import SCALINGS, FeatureScaler, Scaling
from latem.models.score_terms import ScoreTerms


class TableClassifier(BlockScoring):
    """Base of models that know classes by one table.

    A subclass has the parameters `class_embeddings`, `feature_scaling`, `normalize_classes`,
    `n_threads` and `dtype`, and fills in `_learned`, `_block_scorer`, `_state` and `_restore`. Its
    `fit` begins with `_begin_anew`. `docs/adding-a-model.md` has a whole example.

    Attributes
    ----------
    class_view_ : ClassView
        What classes look like to the model.
    class_table_ : ClassEmbeddings
        All classes the model has a description of.
    dtype_ : str
        Precision the model was trained in.
    scaler_ : FeatureScaler
        Feature scaling with the statistics of the training images.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "class_embeddings": "no_validation",
        "feature_scaling": [StrOptions(set(SCALINGS)), None],
        "normalize_classes": ["boolean"],
        "class_kernel": [Interval(Real, 0, None, closed="neither"), None],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "dtype": [StrOptions({"float32", "float64"})],
    }
    class_embeddings: Any
    feature_scaling: Scaling | None
    normalize_classes: bool
    n_threads: int | None
    dtype: str
    class_view_: ClassView
    dtype_: str
    scaler_: FeatureScaler
    center_classes: bool = False  # parameters that not every model has
    class_kernel: float | None = None
    by_direction: bool = False  # whether projected images are compared by direction only

    # -- what a model fills in ----------------------------------------------------------------

    @abstractmethod
    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Learned arrays, and learned plain data, for the model file."""
        return {}, {}

    @abstractmethod
    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        """Take back what `_state` gave; raise FileFormatError if it does not fit together."""

    def score_terms(self, features: np.ndarray, chosen: Candidates) -> ScoreTerms:
        """What the scores of an image are sums of: traits, or likeness to seen classes.

        Parameters
        ----------
        features : ndarray of shape (n_features,), float64
            One scaled image.
        chosen : Candidates
            As `class_view_.candidates` gives them.

        Raises
        ------
        TypeError
            If the model's scores are no such sums.
        """
        raise TypeError(
            f"{type(self).__name__} does not add up its scores over traits or seen classes: its "
            f"answers cannot be explained."
        )

    def _make_view(self, table: ClassEmbeddings, seen: np.ndarray) -> ClassView:
        """What classes will look like to the model."""
        view = ClassView(table, seen, normalise=self.normalize_classes, dtype=self.dtype)
        if self.center_classes:
            view = view.centred()
        return view if self.class_kernel is None else view.with_kernel(self.class_kernel)

    # -- classes ------------------------------------------------------------------------------

    @property
    def class_table_(self) -> ClassEmbeddings:
        """All classes the model has a description of."""
        return self.class_view_.table

    def settled(self, classes: Any) -> Any:
        """A `classes` argument that means the same classes every time, whatever becomes of files.

        Parameters
        ----------
        classes
            See `decision_function`.
        """
        check_is_fitted(self)
        return self.class_view_.settled(classes)

    def candidate_names(self, classes: Any = None) -> np.ndarray:
        """Names of the candidates, in the order of the columns of scores.

        Parameters
        ----------
        classes
            Which classes may be the answer; see `decision_function`.

        Returns
        -------
        ndarray of shape (n_classes,)
        """
        check_is_fitted(self)
        return self.class_view_.candidates(classes).names

    def with_classes(self, table: Any) -> Any:
        """The same fitted model, knowing further classes by their descriptions.

        Parameters
        ----------
        table : ClassEmbeddings, DataFrame, dict, (names, array) or path
            New classes, with the same columns as the model's own table.

        Returns
        -------
        a model of the same kind
            The learned arrays are shared, the model itself is left as it is.
        """
        check_is_fitted(self)
        other = copy.copy(self)
        other.class_view_ = self.class_view_.with_classes(self.class_table_.matching(table))
        if self.class_embeddings is not None:
            other.class_embeddings = other.class_table_  # so that clones know them, too
        return other

    # -- files --------------------------------------------------------------------------------

    def _stored_params(self) -> dict[str, Any]:
        """Parameters for the model file: those that the fitted model goes by."""
        params = self.get_params(deep=False)
        params["class_embeddings"] = None if self.class_embeddings is None else "stored"
        params |= {"feature_scaling": self.scaler_.kind, "dtype": self.dtype_}
        params |= {"n_threads": None}  # a matter of the machine, not of the model
        return params

    @classmethod
    def _from_params(cls, params: dict[str, Any]) -> Any:
        """Unfitted model with the parameters of a file."""
        known = signature(cls).parameters
        odd = [name for name in params if name not in known]
        if odd:
            raise FileFormatError(f"{cls.__name__} has no parameter {first_few(odd)}")
        return cls(**params)

    @classmethod
    def current_names(cls, params: dict[str, Any]) -> dict[str, Any]:
        """Parameters of a file, perhaps an older one, under the names they have now."""
        return params

    def pack(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Everything a file of this model holds: arrays, and plain data."""
        tensors, record = self._state()
        arrays, known = self.pack_knowledge()
        table = self.class_table_
        meta = {
            "model": type(self).__name__,
            "params": plain_params(self._stored_params()),
            "classes": {"dtype": self.classes_.dtype.str, "names": self.classes_.tolist()},
            "table": {
                "name": table.name,
                "names": table.names.tolist(),
                "columns": None if table.columns is None else list(table.columns),
                **({} if table.encoding is None else {"encoding": table.encoding.to_dict()}),
            },
            "scaling": self.scaler_.kind,
            "feature_names": getattr(self, "feature_names_in_", np.array([])).tolist(),
            "record": record,
            **known,
        }
        tensors = {
            **tensors,
            **arrays,
            "table.vectors": table.vectors,
            "scaling.shift": self.scaler_.shift,
            "scaling.scale": self.scaler_.scale,
            **self.pack_training(),
        }
        return tensors, meta

    @classmethod
    def unpack(cls, tensors: dict[str, np.ndarray], meta: dict[str, Any]) -> Any:
        """Model from what `pack` gave."""
        names, table = meta["classes"], meta["table"]
        encoding = table.get("encoding")
        stored = ClassEmbeddings(
            table["names"],
            tensors["table.vectors"],
            name=table["name"],
            columns=table["columns"],
            encoding=None if encoding is None else TraitEncoding.from_dict(encoding),
        )
        params = cls.current_names(dict(meta["params"]))
        if params["class_embeddings"] is not None:
            params["class_embeddings"] = stored
        model = cls._from_params(params)
        check_params(model)
        model.dtype_ = model.dtype
        model.classes_ = stored_labels(names["names"], names["dtype"])
        stored.positions(model.classes_)
        if len(np.unique(model.classes_)) != len(model.classes_):
            raise FileFormatError("it names a class twice")
        model.class_view_ = model._make_view(stored, model.classes_)
        shift, scale = tensors["scaling.shift"], tensors["scaling.scale"]
        if shift.ndim != 1 or shift.shape != scale.shape:
            raise FileFormatError(f"scaling of shapes {shift.shape} and {scale.shape}")
        if not shift.dtype == scale.dtype == np.float64:
            raise FileFormatError(f"scaling of types {shift.dtype} and {scale.dtype}, not float64")
        if not (np.isfinite(shift).all() and np.isfinite(scale).all()):
            raise FileFormatError("scaling that is not finite")
        if meta["scaling"] != model.feature_scaling:
            raise FileFormatError("the stored scaling is not the model's")
        model.scaler_ = FeatureScaler(meta["scaling"], shift, scale)
        model.n_features_in_ = len(shift)
        if meta["feature_names"]:
            if len(meta["feature_names"]) != len(shift):
                raise FileFormatError("feature names and features differ in number")
            model.feature_names_in_ = np.array(meta["feature_names"], dtype=object)
        model._restore(tensors, meta["record"])
        model.unpack_knowledge(tensors, meta)
        model.unpack_training(tensors)
        return model

    def _check_tensor(
        self, tensors: dict[str, np.ndarray], name: str, shape: tuple[int, ...]
    ) -> np.ndarray:
        """Learned array of a file, if it is what it should be."""
        found = tensors[name]
        if found.dtype == np.float16:  # a file may save space
            found = found.astype(self.dtype)
        if found.shape != shape or found.dtype != self.dtype or not np.isfinite(found).all():
            raise FileFormatError(
                f"{name} of shape {found.shape} and type {found.dtype}, not a finite {shape} of "
                f"{self.dtype}"
            )
        return found

    # -- learning: what comes before it --------------------------------------------------------

    def _begin_anew(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Validated images and class numbers; sets all that a fit knows before it learns."""
        forget_learned(self)
        X, y = self.check_training_images(X, y)
        self.prepare(X, y)
        self.record_training(X)
        return X, self.class_codes(y)

    def prepare(self, X: np.ndarray, y: np.ndarray, classes: Any = None) -> None:
        """Set what a model knows of validated images and labels before it learns.

        Parameters
        ----------
        X, y
            As `check_training_images` gives them.
        classes : array-like, optional
            Classes that will occur; by default those in `y`.
        """
        self.class_view_ = self.check_classes(y, classes)
        self.classes_ = self.class_view_.seen
        self.dtype_ = self.dtype
        self.scaler_ = FeatureScaler.fit(X, self.feature_scaling)

    def check_classes(self, y: np.ndarray, classes: Any = None) -> ClassView:
        """What classes will look like to a model fitted to these labels; raises for bad ones."""
        seen = self._seen_classes(y, classes)
        view = self._make_view(self._checked_table(seen), seen)
        view.check()
        return view
