"""`HeldOutSearch`: parameters of any model, chosen on held-out classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from latem.core.validation import HasMethods, Interval
from latem.models.base import plain_params
from latem.models.checks import check_is_model
from latem.models.table_model import TableClassifier
from latem.selection.grids import GRIDS
from latem.selection.search import Search


class HeldOutSearch(Search):
    """Any model with its parameters chosen on held-out classes.

    Parameters
    ----------
    model : a model
        LatEm or one of the baselines.
    grid : dict of parameter name to values, or None
        Values to try; None takes those of `latem.selection.GRIDS` for this kind of model.
    cv : int or sequence of class names
        Number of class-disjoint folds, or the classes to hold out once (a dataset's val classes).
        Each candidate is scored among the held-out classes only, by mean per-class accuracy. With
        one-hot classes, which cannot be held out, folds of images are used instead; if there are
        too few for that, the first candidate is taken.
    patience : int or None
        Early stopping of models that are trained in epochs, if `n_epochs` is among what is tried:
        a candidate's training ends after so many of its numbers of epochs in a row that are no
        better than one before. The rest get the score NaN and are not chosen; with several folds,
        those that one fold did not come to. None tries them all.
    n_threads : int or None
        Candidates to train side by side; None uses all cores. Results do not depend on it.
    verbose : bool
        Whether to show a progress bar.
    random_state : int, RandomState or None
        How classes are assigned to the folds. The model has its own `random_state`.

    Attributes
    ----------
    best_estimator_ : model
        Fitted to all images with the best parameters.
    best_params_ : dict
        Of equally good ones the first of the grid.
    best_score_ : float
        Its mean accuracy over the folds.
    best_index_ : int
        Its place in `cv_results_`.
    cv_results_ : dict of arrays
        As scikit-learn's searches have it: "params", "param_NAME" for every parameter,
        "split0_test_score" and so on, "mean_test_score", "std_test_score", "rank_test_score".
        Also "edge_NAME", whether a candidate's value is the lowest or the highest of a grid of
        three numbers or more.
    grid_edges_ : dict of parameter name to "lowest" or "highest"
        Chosen values at the end of their grids that are better than all others: a better one may
        lie beyond, and a `GridEdgeWarning` says so.

    Examples
    --------
    >>> from latem import SJE, HeldOutSearch, make_latent_world
    >>> world = make_latent_world(n_poses=1, n_images=6, random_state=0)
    >>> sje = SJE(world.embeddings["att"], random_state=0)
    >>> grid = {"learning_rate": [0.01, 0.1], "n_epochs": [10, 20]}
    >>> search = HeldOutSearch(sje, grid, cv=world.split().val).fit(*world.training())
    >>> sorted(search.best_params_)
    ['learning_rate', 'n_epochs']
    >>> search.cv_results_["mean_test_score"].shape
    (4,)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "model": [HasMethods(["fit", "decision_function"])],
        "grid": [dict, None],
        "cv": [Interval(Integral, 2, None, closed="left"), "array-like"],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
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
        patience: int | None = None,
        n_threads: int | None = None,
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.model = model
        self.grid = grid
        self.cv = cv
        self.patience = patience
        self.n_threads = n_threads
        self.verbose = verbose
        self.random_state = random_state

    def unfitted_model(self) -> TableClassifier:
        """Unfitted model whose parameters are to be chosen."""
        check_is_model(self.model, "HeldOutSearch")
        if not isinstance(self.model, TableClassifier):
            raise TypeError(
                f"HeldOutSearch chooses parameters of models with one class table, not of "
                f"{type(self.model).__name__}."
            )
        return clone(self.model)

    def tried_values(self) -> Mapping[str, Sequence[Any]]:
        """Values to try by parameter."""
        if self.grid is not None:
            return self.grid
        name = type(self.model).__name__
        if name not in GRIDS:
            raise ValueError(f"There is no usual grid for {name}: give one.")
        return GRIDS[name]

    def _take_classes(self, best: TableClassifier) -> None:
        self.model = clone(self.model).set_params(class_embeddings=best.class_embeddings)

    def _stored_params(self) -> dict[str, Any]:
        params = super()._stored_params()
        given = self.model.get_params(deep=False)  # before the best values were chosen
        params["model"] = plain_params({name: given[name] for name in self.tried_values()})
        return params

    @classmethod
    def _rebuild(cls, params: dict[str, Any], best: TableClassifier) -> HeldOutSearch:
        given = params.pop("model", {})  # earlier files have none
        return cls(clone(best).set_params(**given), **params)
