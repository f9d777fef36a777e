"""`DAP` and `IAP`: from attributes to classes by Bayes' rule (Lampert et al., CVPR 2009).

Both ask how probable it is that an image shows each attribute, and score class z by

    Σ_m log p(a_m = a_m^z | x) - log p(a_m = a_m^z),

where a^z is the class's row of the table, cut into present and absent at a threshold. *Direct*
attribute prediction has a classifier for each attribute; *indirect* attribute prediction has one
over the seen classes, and p(a_m = 1 | x) is the sum of p(k | x) over the classes k with the
attribute.
"""

from __future__ import annotations

import math
import re
import warnings
from abc import abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import logit, softmax

from latem.core import storage
from latem.core.progress import progress_bar
from latem.core.validation import Interval, StrOptions, validated
from latem.embeddings.table import ClassEmbeddings
from latem.models.class_view import Candidates
from latem.models.logistic import fit_binary, fit_softmax
from latem.models.scaling import Scaling
from latem.models.table_model import TableClassifier

if TYPE_CHECKING:
    from typing_extensions import Self

_NO_ATTRIBUTES = {"w2v", "glo", "glove", "cn", "wiki", "bow", "hie", "text"}
LEAST = 1e-12  # probability that IAP gives an attribute which no likely class explains


class _AttributeModel(TableClassifier):
    """What DAP and IAP share: the parameters, the binary table and Bayes' rule."""

    _parameter_constraints: ClassVar[dict[str, Any]] = TableClassifier._parameter_constraints | {
        "threshold": [StrOptions({"mean", "column"}), Interval(Real, None, None, closed="neither")],
        "prior": [StrOptions({"classes", "uniform"})],
        "C": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["boolean"],
    }
    _learned = "coef_"
    thresholds_: np.ndarray
    prior_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray
    n_iter_: int

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        threshold: str | float = "mean",
        prior: str = "classes",
        C: float = 0.01,
        max_iter: int = 1000,
        feature_scaling: Scaling | None = "zscore",
        normalize_classes: bool = False,
        n_threads: int | None = None,
        dtype: str = "float32",
        verbose: bool = False,
    ):
        self.class_embeddings = class_embeddings
        self.threshold = threshold
        self.prior = prior
        self.C = C
        self.max_iter = max_iter
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.n_threads = n_threads
        self.dtype = dtype
        self.verbose = verbose

    # -- what the two fill in -----------------------------------------------------------------

    @abstractmethod
    def _fit_classifiers(self, X: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Learn from scaled images and class numbers; coefficients and intercepts."""

    @abstractmethod
    def _log_probabilities(self, kept: np.ndarray) -> Callable[[np.ndarray], Any]:
        """Function from scaled features to log p(a = 0 | x) and the log-odds of a = 1."""

    @abstractmethod
    def _n_outputs(self) -> int:
        """Number of columns of `coef_`."""

    # -- learning -----------------------------------------------------------------------------

    @validated
    def fit(self, X: Any, y: Any) -> Self:
        """Cut the table into present and absent, and fit the classifiers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        X, codes = self._begin_anew(X, y)
        owner = type(self).__name__
        if self.class_embeddings is not None:
            _warn_unless_attributes(owner, self.class_table_)
        self.thresholds_ = self._find_thresholds()
        present = self._present(self.class_view_.training())
        self.prior_ = present.mean(axis=0).astype(self.dtype_)
        if not self._telling().any():
            raise ValueError(
                f"{owner} got class_embeddings in which no attribute tells the seen classes "
                f"apart at threshold={self.threshold!r}; choose another threshold."
            )
        coefficients, intercepts = self._fit_classifiers(
            self.scaler_.transform(X, np.float64), codes
        )
        self.intercept_ = intercepts.astype(self.dtype_)
        self.coef_ = np.ascontiguousarray(coefficients, dtype=self.dtype_)
        return self

    def _find_thresholds(self) -> np.ndarray:
        """One threshold per attribute, from the seen classes; sums are exact, in any order."""
        vectors = self.class_view_.training()
        if self.threshold == "column":
            means = [math.fsum(column) / len(column) for column in vectors.T.tolist()]
            return np.array(means).astype(self.dtype_)
        value = self.threshold
        if value == "mean":
            value = math.fsum(vectors.ravel().tolist()) / vectors.size
        return np.full(vectors.shape[1], value, self.dtype_)

    def _present(self, vectors: np.ndarray) -> np.ndarray:
        """Which class has which attribute."""
        return vectors > self.thresholds_

    def _telling(self) -> np.ndarray:
        """Attributes that some seen classes have and others lack."""
        return (self.prior_ > 0) & (self.prior_ < 1)

    # -- scoring ------------------------------------------------------------------------------

    def _block_scorer(self, chosen: Candidates) -> Callable[[np.ndarray], np.ndarray]:
        kept = np.flatnonzero(self._telling())
        present = self._present(chosen.vectors)[:, kept].T.astype(self.dtype_)
        prior = self.prior_[kept] if self.prior == "classes" else np.full(len(kept), 0.5)
        odds, absence = (part.astype(self.dtype_) for part in (logit(prior), np.log1p(-prior)))
        log_probabilities = self._log_probabilities(kept)

        def score(X: np.ndarray) -> np.ndarray:
            absent, log_odds = log_probabilities(X)
            nothing = (absent - absence).sum(axis=1, keepdims=True)  # no attribute present
            return (log_odds - odds) @ present + nothing

        return score

    # -- files --------------------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors = {
            "thresholds": self.thresholds_,
            "prior": self.prior_,
            "coef": self.coef_,
            "intercept": self.intercept_,
        }
        return tensors, {"n_iter": self.n_iter_}

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        width, n_outputs = self.class_table_.n_dimensions, self._n_outputs()
        self.thresholds_ = self._check_tensor(tensors, "thresholds", (width,))
        self.prior_ = self._check_tensor(tensors, "prior", (width,))
        if self.prior_.min() < 0 or self.prior_.max() > 1:
            raise storage.FileFormatError("prior is not a share of the classes")
        self.intercept_ = self._check_tensor(tensors, "intercept", (n_outputs,))
        self.coef_ = self._check_tensor(tensors, "coef", (self.n_features_in_, n_outputs))
        self.n_iter_ = int(record["n_iter"])


