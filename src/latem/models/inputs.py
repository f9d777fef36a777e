"""Checks of what a model is given: images, labels, and a table that describes them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from latem.core.blocks import as_blocks
from latem.core.messages import first_few, hint_of
from latem.embeddings.table import ClassEmbeddings, as_class_embeddings
from latem.models.bad_rows import check_finite
from latem.models.base import ZeroShotClassifier

_FLOATS = (np.float64, np.float32, np.float16)
_by_place = ContextVar("_by_place", default=False)


@contextmanager
def columns_by_place() -> Iterator[None]:
    """Columns of images have no names, and need none, for what this thread does meanwhile.

    Without it a model that was fitted to columns with names warns of every array.
    """
    before = _by_place.set(True)
    try:
        yield
    finally:
        _by_place.reset(before)


class InputChecks(ZeroShotClassifier):
    """What every model with a class table checks before it learns or answers."""

    class_embeddings: Any

    def check_training_images(
        self, X: Any, y: Any, *, reset: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Validated features and labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        reset : bool
            Whether these are the first images of a fit, which set the number of features.
        """
        if y is None and not isinstance(X, Iterator):
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        if as_blocks(X, y) is not None:
            raise TypeError(
                f"{type(self).__name__} needs all images in memory, and these come in blocks; give "
                f"an array (a memory map will do), or take ESZSL, SAE, CCA, EXEM, LatEm or LatEmCV."
            )
        given = X
        X, y = validate_data(
            self, X, y, reset=reset, dtype=_FLOATS, order="C", ensure_all_finite=False
        )
        check_finite(X, type(self).__name__)
        with warnings.catch_warnings():
            # Zero-shot data may well have few images of each of many classes.
            warnings.filterwarnings("ignore", message="The number of unique classes is greater")
            check_classification_targets(y)
        if reset:
            self.note_encoder(given, X.shape[1])
        return np.asarray(X), y

    def check_images(self, X: Any) -> np.ndarray:
        """Validated features of as many columns as in training; the model must be fitted."""
        check_is_fitted(self)
        return self._check_features(X)

    def check_width(self, X: Any) -> np.ndarray:
        """The same, but whether they are finite is left to `each_block`, which scales them."""
        check_is_fitted(self)
        return self._check_shape(X)

    def _check_features(self, X: Any) -> np.ndarray:
        X = self._check_shape(X)
        check_finite(X, type(self).__name__)
        return X

    def _check_shape(self, X: Any) -> np.ndarray:
        if not self._is_as_expected(X):
            X = validate_data(
                self, X, reset=False, dtype=_FLOATS, order="C", ensure_all_finite=False
            )
        return np.asarray(X)

    def _is_as_expected(self, X: Any) -> bool:
        """Whether X is a plain array that scikit-learn's slow validation would leave alone."""
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype.type in _FLOATS
            and X.flags.c_contiguous
            and len(X) > 0
            and X.shape[1] == self.n_features_in_
            and (_by_place.get() or not hasattr(self, "feature_names_in_"))
        )

    def _seen_classes(self, y: np.ndarray, classes: Any) -> np.ndarray:
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
        return seen

    def _checked_table(self, seen: np.ndarray) -> ClassEmbeddings:
        """The class table; it must describe every seen class."""
        if self.class_embeddings is None:
            return ClassEmbeddings(seen, np.eye(len(seen)), name="one-hot")
        owner = type(self).__name__
        table = as_class_embeddings(self.class_embeddings)
        given, known = seen.tolist()[0], table.names.tolist()[0]
        given = given.item() if isinstance(given, np.generic) else given
        if type(given) is not type(known):
            as_text = isinstance(known, str) and str(given) in table
            remedy = "y = y.astype(str)" if as_text else "y = np.array(names)[y]"
            raise TypeError(
                f"{owner} got labels of type {type(given).__name__} (such as {given!r}), but the "
                f"names in class_embeddings are of type {type(known).__name__} (such as "
                f"{known!r}); label the samples with the names, for instance {remedy}."
            )
        missing = [name for name in seen.tolist() if name not in table]
        if missing:
            raise ValueError(
                f"{owner} got class_embeddings without rows for {first_few(missing)}"
                f"{hint_of(missing, table.names.tolist())}; add them or drop those samples."
            )
        return table

    def class_codes(self, y: np.ndarray) -> np.ndarray:
        """Row numbers in `classes_` of some labels."""
        odd = np.setdiff1d(y, self.classes_)
        if len(odd):
            raise ValueError(
                f"{type(self).__name__} is being trained on {len(self.classes_)} classes, and "
                f"{odd[:5].tolist()} are not among them; name all classes in the first call to "
                f"partial_fit, or call fit."
            )
        return np.searchsorted(self.classes_, y)
