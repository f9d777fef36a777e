"""`CCA`: canonical correlation analysis between images and their class vectors, computed exactly.

Find directions in both spaces along which image and class vector correlate most (Hotelling, 1936).
With covariances C_xx, C_yy and C_xy over the training images, each image with its class's vector,

    (C_xx + r_x I)^-½ C_xy (C_yy + r_y I)^-½ = U diag(ρ) Vᵀ,

and images and classes are compared by the cosine of their projections, each direction weighted by
ρ to a power (Gong, Ke, Isard and Lazebnik, IJCV 2014).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import linalg

from latem.core.arrays import unit_rows
from latem.core.threads import single_threaded_blas
from latem.core.validation import Interval, validated
from latem.models.class_view import Candidates
from latem.models.from_sums import FromSums
from latem.models.scaling import Scaling
from latem.models.shared_images import SharedImages

if TYPE_CHECKING:
    from typing_extensions import Self

_ROWS = 1024
_NEGLIGIBLE = 1e-8  # relative to the largest correlation


class CCA(FromSums):
    """Canonical correlation analysis, largest cosine.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
        Descriptions of the classes, seen and unseen; None means one-hot.
    n_components : int or None
        How many directions are kept, those of largest correlation; None keeps all of
        non-negligible correlation, at most one fewer than there are seen classes.
    reg_x, reg_y : float
        Added to the variance of every direction, in multiples of the mean variance of a feature
        (`reg_x`) or of a dimension of the class vectors (`reg_y`); above zero.
    power : float
        Directions are weighted by their correlation to this power, on both sides.
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
    correlations_ : ndarray of shape (n_components,)
        Correlations ρ of the directions, largest first.
    image_map_ : ndarray of shape (n_features, n_components)
    class_map_ : ndarray of shape (n_dimensions, n_components)
        Projections, with the weights.
    image_mean_ : ndarray of shape (n_features,)
    class_mean_ : ndarray of shape (n_dimensions,)
        Means over the training images; they are subtracted before projection.
    classes_, class_table_, scaler_
        As for every model.

    Examples
    --------
    >>> from latem import CCA, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> model = CCA(world.embeddings["att"]).fit(*world.training())
    >>> model.score(*world.testing()) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = FromSums._parameter_constraints | {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "reg_x": [Interval(Real, 0, None, closed="neither")],
        "reg_y": [Interval(Real, 0, None, closed="neither")],
        "power": [Interval(Real, 0, None, closed="left")],
    }
    _learned = "image_map_"
    correlations_: np.ndarray
    image_map_: np.ndarray
    class_map_: np.ndarray
    image_mean_: np.ndarray
    class_mean_: np.ndarray

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        n_components: int | None = None,
        reg_x: float = 1.0,
        reg_y: float = 1.0,
        power: float = 1.0,
        feature_scaling: Scaling | None = "zscore",
        normalize_classes: bool = True,
        class_kernel: float | None = None,
        n_threads: int | None = None,
        dtype: str = "float32",
    ):
        self.class_embeddings = class_embeddings
        self.n_components = n_components
        self.reg_x = reg_x
        self.reg_y = reg_y
        self.power = power
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.class_kernel = class_kernel
        self.n_threads = n_threads
        self.dtype = dtype

    @validated
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the directions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or images that come in blocks
            A Dask array or DataFrame, a `pyarrow` dataset, or an iterator of pairs of images and
            labels: see `latem.core.blocks`.
        y : array-like of shape (n_samples,)
            Of a `pyarrow` dataset the name of its column; None beside an iterator.

        Returns
        -------
        self
        """
        images = self._begin_images(X, y)
        with single_threaded_blas():
            self._solve(images, self.class_view_.training(np.float64))
        return self

    def _solve(self, images: SharedImages, vectors: np.ndarray) -> None:
        n, image_mean, total, by_class = images.scatter
        counts = images.counts / n
        class_mean = counts @ vectors
        centred = vectors - class_mean
        c_yy = (centred.T * counts) @ centred
        c_xy = (by_class.T @ centred) / n
        whiten_x, whiten_y = _whitener(total / n, self.reg_x), _whitener(c_yy, self.reg_y)
        left, correlations, right = linalg.svd(whiten_x @ c_xy @ whiten_y, full_matrices=False)
        n_telling = int((correlations > _NEGLIGIBLE * correlations[0]).sum())
        kept = slice(max(min(self.n_components or n_telling, n_telling), 1))
        weights = correlations[kept] ** self.power
        self.correlations_ = correlations[kept].astype(self.dtype_)
        self.image_mean_ = image_mean.astype(self.dtype_)
        self.class_mean_ = class_mean.astype(self.dtype_)
        self.class_map_ = (whiten_y @ right[kept].T * weights).astype(self.dtype_)
        self.image_map_ = (whiten_x @ left[:, kept] * weights).astype(self.dtype_)

    def _block_scorer(self, chosen: Candidates) -> Callable[[np.ndarray], np.ndarray]:
        classes = unit_rows((chosen.vectors - self.class_mean_) @ self.class_map_)

        def score(X: np.ndarray) -> np.ndarray:
            return unit_rows((X - self.image_mean_) @ self.image_map_) @ classes.T

        return score

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors = {
            "correlations": self.correlations_,
            "image_map": self.image_map_,
            "class_map": self.class_map_,
            "image_mean": self.image_mean_,
            "class_mean": self.class_mean_,
        }
        return tensors, {}

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        d_x, d_y = self.n_features_in_, self.class_view_.width
        n_components = tensors["correlations"].size
        self.correlations_ = self._check_tensor(tensors, "correlations", (n_components,))
        self.class_map_ = self._check_tensor(tensors, "class_map", (d_y, n_components))
        self.image_mean_ = self._check_tensor(tensors, "image_mean", (d_x,))
        self.class_mean_ = self._check_tensor(tensors, "class_mean", (d_y,))
        self.image_map_ = self._check_tensor(tensors, "image_map", (d_x, n_components))


def _whitener(covariance: np.ndarray, reg: float) -> np.ndarray:
    """Inverse square root of a regularised covariance."""
    values, directions = linalg.eigh(covariance)
    mean = np.trace(covariance) / len(covariance) or 1.0  # all constant: nothing to whiten
    return (directions / np.sqrt(np.maximum(values, 0) + reg * mean)) @ directions.T
