"""`LatEmCV`: LatEm with its number of maps and step size chosen on held-out classes (Sec. 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from latem.metrics import mean_class_accuracy
from latem.models.eszsl import Problem
from latem.models.folds import Fold
from latem.models.latem import LatEm
from latem.models.scaling import Scaling
from latem.models.tabled import TableClassifier
from latem.selection.search import Search

TUNED: dict[str, Any] = {
    "n_maps": 1, "learning_rate": 0.03, "feature_scaling": "l2", "init_scale": 0.0,
    "start": "eszsl", "n_rivals": 10, "center_classes": True, "average": True,
}  # fmt: skip
TUNED_EPOCHS = (2, 6)
GAMMAS, LAMS = 10.0 ** np.arange(-3, 5), 10.0 ** np.arange(-2, 3)


class LatEmCV(Search):
    """LatEm with the number of maps and the step size chosen on held-out classes (Sec. 4).

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
    preset : {"paper", "tuned"}
        "paper" chooses among the numbers of maps and step sizes below. "tuned" is what named
        unseen classes best on the benchmarks in `docs/accuracy.md`: unit-length features, centred
        class vectors, one map that starts from ESZSL's, the hardest of ten rivals, averaged maps.
        It chooses ESZSL's two penalties by the closed form alone, then the number of epochs
        (2 or 6), and ignores the parameters from `n_maps` to `init_scale`.
    n_maps : sequence of int
        Numbers of maps to try.
    learning_rate : sequence of float
        Step sizes to try.
    n_epochs : int or sequence of int
        Passes over the images; several are tried within one training.
    cv, n_threads, verbose
        As for `HeldOutSearch`.
    margin, feature_scaling, normalize_classes, init_scale, dtype
        As for `LatEm`.
    random_state : int, RandomState or None
        How classes are dealt to the folds, and the seed of every training.

    Attributes
    ----------
    best_model_ : LatEm
        Fitted to all images with the best parameters.
    best_params_, best_score_, cv_results_
        As for `HeldOutSearch`.

    Examples
    --------
    >>> from latem import LatEmCV, make_latent_world
    >>> world = make_latent_world(random_state=0)
    >>> search = LatEmCV(
    ...     world.embeddings["att"], n_maps=(1, 2), learning_rate=(0.1,), n_epochs=30,
    ...     cv=world.split().val, random_state=0,
    ... )
    >>> search.fit(*world.training()).best_params_["n_maps"]
    2
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's convention
        **{
            name: rule
            for name, rule in LatEm._parameter_constraints.items()
            if name not in ("prune_below", "prune_every", "prune_count", "warm_start")
        },
        "preset": [StrOptions({"paper", "tuned"})],
        "n_maps": ["array-like"],
        "learning_rate": ["array-like"],
        "n_epochs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "cv": [Interval(Integral, 2, None, closed="left"), "array-like"],
    }

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        preset: str = "paper",
        n_maps: Sequence[int] = (2, 4, 6, 8, 10),
        learning_rate: Sequence[float] = (0.001, 0.01, 0.1),
        n_epochs: int | Sequence[int] = 150,
        cv: int | Sequence[Any] = 5,
        margin: float = 1.0,
        feature_scaling: Scaling | None = "zmax",
        normalize_classes: bool = True,
        init_scale: float = 1.0,
        n_threads: int | None = None,
        dtype: str = "float32",
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.class_embeddings = class_embeddings
        self.preset = preset
        self.n_maps = n_maps
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.cv = cv
        self.margin = margin
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.init_scale = init_scale
        self.n_threads = n_threads
        self.dtype = dtype
        self.verbose = verbose
        self.random_state = random_state

    def _model(self) -> TableClassifier:
        if self.preset == "tuned":
            return LatEm(
                self.class_embeddings,
                random_state=self._seed(),
                n_threads=self.n_threads,
                dtype=self.dtype,
                **TUNED,
            )
        same = ("margin", "feature_scaling", "normalize_classes", "init_scale", "dtype")
        return LatEm(
            self.class_embeddings,
            random_state=self._seed(),
            n_threads=self.n_threads,
            **{name: getattr(self, name) for name in same},
        )

    def _seed(self) -> int | None:
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            return int(seed.randint(2**31 - 1))
        return seed

    def _settle(self, model: Any, parts: Sequence[Any]) -> dict[str, Any]:
        if self.preset != "tuned" or not parts:
            return {}
        scores = np.mean([self._closed_scores(model, *part) for part in parts], axis=0)
        best = np.argwhere(scores == scores.max())[-1]  # of equals the largest penalties
        return {"gamma": float(GAMMAS[best[0]]), "lam": float(LAMS[best[1]])}

    def _closed_scores(
        self,
        model: Any,
        X: np.ndarray,
        y: np.ndarray,
        X_out: np.ndarray,
        y_out: np.ndarray,
        fold: Fold,
    ) -> np.ndarray:
        """Accuracy of the closed form on the held-out images, for all pairs of penalties."""
        own = clone(model).set_params(dtype="float64")
        own._begin(X, y)
        problem = Problem(X, own._codes(y), own._seen_vectors(), own.scaler_, "01")
        images = own.scaler_.transform(X_out, np.float64)
        candidates = own._candidates(fold.candidates)
        accuracy = np.empty((len(GAMMAS), len(LAMS)))
        for i, j, scores in problem.grid_scores(images, candidates.vectors, GAMMAS, LAMS):
            named = candidates.names[scores.argmax(axis=1)]
            accuracy[i, j] = mean_class_accuracy(y_out, named)
        return accuracy

    def _grid(self) -> Mapping[str, Sequence[Any]]:
        if self.preset == "tuned":
            return {"n_epochs": list(TUNED_EPOCHS)}
        epochs = [self.n_epochs] if isinstance(self.n_epochs, Integral) else self.n_epochs
        values = {
            "n_maps": self.n_maps, "learning_rate": self.learning_rate, "n_epochs": epochs
        }  # fmt: skip
        return {name: np.asarray(some).tolist() for name, some in values.items()}

    def _own_params(self) -> dict[str, Any]:
        stored = None if self.class_embeddings is None else "stored"
        return {**super()._own_params(), "class_embeddings": stored}

    @classmethod
    def _rebuild(cls, params: dict[str, Any], best: TableClassifier) -> LatEmCV:
        if params["class_embeddings"] == "stored":
            params["class_embeddings"] = best.class_table_
        return cls(**params)
