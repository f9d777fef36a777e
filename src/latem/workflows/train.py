"""From a dataset to a model: what `latem train` does.

The steps: take what the split gives to learn from, set up the model with what is given, choose the
rest on held-out classes, and measure the result on unseen ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from latem.core.messages import first_few
from latem.datasets.dataset import ZeroShotDataset
from latem.datasets.learnable import learning_notes
from latem.models import model_rows
from latem.selection import HeldOutSearch, LatEmCV
from latem.selection.latem_cv import PRESETS
from latem.selection.search import Search

_FEWEST = 4  # classes, so that two can be held out and two learned from
_FOLDS = 5


@dataclass(frozen=True)
class Trained:
    """A trained model and how it came about.

    Attributes
    ----------
    model : the fitted model
    chosen : dict
        Parameters that were chosen on held-out classes.
    held_out_score : float or None
        Mean per-class accuracy on them; None if nothing was chosen.
    unseen_score : float or None
        Mean per-class accuracy on the split's test classes; None if there are no images of them.
    n_unseen : int
        Number of those classes.
    notes : list of str
        Sentences that deserve a look.
    """

    model: Any
    chosen: dict[str, Any]
    held_out_score: float | None
    unseen_score: float | None
    n_unseen: int
    notes: list[str]


def train_model(
    dataset: ZeroShotDataset,
    embedding: str,
    *,
    kind: str = "LatEm",
    preset: str | None = None,
    split: str | None = "standard",
    given: Mapping[str, Any] | None = None,
    seed: int = 0,
    verbose: bool = False,
) -> Trained:
    """Train a model on a dataset, choosing what is not given on held-out classes.

    Parameters
    ----------
    dataset : ZeroShotDataset
    embedding : str
        Name of its class table.
    kind : str
        Which model.
    preset : {"tuned", "paper"} or None
        How LatEm is trained, see `LatEmCV`; None is "tuned". Other models have no presets.
    split : str or None
        Classes to learn from and to choose on; None learns from all images and chooses by
        class-disjoint folds.
    given : dict, optional
        Parameters that are not to be chosen.
    seed : int
    verbose : bool
        Whether to show a progress bar.
    """
    check_kind(kind, preset)
    if not dataset.splits:
        split = None
    _check_embedding(dataset, embedding, split)
    notes = learning_notes(dataset, split, embedding)
    if split is None:
        notes.append("All images are learned from: none are left to test unseen classes on.")
    X, y, held_out = _learning_part(dataset, split)
    model = _model(dataset, embedding, kind, dict(given or {}), seed)
    how = {"cv": held_out, "verbose": verbose, "random_state": seed}
    search = _search(model, kind, preset, dict(given or {}), how)
    chosen: dict[str, Any] = {}
    score = None
    if search is None:
        model.fit(X, y)
    elif len(np.unique(y)) < _FEWEST:
        model = _usual_model(search)
        notes.append(
            f"Fewer than {_FEWEST} classes have pictures to learn from: too few to hold some out, "
            f"so nothing is chosen and the usual parameters are taken."
        )
        model.fit(X, y)
    else:
        search.fit(X, y)
        model, score = search.best_estimator_, search.best_score_
        fixed = {name for name, values in search.tried_values().items() if len(values) == 1}
        chosen = {name: value for name, value in search.best_params_.items() if name not in fixed}
    unseen_score, n_unseen = _unseen_score(model, dataset, split)
    return Trained(model, chosen, score, unseen_score, n_unseen, notes)


def check_kind(kind: str, preset: str | None) -> None:
    """Refuse a model that the command line does not offer, or a preset that it does not have."""
    offered = [row.name for row in model_rows.rows() if row.on_command_line]
    if kind not in offered:
        raise ValueError(f"There is no model {kind!r}; there are {', '.join(offered)}.")
    if preset is not None and (kind != "LatEm" or preset not in PRESETS):
        raise ValueError(f"LatEm has the presets {', '.join(PRESETS)}; {kind} has no {preset!r}.")


def _check_embedding(dataset: ZeroShotDataset, embedding: str, split: str | None) -> None:
    if embedding not in dataset.embeddings:
        have = first_few(list(dataset.embeddings))
        raise ValueError(f"The dataset has no class table {embedding!r}; it has {have}.")
    if split is None:
        return
    table, parts = dataset.embeddings[embedding], dataset.split(split)
    lone = [name for name in parts.train + parts.val + parts.test if name not in table]
    if lone:
        raise ValueError(
            f"Class table {embedding!r} does not describe {first_few(lone)} of split {split!r}; "
            f"add rows for them, or take them out of the split."
        )


def _learning_part(
    dataset: ZeroShotDataset, split: str | None
) -> tuple[np.ndarray, np.ndarray, int | list[Any]]:
    """Images and labels to learn from, and the classes to choose on, or a number of folds."""
    if split is None:
        return *dataset.all_images(), _FOLDS
    X, y = dataset.training(split)
    present = set(np.unique(y).tolist())
    val = [name for name in dataset.split(split).val if name in present]
    enough = len(val) >= 2 and len(present) - len(val) >= 2
    return X, y, val if enough else _FOLDS


def _model(
    dataset: ZeroShotDataset, embedding: str, kind: str, given: dict[str, Any], seed: int
) -> Any:
    """Unfitted model with what is given."""
    model = model_rows.find(kind).load()(dataset.embeddings[embedding])
    known = model.get_params(deep=False)
    odd = [name for name in given if name not in known]
    if odd:
        raise ValueError(f"{kind} has no parameter {first_few(odd)}.")
    model.set_params(**given)
    return model.set_params(random_state=seed) if "random_state" in known else model


def _search(
    model: Any, kind: str, preset: str | None, given: dict[str, Any], how: dict[str, Any]
) -> Search | None:
    """What chooses the parameters that are not given; None if all are."""
    if kind == "LatEm" and preset != "paper":
        fixed = [name for name in given if name not in PRESETS["tuned"]]
        if fixed:
            raise ValueError(
                f"The preset 'tuned' sets {first_few(fixed)} itself; take preset='paper' to give "
                f"it."
            )
        listed: dict[str, Any] = {name: [value] for name, value in given.items()}
        return LatEmCV(model.class_embeddings, preset="tuned", **listed, **how)
    usual = model_rows.find(kind).grid
    grid = {name: values for name, values in usual.items() if name not in given}
    return HeldOutSearch(model, grid, **how) if grid else None


def _usual_model(search: Search) -> Any:
    """Unfitted model with the first of the values that would be tried, where nothing can be."""
    model = search.unfitted_model()
    if isinstance(search, LatEmCV):
        model.set_params(**{name: values[0] for name, values in search.tried_values().items()})
    return model


def _unseen_score(
    model: Any, dataset: ZeroShotDataset, split: str | None
) -> tuple[float | None, int]:
    """Mean per-class accuracy on the test classes that have images, and how many these are."""
    if split is None:
        return None, 0
    X, y = dataset.testing(split)
    classes = np.unique(y)
    return (model.score(X, y, classes) if len(classes) > 1 else None), len(classes)
