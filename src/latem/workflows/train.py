"""From a dataset to a model: what `latem train` does.

The steps: take what the split gives to learn from, set up the model with what is given, choose the
rest on held-out classes, fit it, choose on held-out classes how it answers (temperature, penalty on
seen classes, "none of these"), and measure the result on unseen ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from latem.core.messages import first_few, near_name
from latem.datasets.dataset import ZeroShotDataset
from latem.datasets.folder import read_folder
from latem.datasets.learnable import learning_notes
from latem.metrics.calibration import CalibrationReport, check_rate, class_codes
from latem.models import model_rows
from latem.models.answers import VERDICTS
from latem.models.base import plain_params
from latem.models.measured import Measured
from latem.selection import CommitteeCV, HeldOutSearch, LatEmCV
from latem.selection.calibration import FALSE_ACCEPT_RATE, AnswerReport, calibrate_answers
from latem.selection.latem_cv import PRESETS
from latem.selection.search import Search

_COMMITTEE = "Committee"
_FEWEST = 4  # classes, so that two can be held out and two learned from
_FOLDS = 5
_ENOUGH = 5  # val classes that a calibration is chosen on; with fewer, folds of all seen ones


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
    chosen_words : str
        What was chosen, for people.
    answers : AnswerReport or None
        Temperature, penalty and "none of these", and how well they did on held-out classes; None
        if they were not chosen.
    unseen_probabilities : CalibrationReport or None
        How well that temperature does on the test classes.
    unseen_verdicts : tuple of float, or None
        Shares of the test classes' images that are named, doubtful, and none of these.
    notes : list of str
        Sentences that deserve a look.
    """

    model: Any
    chosen: dict[str, Any]
    held_out_score: float | None
    unseen_score: float | None
    n_unseen: int
    notes: list[str]
    chosen_words: str = ""
    answers: AnswerReport | None = None
    unseen_probabilities: CalibrationReport | None = None
    unseen_verdicts: tuple[float, ...] | None = None

    def lines(self) -> list[str]:
        """What was chosen and measured, in sentences."""
        lines = []
        if self.held_out_score is not None:
            there = f"{self.held_out_score:.1%} there"
            lines.append(f"Chosen on held-out classes: {self.chosen_words} ({there}).")
        if self.answers is not None:
            lines += _answer_lines(self.answers, self.n_unseen)
        if self.unseen_score is not None:
            lines.append(
                f"Mean per-class accuracy on {self.n_unseen} unseen classes: "
                f"{self.unseen_score:.1%} (chance {1 / self.n_unseen:.1%})."
            )
        if self.unseen_probabilities is not None and self.unseen_verdicts is not None:
            error = self.unseen_probabilities
            named, doubtful, none = self.unseen_verdicts
            lines.append(
                f"There: calibration error {error.ece_before:.1%} before, {error.ece_after:.1%} "
                f"after; {named:.0%} of the pictures are named without doubt, {doubtful:.0%} with, "
                f"and {none:.0%} are called none of these."
            )
        return lines


def _answer_lines(found: AnswerReport, n_unseen: int) -> list[str]:
    fit, rate = found.probabilities, found.false_accept_rate
    n = max(n_unseen, 2)
    trade = ", ".join(
        f"{found.coverage(n, r):.0%} at {r:.0%}" for r in sorted({rate, 0.05, 0.1, 0.2, 0.5})
    )
    return [
        f"Probabilities: temperature {fit.temperature:.3g}; calibration error on held-out classes "
        f"{fit.ece_before:.1%} before, {fit.ece_after:.1%} after.",
        f"Penalty on seen classes: {found.seen_penalty:.3g}; harmonic mean of seen and held-out "
        f"classes {found.plain.harmonic:.1%} before, {found.penalised.harmonic:.1%} after.",
        f"None of these: {rate:.0%} of other classes' pictures are named without doubt. Own "
        f"pictures that are, among {n} held-out classes, by that rate: {trade}.",
    ]


