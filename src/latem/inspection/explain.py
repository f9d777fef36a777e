"""Why an image was given a class, and what each map has learned.

A score is a sum over the dimensions of the class vector, xᵀ W_k y = Σ_a (xᵀ W_k)_a y_a. With
attributes, each term says how much one attribute adds to the score of the class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from latem.core.arrays import unit_rows
from latem.core.storage import atomic_path
from latem.models import model_rows
from latem.models.checks import check_is_model
from latem.models.table_model import TableClassifier

_LONGEST = 44  # letters of a name in a plot


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why one image was named as it was, against the runner-up or another class.

    Attributes
    ----------
    named, runner_up : class name
        The class named, and the one it is compared with.
    score, runner_up_score : float
    map, runner_up_map : int
        Number of the map that scored each of them best.
    map_lead : float or None
        By how much that map beat the next best one, for the class named; None with one map.
    contributions : Series
        What each dimension adds to the lead over the runner-up, largest first; they add up to
        ``score - runner_up_score``.
    chosen : bool
        Whether the other class was asked for with `against`, instead of the runner-up.
    """

    named: Any
    runner_up: Any
    score: float
    runner_up_score: float
    map: int
    runner_up_map: int
    map_lead: float | None
    contributions: pd.Series = field(repr=False)
    chosen: bool = False

    @property
    def lead(self) -> float:
        """``score - runner_up_score``."""
        return self.score - self.runner_up_score

    def top(self, n: int = 10) -> pd.Series:
        """The n contributions of largest size, of either sign, largest first; n at least 1."""
        if n < 1:
            raise ValueError(f"n must be at least 1, but is {n}.")
        sizes = self.contributions.abs().sort_values(ascending=False, kind="stable")
        return self.contributions[sizes.index[:n]].sort_values(ascending=False, kind="stable")

    def text(self, n: int = 10) -> str:
        """The explanation in words."""
        maps = "" if self.map_lead is None else (
            f" by map {self.map}, {self.map_lead:.3g} ahead of the next best map"
        )  # fmt: skip
        lines = [
            f"{self.named}: {self.score:.3g}{maps}",
            f"{'compared with' if self.chosen else 'runner-up'} {self.runner_up}: "
            f"{self.runner_up_score:.3g}; the lead of {self.lead:.3g} comes from",
        ]
        shown = self.top(n)
        width = max(len(str(name)) for name in shown.index)
        lines += [f"  {name!s:<{width}}  {value:+.3g}" for name, value in shown.items()]
        rest = self.lead - math.fsum(shown)
        if len(shown) < len(self.contributions):
            left = f"the other {len(self.contributions) - len(shown)}"
            lines.append(f"  {left:<{width}}  {rest:+.3g}")
        return "\n".join(lines)

    def plot(self, path: str | PathLike[str], n: int = 15) -> None:
        """Draw the n largest contributions as bars, as a picture of the path's type."""
        figure = self._figure(n)
        suffix = str(path).rsplit(".", 1)[-1]
        with atomic_path(path) as temporary, open(temporary, "wb") as file:
            figure.savefig(file, format=suffix, dpi=150)

    def _figure(self, n: int) -> Any:
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise ImportError("Plots need matplotlib: pip install matplotlib.") from None
        shown = self.top(n)
        names, values = [_plot_label(name) for name in shown.index], shown.tolist()
        colours = ["#1b7f5c" if value >= 0 else "#b4442e" for value in values]
        n_left = len(self.contributions) - len(shown)
        if n_left:
            names.append(f"the other {n_left}")
            values.append(self.lead - math.fsum(values))
            colours.append("#8a8a8a")
        figure = Figure(figsize=(7, 1.2 + 0.28 * len(values)), layout="constrained")
        axes = figure.subplots()
        places = range(len(values))
        axes.barh(places, values, color=colours, tick_label=names)
        axes.invert_yaxis()
        axes.axvline(0, color="#555555", linewidth=0.8)
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlabel("contribution to the lead")
        title = (
            f"{_plot_label(self.named)}\nahead of {_plot_label(self.runner_up)} by {self.lead:.3g}"
        )
        figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
        axes.spines[["top", "right"]].set_visible(False)
        return figure


def _plot_label(name: Any) -> str:
    """A name that matplotlib shows as it is written, shortened so that bars have room."""
    text = str(name)
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"
    return text.replace("$", r"\$")


