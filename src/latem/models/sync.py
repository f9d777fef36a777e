"""`SynC`: synthesised classifiers (Changpinyo, Chao, Gong and Sha, CVPR 2016).

Classifiers of all classes are mixtures of the same base classifiers v_r, those of phantom classes
that have vectors, too: w_c = Σ_r s_cr v_r, where s_cr ∝ exp(-τ ‖a_c - a_r‖²) adds up to 1 over r.
Here, as in the paper's experiments, there is one phantom class for every seen class, with the same
vector. The square matrix S of the seen classes' mixtures then decides nothing while they are
learned: any classifiers W of the seen classes are mixtures, V = S⁻¹ W. So W is learned first, one
class against the others by squared hinge loss (`latem.models.squared_hinge`), or all against all
with larger margins between classes that are less alike (`latem.models.structured_hinge`), and an
unseen class u gets s_u S⁻¹ W.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import linalg
from scipy.spatial.distance import cdist
from scipy.special import softmax

from latem.core.arrays import settled
from latem.core.storage import FileFormatError
from latem.core.threads import single_threaded_blas
from latem.core.validation import Interval, StrOptions, validated
from latem.models.affine_form import AffineForm
from latem.models.class_kernels import median_distance
from latem.models.class_view import Candidates
from latem.models.map_model import read_only
from latem.models.scaling import Scaling
from latem.models.squared_hinge import fit_one_versus_rest
from latem.models.table_model import TableClassifier

if TYPE_CHECKING:
    from typing_extensions import Self


class SynC(TableClassifier):
    """Synthesised classifiers: those of the seen classes, mixed by how alike classes are.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
        Descriptions of the classes, seen and unseen; None means one-hot.
    tau : float
        τ of the likeness exp(-τ ‖a - b‖² / m²) of two classes, where m is the median distance of
        two seen classes' vectors. The larger it is, the more the nearest class counts alone.
    lam : float
        Weight λ of the squared length of a classifier, above zero, beside its mean loss.
    loss : {"one-versus-other", "structured"}
        The paper's two losses, both squared hinges: every class's own score against all others'
        images with a margin of 1, or every image's own class against the others with the margin
        Δ(c, y) = ‖a_c - a_y‖² / m². The second has no offsets; features are centred for it.
    max_iter : int
        Most Newton steps of the solver, or rounds of ten passes over the images if structured;
        scikit-learn's ConvergenceWarning tells if they do not suffice.
    feature_scaling : {"zmax", "zscore", "l2", "l2-centered"} or None
    normalize_classes : bool
        Whether class vectors are divided by their length.
    n_threads : int or None
        Threads for learning and scoring; results do not depend on it.
    dtype : {"float32", "float64"}
        Precision of what is learned and of scores; it is computed in float64.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features, n_seen)
    intercept_ : ndarray of shape (n_seen,)
        Classifiers of the seen classes; their scores are ``x @ coef_ + intercept_``.
    rate_ : float
        τ / m².
    n_iter_ : int
        Newton steps or rounds the solver took.
    classes_, class_table_, scaler_
        As for every model.

    References
    ----------
    S. Changpinyo, W.-L. Chao, B. Gong and F. Sha: Synthesized classifiers for zero-shot learning.
    CVPR 2016.

    Examples
    --------
    >>> from latem import SynC, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> model = SynC(world.embeddings["att"]).fit(*world.training())
    >>> model.score(*world.testing()) > 0.8
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = TableClassifier._parameter_constraints | {
        "tau": [Interval(Real, 0, None, closed="neither")],
        "lam": [Interval(Real, 0, None, closed="neither")],
        "loss": [StrOptions({"one-versus-other", "structured"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    _learned = "coef_"
    coef_: np.ndarray
    intercept_: np.ndarray
    rate_: float
    n_iter_: int

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        tau: float = 0.5,
        lam: float = 2.0**-9,
        loss: str = "one-versus-other",
        max_iter: int = 100,
        feature_scaling: Scaling | None = "l2-centered",
        normalize_classes: bool = True,
        n_threads: int | None = None,
        dtype: str = "float32",
    ):
        self.class_embeddings = class_embeddings
        self.tau = tau
        self.lam = lam
        self.loss = loss
        self.max_iter = max_iter
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.n_threads = n_threads
        self.dtype = dtype

    @validated
    def fit(self, X: Any, y: Any) -> Self:
        """Learn the classifiers of the seen classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        X, codes = self._begin_anew(X, y)
        images, vectors = (
            self.scaler_.transform(X, np.float64),
            self.class_view_.training(np.float64),
        )
        unit = median_distance(vectors) ** 2
        how: dict[str, Any] = {"lam": self.lam, "max_iter": self.max_iter}
        if self.loss == "structured":
            from latem.models.structured_hinge import fit_structured  # late: it is compiled

            mean, margins = images.mean(axis=0), cdist(vectors, vectors, "sqeuclidean") / unit
            coefficients, self.n_iter_ = fit_structured(images - mean, codes, margins, **how)
            intercepts = -mean @ coefficients
        else:
            coefficients, intercepts, self.n_iter_ = fit_one_versus_rest(
                images, codes, n_threads=self.n_threads, **how
            )
        self.rate_ = self.tau / unit
        self.intercept_ = intercepts.astype(self.dtype_)
        self.coef_ = read_only(coefficients.astype(self.dtype_, order="C"))
        return self

    def mixtures(self, classes: Any = "unseen") -> np.ndarray:
        """How much of every seen class's classifier is in that of a class.

        Parameters
        ----------
        classes
            Which classes; see `decision_function`.

        Returns
        -------
        ndarray of shape (n_classes, n_seen)
            s S⁻¹, with a row for every class of ``candidate_names(classes)``.
        """
        self.candidate_names(classes)  # says so if the model is not fitted
        with single_threaded_blas():
            return self._mix(self.class_view_.candidates(classes).vectors)

    def bases(self) -> np.ndarray:
        """S⁻¹, of shape (n_seen, n_seen): base classifiers as mixtures of the seen classes' own."""
        seen = self.class_view_.training(np.float64)
        return linalg.pinv(self._likeness(seen, seen))

    def _mix(self, vectors: np.ndarray) -> np.ndarray:
        seen = self.class_view_.training(np.float64)
        return settled(self._likeness(vectors.astype(np.float64), seen) @ self.bases())

    def _likeness(self, vectors: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """s: how alike classes and phantom classes are, every row adding up to 1."""
        return softmax(-self.rate_ * cdist(vectors, seen, "sqeuclidean"), axis=1)

    def _linear(self, chosen: Candidates) -> tuple[np.ndarray, np.ndarray]:
        """Weights and constants of the scores, which are linear in the image."""

        def prepare() -> tuple[np.ndarray, np.ndarray]:
            mixtures = self._mix(chosen.vectors)
            weights, constants = self.coef_ @ mixtures.T, mixtures @ self.intercept_
            return weights.astype(self.dtype_), constants.astype(self.dtype_)

        return chosen.prepared(self.coef_, None, prepare)

    def _block_scorer(self, chosen: Candidates) -> Callable[[np.ndarray], np.ndarray]:
        weights, constants = self._linear(chosen)
        return lambda X: X @ weights + constants

    def affine_form(self, chosen: Candidates) -> AffineForm:
        """The scores, which are linear in the image."""
        return AffineForm.linear(*self._linear(chosen))

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        record = {"rate": self.rate_, "n_iter": self.n_iter_}
        return {"coef": self.coef_, "intercept": self.intercept_}, record

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        n_seen = len(self.classes_)
        self.intercept_ = self._check_tensor(tensors, "intercept", (n_seen,))
        coefficients = self._check_tensor(tensors, "coef", (self.n_features_in_, n_seen))
        self.rate_, self.n_iter_ = float(record["rate"]), int(record["n_iter"])
        if not 0 < self.rate_ < np.inf:
            raise FileFormatError(f"a rate of {self.rate_}, not a number above zero")
        self.coef_ = read_only(coefficients)
