"""Why an image was given a class, and what each map has learned.

A score is a sum over the dimensions of the class vector, xᵀ W_k y = Σ_a (xᵀ W_k)_a y_a. With
attributes, each term says how much one attribute adds to the score of the class. Terms of
attributes that belong together are added up: see `latem.inspection.families`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from latem.core.atomic import atomic_path
from latem.core.slim import needed
from latem.embeddings.table_checks import as_python
from latem.inspection.axes import plot_label
from latem.inspection.families import Family, family_of_columns, gather
from latem.inspection.speakers import by_likeness, inner_model, speaker
from latem.models.score_terms import ScoreTerms
from latem.models.table_model import TableClassifier

if TYPE_CHECKING:
    import pandas as pd

PENALTY = "(penalty on seen classes)"  # its name among contributions
LIKENESS = "likeness to seen classes"  # the family of what is said by it beside traits
_N_MEMBERS = 3  # that are told of a family
_N_PLOTTED = 2  # that are drawn
_GREY, _PALE = "#8a8a8a", "#b9c4c0"  # of what is left, and of members


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why one image was named as it was, against the runner-up or another class.

    Attributes
    ----------
    named, runner_up : class name
        The class named, and the one it is compared with.
    score, runner_up_score : float
    map, runner_up_map : int
        Number of the map that scored each of them best; 0 without maps.
    map_lead : float or None
        By how much that map beat the next best one, for the class named; None with one map.
    contributions : Series
        What each dimension adds to the lead over the runner-up, largest first; they add up to
        ``score - runner_up_score``.
    chosen : bool
        Whether the other class was asked for with `against`, instead of the runner-up.
    family_of : dict of column name to family name
        Which dimensions belong together; empty if none do.
    less : frozenset of str
        Dimensions of which the image speaks for less, not more: what they add to the lead goes to
        the class that has less of them. They are told as "less red", or "unlike" a seen class.
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
    family_of: Mapping[str, str] = field(default_factory=dict, repr=False)
    less: frozenset[str] = field(default=frozenset(), repr=False)

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

    @cached_property
    def families(self) -> list[Family]:
        """What dimensions that belong together add, largest first; they add up to the lead.

        A dimension that belongs to no others is a family of its own.
        """
        return gather(self.contributions, self.family_of, self.less)

    def top_families(self, n: int = 10) -> list[Family]:
        """The n families of largest size, of either sign, largest first; n at least 1."""
        if n < 1:
            raise ValueError(f"n must be at least 1, but is {n}.")
        families = self.families
        largest = sorted(families, key=lambda family: -abs(family.contribution))[:n]
        return sorted(largest, key=lambda family: -family.contribution)

    def to_dict(self, n: int = 10, *, n_members: int = _N_MEMBERS) -> dict[str, Any]:
        """The explanation as plain data, ready for JSON.

        Parameters
        ----------
        n : int
            Families to tell, those of largest size.
        n_members : int
            Members to tell of each.

        Returns
        -------
        dict
            `named`, `runner_up`, `chosen`, `score`, `runner_up_score`, `lead`, `map`,
            `runner_up_map`, `map_lead`; `families`, a list of dicts with `name`, `words`,
            `contribution`, `members` (each `name`, `words` and `contribution`) and `rest`; and
            `rest` of the families. `words` is the name, with "less" or "unlike" where that is
            what the image speaks for. A `rest` has the number `n` of what is left out, and its
            `contribution`.
        """
        shown = self.top_families(n)
        return {
            "named": as_python(self.named),
            "runner_up": as_python(self.runner_up),
            "chosen": self.chosen,
            "score": self.score,
            "runner_up_score": self.runner_up_score,
            "lead": self.lead,
            "map": self.map,
            "runner_up_map": self.runner_up_map,
            "map_lead": self.map_lead,
            "families": [family.to_dict(n_members) for family in shown],
            "rest": {
                "n": len(self.families) - len(shown),
                "contribution": self._left(family.contribution for family in shown),
            },
        }

    def text(self, n: int = 10) -> str:
        """The explanation in words: the n families, or dimensions, that matter most."""
        maps = "" if self.map_lead is None else (
            f" by map {self.map}, {self.map_lead:.3g} ahead of the next best map"
        )  # fmt: skip
        lines = [
            f"{self.named}: {self.score:.3g}{maps}",
            f"{'compared with' if self.chosen else 'runner-up'} {self.runner_up}: "
            f"{self.runner_up_score:.3g}; the lead of {self.lead:.3g} comes from",
        ]
        shown = self.top_families(n)
        n_left = len(self.families) - len(shown)
        left = self._the_other(n_left)
        width = max(len(name) for name in [*(family.title for family in shown), left])
        for family in shown:
            added = f"{family.contribution:+.3g}"
            lines.append(f"  {family.title:<{width}}  {added:<10}  {_members(family)}".rstrip())
        if n_left:
            rest = self._left(family.contribution for family in shown)
            lines.append(f"  {left:<{width}}  {rest:+.3g}")
        return "\n".join(lines)

    def _left(self, shown: Iterable[float]) -> float:
        """What is left of the lead besides what is shown."""
        return math.fsum([*self.contributions, *(-value for value in shown)])

    def _the_other(self, n: int) -> str:
        of_traits = any(family != LIKENESS for family in self.family_of.values())
        return f"the other {n}{' families' if of_traits else ''}" if n else ""

    def plot(self, path: str | PathLike[str], n: int = 15) -> None:
        """Draw the n largest families, or dimensions, as bars, as a picture of the path's type."""
        figure = self._figure(n)
        suffix = str(path).rsplit(".", 1)[-1]
        with atomic_path(path) as temporary, open(temporary, "wb") as file:
            figure.savefig(file, format=suffix, dpi=150)

    def _figure(self, n: int) -> Any:
        figures = needed("matplotlib.figure", "Plots")
        shown = self.top_families(n)
        bars: list[tuple[str, float, str]] = []  # label, value, colour
        for family in shown:
            bars.append((plot_label(family.title), family.contribution, _colour(family)))
            if len(family.members) > 1:
                strongest = family.strongest(_N_PLOTTED)
                bars += [
                    (f"· {plot_label(family.told(str(name)))}", float(value), _PALE)
                    for name, value in strongest.items()
                ]
        n_left = len(self.families) - len(shown)
        if n_left:
            rest = self._left(family.contribution for family in shown)
            bars.append((self._the_other(n_left), rest, _GREY))
        names, values, colours = zip(*bars, strict=True)
        figure = figures.Figure(figsize=(7, 1.2 + 0.28 * len(bars)), layout="constrained")
        axes = figure.subplots()
        heights = [0.4 if colour == _PALE else 0.8 for colour in colours]
        axes.barh(range(len(bars)), values, heights, color=colours, tick_label=names)
        axes.invert_yaxis()
        axes.axvline(0, color="#555555", linewidth=0.8)
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlabel("contribution to the lead")
        title = (
            f"{plot_label(self.named)}\nahead of {plot_label(self.runner_up)} by {self.lead:.3g}"
        )
        figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
        axes.spines[["top", "right"]].set_visible(False)
        return figure


