"""What every model computes when it answers, as nodes of a graph: one function per family.

A translator gets the fitted model, scaled images X (n, d_x) in the model's precision, and the
candidates. It says what the model's `_block_scorer` says, in the same order: class side first, in
double precision, then images. `translates` adds one for a model of another package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit
from sklearn.utils.validation import check_is_fitted

from latem.export.class_side import Classes, gaussian_kernel, scaled
from latem.export.graph import (
    Value,
    absolute,
    at_least,
    at_most,
    exp,
    largest_kept,
    log,
    settled,
    softmax,
    square,
    squared_distances,
    tanh,
    unit_rows,
    where,
)
from latem.models import model_rows
from latem.models.attributes import LEAST
from latem.models.committee import Committee
from latem.models.fusion import LateFusion
from latem.models.table_model import TableClassifier
from latem.selection.search import Search


class Scored(NamedTuple):
    """Scores in a graph.

    Attributes
    ----------
    scores : Value of shape (n, n_classes)
    best_map : Value of shape (n, n_classes), int64, or None
        Number of the map that gave each score, of a model with several maps.
    """

    scores: Value
    best_map: Value | None = None


Translator = Callable[[Any, Value, Classes], "Value | Scored"]
_TRANSLATORS: dict[str, Translator] = {}


def translates(*names: str) -> Callable[[Translator], Translator]:
    """Decorator: the function writes these registered models as a graph.

    Parameters
    ----------
    *names : str
        Names of models' classes, as in the registry.
    """

    def keep(function: Translator) -> Translator:
        _TRANSLATORS.update(dict.fromkeys(names, function))
        return function

    return keep


def inner_model(model: Any) -> Any:
    """The model that answers: of a search the chosen one."""
    check_is_fitted(model)
    return inner_model(model.best_estimator_) if isinstance(model, Search) else model


def refuse_unknown(model: Any) -> None:
    """Raise TypeError, with the reason, if a model or one of its members cannot be written."""
    model = inner_model(model)
    if isinstance(model, LateFusion | Committee):
        for member in model.models_:
            refuse_unknown(member)
    if not isinstance(model, LateFusion):
        _translator(model)


def _translator(model: Any) -> Translator:
    name, row = type(model).__name__, model_rows.row_of(model)
    if row is None or row.load() is not type(model) or name not in _TRANSLATORS:
        raise TypeError(
            f"{name} has no ONNX form: latem knows how the models of its own registry compute "
            f"scores, not what other classes change. Write a translator for it with "
            f"latem.export.translates({name!r}) (docs/export.md)."
        )
    return _TRANSLATORS[name]


def score_in_graph(model: Any, features: Value, classes: Classes | list[Classes]) -> Scored:
    """Scores of a model in a graph.

    Parameters
    ----------
    model : a fitted model
    features : Value of shape (n, n_features), float32
        As they are given, before scaling.
    classes : Classes, or a list of these
        The candidates; for a `LateFusion`, those of its models with a table, in order.
    """
    model = inner_model(model)
    if isinstance(model, LateFusion):
        return Scored(_fused(model, features, classes))
    (chosen,) = [classes] if isinstance(classes, Classes) else classes
    return _scored(model, scaled(features.astype(model.dtype_), model.scaler_), chosen)


def _scored(model: TableClassifier, X: Value, classes: Classes) -> Scored:
    found = _translator(model)(model, X, classes)
    return found if isinstance(found, Scored) else Scored(found)


def tables_of(model: Any) -> list[TableClassifier]:
    """The models with a class table that a model is made of: itself, or a fusion's members."""
    model = inner_model(model)
    if isinstance(model, LateFusion):
        return [one for member in model.models_ for one in tables_of(member)]
    return [model]


def _fused(model: LateFusion, features: Value, classes: Classes | list[Classes]) -> Value:
    left = [classes] if isinstance(classes, Classes) else list(classes)
    total = None
    for member, factor in zip(model.models_, model.weights_ / model.scales_, strict=True):
        n = len(tables_of(member))
        own, left = left[:n], left[n:]
        scores = score_in_graph(member, features, own).scores.astype(np.float64) * float(factor)
        total = scores if total is None else total + scores
    assert total is not None  # a fusion has members
    return total


# -- one function per family -------------------------------------------------------------------


@translates("LatEm", "SJE", "ALE", "DeViSE", "ESZSL", "ESZSLCV")
def _maps(model: Any, X: Value, classes: Classes) -> Scored:
    maps, vectors = model.bilinear_maps(), classes.vectors(model.class_view_).astype(X.dtype)
    if len(maps) == 1:
        projected = X @ maps[0]
        return Scored((unit_rows(projected) if model.by_direction else projected) @ vectors.T)
    projected = X @ maps  # (n_maps, n, width)
    by_map = (unit_rows(projected) if model.by_direction else projected) @ vectors.T
    return Scored(by_map.max(0, keepdims=False), by_map.argmax(0))


@translates("WSABIE")
def _low_rank(model: Any, X: Value, classes: Classes) -> Value:
    vectors = classes.vectors(model.class_view_).astype(X.dtype)
    return (X @ model.image_map_.T) @ (model.class_map_ @ vectors.T)


@translates("CCA")
def _cca(model: Any, X: Value, classes: Classes) -> Value:
    vectors = classes.vectors(model.class_view_)
    projected = unit_rows((vectors - model.class_mean_) @ model.class_map_).astype(X.dtype)
    return unit_rows((X - model.image_mean_) @ model.image_map_) @ projected.T


