"""`LatEmCV`: LatEm with its number of maps and step size chosen on held-out classes (Sec. 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone

from latem.core.parallel import run_tasks
from latem.core.validation import Interval, StrOptions
from latem.models import model_rows
from latem.models.grid_edges import Edge, edges_in_array
from latem.models.latem import TUNED, LatEm
from latem.models.scaling import Scaling
from latem.models.table_model import TableClassifier
from latem.selection.closed_forms import GAMMAS, LAMS, map_accuracy
from latem.selection.folds import FoldData
from latem.selection.search import Search

PRESETS: Mapping[str, Mapping[str, Sequence[Any]]] = {  # what is tried in each
    "paper": {**model_rows.find("LatEm").grid, "n_epochs": (150,)},
    "tuned": {"n_maps": (1,), "learning_rate": (0.03,), "n_epochs": (2, 6)},
}
_SHARED = (
    "class_embeddings", "margin", "feature_scaling", "normalize_classes", "init_scale", "n_threads",
    "dtype", "verbose", "random_state",
)  # fmt: skip
_NOISE = 0.1  # init_scale of "tuned" with several maps, which would all start alike without it


class LatEmCV(Search):
    """LatEm with the number of maps and the step size chosen on held-out classes (Sec. 4).

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
    preset : {"tuned", "paper"}
        "tuned" is what named unseen classes best on the benchmarks in `docs/accuracy.md`: centred
        features of unit length, centred and balanced class vectors, maps that start from ESZSL's,
        the hardest of ten rivals, averaged maps. It chooses ESZSL's two penalties by the closed
        form alone before the rest. "paper" trains as the paper does.
    class_kernel : sequence of float or None
        Widths of a kernel on the class side to try, see `LatEm`; None among them is no kernel.
        "tuned" chooses by the closed form alone. Where classes are many and descriptions are
        word or sentence vectors, try ``(None, 0.5, 0.7, 1.0)``.
    n_maps : sequence of int or None
        Numbers of maps to try. None: 1 in "tuned"; 2, 4, 6, 8 and 10 in "paper".
    learning_rate : sequence of float or None
        Step sizes to try. None: 0.03 in "tuned"; 0.001, 0.01 and 0.1 in "paper".
    n_epochs : int, sequence of int or None
        Passes over the images; several are tried within one training. None: 2 and 6 in "tuned",
        150 in "paper".
    cv, patience, n_threads, verbose
        As for `HeldOutSearch`.
    feature_scaling, init_scale
        As for `LatEm`; "preset" and None are what the preset takes: "l2-centered" and 0 (0.1 with
        several maps) in "tuned", "zmax" and 1 in "paper".
    margin, normalize_classes, dtype
        As for `LatEm`.
    random_state : int, RandomState or None
        How classes are assigned to the folds, and the seed of every training.

    Attributes
    ----------
    best_estimator_ : LatEm
        Fitted to all images with the best parameters.
    best_params_, best_score_, best_index_, cv_results_, grid_edges_
        As for `HeldOutSearch`; "tuned" does not warn of values that were not given.

    Examples
    --------
    >>> from latem import LatEmCV, make_latent_world
    >>> world = make_latent_world(random_state=0)
    >>> search = LatEmCV(
    ...     world.embeddings["att"], preset="paper", n_maps=(1, 2), learning_rate=(0.1,),
    ...     n_epochs=30, cv=world.split().val, random_state=0,
    ... )
    >>> search.fit(*world.training()).best_params_["n_maps"]
    2
    """

    tuned: ClassVar[Mapping[str, Any]] = {  # of LatEm, in the preset "tuned"
        name: value
        for name, value in TUNED.items()
        if name not in ("init_scale", *PRESETS["tuned"])
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: rule for name, rule in LatEm._parameter_constraints.items() if name in _SHARED},
        "preset": [StrOptions({"paper", "tuned"})],
        "class_kernel": ["array-like"],
        "feature_scaling": [
            *LatEm._parameter_constraints["feature_scaling"],
            StrOptions({"preset"}),
        ],
        "init_scale": [*LatEm._parameter_constraints["init_scale"], None],
        "n_maps": ["array-like", None],
        "learning_rate": ["array-like", None],
        "n_epochs": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "cv": [Interval(Integral, 2, None, closed="left"), "array-like"],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        class_embeddings: Any = None,
        *,
        preset: str = "tuned",
        class_kernel: Sequence[float | None] = (None,),
        n_maps: Sequence[int] | None = None,
        learning_rate: Sequence[float] | None = None,
        n_epochs: int | Sequence[int] | None = None,
        cv: int | Sequence[Any] = 5,
        patience: int | None = None,
        margin: float = 1.0,
        feature_scaling: Scaling | Literal["preset"] | None = "preset",
        normalize_classes: bool = True,
        init_scale: float | None = None,
        n_threads: int | None = None,
        dtype: str = "float32",
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.class_embeddings = class_embeddings
        self.preset = preset
        self.class_kernel = class_kernel
        self.n_maps = n_maps
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.cv = cv
        self.patience = patience
        self.margin = margin
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.init_scale = init_scale
        self.n_threads = n_threads
        self.dtype = dtype
        self.verbose = verbose
        self.random_state = random_state

    def unfitted_model(self) -> TableClassifier:
        """Unfitted LatEm whose parameters are to be chosen."""
        given = ("margin", "normalize_classes", "dtype", "n_threads")
        params = {name: getattr(self, name) for name in given}
        if self.preset == "tuned":
            several = any(n != 1 for n in self.tried_values()["n_maps"])
            params |= {**self.tuned, "init_scale": _NOISE if several else 0.0}
        if self.feature_scaling != "preset":
            params["feature_scaling"] = self.feature_scaling
        if self.init_scale is not None:
            params["init_scale"] = self.init_scale
        return LatEm(self.class_embeddings, random_state=self._seed(), **params)

    def _seed(self) -> int | None:
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            return int(seed.randint(2**31 - 1))
        return seed

    def tried_values(self) -> Mapping[str, Sequence[Any]]:
        """Values to try by parameter."""
        usual = PRESETS[self.preset]
        given = {name: getattr(self, name) for name in usual}
        tried = {
            name: np.atleast_1d(usual[name] if values is None else values).tolist()
            for name, values in given.items()
        }
        if self.preset == "paper" and list(self.class_kernel) != [None]:
            tried["class_kernel"] = list(self.class_kernel)
        return tried

    def _n_first_steps(self, folds: Sequence[FoldData]) -> int:
        return len(folds) * len(self.class_kernel) if self.preset == "tuned" else 0

    def _choose_first(
        self, model: Any, folds: Sequence[FoldData], done: Callable[[], None]
    ) -> tuple[dict[str, Any], list[Edge]]:
        """ESZSL's two penalties and the kernel's width, by the closed form alone."""
        if not self._n_first_steps(folds):
            return {}, []
        widths = [None if width is None else float(width) for width in self.class_kernel]

        pieces = [(width, i) for width in widths for i in range(len(folds))]
        tasks = run_tasks(
            _penalties, pieces, shared=(model, folds), n_threads=self.n_threads, done=done
        )
        found = list(tasks)
        by_width = np.array(found).reshape(len(widths), len(folds), len(GAMMAS), len(LAMS))
        by_width = by_width.mean(axis=1)
        first = int(by_width.max(axis=(1, 2)).argmax())  # of equals the first width
        scores = by_width[first]
        best = np.argwhere(scores == scores.max())[-1]  # of equals the largest penalties
        chosen: dict[str, Any] = {
            "start_gamma": float(GAMMAS[best[0]]),
            "start_lam": float(LAMS[best[1]]),
        }
        if widths != [None]:
            chosen["class_kernel"] = widths[first]
        axes = {"class_kernel": widths, "start_gamma": GAMMAS.tolist(), "start_lam": LAMS.tolist()}
        return chosen, edges_in_array(by_width, axes, [first, *best])

    def _is_asked_for(self, name: str) -> bool:
        return self.preset == "paper" or getattr(self, name, None) is not None

    def _take_classes(self, best: TableClassifier) -> None:
        self.class_embeddings = best.class_embeddings

    def _stored_params(self) -> dict[str, Any]:
        stored = None if self.class_embeddings is None else "stored"
        return {**super()._stored_params(), "class_embeddings": stored}

    @classmethod
    def _read_best_params(cls, params: dict[str, Any]) -> dict[str, Any]:
        return LatEm.current_names(params)

    @classmethod
    def _rebuild(cls, params: dict[str, Any], best: TableClassifier) -> LatEmCV:
        if params["class_embeddings"] == "stored":
            params["class_embeddings"] = best.class_table_
        params.setdefault("preset", "paper")  # files of before there were presets
        if params["preset"] == "tuned" and params["feature_scaling"] != best.feature_scaling:
            # files of before these two could be given beside it
            params |= {"feature_scaling": "preset", "init_scale": None}
        return cls(**params)


def _penalties(
    piece: tuple[float | None, int], model: Any, folds: Sequence[FoldData]
) -> np.ndarray:
    """Accuracy of the closed form on one fold, for one width and every pair of penalties."""
    width, place = piece
    kernel = clone(model).set_params(class_kernel=width)
    return map_accuracy(kernel, folds[place], gammas=GAMMAS, lams=LAMS)
