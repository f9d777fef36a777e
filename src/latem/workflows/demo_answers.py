"""What the demo's page shows: single answers of a committee, and why it gave them.

The class table of the demo has numbers without names, so no trait can be a reason. But most of
what a committee says, it says by likeness: an unseen class is like some seen ones, and so is an
image. What each seen class adds to the lead of one class over another is told by name; what the
numbers of the class vectors add is one sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from latem.core.parallel import run_tasks
from latem.datasets.dataset import ZeroShotDataset
from latem.evaluation import Scored
from latem.inspection.explain import explain_predictions
from latem.metrics.calibration import expected_calibration_error, probabilities_of
from latem.models.answers import VERDICTS

N_ANSWERS = 12  # of each sort that are explained
_N_RIVALS = 3
_N_REASONS = 5  # seen classes that are told of an explanation
_LIKE = "like "  # before a seen class, among contributions
_KEYWORDS, _TAG = "att", "tag:"  # class table of keywords, and what its keywords begin with
_SURE = (0.8, 0.5, 0.2, 0.0)  # probabilities from which answers are counted together


def summary_of(
    model: Any,
    dataset: ZeroShotDataset,
    answered: Scored,
    *,
    n_seen: int,
    n_training_images: int,
    scores: Mapping[str, Sequence[float]],
    settings: Mapping[str, Any],
    done: Callable[[int, int], None],
) -> dict[str, Any]:
    """Everything the page shows, for `write_demo`.

    Parameters
    ----------
    model : a fitted and calibrated committee
    dataset : ZeroShotDataset
        With names of images.
    answered : Scored
        The model's scores of the unseen images.
    n_seen, n_training_images : int
        What it learned from.
    scores : mapping of name to (top-1, top-5)
        The table, the model last.
    settings : mapping
        How the numbers came about.
    done : callable
        Called with the number of answers that are explained, and how many will be.
    """
    shown = _Answers(model, dataset, answered)
    right, wrong = shown.surest(right=True), shown.surest(right=False)
    explained = shown.explained([*right, *wrong], done)
    top_1, top_5 = list(scores.values())[-1]
    chance_1, chance_5 = next(iter(scores.values()))
    counts = answered.confusion()
    return {
        "title": "Named, but never seen",
        "subtitle": f"{len(answered)} drawings of {len(answered.classes)} things, named from words "
        f"that describe them; learned from {n_training_images} drawings of {n_seen} other things",
        "notes": [
            "latem brings vectors of the drawings, not the drawings. So this page writes a thing's "
            "character, and your system draws it in its own way; after it stands the set from "
            "which the drawing came that was named, such as noto or twemoji.",
            "Part of such accuracies is shared colour and drawing style: they are not accuracies "
            "on photos.",
        ],
        "figures": [
            {"name": "named right", "share": top_1, "chance": chance_1},
            {"name": "right among the best five", "share": top_5, "chance": chance_5},
            *shown.sureness(),
        ],
        "scores": {name: list(shares) for name, shares in scores.items()},
        "right": explained[: len(right)],
        "wrong": explained[len(right) :],
        "classes": shown.by_class(),
        "confusions": {"classes": answered.classes.tolist(), "matrix": counts.to_numpy().tolist()},
        "by_probability": shown.by_probability(),
        "settings": {**settings, **shown.chosen()},
    }


def source_of(image: str) -> str:
    """The set that a drawing comes from: what stands after the character in an image's name.

    >>> source_of("🦓 noto"), source_of("zebra.jpg")
    ('noto', 'zebra.jpg')
    """
    return image.rsplit(" ", 1)[-1]


class _Answers:
    """The answers of a model about the unseen images of a dataset."""

    def __init__(self, model: Any, dataset: ZeroShotDataset, answered: Scored):
        assert dataset.images is not None
        self.model, self.answered = model, answered
        self.X = dataset.features[answered.rows]
        self.sources = [source_of(str(image)) for image in dataset.images[answered.rows]]
        self.characters: Mapping[str, str] = dataset.info.get("characters", {})
        self.keywords = dataset.embeddings.get(_KEYWORDS)
        self.temperature = model.temperature_
        self.confidence = answered.confidence(self.temperature)
        self.of_own = answered.of_own(self.temperature)

    def _class(self, name: Any) -> dict[str, str]:
        return {"name": str(name), "emoji": self.characters.get(str(name), "")}

    def surest(self, *, right: bool) -> list[int]:
        """Of every class the surest right, or wrong, answer; the surest of those."""
        order = np.argsort(-self.confidence, kind="stable")
        first: dict[str, int] = {}
        for place in order[self.answered.right[order] == right].tolist():
            first.setdefault(str(self.answered.y[place]), place)
        return list(first.values())[:N_ANSWERS]

    def explained(self, places: list[int], done: Callable[[int, int], None]) -> list[Any]:
        """These answers with their rivals, and why they were given."""
        ranked = np.argsort(-self.answered.scores, axis=1, kind="stable")
        names, shares = self.answered.classes, probabilities_of(
            self.answered.scores, self.temperature
        )  # fmt: skip
        against = [
            names[ranked[place, 1]] if self.answered.right[place] else self.answered.y[place]
            for place in places
        ]
        tasks = [
            (place, [self.answered.named[place], other])
            for place, other in zip(places, against, strict=True)
        ]
        found = run_tasks(_why, tasks, shared=(self.model, self.X))
        answers = []
        for place, other, why in zip(places, against, found, strict=True):
            rivals = ranked[place, 1 : 1 + _N_RIVALS]
            answers.append(
                {
                    "true": self._class(self.answered.y[place]),
                    "named": self._class(self.answered.named[place]),
                    "source": self.sources[place],
                    "probability": float(self.confidence[place]),
                    "rank": int(self.answered.ranks[place]),
                    "probability_of_true": float(self.of_own[place]),
                    "rivals": [
                        {**self._class(names[c]), "share": shares[place, c]} for c in rivals
                    ],
                    "against": self._class(other),
                    **self._reasons(*why),
                }
            )
            done(len(answers), len(places))
        return answers

    def _reasons(
        self, seen: dict[str, float], unlike: set[str], by_numbers: float
    ) -> dict[str, Any]:
        strongest = sorted(seen, key=lambda name: -abs(seen[name]))[:_N_REASONS]
        told = [
            {**self._class(name), "adds": seen[name], "unlike": name in unlike}
            for name in strongest
        ]
        return {
            "lead": math.fsum([*seen.values(), by_numbers]),
            "reasons": sorted(told, key=lambda one: -one["adds"]),
            "other_seen": math.fsum(seen[name] for name in seen if name not in strongest),
            "by_numbers": by_numbers,
        }

    def by_class(self) -> list[dict[str, Any]]:
        """Every answer, by class; the classes that were named best first."""
        groups = []
        for name in self.answered.classes.tolist():
            places = np.flatnonzero(self.answered.y == name).tolist()
            if not places:
                continue
            answers = [
                {
                    **self._class(self.answered.named[place]),
                    "source": self.sources[place],
                    "right": bool(self.answered.right[place]),
                }
                for place in places
            ]
            groups.append(
                {
                    **self._class(name),
                    "keywords": self._keywords_of(name),
                    "answers": answers,
                    "n_right": int(self.answered.right[places].sum()),
                }
            )
        return sorted(groups, key=lambda group: -group["n_right"] / len(group["answers"]))

    def _keywords_of(self, name: Any) -> list[str]:
        if self.keywords is None or name not in self.keywords:
            return []
        given = self.keywords.select([name]).vectors[0]
        columns = zip(self.keywords.column_names(), given, strict=True)
        return [
            column.removeprefix(_TAG) for column, has in columns if has and column.startswith(_TAG)
        ]

    def by_probability(self) -> list[dict[str, Any]]:
        """How often answers are right, by how probable the model says they are."""
        rows, left = [], np.ones(len(self.answered), bool)
        for least in _SURE:
            own = left & (self.confidence >= least)
            left &= ~own
            rows.append(
                {
                    "least": least,
                    "n": int(own.sum()),
                    "said": float(self.confidence[own].mean()) if own.any() else None,
                    "right": float(self.answered.right[own].mean()) if own.any() else None,
                }
            )
        return rows

    def sureness(self) -> list[dict[str, Any]]:
        """Figures of how sure the model is."""
        shares = probabilities_of(self.answered.scores, self.temperature)
        verdicts = self.model.answer(self.X, self.answered.classes.tolist(), top=1)
        named = verdicts.count(VERDICTS[0]) / len(verdicts)
        return [
            {
                "name": "calibration error",
                "share": expected_calibration_error(shares, self.answered.codes),
                "note": "by how much probabilities are off, on average",
            },
            {
                "name": "named without doubt",
                "share": named,
                "note": "so much like one of these as hardly one picture in twenty of other things",
            },
        ]

    def chosen(self) -> dict[str, str]:
        """What the committee chose on held-out classes, in words."""
        params = dict(self.model.measured_.chosen)
        weights = params.pop("weights", None)
        told = {name.replace("__", ", "): f"{value:g}" for name, value in params.items()}
        if weights:
            told["weights"] = ", ".join(f"{weight:.2f}" for weight in weights)
        return told


def _why(
    task: tuple[int, list[Any]], model: Any, X: np.ndarray
) -> tuple[dict[str, float], set[str], float]:
    """What seen classes add to the lead of one class, and what the numbers of class vectors add.

    Between them are those seen classes that the drawing is unlike.
    """
    place, pair = task
    (why,) = explain_predictions(model, X[place : place + 1], pair)
    added = why.contributions
    numbers = set(model.class_table_.column_names())
    seen = {
        str(name).removeprefix(_LIKE): float(value)
        for name, value in added.items()
        if name not in numbers
    }
    unlike = {name.removeprefix(_LIKE) for name in why.less if name not in numbers}
    return seen, unlike, math.fsum(value for name, value in added.items() if name in numbers)
