"""`SJE`, `ALE` and `DeViSE`: bilinear compatibility with other ways of choosing the rival.

All three learn F(x, y) = xᵀ W y (or, with several maps, F(x, y) = max_k xᵀ W_k y) by SGD like
`LatEm`, but look at all training classes on every visit:

- SJE (Akata et al., CVPR 2015): the class that violates the margin most, a multiclass loss;
- ALE (Akata et al., CVPR 2013 and TPAMI 2016): the first violator in random order, with a step
  that is larger the sooner it was found, a weighted ranking loss;
- DeViSE (Frome et al., NIPS 2013): the first violator in random order, or all violators.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from latem.core.validation import Interval, StrOptions
from latem.models.ranking import RankingModel
from latem.models.scaling import Scaling
from latem.models.sgd.dense import (
    DenseClassSpace,
    DenseEmbeddingSpace,
    DenseSpace,
    dense_form,
    dense_runner,
)
from latem.models.sgd.loop import RunEpoch, Schedule
from latem.models.sgd.visits import epoch_generator, visiting_order
from latem.models.training_images import TrainingImages


class _DenseModel(RankingModel):
    """What SJE, ALE and DeViSE share: the pass over all classes."""

    def _rule(self) -> str:
        """Which violators an update is made for: "worst", "first" or "all"."""
        raise NotImplementedError

    def _weights(self, n_classes: int) -> np.ndarray:
        """Weight of an update by the number of draws it took, for 0 to n_classes - 1."""
        return np.ones(n_classes)

    def _space(self, maps: np.ndarray, vectors: np.ndarray) -> DenseSpace:
        n_maps, n_features, n_dimensions = maps.shape
        if dense_form(len(vectors), n_features, n_dimensions, n_maps) == "class":
            return DenseClassSpace(maps, vectors)
        return DenseEmbeddingSpace(maps, vectors)

    def _order(self, rng: np.random.Generator, n_samples: int) -> np.ndarray:
        return visiting_order(rng, n_samples, self.shuffle_buffer)

    def _draws(self, rng: np.random.Generator) -> Callable[[int, int], np.ndarray]:
        """Random numbers for the next visits: the order in which they look at their rivals."""
        return lambda n_visits, n_classes: rng.random((n_visits, n_classes), np.float32)

    def _epoch_runner(
        self, space: DenseSpace, images: TrainingImages, schedule: Schedule
    ) -> RunEpoch:
        n_classes = images.n_classes
        n_draws = n_classes if self._rule() == "first" else 0

        def visits(epoch: int) -> tuple[np.ndarray, Callable[[int], np.ndarray]]:
            rng = epoch_generator(self.seed_, epoch)
            order, random = self._order(rng, len(images)), self._draws(rng)
            return order, lambda n_visits: random(n_visits, n_draws)

        weights = self._weights(n_classes)
        drawn = images.announcing(visits)
        return dense_runner(
            space, images.load, images.labels, schedule, self._rule(), weights, drawn
        )


class SJE(_DenseModel):
    """Structured joint embedding: bilinear compatibility, multiclass loss.

    A visit takes the class with the highest score, the true one handicapped by the margin; if it
    is another class than the true one, W += η x (y_true - y_best)ᵀ.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
        Descriptions of the classes, seen and unseen; None means one-hot.
    n_maps : int
        Number of maps; 1 is SJE, more are "LatEm with a multiclass loss".
    learning_rate, n_epochs, margin, init_scale
        As for `LatEm`.
    normalize_projection : bool
        Whether images are compared by direction, F(x, y) = (Wᵀx / ‖Wᵀx‖)ᵀ y, in training and
        prediction, as in the authors' code of 2015. The step is the same.
    shuffle : bool
        Whether images are visited in a new random order in each epoch, or always as they come,
        whatever `shuffle_buffer` is, as in the code of 2015 (which also keeps the best epoch on
        held-out classes: give `validation` to `fit`).
    feature_scaling, normalize_classes, class_kernel, shuffle_buffer, warm_start, n_threads, dtype,
    verbose, random_state
        As for `LatEm`.

    Attributes
    ----------
    maps_ : ndarray of shape (n_maps, n_features, n_dimensions)
    classes_, class_table_, scaler_, history_, n_iter_, best_epoch_
        As for `LatEm`.

    Examples
    --------
    >>> from latem import SJE, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> model = SJE(world.embeddings["att"], random_state=0).fit(*world.training())
    >>> model.score(*world.testing()) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = RankingModel._parameter_constraints | {
        "normalize_projection": ["boolean"],
        "shuffle": ["boolean"],
    }

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        n_maps: int = 1,
        learning_rate: float = 0.1,
        n_epochs: int = 150,
        margin: float = 1.0,
        normalize_projection: bool = False,
        shuffle: bool = True,
        feature_scaling: Scaling | None = "zmax",
        normalize_classes: bool = True,
        class_kernel: float | None = None,
        init_scale: float = 1.0,
        shuffle_buffer: int | None = None,
        warm_start: bool = False,
        n_threads: int | None = None,
        dtype: str = "float32",
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.class_embeddings = class_embeddings
        self.n_maps = n_maps
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.margin = margin
        self.normalize_projection = normalize_projection
        self.shuffle = shuffle
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.class_kernel = class_kernel
        self.init_scale = init_scale
        self.shuffle_buffer = shuffle_buffer
        self.warm_start = warm_start
        self.n_threads = n_threads
        self.dtype = dtype
        self.verbose = verbose
        self.random_state = random_state

    def _rule(self) -> str:
        return "worst"

    def _space(self, maps: np.ndarray, vectors: np.ndarray) -> DenseSpace:
        if self.normalize_projection:
            return DenseEmbeddingSpace(maps, vectors, project=True)
        return super()._space(maps, vectors)

    def _order(self, rng: np.random.Generator, n_samples: int) -> np.ndarray:
        return super()._order(rng, n_samples) if self.shuffle else np.arange(n_samples)

    @property
    def by_direction(self) -> bool:  # type: ignore[override]
        """Whether projected images are compared by direction only."""
        return self.normalize_projection


