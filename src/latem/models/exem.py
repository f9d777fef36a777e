"""`EXEM`: predicted visual exemplars (Changpinyo, Chao and Sha, ICCV 2017).

Images are brought to few dimensions by principal components. There the mean of a class's images,
its exemplar, is predicted from its vector by a kernel regression learned on the seen classes, and
the class with the nearest exemplar is the answer. The paper's regression is ν-SVR, one per
dimension; this one is kernel ridge regression with the same kernel, which predicts all dimensions
at once.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latem.core.storage import FileFormatError
from latem.core.threads import single_threaded_blas
from latem.core.validation import Interval, StrOptions, validated
from latem.embeddings.table import ClassEmbeddings
from latem.models.axes import PrincipalAxes
from latem.models.class_kernels import (
    class_means,
    class_variances,
    gaussian_kernel,
    kernel_ridge,
    median_distance,
)
from latem.models.class_view import Candidates
from latem.models.map_model import read_only
from latem.models.scaling import Scaling
from latem.models.table_model import TableClassifier

if TYPE_CHECKING:
    from typing_extensions import Self

_LEAST = 1e-3  # standard deviations are at least this share of the largest one


class EXEM(TableClassifier):
    """Predicted exemplars: kernel regression to class means, nearest exemplar.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
        Descriptions of the classes, seen and unseen; None means one-hot.
    gamma : float
        γ of the kernel exp(-γ ‖a - b‖² / m²), where m is the median distance of two seen classes'
        vectors.
    alpha : float
        Ridge penalty of the regression, above zero.
    neighbour : {"1NNs", "1NN"}
        Distances are Euclidean ("1NN"), or each dimension is divided by its standard deviation
        within a class, the mean over the seen classes ("1NNs").
    n_components : int
        Most principal components to keep.
    feature_scaling : {"zmax", "zscore", "l2", "l2-centered"} or None
        "l2-centered" by default, as in the paper.
    normalize_classes : bool
        Whether class vectors are divided by their length.
    n_threads : int or None
        Threads for scoring; results do not depend on it.
    dtype : {"float32", "float64"}
        Precision of what is learned and of scores; it is computed in float64.

    Attributes
    ----------
    components_ : ndarray of shape (n_features, n_kept)
    image_mean_ : ndarray of shape (n_features,)
        Images are compared as ``(x - image_mean_) @ components_``.
    coef_ : ndarray of shape (n_seen, n_kept)
    offset_ : ndarray of shape (n_kept,)
        The exemplar of a class with kernel values k is ``k @ coef_ + offset_``.
    spreads_ : ndarray of shape (n_kept,)
        Standard deviation of each dimension within a class.
    rate_ : float
        γ / m².
    classes_, class_table_, scaler_
        As for every model.

    Notes
    -----
    With the exemplar v of a class, D the inverse squares of `spreads_` (or ones) and z the image in
    its principal components, a score is 2 zᵀDv - vᵀDv: the negative squared distance, but for what
    is the same for all classes.

    References
    ----------
    S. Changpinyo, W.-L. Chao and F. Sha: Predicting visual exemplars of unseen classes for
    zero-shot learning. ICCV 2017.

    Examples
    --------
    >>> from latem import EXEM, SJE, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> model = EXEM(world.embeddings["att"]).fit(*world.training())
    >>> model.score(*world.testing()) > 0.9
    True

    Exemplars describe classes for any other model:

    >>> other = SJE(model.exemplars(), random_state=0).fit(*world.training())
    >>> other.score(*world.testing()) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = TableClassifier._parameter_constraints | {
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "neighbour": [StrOptions({"1NNs", "1NN"})],
        "n_components": [Interval(Integral, 1, None, closed="left")],
    }
    _learned = "coef_"
    components_: np.ndarray
    image_mean_: np.ndarray
    coef_: np.ndarray
    offset_: np.ndarray
    spreads_: np.ndarray
    rate_: float

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        gamma: float = 0.25,
        alpha: float = 0.1,
        neighbour: str = "1NNs",
        n_components: int = 500,
        feature_scaling: Scaling | None = "l2-centered",
        normalize_classes: bool = True,
        n_threads: int | None = None,
        dtype: str = "float32",
    ):
        self.class_embeddings = class_embeddings
        self.gamma = gamma
        self.alpha = alpha
        self.neighbour = neighbour
        self.n_components = n_components
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.n_threads = n_threads
        self.dtype = dtype

    @validated
    def fit(self, X: Any, y: Any) -> Self:
        """Find the principal components, and learn to predict class means in them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        X, codes = self._begin_anew(X, y)
        with single_threaded_blas():
            vectors = self.class_view_.training(np.float64)
            axes = PrincipalAxes(self.scaler_.transform(X, np.float64))
            kept = slice(None, -self.n_components - 1, -1)  # from the largest on
            images = axes.Z[:, kept]
            means = class_means(images, codes, len(vectors))
            spreads = np.sqrt(class_variances(images, codes, means)).mean(axis=0)
            self.rate_ = self.gamma / median_distance(vectors) ** 2
            coefficients, offset = kernel_ridge(self._kernel(vectors), means, self.alpha)
        floor = _LEAST * spreads.max(initial=0)
        spreads = np.maximum(spreads, floor) if floor > 0 else np.ones_like(spreads)
        self.components_ = axes.Q[:, kept].astype(self.dtype_, order="C")
        self.image_mean_ = axes.mean.astype(self.dtype_)
        self.spreads_ = spreads.astype(self.dtype_)
        self.offset_ = offset.astype(self.dtype_)
        self.coef_ = read_only(coefficients.astype(self.dtype_, order="C"))
        return self

    def exemplars(self, classes: Any = "all") -> ClassEmbeddings:
        """Predicted exemplars as a table that describes classes for any other model.

        They are learned from all seen classes: a search on held-out classes that uses them is a
        little too hopeful about the classes it holds out.

        Parameters
        ----------
        classes
            Which classes; see `decision_function`.

        Returns
        -------
        ClassEmbeddings
            One column per principal component.
        """
        check_is_fitted(self)
        chosen = self.class_view_.candidates(classes)
        with single_threaded_blas():
            vectors = self._predict_exemplars(chosen.vectors)
        return ClassEmbeddings(chosen.names, vectors, name=f"{self.class_table_.name}_exemplars")

    def _kernel(self, vectors: np.ndarray) -> np.ndarray:
        """Likeness to the seen classes, of shape (n_classes, n_seen)."""
        seen = self.class_view_.training(np.float64)
        return gaussian_kernel(vectors.astype(np.float64), seen, self.rate_)

    def _predict_exemplars(self, vectors: np.ndarray) -> np.ndarray:
        """Exemplars in principal components, in float64."""
        return self._kernel(vectors) @ self.coef_.astype(np.float64) + self.offset_

    def _block_scorer(self, chosen: Candidates) -> Callable[[np.ndarray], np.ndarray]:
        def prepare() -> tuple[np.ndarray, np.ndarray]:
            exemplars = self._predict_exemplars(chosen.vectors)
            weighted = exemplars
            if self.neighbour == "1NNs":
                weighted = exemplars / np.square(self.spreads_.astype(np.float64))
            weights = 2 * self.components_ @ weighted.T  # (n_features, n_classes)
            constants = -self.image_mean_ @ weights - (weighted * exemplars).sum(axis=1)
            return weights.astype(self.dtype_), constants.astype(self.dtype_)

        weights, constants = chosen.prepared(self.coef_, self.neighbour, prepare)
        return lambda X: X @ weights + constants

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors = {
            "components": self.components_,
            "image_mean": self.image_mean_,
            "coef": self.coef_,
            "offset": self.offset_,
            "spreads": self.spreads_,
        }
        return tensors, {"rate": self.rate_}

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        width, n_kept = self.n_features_in_, tensors["offset"].size
        self.offset_ = self._check_tensor(tensors, "offset", (n_kept,))
        self.components_ = self._check_tensor(tensors, "components", (width, n_kept))
        self.image_mean_ = self._check_tensor(tensors, "image_mean", (width,))
        self.spreads_ = self._check_tensor(tensors, "spreads", (n_kept,))
        coefficients = self._check_tensor(tensors, "coef", (len(self.classes_), n_kept))
        if not (self.spreads_ > 0).all():
            raise FileFormatError("spreads that are not above zero")
        self.rate_ = float(record["rate"])
        if not 0 < self.rate_ < np.inf:
            raise FileFormatError(f"a rate of {self.rate_}, not a number above zero")
        self.coef_ = read_only(coefficients)
