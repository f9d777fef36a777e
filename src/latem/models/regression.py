"""`SemanticOutputCodes`: regression to the class vector, then the nearest class.

Palatucci, Pomerleau, Hinton and Mitchell (NIPS 2009): a ridge regression predicts the class vector
from the image, and the class whose vector is nearest is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.linear_model import Ridge

from latem.core.arrays import unit_rows
from latem.core.threads import single_threaded_blas
from latem.core.validation import Interval, StrOptions, validated
from latem.models.class_view import Candidates
from latem.models.scaling import Scaling
from latem.models.table_model import TableClassifier

if TYPE_CHECKING:
    from typing_extensions import Self


class SemanticOutputCodes(TableClassifier):
    """Ridge regression to the class vector, nearest class.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
        Descriptions of the classes, seen and unseen; None means one-hot.
    alpha : float
        Ridge penalty, above zero.
    neighbour : {"euclidean", "cosine"}
        Which class is nearest: scores are negative squared distances, or cosines.
    feature_scaling : {"zmax", "zscore", "l2", "l2-centered"} or None
    normalize_classes : bool
        Whether class vectors are divided by their length.
    class_kernel : float or None
        Width of a kernel on the class side, see `ESZSL`.
    n_threads : int or None
        Threads for scoring; results do not depend on it.
    dtype : {"float32", "float64"}
        Precision of what is learned and of scores; it is computed in float64.

    Attributes
    ----------
    map_ : ndarray of shape (n_features, n_dimensions)
    offset_ : ndarray of shape (n_dimensions,)
        The predicted class vector is ``x @ map_ + offset_``.
    classes_, class_table_, scaler_
        As for every model.

    Examples
    --------
    >>> from latem import SemanticOutputCodes, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> model = SemanticOutputCodes(world.embeddings["att"]).fit(*world.training())
    >>> model.score(*world.testing()) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = TableClassifier._parameter_constraints | {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "neighbour": [StrOptions({"euclidean", "cosine"})],
    }
    _learned = "map_"
    map_: np.ndarray
    offset_: np.ndarray

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        alpha: float = 1.0,
        neighbour: str = "euclidean",
        feature_scaling: Scaling | None = "zmax",
        normalize_classes: bool = True,
        class_kernel: float | None = None,
        n_threads: int | None = None,
        dtype: str = "float32",
    ):
        self.class_embeddings = class_embeddings
        self.alpha = alpha
        self.neighbour = neighbour
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.class_kernel = class_kernel
        self.n_threads = n_threads
        self.dtype = dtype

    @validated
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the regression.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        X, codes = self._begin_anew(X, y)
        targets = self.class_view_.training(np.float64)[codes]
        ridge = Ridge(alpha=self.alpha, solver="cholesky")
        with single_threaded_blas():
            ridge.fit(self.scaler_.transform(X, np.float64), targets)
        coefficients = np.atleast_2d(ridge.coef_)  # (n_dimensions, n_features)
        self.offset_ = np.ravel(ridge.intercept_).astype(self.dtype_)
        self.map_ = np.ascontiguousarray(coefficients.T, dtype=self.dtype_)
        return self

    def _block_scorer(self, chosen: Candidates) -> Callable[[np.ndarray], np.ndarray]:
        nearness = neighbour_scorer(self.neighbour, chosen.vectors)

        def score(X: np.ndarray) -> np.ndarray:
            return nearness(X @ self.map_ + self.offset_)

        return score

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {"map": self.map_, "offset": self.offset_}, {}

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        width = self.class_view_.width
        self.offset_ = self._check_tensor(tensors, "offset", (width,))
        self.map_ = self._check_tensor(tensors, "map", (self.n_features_in_, width))


def neighbour_scorer(neighbour: str, vectors: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Function from predicted class vectors to their nearness to these, by either measure."""
    if neighbour == "cosine":
        directions = unit_rows(vectors)

        def cosine(predicted: np.ndarray) -> np.ndarray:
            return unit_rows(predicted) @ directions.T

        return cosine
    squares = np.square(vectors).sum(axis=1)

    def euclidean(predicted: np.ndarray) -> np.ndarray:
        squared_lengths = np.square(predicted).sum(axis=1, keepdims=True)
        return 2 * (predicted @ vectors.T) - squares - squared_lengths

    return euclidean
