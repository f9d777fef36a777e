"""`CMT`: cross-modal transfer (Socher et al., NIPS 2013).

A small network carries images into the space of class vectors by minimising

    1/n Σ_i ‖y_i - W₁ tanh(W₂ x_i + b₂) - b₁‖² + α (‖W₁‖² + ‖W₂‖²),

and the class whose vector is nearest is the answer. The paper has no offsets b; they are there
because standardised images have mean zero and class vectors do not. With novelty detection (CMT*),
an image that lies outside of every seen class is named among the unseen classes, and any other
image among the seen ones.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.utils import check_random_state

from latem.core.storage import FileFormatError
from latem.core.threads import single_threaded_blas
from latem.core.validation import Interval, StrOptions, validated
from latem.models.class_view import Candidates
from latem.models.regression import neighbour_scorer
from latem.models.scaling import Scaling
from latem.models.scoring import Keep
from latem.models.sgd.loop import diverged
from latem.models.table_model import TableClassifier

if TYPE_CHECKING:
    from typing_extensions import Self

_BATCH = 128
_FIRST_DECAY, _SECOND_DECAY, _FLOOR = 0.9, 0.999, 1e-8  # of Adam


class CMT(TableClassifier):
    """Cross-modal transfer: a network with one hidden layer, nearest class.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
        Descriptions of the classes, seen and unseen; None means one-hot.
    n_hidden : int
        Number of tanh units.
    alpha : float
        Weight decay α.
    fit_intercept : bool
        Whether there are offsets b. The paper has none.
    solver : {"lbfgs", "sgd"}
        L-BFGS on all images, or Adam's steps on mini-batches of 128.
    max_iter : int
        Iterations after which L-BFGS stops, if it has not converged.
    n_epochs : int
        Passes over the images with "sgd".
    learning_rate : float
        Step size of "sgd".
    neighbour : {"euclidean", "cosine"}
        Which class is nearest: scores are negative squared distances, or cosines.
    novelty : {"gaussian"} or None
        How images of unseen classes are recognised; see Notes.
    novelty_quantile : float
        Share of a class's training images that lie within its threshold; with a smaller one,
        more images are novel.
    feature_scaling : {"zmax", "zscore", "l2", "l2-centered"} or None
        "zscore" by default: tanh units want features of about unit deviation.
    normalize_classes : bool
        Whether class vectors are divided by their length.
    class_kernel : float or None
        Width of a kernel on the class side, see `ESZSL`.
    n_threads : int or None
        Threads for scoring; results do not depend on it.
    dtype : {"float32", "float64"}
        Precision of what is learned and of scores; it is computed in float64.
    random_state : int, RandomState or None
        Seed of the initial weights and of the mini-batches.

    Attributes
    ----------
    hidden_map_ : ndarray of shape (n_features, n_hidden)
    hidden_offset_ : ndarray of shape (n_hidden,)
    map_ : ndarray of shape (n_hidden, n_dimensions)
    offset_ : ndarray of shape (n_dimensions,)
        The predicted class vector is
        ``np.tanh(x @ hidden_map_ + hidden_offset_) @ map_ + offset_``.
    radii_ : ndarray of shape (n_seen,)
        Squared distance from the class vector within which an image is like a seen class.
    loss_ : float
        What was minimised, at the end.
    n_iter_ : int
        Iterations or epochs.
    classes_, class_table_, scaler_
        As for every model.

    Notes
    -----
    With ``novelty="gaussian"``, the paper's first strategy, each seen class is an isotropic
    Gaussian around its vector, and an image is novel if its density is under the threshold of
    every class. Such a density falls with the distance alone, so each threshold is a radius. A
    novel image favours the unseen classes, any other the seen ones. Scores of favoured classes
    are s / (s + d²), between 0 and 1, and those of the others -(s + d²) / s, at most -1, where d²
    is the squared distance and s the mean of `radii_`; with cosines, the others lose 3. So the
    score of a class depends on no other candidate, and only candidates that mix seen and unseen
    classes get other answers than without novelty detection.

    Examples
    --------
    >>> from latem import CMT, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> model = CMT(world.embeddings["att"], n_hidden=32, random_state=0).fit(*world.training())
    >>> model.score(*world.testing()) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = TableClassifier._parameter_constraints | {
        "n_hidden": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({"lbfgs", "sgd"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "neighbour": [StrOptions({"euclidean", "cosine"})],
        "novelty": [StrOptions({"gaussian"}), None],
        "novelty_quantile": [Interval(Real, 0, 1, closed="both")],
        "random_state": ["random_state"],
    }
    _learned = "map_"
    hidden_map_: np.ndarray
    hidden_offset_: np.ndarray
    map_: np.ndarray
    offset_: np.ndarray
    radii_: np.ndarray
    loss_: float
    n_iter_: int

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        n_hidden: int = 128,
        alpha: float = 0.01,
        fit_intercept: bool = True,
        solver: str = "lbfgs",
        max_iter: int = 200,
        n_epochs: int = 30,
        learning_rate: float = 3e-4,
        neighbour: str = "euclidean",
        novelty: str | None = None,
        novelty_quantile: float = 0.7,
        feature_scaling: Scaling | None = "zscore",
        normalize_classes: bool = True,
        class_kernel: float | None = None,
        n_threads: int | None = None,
        dtype: str = "float32",
        random_state: int | np.random.RandomState | None = None,
    ):
        self.class_embeddings = class_embeddings
        self.n_hidden = n_hidden
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_iter = max_iter
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.neighbour = neighbour
        self.novelty = novelty
        self.novelty_quantile = novelty_quantile
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.class_kernel = class_kernel
        self.n_threads = n_threads
        self.dtype = dtype
        self.random_state = random_state

    # -- learning -----------------------------------------------------------------------------

    @validated
    def fit(self, X: Any, y: Any) -> Self:
        """Train the network, and measure how far images lie from their classes.

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
        features = self.scaler_.transform(X, np.float64)
        rng = check_random_state(self.random_state)
        network = Network(X.shape[1], self.n_hidden, targets.shape[1])
        weights = self._start(network, targets, rng)
        train = self._descend if self.solver == "lbfgs" else self._visit
        with single_threaded_blas():
            weights = train(network, weights, features, targets, rng)
        parts = (part.astype(self.dtype_) for part in network.parts(weights))
        self.hidden_map_, self.hidden_offset_, self.map_, self.offset_ = parts
        self.radii_ = self._find_radii(X, codes)
        return self

    def _start(
        self, network: Network, targets: np.ndarray, rng: np.random.RandomState
    ) -> np.ndarray:
        """Random tanh units that do not count yet: every image is at the mean class vector."""
        hidden_map, _, _, offset = network.parts(weights := np.zeros(network.size))
        hidden_map[...] = rng.normal(size=hidden_map.shape) / np.sqrt(network.n_features)
        if self.fit_intercept:
            offset[...] = targets.mean(axis=0)
        return weights

    def _descend(
        self,
        network: Network,
        weights: np.ndarray,
        X: np.ndarray,
        targets: np.ndarray,
        rng: np.random.RandomState,
    ) -> np.ndarray:
        found = minimize(
            network.loss,
            weights,
            args=(X, targets, self.alpha, self.fit_intercept),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self.max_iter, "maxfun": 10 * self.max_iter, "gtol": 1e-8},
        )
        self.loss_, self.n_iter_ = float(found.fun), max(int(found.nit), 1)
        return found.x

    def _visit(
        self,
        network: Network,
        weights: np.ndarray,
        X: np.ndarray,
        targets: np.ndarray,
        rng: np.random.RandomState,
    ) -> np.ndarray:
        first, second, step = np.zeros(network.size), np.zeros(network.size), 0
        for epoch in range(1, self.n_epochs + 1):
            order = rng.permutation(len(X))
            with np.errstate(over="ignore", invalid="ignore"):  # reported below
                for start in range(0, len(X), _BATCH):
                    rows = order[start : start + _BATCH]
                    _, gradient = network.loss(
                        weights, X[rows], targets[rows], self.alpha, self.fit_intercept
                    )
                    step += 1
                    first += (1 - _FIRST_DECAY) * (gradient - first)
                    second += (1 - _SECOND_DECAY) * (gradient**2 - second)
                    size = np.sqrt(second / (1 - _SECOND_DECAY**step)) + _FLOOR
                    weights -= self.learning_rate / (1 - _FIRST_DECAY**step) * first / size
                loss, _ = network.loss(weights, X, targets, self.alpha, self.fit_intercept)
            if not np.isfinite(loss):
                raise diverged(epoch, self.learning_rate)
        self.loss_, self.n_iter_ = loss, self.n_epochs
        return weights

    def _find_radii(self, X: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Quantile, for each seen class, of its images' squared distances."""
        distances, nearness = np.empty(len(X), self.dtype_), self._nearness_to_seen()

        def measure(rows: slice, features: np.ndarray) -> None:
            scores = nearness(self._predicted(features))
            distances[rows] = -np.take_along_axis(scores, codes[rows, None], axis=1)[:, 0]

        self.each_block(X, len(self.classes_), measure)
        by_class = (distances[codes == code] for code in range(len(self.classes_)))
        radii = np.array(
            [np.quantile(part, self.novelty_quantile) for part in by_class], self.dtype_
        )
        return np.maximum(radii, 0)  # not below by rounding

    # -- scoring ------------------------------------------------------------------------------

    def is_novel(self, X: Any) -> np.ndarray:
        """Whether each image lies outside of every seen class, of shape (n_samples,)."""
        X = self.check_images(X)
        novel, nearness = np.empty(len(X), bool), self._nearness_to_seen()

        def work(rows: slice, features: np.ndarray) -> None:
            novel[rows] = self._outside(nearness(self._predicted(features)))

        self.each_block(X, len(self.classes_), work)
        return novel

    def _predicted(self, X: np.ndarray) -> np.ndarray:
        """Images in the space of class vectors."""
        return np.tanh(X @ self.hidden_map_ + self.hidden_offset_) @ self.map_ + self.offset_

    def _nearness_to_seen(self) -> Callable[[np.ndarray], np.ndarray]:
        return neighbour_scorer("euclidean", self.class_view_.training())

    def _outside(self, nearness: np.ndarray) -> Any:
        """Whether each image is farther from every seen class than its radius."""
        return (-nearness > self.radii_).all(axis=1)

    def _block_scorer(self, chosen: Candidates) -> Callable[[np.ndarray], np.ndarray]:
        nearness = neighbour_scorer(self.neighbour, chosen.vectors)
        return lambda X: nearness(self._predicted(X))

    def _score_blocks(
        self,
        X: np.ndarray,
        chosen: Candidates,
        keep: Keep,
        blocks: list[slice] | None = None,
    ) -> None:
        if self.novelty is None:
            super()._score_blocks(X, chosen, keep, blocks)
            return
        nearness = neighbour_scorer(self.neighbour, chosen.vectors)
        nearness_to_seen, spread = self._nearness_to_seen(), self.radii_.mean() or 1
        known = set(self.classes_.tolist())
        unseen = np.array([name not in known for name in chosen.names.tolist()])

        def work(rows: slice, features: np.ndarray) -> None:
            predicted = self._predicted(features)
            novel = self._outside(nearness_to_seen(predicted))
            scores, favoured = nearness(predicted), unseen == novel[:, None]
            if self.neighbour == "cosine":
                scores = np.where(favoured, scores, scores - 3)
            else:
                far = 1 - np.minimum(scores, 0) / spread
                scores = np.where(favoured, 1 / far, -far)
            keep(rows, iter([(slice(0, len(chosen)), scores)]))

        self.each_block(X, len(chosen), work, blocks)

    # -- files --------------------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors = {
            "hidden_map": self.hidden_map_,
            "hidden_offset": self.hidden_offset_,
            "map": self.map_,
            "offset": self.offset_,
            "radii": self.radii_,
        }
        return tensors, {"loss": self.loss_, "n_iter": self.n_iter_}

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        d_x, d_y, n_hidden = self.n_features_in_, self.class_view_.width, self.n_hidden
        self.hidden_map_ = self._check_tensor(tensors, "hidden_map", (d_x, n_hidden))
        self.hidden_offset_ = self._check_tensor(tensors, "hidden_offset", (n_hidden,))
        self.offset_ = self._check_tensor(tensors, "offset", (d_y,))
        self.radii_ = self._check_tensor(tensors, "radii", (len(self.classes_),))
        if self.radii_.min() < 0:
            raise FileFormatError("radii below zero")
        self.map_ = self._check_tensor(tensors, "map", (n_hidden, d_y))
        self.loss_, self.n_iter_ = float(record["loss"]), int(record["n_iter"])


