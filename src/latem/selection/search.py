"""`HeldOutSearch`: parameters of any model, chosen on held-out classes.

Candidates are trained side by side in threads, over one copy of each fold's features.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted

from latem import storage
from latem.metrics import mean_class_accuracy
from latem.models.base import ZeroShotClassifier, forget_learned, plain_params
from latem.models.files import unpack
from latem.models.folds import class_folds, image_folds
from latem.models.progress import task_bar
from latem.models.ranking import RankingModel
from latem.models.tabled import TableClassifier
from latem.selection.grids import GRIDS
from latem.threads import resolve_threads, single_threaded_blas


class Search(ZeroShotClassifier):
    """What `HeldOutSearch` and `LatEmCV` share: candidates, folds, the final fit, files."""

    _learned = "best_model_"
    cv: int | Sequence[Any]
    n_threads: int | None
    verbose: bool
    random_state: Any
    best_model_: Any
    best_params_: dict[str, Any]
    best_score_: float
    cv_results_: list[dict[str, Any]]

    @abstractmethod
    def _model(self) -> TableClassifier:
        """Unfitted model whose parameters are to be chosen."""

    @abstractmethod
    def _grid(self) -> Mapping[str, Sequence[Any]]:
        """Values to try by parameter."""

    def _n_settling(self, parts: Sequence[Any]) -> int:
        """How many steps of the progress bar `_settle` takes."""
        return 0

    def _settle(
        self, model: Any, parts: Sequence[Any], n_threads: int, done: Callable[[], None]
    ) -> dict[str, Any]:
        """Parameters that are chosen before the grid is tried, on the same folds."""
        return {}

    @abstractmethod
    def _know(self, best: TableClassifier) -> None:
        """Adopt a model with more classes, also for clones."""

    def fit(self, X: Any, y: Any) -> Any:
        """Choose the parameters on held-out classes, then fit all images.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        self._validate_params()
        forget_learned(self)
        model = self._model()
        grid = {name: list(values) for name, values in self._grid().items()}
        empty = [name for name, values in grid.items() if not values]
        if not grid or empty:
            what = ", ".join(empty) or "anything"
            raise ValueError(f"{type(self).__name__} has no values to try for {what}.")
        X, y = model._check_training_images(X, y)
        model._set_classes(y)
        owner = type(self).__name__
        if model.class_embeddings is None:
            folds = image_folds(y, self.cv, self.random_state)
        else:
            folds = class_folds(y, self.cv, self.random_state, owner)
        # Epochs of one training are tried together, so they are not part of a candidate.
        epochs = grid.pop("n_epochs", None) if isinstance(model, RankingModel) else None
        candidates = list(ParameterGrid(grid))
        for params in [*candidates, *({"n_epochs": n} for n in epochs or ())]:
            clone(model).set_params(**params)._validate_params()
        parts = [(X[~fold.out], y[~fold.out], X[fold.out], y[fold.out], fold) for fold in folds]
        jobs = [(params, part) for params in candidates for part in parts]
        n_threads = resolve_threads(self.n_threads)
        n_steps = len(jobs) + 1 + self._n_settling(parts)
        with task_bar(self.verbose, n_steps, "choosing") as done, single_threaded_blas():
            settled = self._settle(model, parts, n_threads, done)
            model.set_params(**settled)

            def run(params: dict[str, Any], part: Any) -> list[float]:
                candidate = clone(model).set_params(**params, n_threads=1)
                scores = _fold_scores(candidate, epochs, *part)
                done()
                return scores

            scores = Parallel(n_threads, backend="threading")(
                delayed(run)(params, part) for params, part in jobs
            )
            self.cv_results_ = _results(candidates, epochs, scores, len(parts))
            best = max(self.cv_results_, key=lambda result: result["mean"])  # the first of equals
            self.best_params_ = {**settled, **best["params"]}
            self.best_score_ = best["mean"]
            best_model = clone(model).set_params(**self.best_params_).fit(X, y)
            if hasattr(model, "feature_names_in_"):  # X is a plain array by now
                best_model.feature_names_in_ = model.feature_names_in_
            self.best_model_ = best_model
            done()
        self._adopt()
        return self

    def _adopt(self) -> None:
        """Take over what scikit-learn expects to find on a fitted model."""
        best = self.best_model_
        self.classes_ = best.classes_
        self.n_features_in_ = best.n_features_in_
        if hasattr(best, "feature_names_in_"):
            self.feature_names_in_ = best.feature_names_in_

    @property
    def class_table_(self) -> Any:
        """All classes that can be named."""
        check_is_fitted(self)
        return self.best_model_.class_table_

    def with_classes(self, table: Any) -> Any:
        """The same fitted search, its model knowing further classes by their descriptions.

        Parameters
        ----------
        table : ClassEmbeddings, DataFrame, dict, (names, array) or path
            New classes, with the same columns as the model's own table.

        Returns
        -------
        a search of the same kind
            The learned arrays are shared, the search itself is left as it is.
        """
        check_is_fitted(self)
        other = copy.copy(self)
        other.best_model_ = self.best_model_.with_classes(table)
        other._know(other.best_model_)
        return other

    def decision_function(self, X: Any, classes: Any = None) -> np.ndarray:
        """Compatibility of images and classes, by the chosen model; see there.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes : None, "unseen", "all", list of names, or a class table

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self.best_model_.decision_function(X, classes)

    def _names(self, classes: Any) -> np.ndarray:
        return self.best_model_._names(classes)

    def _best(self, X: Any, k: int, classes: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        return self.best_model_._best(X, k, classes)

    # -- files --------------------------------------------------------------------------------

    def _own_params(self) -> dict[str, Any]:
        """Parameters for the model file, as plain data."""
        return plain_params(self.get_params(deep=False))

    def _pack(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors, inner = self.best_model_._pack()
        return tensors, {
            "model": type(self).__name__,
            "params": self._own_params(),
            "inner": inner,
            "best_score": self.best_score_,
            "best_params": plain_params(self.best_params_),
            "cv_results": [
                {**result, "params": plain_params(result["params"])} for result in self.cv_results_
            ],
            **self._pack_calibration(),
        }

    @classmethod
    def _unpack(cls, tensors: dict[str, np.ndarray], meta: dict[str, Any]) -> Any:
        best = unpack(tensors, meta["inner"])
        if not isinstance(best, TableClassifier):
            raise storage.FileFormatError("the chosen model is not of a kind that can be chosen")
        search = cls._rebuild(dict(meta["params"]), best)
        search._validate_params()
        search.best_model_ = best
        search.best_params_ = dict(meta["best_params"])
        search.best_score_ = float(meta["best_score"])
        search.cv_results_ = list(meta["cv_results"])
        search._adopt()
        search._unpack_calibration(meta)
        return search

    @classmethod
    @abstractmethod
    def _rebuild(cls, params: dict[str, Any], best: TableClassifier) -> Any:
        """Unfitted search from the parameters of a file and its fitted model."""


class HeldOutSearch(Search):
    """Any model with its parameters chosen on held-out classes.

    Parameters
    ----------
    model : a model
        LatEm or one of its rivals.
    grid : dict of parameter name to values, or None
        Values to try; None takes those of `latem.selection.GRIDS` for this kind of model.
    cv : int or sequence of class names
        Number of class-disjoint folds, or the classes to hold out once (a dataset's val classes).
        Each candidate is scored among the held-out classes only, by mean per-class accuracy. With
        one-hot classes, which cannot be held out, folds of images are used instead; if there are
        too few for that, the first candidate is taken.
    n_threads : int or None
        Candidates to train side by side; None uses all cores. Results do not depend on it.
    verbose : bool
        Whether to show a progress bar.
    random_state : int, RandomState or None
        How classes are dealt to the folds. The model has its own `random_state`.

    Attributes
    ----------
    best_model_ : model
        Fitted to all images with the best parameters.
    best_params_ : dict
        Of equally good ones the first of the grid.
    best_score_ : float
        Its mean accuracy over the folds.
    cv_results_ : list of dict
        For every candidate "params", "scores" (one per fold) and "mean".

    Examples
    --------
    >>> from latem import SJE, HeldOutSearch, make_latent_world
    >>> world = make_latent_world(n_poses=1, n_images=6, random_state=0)
    >>> sje = SJE(world.embeddings["att"], random_state=0)
    >>> grid = {"learning_rate": [0.01, 0.1], "n_epochs": [10, 20]}
    >>> search = HeldOutSearch(sje, grid, cv=world.split().val).fit(*world.training())
    >>> sorted(search.best_params_)
    ['learning_rate', 'n_epochs']
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's convention
        "model": [HasMethods(["fit", "decision_function"])],
        "grid": [dict, None],
        "cv": [Interval(Integral, 2, None, closed="left"), "array-like"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        model: Any,
        grid: Mapping[str, Sequence[Any]] | None = None,
        *,
        cv: int | Sequence[Any] = 5,
        n_threads: int | None = None,
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.model = model
        self.grid = grid
        self.cv = cv
        self.n_threads = n_threads
        self.verbose = verbose
        self.random_state = random_state

    def _model(self) -> TableClassifier:
        if not isinstance(self.model, TableClassifier):
            raise TypeError(
                f"HeldOutSearch chooses parameters of models with one class table, not of "
                f"{type(self.model).__name__}."
            )
        return clone(self.model)

    def _grid(self) -> Mapping[str, Sequence[Any]]:
        if self.grid is not None:
            return self.grid
        name = type(self.model).__name__
        if name not in GRIDS:
            raise ValueError(f"There is no usual grid for {name}: give one.")
        return GRIDS[name]

    def _know(self, best: TableClassifier) -> None:
        self.model = clone(self.model).set_params(class_embeddings=best.class_embeddings)

    def _own_params(self) -> dict[str, Any]:
        params = super()._own_params()
        del params["model"]
        return params

    @classmethod
    def _rebuild(cls, params: dict[str, Any], best: TableClassifier) -> HeldOutSearch:
        return cls(clone(best), **params)


def _fold_scores(
    candidate: Any,
    epochs: list[int] | None,
    X: np.ndarray,
    y: np.ndarray,
    X_out: np.ndarray,
    y_out: np.ndarray,
    fold: Any,
) -> list[float]:
    """Accuracy on the held-out images; one for each number of epochs, if there are several."""
    if epochs is None:
        candidate.fit(X, y)
        return [mean_class_accuracy(y_out, candidate.predict(X_out, fold.candidates))]
    candidate.set_params(n_epochs=max(epochs))
    by_epoch: dict[int, float] = {}

    def look(info: Any) -> None:
        if info.epoch in epochs:
            named = candidate._predict_by(info.maps(), X_out, fold.candidates)
            by_epoch[info.epoch] = mean_class_accuracy(y_out, named)

    candidate.fit(X, y, callback=look)
    return [by_epoch[n] for n in epochs]


def _results(
    candidates: list[dict[str, Any]],
    epochs: list[int] | None,
    scores: list[list[float]],
    n_folds: int,
) -> list[dict[str, Any]]:
    """Scores of every candidate and number of epochs, in the order of the grid."""
    results = []
    for i, params in enumerate(candidates):
        folds = scores[i * n_folds : (i + 1) * n_folds]
        for j, n in enumerate(epochs or [None]):
            own = [fold[j] for fold in folds]
            mean = float(np.mean(own)) if own else 0.0
            extra = {} if n is None else {"n_epochs": n}
            results.append({"params": {**params, **extra}, "scores": own, "mean": mean})
    return results