def _members(family: Family) -> str:
    """The strongest members of a family in words; nothing of a trait that stands alone."""
    if len(family.members) == 1 and family.name in family.members.index:
        return ""
    shown = family.strongest(_N_MEMBERS)
    parts = [f"{family.told(str(name))} {value:+.3g}" for name, value in shown.items()]
    return ", ".join(parts) + (", …" if len(shown) < len(family.members) else "")


def _colour(family: Family) -> str:
    return "#1b7f5c" if family.contribution >= 0 else "#b4442e"


def explain_predictions(
    model: TableClassifier,
    X: Any,
    classes: Any = "unseen",
    *,
    against: Any = None,
    groups: Any = None,
    seen_penalty: float = 0.0,
) -> list[Explanation]:
    """Why images are named as they are.

    Parameters
    ----------
    model : fitted model whose scores are sums, or a search over one
        LatEm, SJE, ALE, DeViSE, WSABIE, ESZSL, ESZSLCV, or a registered model that names its maps:
        over traits, or with a kernel over likeness to seen classes. EXEM: over likeness to seen
        classes. Committee: over both.
    X : array-like of shape (n_samples, n_features)
    classes
        Which classes may be the answer, at least two; see `decision_function`.
    against : class name, or sequence of class names, one per image, optional
        Compare with these instead of the runner-up: "why not …?" Where one of them is the class
        that was named, the runner-up is taken.
    groups : mapping of column name to family name, Series, one-column DataFrame or path, optional
        Which traits belong together; their contributions are added up. By default those that were
        made from one raw trait, and those whose names share the part before "::"; ``{}`` means
        none. What a committee says by likeness to seen classes is a family of its own.
    seen_penalty : float
        What is subtracted from the scores of seen classes before the best is named; it is a
        contribution of its own where only one of the two classes is a seen one.

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
    terms_of = speaker(model)
    X = model.check_images(X)
    if against is not None:
        against = [against] * len(X) if np.ndim(against) == 0 else list(against)
    chosen = model.class_view_.candidates(classes)
    if len(chosen) < 2:
        raise ValueError("An explanation compares two classes; name at least two candidates.")
    if against is not None and len(against) != len(X):
        raise ValueError(f"against names {len(against)} classes for {len(X)} images.")
    places = {name: i for i, name in enumerate(chosen.names.tolist())}
    family_of = {} if by_likeness(model) else family_of_columns(model.class_table_, groups)
    penalty = float(seen_penalty) * np.isin(chosen.names, model.classes_)
    explanations = []
    for row in range(len(X)):
        found = terms_of(model.scaler_.transform(X[row : row + 1], np.float64)[0], chosen)
        order = np.argsort(penalty - found.terms.sum(axis=1), kind="stable")
        best = int(order[0])
        if against is None:
            other = int(order[1])
        elif against[row] in places:
            other = places[against[row]]
        else:
            raise ValueError(f"{against[row]!r} is not among the candidates.")
        if other == best:
            other = int(order[1])
        why = _compare(found, chosen.names, best, other)
        why = _penalised(why, float(penalty[best]), float(penalty[other]))
        families = {**family_of, **_likeness(found.columns, model.class_table_.column_names())}
        explanations.append(replace(why, chosen=bool(other != order[1]), family_of=families))
    return explanations


def _likeness(columns: Sequence[str], traits: Sequence[str]) -> dict[str, str]:
    """The family of likeness to seen classes, where a committee speaks by traits as well."""
    others = set(columns).difference(traits)
    return dict.fromkeys(others, LIKENESS) if len(others) < len(columns) else {}


def _compare(found: ScoreTerms, names: np.ndarray, best: int, other: int) -> Explanation:
    terms, other_terms = found.terms[best], found.terms[other]
    pd = needed("pandas", "Explanations")
    contributions = pd.Series(terms - other_terms, index=found.columns, dtype=np.float64)
    fewer = (found.slopes[[best, other]] < 0).all(axis=0)
    by_map = found.by_map if found.by_map is not None else np.zeros((1, len(names)))
    ranked = np.sort(by_map[:, best])[::-1]
    return Explanation(
        named=names[best],
        runner_up=names[other],
        score=math.fsum(terms),
        runner_up_score=math.fsum(other_terms),
        map=int(by_map[:, best].argmax()),
        runner_up_map=int(by_map[:, other].argmax()),
        map_lead=float(ranked[0] - ranked[1]) if len(ranked) > 1 else None,
        contributions=contributions.sort_values(ascending=False, kind="stable"),
        less=frozenset(np.array(found.columns)[fewer].tolist()),
    )


def _penalised(why: Explanation, of_best: float, of_other: float) -> Explanation:
    """The explanation with the penalty on seen classes taken from both scores."""
    if not (of_best or of_other):
        return why
    added = why.contributions
    if of_best != of_other:
        pd = needed("pandas", "Explanations")
        extra = pd.Series({PENALTY: of_other - of_best})
        added = pd.concat([added, extra]).sort_values(ascending=False, kind="stable")
    return replace(
        why,
        score=why.score - of_best,
        runner_up_score=why.runner_up_score - of_other,
        contributions=added,
    )
