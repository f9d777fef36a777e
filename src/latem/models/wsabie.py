"""`WSABIE`: low-rank bilinear compatibility learned by WARP (Weston, Bengio, Usunier, IJCAI 2011).

F(x, y) = (U x)ᵀ (V y): image and class vector meet in a space of few dimensions. A visit looks at
the other classes in random order until one violates the margin, and takes a step that is weighted
by an estimate of the true class's rank, as `ALE` does.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from latem.core.threads import single_threaded_blas
from latem.core.validation import Interval, validated
from latem.models.affine_form import AffineForm
from latem.models.bilinear import warp_weights
from latem.models.class_view import Candidates
from latem.models.scaling import Scaling
from latem.models.score_terms import ScoreTerms, map_terms
from latem.models.sgd.loop import diverged
from latem.models.sgd.visits import epoch_generator, random_maps
from latem.models.table_model import TableClassifier

if TYPE_CHECKING:
    from typing_extensions import Self

_BLOCK = 512


class WSABIE(TableClassifier):
    """Low-rank bilinear compatibility, weighted approximate-rank pairwise loss.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
        Descriptions of the classes, seen and unseen; None means one-hot.
    rank : int
        Dimensions of the common space.
    learning_rate : float
        Step size, constant.
    n_epochs : int
        Passes over the training images.
    margin : float
        By how much the true class should beat its rivals.
    max_norm : float or None
        Longest column of U and of V allowed, the authors' regulariser; enforced after every
        epoch.
    init_scale : float
        Initial entries have standard deviation ``init_scale / sqrt(number of columns)``.
    feature_scaling : {"zmax", "zscore", "l2", "l2-centered"} or None
    normalize_classes : bool
        Whether class vectors are divided by their length.
    class_kernel : float or None
        Width of a kernel on the class side, see `ESZSL`.
    n_threads : int or None
        Threads for scoring; results do not depend on it.
    dtype : {"float32", "float64"}
    random_state : int, RandomState or None
        Seed of the initial matrices, the visiting order and the draws of rivals.

    Attributes
    ----------
    image_map_ : ndarray of shape (rank, n_features)
        The matrix U.
    class_map_ : ndarray of shape (rank, n_dimensions)
        The matrix V.
    history_ : dict of lists
        Per epoch: "violation_rate" and "mean_loss".
    n_iter_ : int
    classes_, class_table_, scaler_
        As for every model.

    Examples
    --------
    >>> from latem import WSABIE, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> model = WSABIE(world.embeddings["att"], rank=8, random_state=0).fit(*world.training())
    >>> model.score(*world.testing()) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = TableClassifier._parameter_constraints | {
        "rank": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "margin": [Interval(Real, 0, None, closed="left")],
        "max_norm": [Interval(Real, 0, None, closed="neither"), None],
        "init_scale": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }
    _learned = "image_map_"
    image_map_: np.ndarray
    class_map_: np.ndarray
    history_: dict[str, list[float]]
    n_iter_: int

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        rank: int = 50,
        learning_rate: float = 0.01,
        n_epochs: int = 100,
        margin: float = 1.0,
        max_norm: float | None = None,
        init_scale: float = 1.0,
        feature_scaling: Scaling | None = "zmax",
        normalize_classes: bool = True,
        class_kernel: float | None = None,
        n_threads: int | None = None,
        dtype: str = "float32",
        random_state: int | np.random.RandomState | None = None,
    ):
        self.class_embeddings = class_embeddings
        self.rank = rank
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.margin = margin
        self.max_norm = max_norm
        self.init_scale = init_scale
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.class_kernel = class_kernel
        self.n_threads = n_threads
        self.dtype = dtype
        self.random_state = random_state

    @validated
    def fit(self, X: Any, y: Any) -> Self:
        """Learn U and V from images of seen classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        X, labels = self._begin_anew(X, y)
        Y = self.class_view_.training()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        U, V = self._initial_maps(seed, X.shape[1], Y.shape[1])
        number = Y.dtype.type
        from latem.models.sgd.dense_kernels import warp_visits  # late: answering needs no compiler

        weights = warp_weights(len(Y)).astype(self.dtype_)
        buffer = np.empty((_BLOCK, X.shape[1]), self.dtype_)
        history: dict[str, list[float]] = {"violation_rate": [], "mean_loss": []}
        for epoch in range(1, self.n_epochs + 1):
            order, draw = self._visits(epoch_generator(seed, epoch), len(X))
            with single_threaded_blas():
                Z = Y @ V.T
            violations, loss = 0, 0.0
            for first in range(0, len(order), _BLOCK):
                rows = order[first : first + _BLOCK]
                block = self.scaler_.load(X, rows, buffer)
                count, hinge = warp_visits(
                    block, labels[rows], Y, draw(len(rows), len(Y)), weights,
                    number(self.learning_rate), number(self.margin), U, V, Z,
                )  # fmt: skip
                violations += count
                loss += hinge
            if self.max_norm is not None:
                shorten_columns(U, self.max_norm)
                shorten_columns(V, self.max_norm)
            if not (np.isfinite(loss) and np.isfinite(U).all() and np.isfinite(V).all()):
                raise diverged(epoch, self.learning_rate)
            history["violation_rate"].append(violations / len(X))
            history["mean_loss"].append(loss / len(X))
        self.history_ = history
        self.n_iter_ = self.n_epochs
        self.class_map_ = V
        self.image_map_ = U
        return self

    def _initial_maps(
        self, seed: int, n_features: int, n_dimensions: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Random U and V."""
        scale, n_columns = self.init_scale, n_features + n_dimensions
        both = random_maps(seed, (1, n_columns, self.rank), scale, self.dtype_)[0].T
        both *= np.sqrt(n_columns)
        U, V = both[:, :n_features], both[:, n_features:]
        return (
            np.ascontiguousarray(U / np.sqrt(n_features), dtype=self.dtype_),
            np.ascontiguousarray(V / np.sqrt(n_dimensions), dtype=self.dtype_),
        )

    def _visits(
        self, rng: np.random.Generator, n_samples: int
    ) -> tuple[np.ndarray, Callable[[int, int], np.ndarray]]:
        """Order of the images, and what draws random numbers for the next visits."""
        order = rng.permutation(n_samples)
        return order, lambda n_visits, n_classes: rng.random((n_visits, n_classes), np.float32)

    @property
    def map_(self) -> np.ndarray:
        """The bilinear map Uᵀ V, of shape (n_features, n_dimensions)."""
        return self.image_map_.T.astype(np.float64) @ self.class_map_

    def _block_scorer(self, chosen: Candidates) -> Callable[[np.ndarray], np.ndarray]:
        candidates = self.class_map_ @ chosen.vectors.T

        def score(X: np.ndarray) -> np.ndarray:
            return (X @ self.image_map_.T) @ candidates

        return score

    def affine_form(self, chosen: Candidates) -> AffineForm:
        """The scores, which are linear in the image."""
        return AffineForm.linear(self.image_map_.T @ (self.class_map_ @ chosen.vectors.T))

    def score_terms(self, features: np.ndarray, chosen: Candidates) -> ScoreTerms:
        """What the scores of an image are sums of, see `TableClassifier.score_terms`."""
        return map_terms(self.map_[None], self.class_view_, features, chosen)

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors = {"image_map": self.image_map_, "class_map": self.class_map_}
        return tensors, {"n_iter": self.n_iter_, "history": self.history_}

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        width = self.class_view_.width
        self.class_map_ = self._check_tensor(tensors, "class_map", (self.rank, width))
        self.image_map_ = self._check_tensor(tensors, "image_map", (self.rank, self.n_features_in_))
        self.n_iter_ = int(record["n_iter"])
        self.history_ = dict(record["history"])


def shorten_columns(matrix: np.ndarray, longest: float) -> None:
    """Scale columns that are longer than allowed down to the allowed length, in place."""
    lengths = np.linalg.norm(matrix, axis=0)
    matrix *= np.minimum(1, longest / np.maximum(lengths, np.finfo(matrix.dtype).tiny))
