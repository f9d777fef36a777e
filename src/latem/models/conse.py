"""`ConSE`: a convex combination of seen class vectors (Norouzi et al., ICLR 2014).

A classifier over the seen classes gives probabilities. The image's vector is the mean of the T most
probable classes' vectors, weighted by those probabilities, and the class with the largest cosine to
it is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from latem.core.arrays import unit_rows
from latem.core.threads import single_threaded_blas
from latem.core.validation import Interval, validated
from latem.models.class_view import Candidates
from latem.models.scaling import Scaling
from latem.models.table_model import TableClassifier

if TYPE_CHECKING:
    from typing_extensions import Self


class ConSE(TableClassifier):
    """Convex combination of semantic embeddings.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
        Descriptions of the classes, seen and unseen; None means one-hot.
    n_top : int
        T, how many of the most probable seen classes are combined.
    C : float
        Inverse regularisation of the logistic regression over seen classes.
    max_iter : int
        Most iterations of its solver; scikit-learn warns if they do not suffice.
    feature_scaling : {"zmax", "zscore", "l2", "l2-centered"} or None
        "zscore" by default: logistic regression wants features of about unit deviation.
    normalize_classes : bool
        Whether class vectors are divided by their length.
    n_threads : int or None
        Threads for scoring; results do not depend on it.
    dtype : {"float32", "float64"}
        Precision of what is learned and of scores; it is computed in float64.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features, n_seen)
    intercept_ : ndarray of shape (n_seen,)
        Logits of the seen classes are ``x @ coef_ + intercept_``.
    n_iter_ : int
        Iterations the solver took.
    classes_, class_table_, scaler_
        As for every model.

    Examples
    --------
    >>> from latem import ConSE, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> model = ConSE(world.embeddings["att"]).fit(*world.training())
    >>> model.score(*world.testing()) > 0.5
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = TableClassifier._parameter_constraints | {
        "n_top": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    _learned = "coef_"
    coef_: np.ndarray
    intercept_: np.ndarray
    n_iter_: int

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        n_top: int = 10,
        C: float = 1.0,
        max_iter: int = 1000,
        feature_scaling: Scaling | None = "zscore",
        normalize_classes: bool = True,
        n_threads: int | None = None,
        dtype: str = "float32",
    ):
        self.class_embeddings = class_embeddings
        self.n_top = n_top
        self.C = C
        self.max_iter = max_iter
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.n_threads = n_threads
        self.dtype = dtype

    @validated
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the classifier over the seen classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        X, codes = self._begin_anew(X, y)
        inner = LogisticRegression(C=self.C, max_iter=self.max_iter)
        with single_threaded_blas():
            inner.fit(self.scaler_.transform(X, np.float64), codes)
        self.n_iter_ = int(np.max(inner.n_iter_))
        coefficients, intercept = inner.coef_, inner.intercept_
        if len(self.classes_) == 2:  # scikit-learn keeps the second class's logit only
            coefficients = np.concatenate([np.zeros_like(coefficients), coefficients])
            intercept = np.concatenate([np.zeros(1), intercept])
        self.intercept_ = intercept.astype(self.dtype_)
        self.coef_ = np.ascontiguousarray(coefficients.T, dtype=self.dtype_)
        return self

    def _block_scorer(self, chosen: Candidates) -> Callable[[np.ndarray], np.ndarray]:
        seen, candidates = self.class_view_.training(), unit_rows(chosen.vectors)
        n_left_out = max(len(seen) - self.n_top, 0)

        def score(X: np.ndarray) -> np.ndarray:
            weights = softmax(X @ self.coef_ + self.intercept_, axis=1)
            if n_left_out:
                least = np.argpartition(weights, n_left_out - 1, axis=1)[:, :n_left_out]
                np.put_along_axis(weights, least, 0, axis=1)
            mixed = (weights / weights.sum(axis=1, keepdims=True)) @ seen
            return unit_rows(mixed) @ candidates.T

        return score

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {"coef": self.coef_, "intercept": self.intercept_}, {"n_iter": self.n_iter_}

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        n_seen = len(self.classes_)
        self.intercept_ = self._check_tensor(tensors, "intercept", (n_seen,))
        self.coef_ = self._check_tensor(tensors, "coef", (self.n_features_in_, n_seen))
        self.n_iter_ = int(record["n_iter"])