def train(
    dataset: ZeroShotDataset | str | PathLike[str],
    embedding: str | None = None,
    *,
    kind: str | None = None,
    preset: str | None = None,
    split: str | None = "standard",
    given: Mapping[str, Any] | None = None,
    calibrate: bool = True,
    false_accept_rate: float = FALSE_ACCEPT_RATE,
    seed: int = 0,
    verbose: bool = False,
) -> Any:
    """Train a model on a dataset, as `latem train` does: the same defaults, the same bytes.

    Parameters
    ----------
    dataset, embedding, kind, preset, split, given, calibrate, false_accept_rate, seed, verbose
        As for `latem.workflows.train.train_model`, which also tells how the model came about.

    Returns
    -------
    a fitted model

    Examples
    --------
    >>> import latem
    >>> world = latem.make_latent_world(n_poses=1, n_images=6, random_state=0)
    >>> model = latem.train(world)
    >>> model.predict(world.testing()[0][:3], classes="unseen").shape
    (3,)
    """
    return train_model(
        dataset,
        embedding,
        kind=kind,
        preset=preset,
        split=split,
        given=given,
        calibrate=calibrate,
        false_accept_rate=false_accept_rate,
        seed=seed,
        verbose=verbose,
    ).model


def train_model(
    dataset: ZeroShotDataset | str | PathLike[str],
    embedding: str | None = None,
    *,
    kind: str | None = None,
    preset: str | None = None,
    split: str | None = "standard",
    given: Mapping[str, Any] | None = None,
    calibrate: bool = True,
    false_accept_rate: float = FALSE_ACCEPT_RATE,
    seed: int = 0,
    verbose: bool = False,
) -> Trained:
    """Train a model on a dataset, choosing what is not given on held-out classes.

    Parameters
    ----------
    dataset : ZeroShotDataset, or path of a dataset folder
    embedding : str, optional
        Name of its class table; it may be left out if there is only one.
    kind : str or None
        Which model. None is a `Committee`, see `CommitteeCV`, or LatEm where a preset or one of
        LatEm's parameters is given.
    preset : {"tuned", "paper"} or None
        How LatEm is trained, see `LatEmCV`; None is "tuned". Other models have no presets.
    split : str or None
        Classes to learn from and to choose on; None learns from all images and chooses by
        class-disjoint folds.
    given : dict, optional
        Parameters that are not to be chosen.
    calibrate : bool
        Whether to choose on held-out classes how the model answers: the temperature of its
        probabilities, the penalty on seen classes, and what is none of these.
    false_accept_rate : float
        Wanted share of outsiders, pictures of none of the candidates, that are named.
    seed : int
    verbose : bool
        Whether to show a progress bar.
    """
    if kind is None:
        kind = _COMMITTEE if preset is None and not given else "LatEm"
    check_kind(kind, preset)
    check_rate(false_accept_rate)
    if not isinstance(dataset, ZeroShotDataset):
        dataset = read_folder(dataset)
    if not dataset.splits:
        split = None
    embedding = _checked_embedding(dataset, embedding, split)
    notes = learning_notes(dataset, split, embedding)
    if split is None:
        notes.append("All images are learned from: none are left to test unseen classes on.")
    X, y, held_out = _learning_part(dataset, split)
    model = _model(dataset, embedding, kind, dict(given or {}), seed)
    how = {"cv": held_out, "verbose": verbose, "random_state": seed}
    search = _search(model, kind, preset, dict(given or {}), how)
    chosen: dict[str, Any] = {}
    score, words = None, ""
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
        words = search.words(chosen)
    answers = None
    if calibrate and len(np.unique(y)) >= _FEWEST:
        answers = calibrate_answers(
            model,
            X,
            y,
            cv=held_out if _is_enough(held_out) else _FOLDS,
            false_accept_rate=false_accept_rate,
            seed=seed,
            verbose=verbose,
        )
    elif calibrate:
        notes.append("So there are no probabilities, and nothing is called none of these.")
    unseen = _on_unseen(model, dataset, split)
    model.measured_ = Measured(
        dataset=dataset.name or None,
        split=split,
        embedding=embedding,
        chosen=plain_params(chosen),
        held_out_score=None if score is None else float(score),
        unseen_score=None if unseen["unseen_score"] is None else float(unseen["unseen_score"]),
        n_unseen=unseen["n_unseen"],
    )
    return Trained(model, chosen, score, notes=notes, chosen_words=words, answers=answers, **unseen)