@translates("SAE")
def _sae(model: Any, X: Value, classes: Classes) -> Value:
    vectors = classes.vectors(model.class_view_)
    if model.direction == "visual":
        images = settled(vectors @ model.map_.T, float(np.abs(model.map_).max()))
        return unit_rows(X) @ settled(unit_rows(images)).astype(X.dtype).T
    return unit_rows(X @ model.map_) @ unit_rows(vectors).astype(X.dtype).T


@translates("EXEM")
def _exemplars(model: Any, X: Value, classes: Classes) -> Value:
    seen = model.class_view_.training(np.float64)
    likeness = gaussian_kernel(classes.vectors(model.class_view_), seen, model.rate_)
    exemplars = likeness @ model.coef_ + model.offset_
    weighted = exemplars
    if model.neighbour != "1NN":
        weighted = exemplars / np.square(model.spreads_.astype(np.float64))
    constants = (weighted * exemplars).sum(-1).T.astype(X.dtype)
    images = (X - model.image_mean_) @ model.components_
    return images @ (2 * weighted).astype(X.dtype).T - constants


@translates("SynC")
def _synthesised(model: Any, X: Value, classes: Classes) -> Value:
    seen, vectors = model.class_view_.training(np.float64), classes.vectors(model.class_view_)
    likeness = softmax(-model.rate_ * squared_distances(vectors, seen))
    mixtures = settled(likeness @ model.bases())
    return (X @ model.coef_ + model.intercept_) @ mixtures.astype(X.dtype).T


@translates("GFZSL")
def _gaussians(model: Any, X: Value, classes: Classes) -> Value:
    seen, vectors = model.class_view_.training(np.float64), classes.vectors(model.class_view_)
    longest = float(np.square(seen).sum(axis=1).max())
    kernel = square(1 + settled(vectors @ seen.T, longest))
    means = kernel @ model.mean_coef_ + model.mean_offset_
    logarithms = kernel @ model.variance_coef_ + model.variance_offset_
    precisions = exp(-logarithms)
    constants = (precisions * square(means) + logarithms).sum(-1).T / -2
    exact = X.astype(np.float64)
    scores = square(exact) @ (precisions / -2).T + exact @ (precisions * means).T + constants
    return scores.astype(X.dtype)


@translates("SemanticOutputCodes")
def _regression(model: Any, X: Value, classes: Classes) -> Value:
    vectors = classes.vectors(model.class_view_).astype(X.dtype)
    return _nearness(model.neighbour, X @ model.map_ + model.offset_, vectors)


def _nearness(neighbour: str, predicted: Value, vectors: Value) -> Value:
    """As `latem.models.regression.neighbour_scorer` has it."""
    if neighbour == "cosine":
        return unit_rows(predicted) @ unit_rows(vectors).T
    squares = square(vectors).sum(-1).T
    return 2 * (predicted @ vectors.T) - squares - square(predicted).sum(-1)


@translates("CMT")
def _network(model: Any, X: Value, classes: Classes) -> Value:
    vectors = classes.vectors(model.class_view_).astype(X.dtype)
    predicted = tanh(X @ model.hidden_map_ + model.hidden_offset_) @ model.map_ + model.offset_
    scores = _nearness(model.neighbour, predicted, vectors)
    if model.novelty is None:
        return scores
    seen = X.graph.constant(model.class_view_.training(), X.dtype)
    beyond = -_nearness("euclidean", predicted, seen) - model.radii_  # (n, n_seen)
    novel = beyond.min(-1) > 0
    favoured = classes.seen.equals(~novel)  # (n, n_classes)
    if model.neighbour == "cosine":
        return where(favoured, scores, scores - 3)
    far = 1 - at_most(scores, 0) / float(model.radii_.mean() or 1)
    return where(favoured, 1 / far, -far)


@translates("ConSE")
def _mixture(model: Any, X: Value, classes: Classes) -> Value:
    vectors = unit_rows(classes.vectors(model.class_view_)).astype(X.dtype)
    weights = softmax(X @ model.coef_ + model.intercept_)
    if model.n_top < len(model.classes_):
        weights = largest_kept(weights, model.n_top)
    mixed = (weights / weights.sum(-1)) @ model.class_view_.training()
    return unit_rows(mixed) @ vectors.T


@translates("DAP", "IAP")
def _attributes(model: Any, X: Value, classes: Classes) -> Value:
    kept = np.flatnonzero((model.prior_ > 0) & (model.prior_ < 1))
    prior = model.prior_[kept] if model.prior == "classes" else np.full(len(kept), 0.5)
    vectors = classes.vectors(model.class_view_).astype(X.dtype).columns(kept)
    present = (vectors > model.thresholds_[kept]).astype(X.dtype)
    if type(model).__name__ == "DAP":
        odds = X @ model.coef_[:, kept] + model.intercept_[kept]
        absent = -at_least(odds, 0) - log(1 + exp(-absolute(odds)))
    else:
        having = (model.class_view_.training() > model.thresholds_)[:, kept].astype(np.float64)
        likely = softmax(X @ model.coef_ + model.intercept_)
        absent = log(at_least(likely @ (1 - having), LEAST))
        odds = log(at_least(likely @ having, LEAST)) - absent
    nothing = (absent - np.log1p(-prior)).sum(-1)  # no attribute present
    return (odds - logit(prior)) @ present.T + nothing


@translates("Committee")
def _committee(model: Any, X: Value, classes: Classes) -> Value:
    factors = model.weights_ / model.scales_
    parts = [
        float(factor) * _scored(member, X, classes).scores
        for factor, member in zip(factors, model.models_, strict=True)
        if factor
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