def explain_predictions(
    model: TableClassifier, X: Any, classes: Any = "unseen", *, against: Sequence[Any] | None = None
) -> list[Explanation]:
    """Why images are named as they are.

    Parameters
    ----------
    model : fitted model with bilinear maps, or a search over one
        LatEm, SJE, ALE, DeViSE, WSABIE, ESZSL, ESZSLCV, or a registered model that names its maps.
    X : array-like of shape (n_samples, n_features)
    classes
        Which classes may be the answer, at least two; see `decision_function`.
    against : sequence of class names, one per image, optional
        Compare with these instead of the runner-up: "why not …?" Where one of them is the class
        that was named, the runner-up is taken.

    Returns
    -------
    list of Explanation, one per image

    Examples
    --------
    >>> from latem import LatEm, explain_predictions, make_latent_world
    >>> world = make_latent_world(random_state=0)
    >>> model = LatEm(world.embeddings["att"], n_maps=2, random_state=0).fit(*world.training())
    >>> X, y = world.testing()
    >>> why = explain_predictions(model, X[:1])[0]
    >>> bool(abs(why.contributions.sum() - why.lead) < 1e-9)
    True
    """
    model = inner_model(model, "explain_predictions")
    maps = _maps(model)
    X = model.check_images(X)
    against = None if against is None else list(against)
    chosen = model.class_view_.candidates(classes)
    if len(chosen) < 2:
        raise ValueError("An explanation compares two classes; name at least two candidates.")
    if against is not None and len(against) != len(X):
        raise ValueError(f"against names {len(against)} classes for {len(X)} images.")
    places = {name: i for i, name in enumerate(chosen.names.tolist())}
    columns = model.class_table_.column_names()
    vectors = chosen.vectors.astype(np.float64)
    explanations = []
    for row in range(len(X)):
        features = model.scaler_.transform(X[row : row + 1], np.float64)[0]
        projected = _projected(model, features, maps)  # (n_maps, n_dimensions)
        by_map = projected @ vectors.T  # (n_maps, n_classes)
        order = np.argsort(-by_map.max(axis=0), kind="stable")
        best = int(order[0])
        if against is None:
            other = int(order[1])
        elif against[row] in places:
            other = places[against[row]]
        else:
            raise ValueError(f"{against[row]!r} is not among the candidates.")
        if other == best:
            other = int(order[1])
        why = _compare(projected, by_map, vectors, chosen.names, columns, best, other)
        explanations.append(replace(why, chosen=bool(other != order[1])))
    return explanations


def _compare(
    projected: np.ndarray,
    by_map: np.ndarray,
    vectors: np.ndarray,
    names: np.ndarray,
    columns: list[str],
    best: int,
    other: int,
) -> Explanation:
    i, j = int(by_map[:, best].argmax()), int(by_map[:, other].argmax())
    terms = projected[i] * vectors[best]
    other_terms = projected[j] * vectors[other]
    contributions = pd.Series(terms - other_terms, index=columns, dtype=np.float64)
    ranked = np.sort(by_map[:, best])[::-1]
    return Explanation(
        named=names[best],
        runner_up=names[other],
        score=math.fsum(terms),
        runner_up_score=math.fsum(other_terms),
        map=i,
        runner_up_map=j,
        map_lead=float(ranked[0] - ranked[1]) if len(ranked) > 1 else None,
        contributions=contributions.sort_values(ascending=False, kind="stable"),
    )


def inner_model(model: Any, user: str) -> Any:
    """The model itself, or what a search over parameters has chosen.

    Parameters
    ----------
    model : fitted model, or a fitted search over one, scikit-learn's included
    user : str
        Function that was given it, for messages.
    """
    inner = getattr(model, "best_estimator_", model)
    check_is_model(inner, user)
    check_is_fitted(model)
    return inner


def _maps(model: Any) -> np.ndarray:
    """Bilinear maps of a model, (n_maps, n_features, n_dimensions), in float64."""
    row = model_rows.row_of(model)
    if row is None or row.maps is None:
        explained = ", ".join(row.name for row in model_rows.rows() if row.maps is not None)
        raise TypeError(
            f"{type(model).__name__} does not add up its scores over the dimensions of the class "
            f"vector; explanations are for {explained}."
        )
    maps = getattr(model, row.maps).astype(np.float64)
    return maps if maps.ndim == 3 else maps[None]


def _projected(model: Any, features: np.ndarray, maps: np.ndarray) -> np.ndarray:
    """W_kᵀ x for every map, of unit length where the model compares directions."""
    projected = features @ maps
    return unit_rows(projected) if model.by_direction else projected
