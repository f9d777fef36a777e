"""`LatEmCV`: LatEm with its number of maps and step size chosen on held-out classes (Sec. 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from latem.models.latem import LatEm
from latem.models.scaling import Scaling
from latem.models.tabled import TableClassifier
from latem.selection.search import Search


class LatEmCV(Search):
    """LatEm with the number of maps and the step size chosen on held-out classes (Sec. 4).

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
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
        "n_maps": ["array-like"],
        "learning_rate": ["array-like"],
        "n_epochs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "cv": [Interval(Integral, 2, None, closed="left"), "array-like"],
    }

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
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
        same = ("margin", "feature_scaling", "normalize_classes", "init_scale", "dtype")
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = int(seed.randint(2**31 - 1))
        return LatEm(
            self.class_embeddings,
            random_state=seed,
            n_threads=self.n_threads,
            **{name: getattr(self, name) for name in same},
        )

    def _grid(self) -> Mapping[str, Sequence[Any]]:
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
