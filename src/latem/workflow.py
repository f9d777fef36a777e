"""From a dataset folder to a model, and from pictures to names: what the commands do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import latem
from latem.datasets.dataset import ZeroShotDataset
from latem.models.base import ZeroShotClassifier
from latem.models.scoring import best_k
from latem.selection import GRIDS, HeldOutSearch, LatEmCV
from latem.selection.latem_cv import TRIED
from latem.wording import some

_BATCH = 32
_FEWEST = 4  # classes, so that two can be held out and two learned from
MODELS = (
    "LatEm", "SJE", "ALE", "DeViSE", "WSABIE", "ESZSL", "DAP", "IAP", "CMT", "SemanticOutputCodes",
    "ConSE", "CCA",
)  # fmt: skip


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
    if kind not in MODELS:
        raise ValueError(f"There is no model {kind!r}; there are {', '.join(MODELS)}.")
    if preset is not None and (kind != "LatEm" or preset not in TRIED):
        raise ValueError(f"LatEm has the presets {', '.join(TRIED)}; {kind} has no {preset!r}.")
    if embedding not in dataset.embeddings:
        have = some(list(dataset.embeddings))
        raise ValueError(f"The dataset has no class table {embedding!r}; it has {have}.")
    if split is not None and split not in dataset.splits and not dataset.splits:
        split = None
    if split is not None:
        table, chosen_split = dataset.embeddings[embedding], dataset.split(split)
        lone = [
            name
            for name in chosen_split.train + chosen_split.val + chosen_split.test
            if name not in table
        ]
        if lone:
            raise ValueError(
                f"Class table {embedding!r} does not describe {some(lone)} of split {split!r}; add "
                f"rows for them, or take them out of the split."
            )
    given = dict(given or {})
    notes: list[str] = []
    model = getattr(latem, kind)(dataset.embeddings[embedding])
    odd = [name for name in given if name not in model.get_params(deep=False)]
    if odd:
        raise ValueError(f"{kind} has no parameter {some(odd)}.")
    model.set_params(**given)
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=seed)
    if split is None:
        X, y = dataset.features, dataset.labels
        held: int | list[Any] = 5
        notes.append("All images are learned from: none are left to test unseen classes on.")
    else:
        X, y = dataset.training(split)
        present = set(np.unique(y).tolist())
        held = [name for name in dataset.split(split).val if name in present]
        if len(held) < 2 or len(present) - len(held) < 2:
            held = 5
    grid = {name: values for name, values in GRIDS[kind].items() if name not in given}
    chosen: dict[str, Any] = {}
    score = None
    how: dict[str, Any] = {"cv": held, "verbose": verbose, "random_state": seed}
    search: HeldOutSearch | LatEmCV | None = None
    if kind == "LatEm" and preset != "paper":
        fixed_too = [name for name in given if name not in TRIED["tuned"]]
        if fixed_too:
            raise ValueError(
                f"The preset 'tuned' sets {some(fixed_too)} itself; take preset='paper' to give it."
            )
        listed: dict[str, Any] = {name: [value] for name, value in given.items()}
        search = LatEmCV(dataset.embeddings[embedding], preset="tuned", **listed, **how)
    elif grid:
        search = HeldOutSearch(model, dict(grid), **how)
    if search is not None and len(np.unique(y)) < _FEWEST:
        usual = {name: values[0] for name, values in search._grid().items()}
        model = search._model().set_params(**usual) if isinstance(search, LatEmCV) else model
        notes.append(
            f"Fewer than {_FEWEST} classes have pictures to learn from: too few to hold some out, "
            f"so nothing is chosen and the usual parameters are taken."
        )
        model.fit(X, y)
    elif search is not None:
        search.fit(X, y)
        model, score = search.best_model_, search.best_score_
        fixed = {name for name, values in search._grid().items() if len(values) == 1}
        chosen = {name: value for name, value in search.best_params_.items() if name not in fixed}
    else:
        model.fit(X, y)
    if "encoder_spec" in dataset.info:
        from latem.features.encoders import encoder_spec

        model.encoder_ = encoder_spec(dataset)
    unseen, classes = None, 0
    if split is not None:
        X_new, y_new = dataset.testing(split)
        classes = len(np.unique(y_new))
        if classes > 1:
            unseen = model.score(X_new, y_new, np.unique(y_new))
    return Trained(model, chosen, score, unseen, classes, notes)


@dataclass(frozen=True)
class Named:
    """A picture and its best classes.

    Attributes
    ----------
    picture : path
    names : list of class names, best first
    scores : list of float
    explanation : str
        Why, if it was asked for.
    """

    picture: Path
    names: list[Any]
    scores: list[float]
    explanation: str = ""


def name_pictures(
    model: ZeroShotClassifier,
    pictures: Sequence[Path],
    classes: Any = "unseen",
    *,
    top: int = 5,
    gamma: float = 0.0,
    explain: bool = False,
    encoder_options: Mapping[str, Any] | None = None,
    unreadable: Callable[[Path, str], None] | None = None,
) -> list[Named]:
    """Name pictures with a model that remembers its encoder.

    Parameters
    ----------
    model : fitted model
    pictures : sequence of paths
    classes
        Which classes may be the answer; see `decision_function`.
    top : int
        How many to give, at most as many as there are.
    gamma : float
        Subtracted from the scores of seen classes, which models prefer (calibrated stacking).
    explain : bool
        Whether to say why; not together with γ, which explanations do not know of.
    encoder_options : mapping, optional
        Options for the encoder, such as a local weight file.
    unreadable : callable, optional
        Called with the path and the reason for every picture that cannot be read; without it the
        first one is an error.
    """
    from latem.explain import explain_predictions, inner_model
    from latem.features.encoders import load_encoder
    from latem.features.pictures import PictureError, quiet_pillow

    if gamma and explain:
        raise ValueError("Explanations do not know of γ: ask for one of both.")
    inner = inner_model(model)
    spec = getattr(inner, "encoder_", None)
    if spec is None:
        raise ValueError(
            "This model does not know which encoder made its features, so it cannot name pictures; "
            "train it on a dataset made by latem embed images."
        )
    encoder = load_encoder(spec, **dict(encoder_options or {}))
    readable, prepared = [], []
    with quiet_pillow():
        for path in pictures:
            try:
                prepared.append(encoder.prepare(path))
                readable.append(path)
            except PictureError as error:
                if unreadable is None:
                    raise
                unreadable(path, str(error))
    if not readable:
        return []
    X = np.concatenate(
        [
            encoder.encode_batch(np.stack(prepared[first : first + _BATCH]))
            for first in range(0, len(prepared), _BATCH)
        ]
    )
    candidates = np.asarray(model._names(classes))
    k = min(top, len(candidates))
    if gamma:
        by_class = model._candidate_scores(X, classes)
        by_class[:, np.isin(candidates, inner.classes_)] -= gamma
        best = best_k(by_class, k)
        names, scores = candidates[best], np.take_along_axis(by_class, best, axis=1)
    else:
        names, scores = model.top_k(X, k, classes=classes, return_scores=True)
    reasons: Iterable[str] = [""] * len(readable)
    if explain:
        reasons = [why.text() for why in explain_predictions(model, X, classes)]
    return [
        Named(path, own.tolist(), [float(score) for score in values], why)
        for path, own, values, why in zip(readable, names, scores, reasons, strict=True)
    ]