def check_kind(kind: str, preset: str | None) -> None:
    """Refuse a model that the command line does not offer, or a preset that it does not have."""
    offered = [row.name for row in model_rows.rows() if row.on_command_line]
    if kind not in offered:
        near = near_name(kind, offered)
        raise ValueError(f"There is no model {kind!r}; there are {', '.join(offered)}.{near}")
    if preset is not None and kind != "LatEm":
        raise ValueError(f"Only LatEm has presets; train {kind} without preset {preset!r}.")
    if preset is not None and preset not in PRESETS:
        raise ValueError(f"LatEm has the presets {', '.join(PRESETS)}, not {preset!r}.")


def _checked_embedding(dataset: ZeroShotDataset, embedding: str | None, split: str | None) -> str:
    """Name of the class table; it must describe every class of the split."""
    have = list(dataset.embeddings)
    if embedding is None:
        if len(have) != 1:
            raise ValueError(
                f"The dataset has {len(have)} class tables, {first_few(have)}; say which one to "
                f"learn with (--embedding, in Python embedding=)."
            )
        embedding = have[0]
    if embedding not in have:
        raise ValueError(f"The dataset has no class table {embedding!r}; it has {first_few(have)}.")
    if split is None:
        return embedding
    table, parts = dataset.embeddings[embedding], dataset.split(split)
    lone = [name for name in parts.train + parts.val + parts.test if name not in table]
    if lone:
        raise ValueError(
            f"Class table {embedding!r} does not describe {first_few(lone)} of split {split!r}; "
            f"add rows for them, or take them out of the split."
        )
    return embedding


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
        raise ValueError(
            f"{kind} has no parameter {first_few(odd)}; leave it out, or train LatEm, which has "
            f"n_maps, learning_rate and n_epochs."
        )
    model.set_params(**given)
    return model.set_params(random_state=seed) if "random_state" in known else model


def _search(
    model: Any, kind: str, preset: str | None, given: dict[str, Any], how: dict[str, Any]
) -> Search | None:
    """What chooses the parameters that are not given; None if all are."""
    if kind == _COMMITTEE:
        if given:
            raise ValueError(
                f"A committee chooses its parameters itself, {first_few(list(given))} included; "
                f"take kind='LatEm' (--model LatEm) to give it."
            )
        return CommitteeCV(model.class_embeddings, **how)
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


def _is_enough(held_out: int | list[Any]) -> bool:
    """Whether these held-out classes, or folds, tell enough of how sure a model may be."""
    return isinstance(held_out, int) or len(held_out) >= _ENOUGH


def _usual_model(search: Search) -> Any:
    """Unfitted model with the first of the values that would be tried, where nothing can be."""
    model = search.unfitted_model()
    if isinstance(search, LatEmCV):
        model.set_params(**{name: values[0] for name, values in search.tried_values().items()})
    return model


def _on_unseen(model: Any, dataset: ZeroShotDataset, split: str | None) -> dict[str, Any]:
    """What `Trained` tells of the test classes that have images."""
    if split is None:
        return {"unseen_score": None, "n_unseen": 0}
    X, y = dataset.testing(split)
    classes = np.unique(y)
    if len(classes) < 2:
        return {"unseen_score": None, "n_unseen": len(classes)}
    found: dict[str, Any] = {
        "unseen_score": model.score(X, y, classes),
        "n_unseen": len(classes),
    }
    if hasattr(model, "acceptance_"):
        scores = model.class_scores(X, classes)
        codes = class_codes(y, classes)
        answers = model.answer(X, classes, top=1)
        found["unseen_probabilities"] = CalibrationReport.of(scores, codes, model.temperature_)
        found["unseen_verdicts"] = tuple(answers.count(v) / len(answers) for v in VERDICTS)
    return found
