"""Which images show a trait, as a model sees them.

The score of an image along a trait is the slope of its compatibility with the *average class*: by
how much xᵀ W y rises at the average of the seen classes when the class is given a little more of
the trait. With p = Wᵀ x and e_a the trait's own axis it is

- p·e_a = p_a, where class vectors are used as they are, or are centred (the average class is 0);
- p·(e_a - (û·e_a) û), where class vectors are divided by their length, û being the average class
  at length 1: more of a trait then means less of the others, and what speaks for every class alike
  cancels.

Of several maps the one that names the image counts. The scores of one trait can be compared
between images, those of different traits cannot: their units differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from latem.core.arrays import unit_rows
from latem.core.messages import first_few, hint_of
from latem.core.slim import needed
from latem.inspection.speakers import (
    bilinear_maps,
    by_likeness,
    by_maps,
    inner_model,
    projected_images,
)

if TYPE_CHECKING:
    import pandas as pd

_BLOCK = 1024
_SAME = 0.8  # correlation above which two traits say the same of some classes
_NUMBERED = re.compile(r"\w*?[ _-]?\d+")  # text_000, dim 7, 12


def trait_scores(model: Any, X: Any, classes: Any = "unseen") -> pd.DataFrame:
    """How much of each trait a model sees in images.

    Parameters
    ----------
    model : fitted model with bilinear maps, or a search over one
    X : array-like of shape (n_samples, n_features)
    classes
        Candidates, which decide by which of several maps an image is named; see
        `decision_function`.

    Returns
    -------
    DataFrame of shape (n_samples, n_traits)
        One column per dimension of the class table.

    Examples
    --------
    >>> from latem import ESZSL, make_latent_world, trait_scores
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> model = ESZSL(world.embeddings["att"]).fit(*world.training())
    >>> X, y = world.testing()
    >>> trait_scores(model, X).shape == (len(X), world.embeddings["att"].n_dimensions)
    True
    """
    model = by_maps(model, "trait_scores")
    maps = bilinear_maps(model)
    if by_likeness(model):
        raise TypeError(
            f"{type(model).__name__} knows classes by a kernel (class_kernel), as like others, not "
            f"by single traits."
        )
    X = model.check_images(X)
    view = model.class_view_
    vectors = view.candidates(classes).vectors.astype(np.float64)
    average = None
    if view.normalise and view.centre is None:
        average = unit_rows(view.training(np.float64).mean(axis=0, keepdims=True))[0]
    scores = np.empty((len(X), maps.shape[2]))
    for first in range(0, len(X), _BLOCK):
        rows = slice(first, min(first + _BLOCK, len(X)))
        features = model.scaler_.transform(X[rows], np.float64)
        projected = np.stack([projected_images(model, features, one) for one in maps])
        winner = (projected @ vectors.T).max(axis=2).argmax(axis=0)  # map that names each image
        chosen = projected[winner, np.arange(len(winner))]
        if average is not None:
            chosen = chosen - np.outer(chosen @ average, average)
        scores[rows] = chosen
    pd = needed("pandas", "Frames of scores")
    return pd.DataFrame(scores, columns=model.class_table_.column_names())


def trait_agreement(model: Any, scores: pd.DataFrame, y: Any) -> pd.Series:
    """How well scores of traits agree with the descriptions of the images' true classes.

    Parameters
    ----------
    model : fitted model, or a search over one
    scores : DataFrame of shape (n_samples, n_traits)
        As returned by `trait_scores`.
    y : array-like of shape (n_samples,)
        True class names.

    Returns
    -------
    Series
        Correlation of each trait's scores with the values in the class table, best first. Traits
        that are the same in all these classes, or in all images, are left out.
    """
    table = inner_model(model, "trait_scores").class_table_
    values = table.vectors[table.positions(y)]  # (n_samples, n_traits)
    found = {}
    for a, name in enumerate(scores.columns):
        given, seen = values[:, a], scores.iloc[:, a].to_numpy()
        if np.ptp(given) > 0 and np.ptp(seen) > 0:
            found[name] = float(np.corrcoef(given, seen)[0, 1])
    pd = needed("pandas", "Series of traits")
    return pd.Series(found, dtype=float).sort_values(ascending=False, kind="stable")


def distinct_traits(model: Any, agreement: pd.Series, classes: Any, n: int) -> list[str]:
    """The n traits that agree best, without those that say the same of the classes.

    Parameters
    ----------
    model : fitted model, or a search over one
    agreement : Series
        As returned by `trait_agreement`.
    classes : sequence of class names
    n : int
        How many at most.

    Returns
    -------
    list of str
        A trait is passed over if its values for the classes correlate by more than 0.8, either
        way, with those of a better one.
    """
    table = inner_model(model, "trait_scores").class_table_
    columns = {name: a for a, name in enumerate(table.column_names())}
    values = table.vectors[table.positions(classes)]
    chosen: list[str] = []
    for name in agreement.index:
        if len(chosen) == n:
            break
        own = values[:, columns[name]]
        same = [abs(np.corrcoef(own, values[:, columns[c]])[0, 1]) > _SAME for c in chosen]
        if not any(same):
            chosen.append(name)
    return chosen


def has_trait_names(model: Any) -> bool:
    """Whether the columns of a model's class table are called something, not just numbered."""
    model = by_maps(model, "trait_scores")
    return not by_likeness(model) and not is_numbered(model.class_table_.columns)


def is_numbered(columns: Sequence[str] | None) -> bool:
    """Whether the columns of a class table have no names, or are just numbered.

    >>> is_numbered(["glo_000", "glo_001"]), is_numbered(["red", "blue"]), is_numbered(None)
    (True, False, True)
    """
    return columns is None or all(_NUMBERED.fullmatch(name) for name in columns)


def check_traits(model: Any, traits: list[str]) -> None:
    """Refuse traits that the model's class table does not have."""
    bilinear_maps(by_maps(model, "trait_scores"))  # which refuses models without any
    named = has_trait_names(model)
    table = inner_model(model, "trait_scores").class_table_
    if not named:
        raise ValueError(
            f"The class table {table.name!r} has no names of traits, only numbered columns; show "
            f"classes or maps, or use a table whose columns are traits."
        )
    odd = [name for name in traits if name not in table.columns]
    if odd:
        raise ValueError(
            f"There is no trait {first_few(odd)}{hint_of(odd, table.columns)}; the class table has "
            f"{first_few(list(table.columns))}."
        )
