"""`LatEm`: latent embeddings for zero-shot classification (Xian et al., CVPR 2016).

Compatibility of image x and class y is F(x, y) = max_k xᵀ W_k y (equation 4). The K maps are
learned by Algorithm 1: visit an image, draw a rival class, and if the rival comes within the
margin of the true class, push the map that scored the rival best away from it and pull the map
that scored the true class best towards it. With K = 1 this is a bilinear ranking model.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from latem.core.validation import Interval, StrOptions
from latem.models.balance import BalanceMixin, score_moment
from latem.models.class_view import ClassView
from latem.models.ranking import RankingModel
from latem.models.scaling import Scaling
from latem.models.sgd.dense import (
    DenseClassSpace,
    DenseEmbeddingSpace,
    DenseSpace,
    Draw,
    dense_form,
    dense_runner,
    iter_rows,
)
from latem.models.sgd.loop import Progress, RunEpoch, Schedule
from latem.models.sgd.pairs import (
    PairClassSpace,
    PairEmbeddingSpace,
    PairSpace,
    pair_form,
    pair_runner,
)
from latem.models.sgd.visits import more_rivals, random_visits
from latem.models.shared_images import SharedImages
from latem.models.training_images import TrainingImages

_COUNTS = ("violations", "visits")
_RENAMED = {"gamma": "start_gamma", "lam": "start_lam"}  # names in older files

TUNED: Mapping[str, Any] = {  # parameters with which unseen classes are named best
    "feature_scaling": "l2-centered", "start": "eszsl", "n_rivals": 10, "center_classes": True,
    "balance_classes": True, "average": True, "init_scale": 0.0, "n_maps": 1, "learning_rate": 0.03,
    "n_epochs": 2,
}  # fmt: skip


class LatEm(BalanceMixin, RankingModel):
    """Latent embedding model: names classes from their descriptions alone.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
        Descriptions of the classes, seen and unseen. None means one-hot vectors of the seen
        classes: an ordinary multiclass classifier.
    n_maps : int
        Number of maps K; with `prune_below`, the number to start from.
    learning_rate : float
        Step size η, constant. The paper's values, for "zmax" features: CUB 0.1, AWA 0.001,
        Dogs 0.01.
    n_epochs : int
        Passes over the training images.
    margin : float
        By how much the true class should beat a rival.
    feature_scaling : {"zmax", "zscore", "l2", "l2-centered"} or None
        "zmax" is what the authors' code does: z-score, then division by the largest entry of
        the training matrix. "zscore" is what the paper's text says. "l2" divides by the length;
        "l2-centered" then subtracts the mean. Statistics come from the training images and are
        kept with the model.
    normalize_classes : bool
        Whether class vectors are divided by their length, as in the paper.
    init_scale : float
        Initial maps have standard deviation ``init_scale / sqrt(n_features)``.
    start : {"random", "eszsl"}
        Maps at the start: random, as in the paper, or ESZSL's map for these images, scaled so that
        the true class leads the mean of all by 1 on average, plus the random ones.
    start_gamma, start_lam : float
        ESZSL's penalties γ and λ for that start.
    n_rivals : int
        Rival classes drawn per visit, with replacement; the one that scores best is the rival.
        The paper draws 1. As many as there are other classes, or more, means all of them.
    center_classes : bool
        Whether the mean of the seen classes' vectors is subtracted from all class vectors.
    class_kernel : float or None
        Width of a kernel on the class side: class vectors are replaced by their similarities to
        the seen classes, see `latem.models.kernel_features`. Try 0.5 and 1 for unit vectors; None
        leaves them as they are.
    balance_classes : bool
        Whether, in answers, class vectors are scaled so that the scores of every class have the
        same mean square over the training images, averaged over maps; otherwise classes whose
        scores vary more are named more often. Best with centred features. Training itself uses
        the plain class vectors. It is decided by the images of the last `fit`, or of all calls of
        `partial_fit`; a model from a file counts those of later calls only.
    average : bool
        Whether the model is the mean of the maps after every visit instead of the last ones. With
        `partial_fit` and `warm_start` every call begins from the model so far, and averages over
        its own visits.
    prune_below : float or None
        Drop maps that were chosen for less than this share of the counted visits so far (the
        paper: 0.05, starting from 16 maps). None keeps all maps.
    prune_every : int
        Epochs between prunings.
    prune_count : {"violations", "visits"}
        Which visits count: those that violated the margin, as in the paper, or all.
    shuffle_buffer : int or None
        For features in a file larger than memory: images that are read together, in blocks of
        consecutive ones, and visited in random order. None visits all images in random order, each
        read when its turn comes. See `latem.models.sgd.visits.visiting_order` for the rule.
    warm_start : bool
        Whether `fit` continues from the maps of the previous `fit` for another `n_epochs`.
        What was fixed then stays: the number of maps, class table and feature scaling.
    n_threads : int or None
        Threads for matrix products, and for training without `average` and further rivals (four
        at most); None uses all cores. Results do not depend on it.
    dtype : {"float32", "float64"}
        Precision of training and of the maps.
    verbose : bool
        Whether to show a progress bar.
    random_state : int, RandomState or None
        Seed of the initial maps, the visiting order and the rivals.

    Attributes
    ----------
    classes_ : ndarray of shape (n_seen,)
        Classes seen in training.
    class_table_ : ClassEmbeddings
        All classes that can be named.
    maps_ : ndarray of shape (n_maps, n_features, n_dimensions), read-only
        The maps W_k.
    scaler_ : FeatureScaler
        Feature scaling and its statistics.
    class_view_ : ClassView
        What classes look like to the model: its `training` vectors and its `candidates`.
    image_moment_ : ImageMoment
        Σ x xᵀ over the images so far; only after `partial_fit` with `balance_classes`, which goes
        on from it.
    history_ : dict of lists
        Per epoch: "violation_rate", "mean_loss", "n_maps" and "map_usage".
    n_iter_ : int
        Epochs trained so far.
    map_visits_, map_violations_ : ndarray of shape (n_maps,)
        How often each map scored the true class best, over all visits and over those that
        violated the margin.
    seed_ : int
        Seed that all random numbers were derived from.

    Examples
    --------
    >>> from latem import LatEm, make_latent_world
    >>> world = make_latent_world(random_state=0)
    >>> X, y = world.training("standard")
    >>> model = LatEm(world.embeddings["att"], n_maps=2, random_state=0).fit(X, y)
    >>> X_new, y_new = world.testing("standard")
    >>> model.score(X_new, y_new, classes="unseen") > 0.9
    True
    """

    takes_blocks = True
    _parameter_constraints: ClassVar[dict[str, Any]] = RankingModel._parameter_constraints | {
        "start": [StrOptions({"random", "eszsl"})],
        "start_gamma": [Interval(Real, 0, None, closed="neither")],
        "start_lam": [Interval(Real, 0, None, closed="neither")],
        "n_rivals": [Interval(Integral, 1, None, closed="left")],
        "center_classes": ["boolean"],
        "balance_classes": ["boolean"],
        "average": ["boolean"],
        "prune_below": [Interval(Real, 0, 1, closed="neither"), None],
        "prune_every": [Interval(Integral, 1, None, closed="left")],
        "prune_count": [StrOptions(set(_COUNTS))],
    }

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        n_maps: int = 6,
        learning_rate: float = 0.1,
        n_epochs: int = 150,
        margin: float = 1.0,
        feature_scaling: Scaling | None = "zmax",
        normalize_classes: bool = True,
        init_scale: float = 1.0,
        start: str = "random",
        start_gamma: float = 1.0,
        start_lam: float = 1.0,
        n_rivals: int = 1,
        center_classes: bool = False,
        class_kernel: float | None = None,
        balance_classes: bool = False,
        average: bool = False,
        prune_below: float | None = None,
        prune_every: int = 5,
        prune_count: str = "violations",
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
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.init_scale = init_scale
        self.start = start
        self.start_gamma = start_gamma
        self.start_lam = start_lam
        self.n_rivals = n_rivals
        self.center_classes = center_classes
        self.class_kernel = class_kernel
        self.balance_classes = balance_classes
        self.average = average
        self.prune_below = prune_below
        self.prune_every = prune_every
        self.prune_count = prune_count
        self.shuffle_buffer = shuffle_buffer
        self.warm_start = warm_start
        self.n_threads = n_threads
        self.dtype = dtype
        self.verbose = verbose
        self.random_state = random_state

    def _schedule(self, n_epochs: int) -> Schedule:
        return Schedule(
            step=self.learning_rate,
            margin=self.margin,
            n_epochs=n_epochs,
            prune_below=self.prune_below,
            prune_every=self.prune_every,
            prune_count=self.prune_count,
        )

    # -- choosing rivals ----------------------------------------------------------------------

    def _visits(self, epoch: int, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Order of the images in an epoch, and a random rival for each."""
        n_classes, buffer = len(self.classes_), self.shuffle_buffer
        return random_visits(self.seed_, epoch, labels, n_classes, buffer)

    def _several_rivals(self, epoch: int, labels: np.ndarray) -> tuple[np.ndarray, Draw]:
        """Order of the images, and the numbers of several rivals for each."""
        order, first = self._visits(epoch, labels)
        n_classes = len(self.classes_)
        more = more_rivals(self.seed_, epoch, labels[order], n_classes, self.n_rivals - 1)
        return order, iter_rows(np.column_stack([first, more]).astype(np.float32))

    def _all_rivals(self, epoch: int, labels: np.ndarray) -> tuple[np.ndarray, Draw]:
        """Order of the images; no rival needs to be drawn."""
        order, _ = self._visits(epoch, labels)
        return order, iter_rows(np.empty((len(order), 0), np.float32))

    # -- running the engine -------------------------------------------------------------------

    def _space(self, maps: np.ndarray, vectors: np.ndarray) -> PairSpace | DenseSpace:
        n_maps, n_features, n_dimensions = maps.shape
        sizes = len(vectors), n_features, n_dimensions, n_maps
        if self.n_rivals > 1 or self.average:
            if dense_form(*sizes) == "class":
                return DenseClassSpace(maps, vectors, average=self.average)
            return DenseEmbeddingSpace(maps, vectors, average=self.average)
        if pair_form(*sizes) == "class":
            return PairClassSpace(maps, vectors, self.n_threads)
        return PairEmbeddingSpace(maps, vectors, self.n_threads)

    def _epoch_runner(
        self, space: PairSpace | DenseSpace, images: TrainingImages, schedule: Schedule
    ) -> RunEpoch:
        labels = images.labels
        if isinstance(space, PairClassSpace | PairEmbeddingSpace):
            pairs = images.announcing(lambda epoch: self._visits(epoch, labels))
            return pair_runner(space, images.load, labels, schedule, pairs)
        every = self.n_rivals >= images.n_classes - 1
        rule, visits = ("hardest", self._all_rivals) if every else ("drawn", self._several_rivals)
        weights = np.ones(images.n_classes)
        drawn = images.announcing(lambda epoch: visits(epoch, labels))
        return dense_runner(space, images.load, labels, schedule, rule, weights, drawn)

    # -- beyond the paper: closed-form start, centred and balanced classes ---------------------

    def _first_maps(self, images: TrainingImages) -> np.ndarray:
        maps = super()._first_maps(images)
        if self.start == "eszsl":
            closed = images.equations.solve(self.start_gamma, self.start_lam)
            maps += (closed / images.mean_lead(closed)).astype(maps.dtype)
        return maps

    def _view_by(self, maps: np.ndarray, images: TrainingImages) -> ClassView:
        balance = score_moment(maps, images.moment) if self.balance_classes else None
        return self.class_view_.balanced(balance)

    def _images(self, X: np.ndarray, labels: np.ndarray, *, partial: bool) -> TrainingImages:
        images = super()._images(X, labels, partial=partial)
        images.earlier = vars(self).get("image_moment_") if partial else None
        return images

    def _keep(self, maps: np.ndarray, images: TrainingImages, progress: Progress) -> None:
        super()._keep(maps, images, progress)
        self.__dict__.pop("image_moment_", None)
        if images.partial and self.balance_classes:
            self.image_moment_ = images.moment

    def learn(self, images: SharedImages) -> None:
        """Train from the beginning, on images that others may learn from, too.

        Parameters
        ----------
        images : SharedImages
            The images that the model was prepared for.
        """
        own = self._images(images.X, images.codes, partial=False)
        own.shared = images
        self._train(own, self.n_epochs)

    # -- files --------------------------------------------------------------------------------

    @classmethod
    def current_names(cls, params: dict[str, Any]) -> dict[str, Any]:
        """Parameters of a file, perhaps an older one, under the names they have now."""
        return {_RENAMED.get(name, name): value for name, value in params.items()}
