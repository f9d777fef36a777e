"""Models with one class table: everything but the learning.

Which classes are candidates, validation of images and labels, scaling, scoring in blocks, and the
model file are the same for all of them.
"""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from latem import storage
from latem.embeddings.describe import join_classes
from latem.embeddings.table import TABLE_SUFFIXES, ClassEmbeddings, as_class_embeddings
from latem.models.base import ZeroShotClassifier, forget_learned, plain_params
from latem.models.scaling import SCALINGS, FeatureScaler, Scaling
from latem.models.scoring import best_k, row_blocks
from latem.threads import run_all
from latem.wording import some

_FLOATS = (np.float64, np.float32, np.float16)


class Candidates(NamedTuple):
    """The classes that may be the answer."""

    names: np.ndarray
    vectors: np.ndarray


class TableClassifier(ZeroShotClassifier):
    """Base of models that know classes by one table.

    A subclass has the parameters `class_embeddings`, `feature_scaling`, `normalize_classes`,
    `n_threads` and `dtype`, and fills in `_learned`, `_block_scorer`, `_state` and `_restore`.

    Attributes
    ----------
    class_table_ : ClassEmbeddings
        All classes the model has a description of.
    dtype_ : str
        Precision the model was trained in.
    scaler_ : FeatureScaler
        Feature scaling with the statistics of the training images.
    encoder_ : dict or None
        Spec of the encoder whose features the model was trained on, where it is known: then the
        model can name pictures.
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's convention
        "class_embeddings": "no_validation",
        "feature_scaling": [StrOptions(set(SCALINGS)), None],
        "normalize_classes": ["boolean"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "dtype": [StrOptions({"float32", "float64"})],
    }
    class_embeddings: Any
    feature_scaling: Scaling | None
    normalize_classes: bool
    n_threads: int | None
    dtype: str
    dtype_: str
    encoder_: Mapping[str, Any] | None = None

    # -- what a model fills in ----------------------------------------------------------------

    @abstractmethod
    def _block_scorer(
        self, vectors: np.ndarray, n_samples: int
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Function from a block of scaled features to scores of shape (n_rows, n_classes)."""

    @abstractmethod
    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Learned arrays, and learned plain data, for the model file."""

    @abstractmethod
    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        """Take back what `_state` gave; raise FileFormatError if it does not fit together."""

    # -- answering ----------------------------------------------------------------------------

    def decision_function(self, X: Any, classes: Any = None) -> np.ndarray:
        """Compatibility of images and classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes : None, "unseen", "all", list of names, or a class table
            Which classes to score: those seen in training (None), the others in the class
            table ("unseen"), all of them, some by name, or those of a new table that has the
            same columns.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Larger is more compatible. As everywhere in scikit-learn, with `classes=None` and
            exactly two seen classes this is instead the difference of the two, of shape
            (n_samples,); name the classes to get both columns.
        """
        X = self._check_images(X)
        chosen = self._candidates(classes)
        scores = np.empty((len(X), len(chosen.names)), self.dtype_)

        def keep(rows: slice, block: np.ndarray) -> None:
            scores[rows] = block

        self._score_blocks(X, chosen, keep)
        if classes is None and len(chosen.names) == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def _names(self, classes: Any) -> np.ndarray:
        return self._candidates(classes).names

    def _best(self, X: Any, k: int, classes: Any) -> tuple[np.ndarray, np.ndarray]:
        """Names and scores of the k most compatible classes of each image."""
        X = self._check_images(X)
        chosen = self._candidates(classes)
        self._check_k(k, len(chosen.names))
        places = np.empty((len(X), k), np.intp)
        scores = np.empty((len(X), k), self.dtype_)

        def keep(rows: slice, block: np.ndarray) -> None:
            places[rows] = best_k(block, k)
            scores[rows] = np.take_along_axis(block, places[rows], axis=1)

        self._score_blocks(X, chosen, keep)
        return chosen.names[places], scores

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
        other.class_table_ = join_classes(self.class_table_, as_class_embeddings(table))
        if self.class_embeddings is not None:
            other.class_embeddings = other.class_table_  # so that clones know them, too
        if self.normalize_classes:
            other.class_table_.unit_vectors()  # complains about vectors that cannot be normalised
        return other

    # -- files --------------------------------------------------------------------------------

    def _pack(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors, record = self._state()
        table = self.class_table_
        params = self.get_params(deep=False)
        params["class_embeddings"] = None if self.class_embeddings is None else "stored"
        params |= {"feature_scaling": self.scaler_.kind, "dtype": self.dtype_}
        params |= {"n_threads": None}  # a matter of the machine, not of the model
        if "balance_classes" in params:
            params["balance_classes"] = hasattr(self, "class_metric_")
        meta = {
            "model": type(self).__name__,
            "params": plain_params(params),
            "classes": {"dtype": self.classes_.dtype.str, "names": self.classes_.tolist()},
            "table": {
                "name": table.name,
                "names": table.names.tolist(),
                "columns": None if table.columns is None else list(table.columns),
            },
            "scaling": self.scaler_.kind,
            "feature_names": getattr(self, "feature_names_in_", np.array([])).tolist(),
            "record": record,
            **self._pack_calibration(),
        }
        if self.encoder_ is not None:
            meta["encoder"] = dict(self.encoder_)
        tensors = {
            **tensors,
            "table.vectors": table.vectors,
            "scaling.shift": self.scaler_.shift,
            "scaling.scale": self.scaler_.scale,
        }
        return tensors, meta

    @classmethod
    def _unpack(cls, tensors: dict[str, np.ndarray], meta: dict[str, Any]) -> Any:
        names, table = meta["classes"], meta["table"]
        stored = ClassEmbeddings(
            table["names"], tensors["table.vectors"], name=table["name"], columns=table["columns"]
        )
        params = dict(meta["params"])
        if params["class_embeddings"] is not None:
            params["class_embeddings"] = stored
        model = cls(**params)
        model._validate_params()
        model.class_table_ = stored
        model.dtype_ = model.dtype
        dtype = np.dtype(names["dtype"])
        if dtype.kind not in "OUiufb":
            raise storage.FileFormatError(f"class names of type {dtype} cannot be")
        model.classes_ = np.array(names["names"], dtype=dtype)
        stored.positions(model.classes_)
        shift, scale = tensors["scaling.shift"], tensors["scaling.scale"]
        if shift.ndim != 1 or shift.shape != scale.shape:
            raise storage.FileFormatError(f"scaling of shapes {shift.shape} and {scale.shape}")
        if not (np.isfinite(shift).all() and np.isfinite(scale).all()):
            raise storage.FileFormatError("scaling that is not finite")
        if meta["scaling"] != model.feature_scaling:
            raise storage.FileFormatError("the stored scaling is not the model's")
        model.scaler_ = FeatureScaler(meta["scaling"], shift, scale)
        model.n_features_in_ = len(shift)
        if meta["feature_names"]:
            if len(meta["feature_names"]) != len(shift):
                raise storage.FileFormatError("feature names and features differ in number")
            model.feature_names_in_ = np.array(meta["feature_names"], dtype=object)
        model._restore(tensors, meta["record"])
        model._unpack_calibration(meta)
        if "encoder" in meta:
            model.encoder_ = dict(meta["encoder"])
        return model

    # -- shared by the models -----------------------------------------------------------------

    def _check_training_images(
        self, X: Any, y: Any, *, reset: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Validated features and labels."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        X, y = validate_data(
            self, X, y, reset=reset, dtype=_FLOATS, order="C", ensure_all_finite=False
        )
        self._check_finite(X)
        with warnings.catch_warnings():
            # Zero-shot data may well have few images of each of many classes.
            warnings.filterwarnings("ignore", message="The number of unique classes is greater")
            check_classification_targets(y)
        self._uncalibrate()  # every training, first or further, comes this way
        return np.asarray(X), y

    def _check_images(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._check_features(X)

    def _check_features(self, X: Any) -> np.ndarray:
        """Validated features of as many columns as in training."""
        X = validate_data(self, X, reset=False, dtype=_FLOATS, order="C", ensure_all_finite=False)
        self._check_finite(X)
        return np.asarray(X)

    def _check_finite(self, X: np.ndarray) -> None:
        for first in range(0, len(X), 1024):
            finite = np.isfinite(X[first : first + 1024])
            if not finite.all():
                row, column = np.argwhere(~finite)[0]
                value = "NaN" if np.isnan(X[first + row, column]) else "inf (infinity)"
                raise ValueError(
                    f"{type(self).__name__} got X with {value} in row {first + row}, column "
                    f"{column}; drop such rows or fill in finite values."
                )

    def _set_classes(self, y: np.ndarray, classes: Any = None) -> None:
        """Set `classes_` and `class_table_` from the labels (and the declared classes)."""
        owner = type(self).__name__
        seen = np.unique(y)
        if classes is not None:
            declared = np.unique(column_or_1d(classes))
            odd = np.setdiff1d(seen, declared)
            if len(odd):
                raise ValueError(f"{owner} got labels {odd[:5].tolist()} that are not in classes.")
            seen = declared
        if len(seen) < 2:
            raise ValueError(
                f"{owner} needs images of at least 2 classes to learn from, but y has only "
                f"{len(seen)} class: {seen.tolist()}."
            )
        if self.class_embeddings is None:
            table = ClassEmbeddings(seen, np.eye(len(seen)), name="one-hot")
        else:
            table = as_class_embeddings(self.class_embeddings)
            self._check_label_type(seen, table)
            missing = [name for name in seen.tolist() if name not in table]
            if missing:
                raise ValueError(
                    f"{owner} got class_embeddings without rows for {some(missing)}; add them or "
                    f"drop those samples."
                )
        if self.normalize_classes:
            table.unit_vectors()  # complains now about vectors that cannot be normalised
        self.classes_ = seen
        self.class_table_ = table

    def _check_label_type(self, labels: np.ndarray, table: ClassEmbeddings) -> None:
        given, known = labels.tolist()[0], table.names.tolist()[0]
        given = given.item() if isinstance(given, np.generic) else given
        if type(given) is not type(known):
            as_text = isinstance(known, str) and str(given) in table
            remedy = "y = y.astype(str)" if as_text else "y = np.array(names)[y]"
            raise TypeError(
                f"{type(self).__name__} got labels of type {type(given).__name__} (such as "
                f"{given!r}), but the names in class_embeddings are of type "
                f"{type(known).__name__} (such as {known!r}); label the samples with the names, "
                f"for instance {remedy}."
            )

    def _codes(self, y: np.ndarray) -> np.ndarray:
        """Row numbers in `classes_` of some labels."""
        odd = np.setdiff1d(y, self.classes_)
        if len(odd):
            raise ValueError(
                f"{type(self).__name__} is being trained on {len(self.classes_)} classes, and "
                f"{odd[:5].tolist()} are not among them; name all classes in the first call to "
                f"partial_fit, or fit anew."
            )
        return np.searchsorted(self.classes_, y)

    def _vectors(self, table: ClassEmbeddings) -> np.ndarray:
        """Class vectors as the model uses them."""
        vectors = table.unit_vectors() if self.normalize_classes else table.vectors
        return np.ascontiguousarray(vectors, dtype=self.dtype_)

    def _begin_anew(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Validated images and labels; sets all that a fit knows before it learns."""
        forget_learned(self)
        X, y = self._check_training_images(X, y)
        self._set_classes(y)
        self.dtype_ = self.dtype
        self.scaler_ = FeatureScaler.fit(X, self.feature_scaling)
        return X, y

    def _exact_vectors(self) -> np.ndarray:
        """Vectors of the seen classes in float64, for closed forms."""
        table = self.class_table_.select(self.classes_)
        return table.unit_vectors() if self.normalize_classes else table.vectors

    def _check_tensor(
        self, tensors: dict[str, np.ndarray], name: str, shape: tuple[int, ...]
    ) -> np.ndarray:
        """Learned array of a file, if it is what it should be."""
        found = tensors[name]
        if found.dtype == np.float16:  # a file may save space
            found = found.astype(self.dtype)
        if found.shape != shape or found.dtype != self.dtype or not np.isfinite(found).all():
            raise storage.FileFormatError(
                f"{name} of shape {found.shape} and type {found.dtype}, not a finite {shape} of "
                f"{self.dtype}"
            )
        return found

    def _seen_vectors(self) -> np.ndarray:
        return self._vectors(self.class_table_.select(self.classes_))

    def _each_block(
        self, X: np.ndarray, n_classes: int, work: Callable[[slice, np.ndarray], None]
    ) -> None:
        """Call `work(rows, features)` for blocks of scaled rows, in several threads."""

        def task(rows: slice) -> None:
            features = self.scaler_.transform(X[rows], self.dtype_)
            if not np.isfinite(features).all():
                raise ValueError(
                    f"{type(self).__name__} got features among rows {rows.start} to "
                    f"{rows.stop - 1} that are too large to scale; they are far from what the "
                    f"model was trained on."
                )
            work(rows, features)

        run_all(task, row_blocks(len(X), n_classes), self.n_threads)

    def _score_blocks(
        self, X: np.ndarray, chosen: Candidates, keep: Callable[[slice, np.ndarray], None]
    ) -> None:
        """Call `keep(rows, scores)` for blocks of rows, in several threads."""
        score = self._block_scorer(chosen.vectors, len(X))

        def work(rows: slice, features: np.ndarray) -> None:
            keep(rows, score(features))

        self._each_block(X, len(chosen.names), work)

    def _candidates(self, classes: Any) -> Candidates:
        """Names and vectors of the classes meant by a `classes` argument."""
        table = self.class_table_
        if classes is None:
            return Candidates(self.classes_, self._seen_vectors())
        if isinstance(classes, str) and not classes.lower().endswith(TABLE_SUFFIXES):
            if classes == "all":
                chosen = table
            elif classes == "unseen":
                seen = set(self.classes_.tolist())
                names = [name for name in table.names.tolist() if name not in seen]
                if not names:
                    raise ValueError(
                        "There are no unseen classes: every class of the table was seen in "
                        "training. Give class_embeddings with more rows, or a table as classes (on "
                        "the command line --classes new.csv, or --classes all)."
                    )
                chosen = table.select(names)
            else:
                raise ValueError(
                    f"classes is 'all', 'unseen', a list of names or a class table, not "
                    f"{classes!r}; for a single class write [{classes!r}]."
                )
        elif isinstance(classes, ClassEmbeddings | pd.DataFrame | Mapping | str | PathLike) or (
            isinstance(classes, tuple) and len(classes) == 2 and np.ndim(classes[1]) == 2
        ):
            chosen = table.match_columns(as_class_embeddings(classes))
        else:
            if not isinstance(classes, Iterable):
                raise TypeError(
                    f"classes is None, 'all', 'unseen', a list of names or a class table, not "
                    f"{classes!r}."
                )
            names = list(classes)
            if not names:
                raise ValueError("classes is empty; name at least one candidate class.")
            if twice := [name for name, n in Counter(names).items() if n > 1]:
                raise ValueError(f"classes names {some(twice)} more than once; name each once.")
            chosen = table.select(names)
        return Candidates(chosen.names, self._vectors(chosen))
