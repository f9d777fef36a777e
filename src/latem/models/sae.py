"""`SAE`: the semantic autoencoder (Kodirov, Xiang and Gong, CVPR 2017), in closed form.

With images X (d_x × n, one per column) and the class vectors of those images S (d_y × n), an
encoder W (d_y × d_x) carries images to class vectors, and its transpose carries them back:

    min_W ‖X - Wᵀ S‖² + λ ‖W X - S‖²,   solved by   S Sᵀ W + λ W X Xᵀ = (1 + λ) S Xᵀ.

This is a Sylvester equation with two symmetric matrices. In the axes of both, S Sᵀ = U diag(e) Uᵀ
and X Xᵀ = V diag(d) Vᵀ, it falls apart into numbers:

    (Uᵀ W V)_ij = (1 + λ) (Uᵀ S Xᵀ V)_ij / (e_i + λ d_j).

That is quicker than a solver for any Sylvester equation, and directions in which neither images nor
classes differ, where such a solver finds no answer, are left out. S is never built: images added up
by class, and how many they are, suffice.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import linalg

from latem.core.arrays import settled, unit_rows
from latem.core.threads import single_threaded_blas
from latem.core.validation import Interval, StrOptions, validated
from latem.models.class_view import Candidates
from latem.models.from_sums import FromSums
from latem.models.normal_equations import NormalEquations
from latem.models.scaling import Scaling

if TYPE_CHECKING:
    from typing_extensions import Self


class SAE(FromSums):
    """Semantic autoencoder: one map, there and back, in closed form.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
        Descriptions of the classes, seen and unseen; None means one-hot.
    lam : float
        Weight λ of the way there, from images to class vectors, above zero. Its size belongs to
        the scale of features and class vectors.
    direction : {"visual", "semantic"}
        Where the nearest class is looked for. "visual" compares the image with the images that
        class vectors are carried to, "semantic" the class vector that the image is carried to
        with those of the classes. Both compare by cosine.
    feature_scaling : {"zmax", "zscore", "l2", "l2-centered"} or None
        "l2-centered" by default: images have length one, like class vectors, and mean zero.
    normalize_classes : bool
        Whether class vectors are divided by their length.
    class_kernel : float or None
        Width of a kernel on the class side, see `ESZSL`.
    n_threads : int or None
        Threads for scoring; results do not depend on it.
    dtype : {"float32", "float64"}
        Precision of the map and of scores; it is computed in float64.

    Attributes
    ----------
    map_ : ndarray of shape (n_features, n_dimensions)
        Wᵀ: ``x @ map_`` is the class vector of an image, ``y @ map_.T`` the image of a class.
    classes_, class_table_, scaler_
        As for every model.

    References
    ----------
    E. Kodirov, T. Xiang and S. Gong: Semantic autoencoder for zero-shot learning. CVPR 2017.

    Examples
    --------
    >>> from latem import SAE, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> model = SAE(world.embeddings["att"]).fit(*world.training())
    >>> model.score(*world.testing()) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = FromSums._parameter_constraints | {
        "lam": [Interval(Real, 0, None, closed="neither")],
        "direction": [StrOptions({"visual", "semantic"})],
    }
    _learned = "map_"
    map_: np.ndarray

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        lam: float = 0.1,
        direction: str = "visual",
        feature_scaling: Scaling | None = "l2-centered",
        normalize_classes: bool = True,
        class_kernel: float | None = None,
        n_threads: int | None = None,
        dtype: str = "float32",
    ):
        self.class_embeddings = class_embeddings
        self.lam = lam
        self.direction = direction
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.class_kernel = class_kernel
        self.n_threads = n_threads
        self.dtype = dtype

    @validated
    def fit(self, X: Any, y: Any = None) -> Self:
        """Solve for the map.

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
            vectors = self.class_view_.training(np.float64)
            sums = NormalEquations(images.sums, vectors)
            classes = (vectors.T * images.counts) @ vectors  # S Sᵀ
            exact = _solve(sums.images.total, classes, sums.cross, self.lam)
        self.map_ = exact.astype(self.dtype_, order="C")
        return self

    def _block_scorer(self, chosen: Candidates) -> Callable[[np.ndarray], np.ndarray]:
        if self.direction == "visual":
            # classes that differ only in what no seen class has are carried to the same image
            images = settled(chosen.vectors @ self.map_.T, float(np.abs(self.map_).max()))
            prototypes = settled(unit_rows(images))
            return lambda X: unit_rows(X) @ prototypes.T
        directions = unit_rows(chosen.vectors)
        return lambda X: unit_rows(X @ self.map_) @ directions.T

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {"map": self.map_}, {}

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        shape = (self.n_features_in_, self.class_view_.width)
        self.map_ = self._check_tensor(tensors, "map", shape)


def _solve(images: np.ndarray, classes: np.ndarray, cross: np.ndarray, lam: float) -> np.ndarray:
    """Wᵀ from X Xᵀ, S Sᵀ and X Sᵀ."""
    d, V = _axes(images)
    e, U = _axes(classes)
    inner = (1 + lam) * (V.T @ cross @ U) / (e + lam * d[:, None])
    return V @ inner @ U.T


def _axes(moment: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues that are more than rounding, and their eigenvectors."""
    values, vectors = linalg.eigh(moment)
    kept = values > values.max(initial=0) * len(moment) * np.finfo(np.float64).eps
    return values[kept], vectors[:, kept]
