"""`CommitteeCV`: a committee of four models, chosen and weighted on held-out classes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone

from latem.core.parallel import run_tasks
from latem.core.progress import progress_bar
from latem.core.threads import single_threaded_blas
from latem.core.validation import Interval, validated
from latem.models import model_rows
from latem.models.base import forget_learned
from latem.models.committee import Committee, usual_members
from latem.models.exem import EXEM
from latem.models.grid_edges import Edge, allowed_edges, as_dict, edges_in_list
from latem.models.latem import LatEm
from latem.models.scaling import Scaling
from latem.models.shared_images import SharedImages
from latem.models.table_model import TableClassifier
from latem.models.weights import HeldOutScores, best_weights
from latem.selection.closed_forms import (
    GAMMAS,
    LAMS,
    exemplar_accuracy,
    fold_images,
    map_accuracy,
)
from latem.selection.folds import FoldData, fold_scores, list_tried
from latem.selection.latem_cv import PRESETS
from latem.selection.results import Tried, as_arrays
from latem.selection.search import Search

if TYPE_CHECKING:
    from typing_extensions import Self

_log = logging.getLogger(__name__)
_STEPS = 6  # weights are multiples of 1/6 before they are drawn towards equal ones
_PRIOR = 50  # classes that equal weights count for
_LEAST = 0.05  # spread of scores below which a member has nothing to say, to be made loud
_WIDTHS = (0.5, 0.7, 1.0)  # of the kernel
_EXEMPLARS: Mapping[str, Sequence[float]] = model_rows.find("EXEM").grid
_GRIDS: Mapping[str, Mapping[str, Sequence[float]]] = {  # of the closed forms, by member
    "ranking": {"start_gamma": GAMMAS.tolist(), "start_lam": LAMS.tolist()},
    "kernel": {"class_kernel": _WIDTHS, "gamma": GAMMAS.tolist(), "lam": LAMS.tolist()},
    "exemplars": _EXEMPLARS,
    "whitened": _EXEMPLARS,
}


class CommitteeCV(Search):
    """A committee of four models, chosen and weighted on held-out classes.

    The members: a map that starts from ESZSL's and is trained by ranking (`LatEmCV` alone is this
    one), ESZSL on a kernel of class vectors, and predicted exemplars by two distances. Each one's
    parameters are chosen on held-out classes, then the weights, which are drawn towards equal
    ones the more the fewer classes there are.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
    cv : int or sequence of class names
        Number of class-disjoint folds, or the classes to hold out once (a dataset's val classes).
        With one-hot classes, which cannot be held out, folds of images are used instead.
    feature_scaling : {"zmax", "zscore", "l2", "l2-centered"} or None
    normalize_classes : bool
        Whether class vectors are divided by their length.
    n_threads : int or None
        Folds to work on side by side; None uses all cores. Results do not depend on it.
    dtype : {"float32", "float64"}
        Precision of the members and of scores.
    verbose : bool
        Whether to show a progress bar.
    random_state : int, RandomState or None
        How classes are assigned to the folds, and the seed of the ranking.

    Attributes
    ----------
    best_estimator_ : Committee
        Fitted to all images with the best parameters and weights.
    best_params_ : dict
        Parameters of members as NAME__PARAMETER, and `weights`.
    best_score_ : float
        Accuracy of the committee on the held-out classes, which also chose it.
    cv_results_ : dict of arrays
        As for `HeldOutSearch`: what was tried for each member, and last the committee.
    grid_edges_ : dict
        As for `HeldOutSearch`; there is no warning, as the grids are not the user's.

    Examples
    --------
    >>> from latem import CommitteeCV, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> search = CommitteeCV(world.embeddings["att"], cv=world.split().val, random_state=0)
    >>> search.fit(*world.training()).score(*world.testing()) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            name: rule
            for name, rule in LatEm._parameter_constraints.items()
            if name
            in (
                "class_embeddings", "feature_scaling", "normalize_classes", "n_threads", "dtype",
                "verbose", "random_state",
            )
        },
        "cv": [Interval(Integral, 2, None, closed="left"), "array-like"],
    }  # fmt: skip

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        cv: int | Sequence[Any] = 5,
        feature_scaling: Scaling | None = "l2-centered",
        normalize_classes: bool = True,
        n_threads: int | None = None,
        dtype: str = "float32",
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.class_embeddings = class_embeddings
        self.cv = cv
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.n_threads = n_threads
        self.dtype = dtype
        self.verbose = verbose
        self.random_state = random_state

    def unfitted_model(self) -> Committee:
        """Unfitted committee whose parameters are to be chosen."""
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = int(seed.randint(2**31 - 1))
        return Committee(
            self.class_embeddings,
            usual_members(),
            feature_scaling=self.feature_scaling,
            normalize_classes=self.normalize_classes,
            n_threads=self.n_threads,
            dtype=self.dtype,
            random_state=seed,
        )

    def tried_values(self) -> Mapping[str, Sequence[Any]]:
        """Values to try by parameter of a member."""
        tried = {
            f"{member}__{name}": list(values)
            for member, grid in _GRIDS.items()
            for name, values in grid.items()
        }
        return {**tried, "ranking__n_epochs": list(PRESETS["tuned"]["n_epochs"])}

    def words(self, params: Mapping[str, Any]) -> str:
        """Chosen weights and parameters for people, member by member."""
        weights = params["weights"] or [1 / len(usual_members())] * len(usual_members())
        parts = []
        for (name, _), weight in zip(usual_members(), weights, strict=True):
            own = [
                f"{key.removeprefix(f'{name}__')} {value:g}"
                for key, value in params.items()
                if key.startswith(f"{name}__")
            ]
            parts.append(f"{name} {weight:.2f} ({', '.join(own)})")
        return ", ".join(parts)

    @validated
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose parameters and weights on held-out classes, then fit all images.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        forget_learned(self)
        model = self.unfitted_model()
        if self.encoder_ is not None:
            model.encoder_ = self.encoder_
        model.records_training &= self.records_training
        X, y = model.check_training_images(X, y)
        model.check_classes(y)
        folds = self._folds(model, X, y)
        kept = [_Kept(fold, keep=len(folds) == 1) for fold in folds]
        with (
            progress_bar(self.verbose, "choosing", total=3 * len(folds) + 1, unit="steps") as done,
            single_threaded_blas(),
        ):
            chosen, tried, edges = self._choose_closed_forms(model, kept, done)
            self.grid_edges_ = as_dict(allowed_edges(model, edges))
            model.set_params(**chosen)
            epochs, of_epochs = self._choose_epochs(model, kept, done)
            model.set_params(ranking__n_epochs=epochs)
            weights, score = self._choose_weights(model, kept, done)
            params = {**chosen, "ranking__n_epochs": epochs, "weights": weights}
            tried += [*of_epochs, Tried(params, score)]
            self.cv_results_ = as_arrays(tried)
            self.best_index_ = len(tried) - 1
            self.best_params_, self.best_score_ = params, tried[-1].mean
            for one in tried:
                _log.debug("%s: %.4f on held-out classes", one.params, one.mean)
            _log.info("chose %s (%.4f on held-out classes)", params, self.best_score_)
            self.best_estimator_ = self._final_fit(model, X, y)
            done()
        self._expose_best()
        return self

    def _on_folds(
        self, task: Callable[..., Any], model: Committee, folds: Sequence[_Kept], done: Any
    ) -> list[Any]:
        """What a task finds on every fold."""
        places = range(len(folds))
        return list(
            run_tasks(task, places, shared=(model, folds), n_threads=self.n_threads, done=done)
        )

    def _choose_closed_forms(
        self, model: Committee, folds: Sequence[_Kept], done: Any
    ) -> tuple[dict[str, Any], list[Tried], list[Edge]]:
        """The penalties of every member, by its closed form alone."""
        by_fold = self._on_folds(_closed_forms, model, folds, done)
        chosen: dict[str, Any] = {}
        tried: list[Tried] = []
        edges: list[Edge] = []
        for i, (name, _) in enumerate(usual_members()):
            of_member = _list_grid(name, _GRIDS[name], [found[i] for found in by_fold])
            tried += of_member
            if folds:
                scores, params = zip(*((one.mean, one.params) for one in of_member), strict=True)
                best = max(i for i, score in enumerate(scores) if score == max(scores))
                chosen |= params[best]  # of equals the largest penalties
                edges += edges_in_list(params, scores, best)
        return chosen, tried, edges

    def _choose_epochs(
        self, model: Committee, folds: Sequence[_Kept], done: Any
    ) -> tuple[int, list[Tried]]:
        """How long the ranking member is trained, and what was tried."""
        epochs = list(PRESETS["tuned"]["n_epochs"])
        by_fold = self._on_folds(_by_epoch, model, folds, done)
        tried = list_tried([{}], epochs, by_fold, len(folds))
        best = max(tried, key=lambda one: one.mean)  # the first of equals
        named = [Tried({"ranking__n_epochs": one.params["n_epochs"]}, one.scores) for one in tried]
        return int(best.params["n_epochs"]), named

    def _choose_weights(
        self, model: Committee, folds: Sequence[_Kept], done: Any
    ) -> tuple[list[float] | None, list[float]]:
        """Weights of the members, and the accuracy of the whole on every fold."""
        if not folds:
            return None, []
        found = self._on_folds(_held_out, model, folds, done)
        # Scores of unseen classes spread less than those of seen ones, and not by the same factor.
        spreads = np.exp(np.mean([np.log(_spreads(fold.scores)) for fold in found], axis=0))
        alike = [fold._replace(scores=fold.scores / spreads[:, None, None]) for fold in found]
        weights = best_weights(alike, steps=_STEPS, prior=_PRIOR)
        accuracy = [fold.accuracy(weights) for fold in alike]
        shares = weights / spreads
        return (shares / shares.sum()).tolist(), accuracy

    def _take_classes(self, best: TableClassifier) -> None:
        self.class_embeddings = best.class_embeddings

    def _stored_params(self) -> dict[str, Any]:
        stored = None if self.class_embeddings is None else "stored"
        return {**super()._stored_params(), "class_embeddings": stored}

    @classmethod
    def _rebuild(cls, params: dict[str, Any], best: TableClassifier) -> CommitteeCV:
        if params["class_embeddings"] == "stored":
            params["class_embeddings"] = best.class_table_
        return cls(**params)

    @classmethod
    def _best_of(cls, tried: Sequence[Tried]) -> int:
        return len(tried) - 1


