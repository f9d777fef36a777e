"""What `strangeness` and `Answer.verdict` say of an image, as nodes of a graph.

The same two questions as in `latem.metrics.open_set`: is the image one of the candidates rather
than one of the seen classes beside them, and is it of the kind that was learned from at all? What
depends on the number of candidates is computed in the graph too, since classes may stay open.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from latem.export.class_side import Classes
from latem.export.graph import Value, at_least, at_most, exp, log, unit_rows, where
from latem.export.translators import score_in_graph, tables_of
from latem.metrics.open_set import RATES, Kinship, Outsiders
from latem.models.acceptance import FEW_RIVALS
from latem.models.answering import EVEN, USUAL

_NOTHING = -1e300  # a score whose exponential is zero


def add_verdicts(
    model: Any,
    names: np.ndarray,
    features: Value,
    classes: Classes,
    scores: Value,
    first: Value,
    *,
    open_classes: bool,
) -> None:
    """Give a graph the outputs `verdict` and `strangeness`, if the model can tell outsiders.

    Parameters
    ----------
    model : a fitted model
    names : ndarray
        The default candidates.
    features : Value of shape (n, n_features), float32
        As they are given, before scaling.
    classes : Classes
        The candidates; of a `LateFusion`, as its first model with a table knows them.
    scores : Value of shape (n, n_classes), float64
        Those of the candidates, without any penalty.
    first : Value of shape (n, 1), float64
        Probabilities of the best classes.
    open_classes : bool
        Whether other candidates may be given, and then `rivals`, too.
    """
    if not hasattr(model, "acceptance_"):
        return
    graph, known = features.graph, model.acceptance_
    others = ~np.isin(model.classes_, names)
    rivals = graph.constant(others, bool)
    if open_classes:
        rivals = graph.optional_input("rivals", others, [len(others)])
    rate = np.array([known.false_accept_rate], np.float32)
    wanted = graph.optional_input("false_accept_rate", rate, [1]).astype(np.float64)
    n_rivals = rivals.astype(np.float64).sum(0)
    many = n_rivals > FEW_RIVALS * len(model.classes_)
    penalty = graph.constant(known.seen_penalty, np.float64)
    inside = _energy(scores - where(classes.seen, penalty, 0), known.temperature)
    beside = where(rivals, _of_seen(model, features) - penalty, _NOTHING)
    outside = _energy(beside, known.temperature) - log(at_least(n_rivals, 1))
    value = inside - where(many, outside, 0)  # `membership`
    n_classes = graph.node("Shape", classes.table, dtype=np.int64).columns([0])
    rivalled, alone = (
        _Among(outsiders, n_classes.astype(np.float64))
        for outsiders in (known.rivalled, known.alone)
    )
    strange = where(many, rivalled.rates(value), alone.rates(value))
    strange = where(_kinship(features, known.kinship) < known.kinship.threshold, 1, strange)
    limit = graph.node("Max", wanted, where(many, rivalled.usual(), alone.usual()))
    doubtful = strange > wanted
    if hasattr(model, "temperature_"):
        unsure = graph.node("And", _one_column(first) < EVEN, wanted < 1)
        doubtful = graph.node("Or", doubtful, unsure)
    verdict = where(strange > limit, 2, doubtful.astype(np.int64))
    graph.output("verdict", verdict.columns(0), ["n"])
    graph.output("strangeness", strange.astype(np.float32).columns(0), ["n"])


def _of_seen(model: Any, features: Value) -> Value:
    """Scores of all seen classes, (n, n_seen), in double precision."""
    graph, names = features.graph, model.classes_.tolist()
    tables = [one.class_view_.candidates(names).table.vectors for one in tables_of(model)]
    flag = graph.constant([True], bool)
    seen = [Classes(graph.constant(table, np.float32), flag) for table in tables]
    return score_in_graph(model, features, seen).scores.astype(np.float64)


def _energy(scores: Value, temperature: float) -> Value:
    """log Σ exp(score / T), (n, 1)."""
    scores = scores / temperature
    top = scores.max(-1)
    return _one_column(top + log(exp(scores - top).sum(-1)))


def _kinship(features: Value, known: Kinship) -> Value:
    """Largest cosine of each image and the mean of a seen class, (n, 1), in double precision."""
    cosines = unit_rows(features - known.centre) @ known.means.T
    return _one_column(cosines.max(-1)).astype(np.float64)


class _Among:
    """`Outsiders` of a number of candidates that only the graph knows.

    Parameters
    ----------
    outsiders : Outsiders
    n_classes : Value of shape (1,), float64
    """

    def __init__(self, outsiders: Outsiders, n_classes: Value):
        self.outsiders, self.n, self.graph = outsiders, n_classes, n_classes.graph

    def rates(self, value: Value) -> Value:
        """Share of the outsiders that reach each membership, (n, 1)."""
        before = self.graph.constant(np.tri(len(RATES)), bool)
        found = self._between(self.outsiders.thresholds, self._share())
        falling = where(before, found, np.inf).min(-1, keepdims=False)  # (n_rates,)
        above = len(RATES) - _one_column((value > falling).astype(np.float64).sum(-1))
        place = at_least(at_most(above - 1, len(RATES) - 2), 0).astype(np.int64)
        rates = self.graph.constant(RATES, np.float64)
        upper, lower = _entries(falling, place), _entries(falling, place + 1)
        part = (upper - value) / where(upper.equals(lower), 1, upper - lower)
        part = at_least(at_most(part, 1), 0)
        made = _entries(rates, place) * (1 - part) + _entries(rates, place + 1) * part
        return where(value < falling.columns([len(RATES) - 1]), 1, made)

    def usual(self) -> Value:
        """Strangeness that most pictures of candidates do not exceed, (1, 1)."""
        inside = self._between(self.outsiders.coverage, at_most(self._share(), 1))
        return where(inside < USUAL, 1, self.graph.constant(RATES, np.float64)).min(-1)

    def _between(self, table: np.ndarray, share: Value) -> Value:
        """Row of a table between two numbers of candidates, (1, n_rates)."""
        rows = self.graph.constant(table, np.float64)
        if len(table) == 1:
            return rows
        first, second = _entries(rows, self._place()), _entries(rows, self._place() + 1)
        return first + share * (second - first)

    def _place(self) -> Value:
        """Which of the known numbers is the last below this one, (1,)."""
        sizes = self.outsiders.sizes
        below = (self.n > sizes).astype(np.float64).sum(0)
        return at_least(at_most(below - 1, len(sizes) - 2), 0).astype(np.int64)

    def _share(self) -> Value:
        """How far it is from there to the next one, by logarithms, (1,)."""
        sizes = self.graph.constant(self.outsiders.sizes, np.float64)
        if len(self.outsiders.sizes) == 1:
            return self.n * 0
        first, second = _entries(sizes, self._place()), _entries(sizes, self._place() + 1)
        share = log(self.n / first) / log(second / first)
        share = where(self.n.equals(second), 1, share)  # to the last bit
        return where(self.n > first, share, 0)


def _one_column(rows: Value) -> Value:
    """What was added up along rows, (n, 1): onnxruntime leaves it as wide as it was if n is 0."""
    return rows.columns([0])


def _entries(rows: Value, places: Value) -> Value:
    """Some rows of a value, by number."""
    return rows.graph.node("Gather", rows, places, axis=0)