class DAP(_AttributeModel):
    """Direct attribute prediction: one classifier for each attribute.

    An attribute that all seen classes have, or none, is left out: nothing can be learned about it.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
        Attributes of the classes, seen and unseen; None means one-hot. A table that does not look
        like attributes causes a warning: one called like word vectors, a hierarchy or text (such
        as "w2v", "glo", "hie", "text", also as a part of "att+glo"), or, if it is not called
        "att", one with negative numbers and without names of columns.
    threshold : {"mean", "column"} or float
        A class has an attribute if its value is above this: the mean of all values of the seen
        classes, as in the paper, for attributes that share one scale, such as percentages; the
        mean of each attribute, for traits in different units; or a number of your own.
    prior : {"classes", "uniform"}
        p(a_m): the share of the seen classes that have the attribute, or one half.
    C : float
        Inverse regularisation of the logistic regressions. Errors of many attributes add up, so
        they should not be too confident.
    max_iter : int
        Most iterations of their solver (`latem.models.logistic`, which says how near it comes to
        the optimum); a ConvergenceWarning tells if they do not suffice.
    feature_scaling : {"zmax", "zscore", "l2", "l2-centered"} or None
        "zscore" by default: logistic regression wants features of about unit deviation.
    normalize_classes : bool
        Whether class vectors are divided by their length before they are cut at the threshold.
    n_threads : int or None
        Threads for fitting and scoring; results do not depend on it.
    dtype : {"float32", "float64"}
        Precision of what is learned and of scores; it is computed in float64.
    verbose : bool
        Show progress.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_dimensions,)
        Found on the seen classes, and used for every other class too.
    prior_ : ndarray of shape (n_dimensions,)
        Share of the seen classes that have the attribute; those at 0 or 1 are left out.
    coef_ : ndarray of shape (n_features, n_dimensions)
    intercept_ : ndarray of shape (n_dimensions,)
        Log-odds of the attributes are ``x @ coef_ + intercept_``; zeros for those left out.
    n_iter_ : int
        Most iterations that an attribute took.
    classes_, class_table_, scaler_
        As for every model.

    Examples
    --------
    >>> from latem import DAP, make_latent_world
    >>> world = make_latent_world(n_poses=1, n_unseen=4, random_state=0)
    >>> model = DAP(world.embeddings["att"]).fit(*world.training())
    >>> model.score(*world.testing()) > 0.9
    True
    """

    def _fit_classifiers(self, X: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        present = self._present(self.class_view_.training())
        kept = np.flatnonzero(self._telling())
        coefficients = np.zeros((X.shape[1], present.shape[1]))
        intercepts = np.zeros(present.shape[1])
        with progress_bar(self.verbose, "training", total=len(kept), unit="attributes") as advance:
            coefficients[:, kept], intercepts[kept], self.n_iter_ = fit_binary(
                X,
                present[:, kept][codes],
                C=self.C,
                max_iter=self.max_iter,
                n_threads=self.n_threads,
                done=advance,
            )
        return coefficients, intercepts

    def _log_probabilities(self, kept: np.ndarray) -> Callable[[np.ndarray], Any]:
        coefficients, intercepts = self.coef_[:, kept], self.intercept_[kept]

        def log_probabilities(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            log_odds = X @ coefficients + intercepts
            return -np.logaddexp(0, log_odds), log_odds

        return log_probabilities

    def _n_outputs(self) -> int:
        return self.class_table_.n_dimensions


class IAP(_AttributeModel):
    """Indirect attribute prediction: attributes by way of the seen classes.

    Parameters
    ----------
    class_embeddings, threshold, prior
        As for `DAP`, with the same warning.
    C, max_iter
        Of the logistic regression over the seen classes.
    feature_scaling, normalize_classes, n_threads, dtype, verbose
        As for `DAP`. Fitting uses one thread.

    Attributes
    ----------
    thresholds_, prior_ : ndarray of shape (n_dimensions,)
        As for `DAP`.
    coef_ : ndarray of shape (n_features, n_seen)
    intercept_ : ndarray of shape (n_seen,)
        Logits of the seen classes are ``x @ coef_ + intercept_``.
    n_iter_ : int
        Iterations the solver took.
    classes_, class_table_, scaler_
        As for every model.

    Notes
    -----
    An attribute's presence or absence never counts as less probable than 1e-12.

    Examples
    --------
    >>> from latem import IAP, make_latent_world
    >>> world = make_latent_world(n_poses=1, n_unseen=4, random_state=0)
    >>> model = IAP(world.embeddings["att"]).fit(*world.training())
    >>> model.score(*world.testing()) > 0.5
    True
    """

    def _fit_classifiers(self, X: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with progress_bar(self.verbose, "training", unit="iterations") as advance:
            coefficients, intercepts, self.n_iter_ = fit_softmax(
                X, codes, C=self.C, max_iter=self.max_iter, done=advance
            )
        return coefficients, intercepts

    def _log_probabilities(self, kept: np.ndarray) -> Callable[[np.ndarray], Any]:
        having = self._present(self.class_view_.training())[:, kept].astype(self.dtype_)
        lacking = 1 - having

        def log_probabilities(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            classes = softmax(X @ self.coef_ + self.intercept_, axis=1)
            absent, present = (
                np.log(np.maximum(classes @ weights, LEAST)) for weights in (lacking, having)
            )
            return absent, present - absent

        return log_probabilities

    def _n_outputs(self) -> int:
        return len(self.classes_)


def _warn_unless_attributes(owner: str, table: ClassEmbeddings) -> None:
    """Warn about a table by the rule in `DAP`'s documentation."""
    parts = table.name.lower().split("+")
    odd = [part for part in parts if part in _NO_ATTRIBUTES]
    if odd:
        reason = f"{odd[0]!r} is the name of another kind of vector"
    elif "att" not in parts and not _has_titles(table) and (table.vectors < 0).any():
        reason = "it has negative numbers and no column names"
    else:
        return
    title = f" {table.name!r}" if table.name else ""
    warnings.warn(
        f"{owner} got a class table{title} that does not look like attributes: {reason}. It cuts "
        f"every column into present and absent; give it attributes, or use a model for vectors of "
        f"any kind, such as LatEm or ESZSL.",
        UserWarning,
        stacklevel=3,
    )


def _has_titles(table: ClassEmbeddings) -> bool:
    """Whether columns have names that are more than numbers, such as "dim_000"."""
    titles = table.columns or ()
    return any(not re.fullmatch(r"(.*_)?\d+", title) for title in titles)