class _Kept:
    """A fold, and what is computed of its images; kept between steps if memory allows it."""

    def __init__(self, data: FoldData, *, keep: bool):
        self.data = data
        self._keep = keep
        self._images: SharedImages | None = None

    def images(self, model: Committee) -> SharedImages:
        """The images to learn from, scaled as by the members of this unfitted committee."""
        images = self._images or fold_images(model.unfitted_member("ranking"), self.data)
        self._images = images if self._keep else None
        return images


def _closed_forms(place: int, model: Committee, folds: Sequence[_Kept]) -> list[np.ndarray]:
    """Accuracy of every member's closed form on one fold, for its whole grid."""
    fold = folds[place]
    images = fold.images(model)
    return [
        _accuracy(model.unfitted_member(name), fold.data, images) for name, _ in usual_members()
    ]


def _by_epoch(place: int, model: Committee, folds: Sequence[_Kept]) -> list[float]:
    """Accuracy of the ranking member on one fold, by number of epochs."""
    ranking = model.unfitted_member("ranking").set_params(n_threads=1)
    return fold_scores(ranking, list(PRESETS["tuned"]["n_epochs"]), folds[place].data)


def _held_out(place: int, model: Committee, folds: Sequence[_Kept]) -> HeldOutScores:
    """Scores of the members, learned without the held-out classes of one fold, for these."""
    fold = folds[place]
    committee = clone(model).set_params(n_threads=1)
    X, y, X_out, y_out, candidates = fold.data
    committee.check_training_images(X, y)
    committee.prepare(X, y)
    committee.learn(fold.images(model))
    return HeldOutScores(committee.member_scores(X_out, candidates), y_out, candidates)


def _accuracy(member: Any, fold: FoldData, images: SharedImages) -> np.ndarray:
    """Accuracy of an unfitted member's closed form for its whole grid."""
    if isinstance(member, EXEM):
        return exemplar_accuracy(member, fold, images, *_EXEMPLARS.values())
    if member.class_kernel is None:
        return map_accuracy(member, fold, images)
    kernels = [clone(member).set_params(class_kernel=width) for width in _WIDTHS]
    return np.stack([map_accuracy(kernel, fold, images) for kernel in kernels])


def _list_grid(
    member: str, grid: Mapping[str, Sequence[float]], by_fold: Sequence[np.ndarray]
) -> list[Tried]:
    """What was tried for a member, in the order of its grid."""
    names, values = [f"{member}__{name}" for name in grid], list(grid.values())
    return [
        Tried(
            {name: float(v[at]) for name, v, at in zip(names, values, place, strict=True)},
            [float(accuracy[place]) for accuracy in by_fold],
        )
        for place in np.ndindex(*map(len, values))
    ]


def _spreads(scores: np.ndarray) -> np.ndarray:
    """Standard deviation of each member's scores, at least `_LEAST`."""
    return np.maximum(scores.std(axis=(1, 2), dtype=np.float64), _LEAST)
