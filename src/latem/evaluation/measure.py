"""`evaluate`: the numbers people ask of a model, from one call.

Always: how well unseen classes are named among themselves. On request the generalised setting, with
and without calibrated stacking, and the quality of the probabilities. What these need chosen, γ and
the temperature, is what the model knows from its training (`latem.train`), or is chosen on held-out
classes: a *twin* of the model is fitted to the train classes alone, the val classes play the unseen
ones, and images of the train classes that are set aside play the seen ones. Neither the test
classes nor the split's held-out images have a say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from latem.core.messages import first_few
from latem.datasets.dataset import Split, ZeroShotDataset, check_is_dataset
from latem.evaluation.result import Evaluation, GeneralizedEvaluation, ProbabilityEvaluation
from latem.evaluation.scored import Scored
from latem.metrics import per_class_accuracy, top_k_accuracy
from latem.metrics.calibration import (
    CalibrationReport,
    class_codes,
    risk_coverage_curve,
)
from latem.metrics.generalized import generalized_accuracy, seen_unseen_curve
from latem.models.answers import VERDICTS
from latem.models.checks import check_fits, check_is_model
from latem.models.training_record import row_hashes
from latem.selection.calibration import HeldOutTwin


def evaluate(
    model: Any,
    dataset: ZeroShotDataset,
    split: str | Split = "standard",
    *,
    generalized: bool = False,
    calibrate: bool = False,
    share: float = 0.2,
    seed: int = 0,
) -> Evaluation:
    """Measure a model on the unseen classes of a dataset.

    Parameters
    ----------
    model : a model
        If it is not fitted, it is fitted to ``dataset.training(split)``. A fitted one is used as
        it is; it must not have learned from test classes nor from the split's held-out images,
        and is refused if its record of training images (`training_digest_`) says that it has.
    dataset : ZeroShotDataset
    split : str or Split
        A split of the dataset, by name, or another one, such as `latem.hold_out` makes.
    generalized : bool
        Whether to measure the generalised setting too. The split must have held-out images of
        seen classes, and val classes to choose γ on.
    calibrate : bool
        Whether to measure the model's probabilities, before and after its temperature. The split
        must have val classes. A model without a temperature gets one fitted to them, and keeps it.
    share : float
        Share of each train class's images that are set aside when γ is chosen.
    seed : int
        Which images these are, and the seed of the copy that γ and the temperature are chosen
        with, if the model itself has none.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> from latem import ESZSL, make_latent_world
    >>> from latem.datasets import hold_out
    >>> from latem.evaluation import evaluate
    >>> world = make_latent_world(n_poses=1, n_unseen=5, random_state=0)
    >>> split = hold_out(world, world.split())
    >>> result = evaluate(ESZSL(world.embeddings["att"]), world, split, generalized=True)
    >>> result.top_1 > 0.9
    True
    >>> result.generalized.ausuc > 0.9
    True
    """
    check_is_model(model, "evaluate")
    check_is_dataset(dataset, "evaluate")
    if hasattr(model, "n_features_in_"):
        check_fits(model, dataset)
    if isinstance(split, Split):
        dataset, split = replace(dataset, splits={"custom": split}), "custom"
    parts = _Parts(dataset, split)
    if len(parts.test) < 2:
        raise ValueError(
            f"Split {split!r} has only one test class, which any model would name correctly; "
            f"it needs at least 2."
        )
    if generalized:
        parts.check_held_out()
        parts.check_aside()
    if generalized or calibrate:
        parts.check_val()
        if not 0 < share < 1:
            raise ValueError(f"share must lie between 0 and 1, but is {share}.")
    if not model.__sklearn_is_fitted__():
        model.fit(*dataset.training(split))
    parts.check_model(model, generalized=generalized)

    X, y = parts.X_test, parts.y_test
    scores = model.decision_function(X, parts.test)
    answers = Scored(parts.test_rows, y, parts.test, scores)
    per_class = per_class_accuracy(y, answers.named)
    result = Evaluation(
        model=type(model).__name__,
        dataset=dataset.name,
        split=split,
        n_images=len(y),
        n_classes=len(parts.test),
        top_1=float(per_class.mean()),
        top_5=top_k_accuracy(y, scores, parts.test, 5) if len(parts.test) >= 5 else None,
        per_class={name: float(value) for name, value in per_class.items()},
        scored=answers,
    )
    if not (generalized or calibrate):
        return result
    known = {name: getattr(model, f"{name}_", None) for name in ("seen_penalty", "temperature")}
    if calibrate or known["seen_penalty"] is None:
        twin = _twin(model, parts, share, seed)
    if generalized:
        gamma = known["seen_penalty"]
        gamma = twin.penalty() if gamma is None else gamma
        result = replace(result, generalized=_measure_generalized(model, parts, gamma))
    if calibrate:
        if known["temperature"] is None:
            model.forget_calibration()
            model.temperature_ = twin.temperature()
        val = CalibrationReport.of(twin.of_held_out, twin.codes(), model.temperature_)
        codes = class_codes(y, parts.test)
        result = replace(
            result,
            probabilities=ProbabilityEvaluation(
                val=val,
                test=CalibrationReport.of(scores, codes, val.temperature),
                risk_coverage=risk_coverage_curve(
                    answers.confidence(val.temperature), answers.right
                ),
                verdicts=_verdicts(model, parts),
                fitted=known["temperature"] is None,
            ),
        )
    return result


def obstacles(
    model: Any, dataset: ZeroShotDataset, split: str | Split = "standard"
) -> dict[str, str]:
    """Why parts of an evaluation cannot be measured.

    Parameters
    ----------
    model : a model
        It need not be fitted.
    dataset : ZeroShotDataset
    split : str or Split

    Returns
    -------
    dict
        "generalized" and "calibrate", the options of `evaluate`, each with a sentence that says
        what is missing and how to get it; empty if nothing is.
    """
    if isinstance(split, Split):
        dataset, split = replace(dataset, splits={"custom": split}), "custom"
    parts = _Parts(dataset, split)
    checks: dict[str, list[Callable[[], None]]] = {
        "generalized": [parts.check_held_out, parts.check_aside, parts.check_val],
        "calibrate": [parts.check_val],
    }
    if model.__sklearn_is_fitted__():
        checks["generalized"].append(lambda: parts.check_model(model, generalized=True))
    return {part: _first_message(found) for part, found in checks.items()}


def _first_message(checks: list[Callable[[], None]]) -> str:
    """What the first check that refuses says."""
    for check in checks:
        try:
            check()
        except ValueError as error:
            return str(error)
    return ""


class _Parts:
    """The parts of a split, as arrays."""

    def __init__(self, dataset: ZeroShotDataset, name: str):
        self.dataset, self.name = dataset, name
        self.split = dataset.split(name)
        self.test = np.array(self.split.test)
        self.X_test, self.y_test = dataset.testing(name)
        self.test_rows = dataset.rows(self.split.test)
        if not len(self.y_test):
            raise ValueError(f"Split {name!r} has no images of test classes to measure.")

    def check_held_out(self) -> None:
        if not len(self.held_out()):
            raise ValueError(
                f"Split {self.name!r} holds out no images of seen classes, so the generalised "
                f"setting cannot be measured; make a split that does (latem embed "
                f"images --held-out 0.2, latem data split --held-out 0.2, or latem.hold_out in "
                f"Python), and fit the model to its training images."
            )

    def check_aside(self) -> None:
        rows = self.dataset.rows(self.split.train)
        labels = self.dataset.labels[rows[~np.isin(rows, self.split.held_out)]]
        if len(np.unique(labels)) == len(labels):
            raise ValueError(
                "No image can be set aside to choose γ on: every train class has only one."
            )

    def check_val(self) -> None:
        n_val = len(self._learnable(self.split.val))
        if n_val < 2:
            raise ValueError(
                f"γ and temperature are chosen on held-out classes, but split {self.name!r} has "
                f"images of {n_val} val classes; it needs at least 2."
            )

    def check_model(self, model: Any, *, generalized: bool) -> None:
        seen, owner = set(model.classes_.tolist()), type(model).__name__
        peeked = [name for name in self.split.test if name in seen]
        if peeked:
            raise ValueError(
                f"{owner} was fitted to {first_few(peeked)}, test classes of split {self.name!r}; "
                f"fit it to dataset.training({self.name!r}) (latem train --split {self.name})."
            )
        trained = set(self._learnable(self.split.train + self.split.val).tolist())
        if generalized and seen != trained:
            raise ValueError(
                f"{owner} was fitted to other classes "
                f"({first_few(sorted(seen ^ trained, key=str))}) than the train and val classes of "
                f"split {self.name!r}; fit it to dataset.training({self.name!r}) (latem train "
                f"--split {self.name})."
            )
        self._check_unused(model, self.X_test, "test images")
        if generalized:
            self._check_unused(model, self.dataset.features[self.held_out()], "held-out images")

    def _check_unused(self, model: Any, X: np.ndarray, what: str) -> None:
        """Refuse a model that has learned from images that it is to be measured on.

        Images that are equal to one of the training part's own are left alone: such a model has
        learned from that one.
        """
        learned = model.training_rows()
        if learned is None:
            return
        hashes = row_hashes(X)
        met = np.isin(hashes, learned)
        if met.any():
            met &= ~np.isin(hashes, row_hashes(self.dataset.training(self.name)[0]))
        if met.any():
            raise ValueError(
                f"{type(model).__name__} was fitted to {met.sum()} of the {len(X)} {what} of "
                f"split {self.name!r}, which it would be measured on; fit it to "
                f"dataset.training({self.name!r}), which leaves them out."
            )

    def _learnable(self, names: tuple[Any, ...]) -> np.ndarray:
        """Which of some classes have images that are not held out."""
        rows = self.dataset.rows(names)
        return np.unique(self.dataset.labels[rows[~np.isin(rows, self.split.held_out)]])

    def held_out(self) -> np.ndarray:
        """Rows kept from training, of classes that have others to learn from."""
        seen = self._learnable(self.split.train + self.split.val)
        return np.intersect1d(self.dataset.rows(seen), self.split.held_out).astype(np.intp)


def _twin(model: Any, parts: _Parts, share: float, seed: int) -> HeldOutTwin:
    """A copy of the model that has never seen the val classes."""
    X, y = parts.dataset.training(parts.name)
    return HeldOutTwin(model, X, y, np.isin(y, parts.split.val), share=share, seed=seed)


def _verdicts(model: Any, parts: _Parts) -> dict[str, dict[str, float]] | None:
    """How images of unseen classes, and held-out ones of seen classes, are judged."""
    if not hasattr(model, "acceptance_"):
        return None
    images = {"unseen": parts.X_test, "seen": parts.dataset.features[parts.held_out()]}
    found = {}
    for part, X in images.items():
        if len(X):
            answers = model.answer(X, parts.test, top=1)
            found[part] = {verdict: answers.count(verdict) / len(X) for verdict in VERDICTS}
    return found


def _measure_generalized(model: Any, parts: _Parts, gamma: float) -> GeneralizedEvaluation:
    rows, dataset = parts.held_out(), parts.dataset
    X = np.concatenate([dataset.features[rows], parts.X_test])
    y = np.concatenate([dataset.labels[rows], parts.y_test])
    seen = model.classes_
    classes = np.concatenate([seen, parts.test])
    measured = (model.decision_function(X, classes), y, classes, seen)
    curve = seen_unseen_curve(*measured)
    return GeneralizedEvaluation(
        n_seen_images=len(rows),
        n_unseen_images=len(parts.y_test),
        n_seen=len(seen),
        n_unseen=len(parts.test),
        plain=generalized_accuracy(*measured),
        stacked=generalized_accuracy(*measured, gamma),
        gamma=gamma,
        ausuc=curve.area,
        curve=curve,
    )