class Network(NamedTuple):
    """Shape of the network; its weights are one vector: W₂, b₂, W₁ and b₁."""

    n_features: int
    n_hidden: int
    n_dimensions: int

    @property
    def size(self) -> int:
        """Number of weights."""
        return (self.n_features + 1) * self.n_hidden + (self.n_hidden + 1) * self.n_dimensions

    def parts(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Views of W₂ᵀ, b₂, W₁ᵀ and b₁ in a vector of weights."""
        ends = np.cumsum(
            [self.n_features * self.n_hidden, self.n_hidden, self.n_hidden * self.n_dimensions]
        )
        hidden_map, hidden_offset, output_map, offset = np.split(weights, ends)
        return (
            hidden_map.reshape(self.n_features, self.n_hidden),
            hidden_offset,
            output_map.reshape(self.n_hidden, self.n_dimensions),
            offset,
        )

    def loss(
        self,
        weights: np.ndarray,
        X: np.ndarray,
        targets: np.ndarray,
        alpha: float,
        fit_intercept: bool = True,
    ) -> tuple[float, np.ndarray]:
        """Mean squared distance with weight decay, and its gradient."""
        hidden_map, hidden_offset, output_map, offset = self.parts(weights)
        hidden = np.tanh(X @ hidden_map + hidden_offset)  # (n, n_hidden)
        gaps = hidden @ output_map + offset - targets  # (n, n_dimensions)
        decay = np.square(hidden_map).sum() + np.square(output_map).sum()
        loss = np.square(gaps).sum() / len(X) + alpha * decay
        gaps *= 2 / len(X)
        inner = (gaps @ output_map.T) * (1 - hidden**2)
        gradient = np.zeros(self.size)
        to_hidden_map, to_hidden_offset, to_output_map, to_offset = self.parts(gradient)
        to_hidden_map[...] = X.T @ inner + 2 * alpha * hidden_map
        to_output_map[...] = hidden.T @ gaps + 2 * alpha * output_map
        if fit_intercept:
            to_hidden_offset[...], to_offset[...] = inner.sum(axis=0), gaps.sum(axis=0)
        return float(loss), gradient