class ALE(_DenseModel):
    """Attribute label embedding: bilinear compatibility, weighted ranking loss.

    A visit looks at the other classes in random order until one, the N-th, violates the margin,
    and takes a step that is weighted by an estimate of the true class's rank.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
        Descriptions of the classes, seen and unseen; None means one-hot.
    weighting : {"rank", "draws"}
        Weight of a step: "rank" is Σ_{i ≤ k} 1/i with k = ⌊(C - 1)/N⌋ for C classes, as
        published in 2013; "draws" is 1/N, as in later code of the same group.
    margin : float or None
        By how much the true class should beat its rivals; None is 1 for weighting "rank" and 0.1
        for "draws", as published.
    n_maps, learning_rate, n_epochs, init_scale
        As for `LatEm`, with one map by default. ALE's steps are larger than SJE's by up to
        Σ_{i < C} 1/i.
    feature_scaling, normalize_classes, class_kernel, shuffle_buffer, warm_start, n_threads, dtype,
    verbose, random_state
        As for `LatEm`.

    Attributes
    ----------
    maps_ : ndarray of shape (n_maps, n_features, n_dimensions)
    classes_, class_table_, scaler_, history_, n_iter_, best_epoch_
        As for `LatEm`.

    Examples
    --------
    >>> from latem import ALE, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> model = ALE(world.embeddings["att"], random_state=0).fit(*world.training())
    >>> model.score(*world.testing()) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = RankingModel._parameter_constraints | {
        "weighting": [StrOptions({"rank", "draws"})],
        "margin": [Interval(Real, 0, None, closed="left"), None],
    }

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        weighting: str = "rank",
        margin: float | None = None,
        n_maps: int = 1,
        learning_rate: float = 0.1,
        n_epochs: int = 150,
        feature_scaling: Scaling | None = "zmax",
        normalize_classes: bool = True,
        class_kernel: float | None = None,
        init_scale: float = 1.0,
        shuffle_buffer: int | None = None,
        warm_start: bool = False,
        n_threads: int | None = None,
        dtype: str = "float32",
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.class_embeddings = class_embeddings
        self.weighting = weighting
        self.margin = margin
        self.n_maps = n_maps
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.class_kernel = class_kernel
        self.init_scale = init_scale
        self.shuffle_buffer = shuffle_buffer
        self.warm_start = warm_start
        self.n_threads = n_threads
        self.dtype = dtype
        self.verbose = verbose
        self.random_state = random_state

    def _rule(self) -> str:
        return "first"

    def _weights(self, n_classes: int) -> np.ndarray:
        return warp_weights(n_classes) if self.weighting == "rank" else draw_weights(n_classes)

    def _schedule(self, n_epochs: int) -> Schedule:
        usual = 1.0 if self.weighting == "rank" else 0.1
        return Schedule(self.learning_rate, usual if self.margin is None else self.margin, n_epochs)


class DeViSE(_DenseModel):
    """Deep visual-semantic embedding: bilinear compatibility, ranking loss.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
        Descriptions of the classes, seen and unseen; None means one-hot.
    violators : {"first", "all"}
        Whether a visit takes a step for the first class in random order that violates the
        margin, as the authors trained it, or for all that do, the loss they write.
    margin : float
        By how much the true class should beat its rivals.
    n_maps, learning_rate, n_epochs, init_scale
        As for `LatEm`, with one map by default.
    feature_scaling, normalize_classes, class_kernel, shuffle_buffer, warm_start, n_threads, dtype,
    verbose, random_state
        As for `LatEm`.

    Attributes
    ----------
    maps_ : ndarray of shape (n_maps, n_features, n_dimensions)
    classes_, class_table_, scaler_, history_, n_iter_, best_epoch_
        As for `LatEm`.

    Examples
    --------
    >>> from latem import DeViSE, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> model = DeViSE(world.embeddings["att"], random_state=0).fit(*world.training())
    >>> model.score(*world.testing()) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = RankingModel._parameter_constraints | {
        "violators": [StrOptions({"first", "all"})],
    }

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        violators: str = "first",
        margin: float = 0.1,
        n_maps: int = 1,
        learning_rate: float = 0.1,
        n_epochs: int = 150,
        feature_scaling: Scaling | None = "zmax",
        normalize_classes: bool = True,
        class_kernel: float | None = None,
        init_scale: float = 1.0,
        shuffle_buffer: int | None = None,
        warm_start: bool = False,
        n_threads: int | None = None,
        dtype: str = "float32",
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.class_embeddings = class_embeddings
        self.violators = violators
        self.margin = margin
        self.n_maps = n_maps
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.class_kernel = class_kernel
        self.init_scale = init_scale
        self.shuffle_buffer = shuffle_buffer
        self.warm_start = warm_start
        self.n_threads = n_threads
        self.dtype = dtype
        self.verbose = verbose
        self.random_state = random_state

    def _rule(self) -> str:
        return self.violators


def warp_weights(n_classes: int) -> np.ndarray:
    """Σ_{i ≤ ⌊(C - 1)/N⌋} 1/i for N = 0 to C - 1 draws (N = 0 does not occur)."""
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n_classes))])
    draws = np.maximum(np.arange(n_classes), 1)
    return harmonic[(n_classes - 1) // draws]


def draw_weights(n_classes: int) -> np.ndarray:
    """1/N for N = 0 to C - 1 draws (N = 0 does not occur)."""
    return 1 / np.maximum(np.arange(n_classes), 1)
