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
from latem.models.affine_form import AffineForm
from latem.models.class_kernels import gaussian_kernel
from latem.models.class_view import Candidates
from latem.models.exemplar_equations import ExemplarEquations
from latem.models.from_sums import FromSums
from latem.models.map_model import read_only
from latem.models.scaling import Scaling
from latem.models.score_terms import ScoreTerms
from latem.models.shared_images import SharedImages

if TYPE_CHECKING:
    from typing_extensions import Self


_SHARED = "(what the seen classes share)"  # among what scores are sums of


class EXEM(FromSums):
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
    neighbour : {"1NNs", "1NN", "whitened"}
        Distances are Euclidean ("1NN"); or each principal component is divided by its standard
        deviation within a class, the mean over the seen classes ("1NNs"); or images are whitened
        by their covariance within classes, those of all seen classes together ("whitened", which
        is not in the paper).
    n_components : int
        Most principal components to keep.
    shrinkage : float
        With "whitened", the share of the mean variance that is added to every variance.
    feature_scaling : {"zmax", "zscore", "l2", "l2-centered"} or None
        "l2-centered" by default, as in the paper.
    normalize_classes : bool
        Whether class vectors are divided by their length.
    center_classes : bool
        Whether the mean of the seen classes' vectors is subtracted from all class vectors.
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
        Standard deviation along each axis within a class.
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

    _parameter_constraints: ClassVar[dict[str, Any]] = FromSums._parameter_constraints | {
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "neighbour": [StrOptions({"1NNs", "1NN", "whitened"})],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "center_classes": ["boolean"],
        "shrinkage": [Interval(Real, 0, None, closed="neither")],
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
        shrinkage: float = 1.0,
        feature_scaling: Scaling | None = "l2-centered",
        normalize_classes: bool = True,
        center_classes: bool = False,
        n_threads: int | None = None,
        dtype: str = "float32",
    ):
        self.class_embeddings = class_embeddings
        self.gamma = gamma
        self.alpha = alpha
        self.neighbour = neighbour
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.center_classes = center_classes
        self.n_threads = n_threads
        self.dtype = dtype

    @validated
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the principal components, and learn to predict class means in them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or images that come in blocks
            A Dask array or DataFrame, a `pyarrow` dataset, or an iterator of pairs of images and
            labels: see `latem.core.blocks`. Unless `neighbour` is "whitened" they are passed
            over twice, so an iterator will not do.
        y : array-like of shape (n_samples,)
            Of a `pyarrow` dataset the name of its column; None beside an iterator.

        Returns
        -------
        self
        """
        images = self._begin_images(X, y)
        with single_threaded_blas():
            self.learn(images)
        return self

    def learn(self, images: SharedImages) -> None:
        """Learn to predict class means, from images that others may learn from, too.

        Parameters
        ----------
        images : SharedImages
            The images that the model was prepared for.
        """
        equations = self.equations(images)
        coefficients, offset = equations.solve(self.gamma, self.alpha)
        self.rate_ = equations.rate(self.gamma)
        self.components_ = equations.components.astype(self.dtype_, order="C")
        self.image_mean_ = equations.mean.astype(self.dtype_)
        self.spreads_ = equations.spreads.astype(self.dtype_)
        self.offset_ = offset.astype(self.dtype_)
        self.coef_ = read_only(coefficients.astype(self.dtype_, order="C"))

    def equations(self, images: SharedImages) -> ExemplarEquations:
        """What a prediction of exemplars needs, of images that the model was prepared for."""
        return ExemplarEquations(
            images,
            self.class_view_.training(np.float64),
            self.n_components,
            self.shrinkage if self.neighbour == "whitened" else None,
        )

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

    def _linear(self, chosen: Candidates) -> tuple[np.ndarray, np.ndarray]:
        """Weights and constants of the scores, which are linear in the image."""

        def prepare() -> tuple[np.ndarray, np.ndarray]:
            exemplars = self._predict_exemplars(chosen.vectors)
            weighted = exemplars
            if self.neighbour != "1NN":
                weighted = exemplars / np.square(self.spreads_.astype(np.float64))
            weights = 2 * self.components_ @ weighted.T  # (n_features, n_classes)
            constants = -self.image_mean_ @ weights - (weighted * exemplars).sum(axis=1)
            return weights.astype(self.dtype_), constants.astype(self.dtype_)

        return chosen.prepared(self.coef_, self.neighbour, prepare)

    def _block_scorer(self, chosen: Candidates) -> Callable[[np.ndarray], np.ndarray]:
        weights, constants = self._linear(chosen)
        return lambda X: X @ weights + constants

    def affine_form(self, chosen: Candidates) -> AffineForm:
        """The scores, which are linear in the image."""
        return AffineForm.linear(*self._linear(chosen))

    def score_terms(self, features: np.ndarray, chosen: Candidates) -> ScoreTerms:
        """What the scores of an image are sums of, see `TableClassifier.score_terms`.

        An exemplar v is the sum over the seen classes of likeness times coefficients, and an
        offset. So 2 zᵀDv - vᵀDv is the sum over the same of their products with D(2z - v).
        """
        similar = self._kernel(chosen.vectors)  # (n_classes, n_seen)
        exemplars = self._predict_exemplars(chosen.vectors)
        image = (features - self.image_mean_) @ self.components_.astype(np.float64)
        directions = 2 * image - exemplars
        if self.neighbour != "1NN":
            directions = directions / np.square(self.spreads_.astype(np.float64))
        factors = directions @ self.coef_.astype(np.float64).T
        shared = directions @ self.offset_.astype(np.float64)
        columns = [f"like {name}" for name in self.classes_.tolist()]
        return ScoreTerms(
            [*columns, _SHARED],
            np.column_stack([factors * similar, shared]),
            np.column_stack([factors * similar.std(axis=0), np.zeros(len(shared))]),
        )

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
