"""`GFZSL`: a Gaussian for every class, predicted from its vector (Verma and Rai, ECML-PKDD 2017).

Images of a class are Gaussian with a mean and a variance of their own in every dimension. Both are
measured on the seen classes, and predicted for any class from its vector, by kernel ridge
regressions with the kernel (1 + a·b)²: one for the means, one for the logarithms of the variances.
The class in which the image is most likely is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from latem.core.threads import single_threaded_blas
from latem.core.validation import Interval, validated
from latem.models.class_kernels import (
    class_means,
    class_variances,
    kernel_ridge,
    quadratic_kernel,
)
from latem.models.class_view import Candidates
from latem.models.map_model import read_only
from latem.models.scaling import Scaling
from latem.models.table_model import TableClassifier

if TYPE_CHECKING:
    from typing_extensions import Self

_LEAST = 1e-6  # variances within classes are at least this share of their mean over dimensions


class GFZSL(TableClassifier):
    """Generative framework: a predicted Gaussian for every class, most likely class.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
        Descriptions of the classes, seen and unseen; None means one-hot.
    alpha : float
        Ridge penalty of the regression to means, above zero.
    variance_alpha : float
        Ridge penalty of the regression to logarithms of variances, above zero. The larger it is,
        the more all classes have the same variances.
    prior_images : float
        How many images the variances that are common to all classes count for, when the variances
        of a class are measured; above zero.
    feature_scaling : {"zmax", "zscore", "l2", "l2-centered"} or None
        "zscore" by default. Each dimension has its own variance, so its scale hardly matters.
    normalize_classes : bool
        Whether class vectors are divided by their length.
    n_threads : int or None
        Threads for scoring; results do not depend on it.
    dtype : {"float32", "float64"}
        Precision of what is learned and of scores; it is computed in float64.

    Attributes
    ----------
    mean_coef_, variance_coef_ : ndarray of shape (n_seen, n_features)
    mean_offset_, variance_offset_ : ndarray of shape (n_features,)
        A class with kernel values k has the mean ``k @ mean_coef_ + mean_offset_`` and the
        variances ``exp(k @ variance_coef_ + variance_offset_)``.
    classes_, class_table_, scaler_
        As for every model.

    Notes
    -----
    Scores are logarithms of the density, without the constant -log(2π) / 2 of each dimension.

    References
    ----------
    V. K. Verma and P. Rai: A simple exponential family framework for zero-shot learning.
    ECML-PKDD 2017.

    Examples
    --------
    >>> from latem import GFZSL, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> model = GFZSL(world.embeddings["att"]).fit(*world.training())
    >>> model.score(*world.testing()) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = TableClassifier._parameter_constraints | {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "variance_alpha": [Interval(Real, 0, None, closed="neither")],
        "prior_images": [Interval(Real, 0, None, closed="neither")],
    }
    _learned = "mean_coef_"
    mean_coef_: np.ndarray
    mean_offset_: np.ndarray
    variance_coef_: np.ndarray
    variance_offset_: np.ndarray

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        alpha: float = 0.1,
        variance_alpha: float = 100.0,
        prior_images: float = 10.0,
        feature_scaling: Scaling | None = "zscore",
        normalize_classes: bool = True,
        n_threads: int | None = None,
        dtype: str = "float32",
    ):
        self.class_embeddings = class_embeddings
        self.alpha = alpha
        self.variance_alpha = variance_alpha
        self.prior_images = prior_images
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.n_threads = n_threads
        self.dtype = dtype

    @validated
    def fit(self, X: Any, y: Any) -> Self:
        """Measure the seen classes' Gaussians, and learn to predict them.

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
            features = self.scaler_.transform(X, np.float64)
            means = class_means(features, codes, len(vectors))
            variances = self._variances(features, codes, means)
            kernel = quadratic_kernel(vectors, vectors)
            mean, mean_offset = kernel_ridge(kernel, means, self.alpha)
            spread, spread_offset = kernel_ridge(kernel, np.log(variances), self.variance_alpha)
        self.mean_offset_ = mean_offset.astype(self.dtype_)
        self.variance_offset_ = spread_offset.astype(self.dtype_)
        self.variance_coef_ = spread.astype(self.dtype_, order="C")
        self.mean_coef_ = read_only(mean.astype(self.dtype_, order="C"))
        return self

    def _variances(self, features: np.ndarray, codes: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Variances of every seen class, drawn towards those that all have in common."""
        counts = np.bincount(codes, minlength=len(means))[:, None]
        own = class_variances(features, codes, means)
        common = (counts * own).sum(axis=0) / len(features)
        # where no class varies, any variance will do: there are no distances to compare it with
        common = np.maximum(common, _LEAST * common.mean() or 1.0)
        return (counts * own + self.prior_images * common) / (counts + self.prior_images)

    def _block_scorer(self, chosen: Candidates) -> Callable[[np.ndarray], np.ndarray]:
        def prepare() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            seen = self.class_view_.training(np.float64)
            kernel = quadratic_kernel(chosen.vectors.astype(np.float64), seen)
            means = kernel @ self.mean_coef_ + self.mean_offset_
            logarithms = kernel @ self.variance_coef_ + self.variance_offset_
            with np.errstate(over="ignore", invalid="ignore"):  # reported with the scores
                precisions = np.exp(-logarithms)
                constants = -(precisions * np.square(means) + logarithms).sum(axis=1) / 2
            return -precisions.T / 2, (precisions * means).T, constants

        squared, linear, constant = chosen.prepared(self.mean_coef_, None, prepare)

        def scores(X: np.ndarray) -> np.ndarray:
            X = X.astype(np.float64)  # large terms cancel
            return (np.square(X) @ squared + X @ linear + constant).astype(self.dtype_)

        return scores

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors = {
            "mean_coef": self.mean_coef_,
            "mean_offset": self.mean_offset_,
            "variance_coef": self.variance_coef_,
            "variance_offset": self.variance_offset_,
        }
        return tensors, {}

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        width = self.n_features_in_
        shape = (len(self.classes_), width)
        self.mean_offset_ = self._check_tensor(tensors, "mean_offset", (width,))
        self.variance_offset_ = self._check_tensor(tensors, "variance_offset", (width,))
        self.variance_coef_ = self._check_tensor(tensors, "variance_coef", shape)
        self.mean_coef_ = read_only(self._check_tensor(tensors, "mean_coef", shape))
