"""A report on a model of one's own: what `latem evaluate --html` does.

The model is measured on all that the split allows, and what was found becomes one HTML page: the
numbers, every class with pictures, what is taken for what, curves, and what to do next.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from latem.core import atomic
from latem.core.run_folder import RunFolder, check_run_folder
from latem.datasets.dataset import ZeroShotDataset
from latem.evaluation import Evaluation, Scored, evaluate, obstacles
from latem.evaluation.advice import Learned, advice
from latem.inspection.class_displays import TrainingCurveDisplay, has_training_curve
from latem.inspection.displays import ReliabilityDisplay, RiskCoverageDisplay, SeenUnseenDisplay
from latem.inspection.galleries import galleries_of
from latem.inspection.pictures import Pictures
from latem.inspection.speakers import inner_model
from latem.models.answers import VERDICTS
from latem.report.evaluation_page import write_evaluation
from latem.report.names import label, percent, pictograph

PAGE = "report.html"
_SUFFIXES = (".html", ".htm")
_OTHER_FORMATS = (".pdf", ".png", ".svg", ".json", ".csv", ".txt", ".md")
_N_PAIRS = 8


def report_evaluation(
    model: Any,
    dataset: ZeroShotDataset,
    path: str | PathLike[str],
    split: str = "standard",
    *,
    generalized: bool | None = None,
    calibrate: bool | None = None,
    pictures: Path | None = None,
    n: int = 8,
    share: float = 0.2,
    seed: int = 0,
) -> Evaluation:
    """Measure a model on all that a split allows, and write a page about it.

    Parameters
    ----------
    model : a model
        If it is not fitted, it is fitted to ``dataset.training(split)``.
    dataset : ZeroShotDataset
    path : path
        A file that ends in ``.html``, or a folder, which gets `report.html`, `classes.csv`,
        `predictions.csv` and `run.json`.
    split : str
    generalized, calibrate : bool or None
        As for `evaluate`; None measures it if the split allows it, and says why if it does not.
    pictures : path, optional
        Folder that image names are relative to; without it the page has no pictures.
    n : int
        Pictures per class.
    share, seed
        As for `evaluate`.

    Returns
    -------
    Evaluation
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, but is {n}.")
    file = page_path(path)
    whole_folder = file != Path(path)
    if whole_folder:
        check_run_folder(path)
    else:
        atomic.check_target(file)
    missing = obstacles(model, dataset, split)
    result = evaluate(
        model,
        dataset,
        split,
        generalized=not missing["generalized"] if generalized is None else generalized,
        calibrate=not missing["calibrate"] if calibrate is None else calibrate,
        share=share,
        seed=seed,
    )
    summary = summary_of(model, dataset, result, missing, Pictures(dataset, pictures), n=n)
    if not whole_folder:
        write_evaluation(summary, file)
        return result
    with RunFolder(path) as folder:
        write_evaluation(summary, folder.file(file.name))
        frame = result.to_frame()
        header = [frame.index.name, *frame.columns]
        folder.write_table("classes.csv", header, frame.reset_index().to_numpy().tolist())
        folder.write_table("predictions.csv", *_predictions(dataset, result))
        folder.finish({"command": "evaluate", "seed": seed, "result": result.to_dict()})
    return result


def page_path(path: str | PathLike[str]) -> Path:
    """The page that `report_evaluation` writes for a path."""
    path = Path(path)
    if path.suffix.lower() in _OTHER_FORMATS:
        raise ValueError(f"{path} must end in .html, or be a folder: the page is HTML.")
    return path if path.suffix.lower() in _SUFFIXES else path / PAGE


def summary_of(
    model: Any,
    dataset: ZeroShotDataset,
    result: Evaluation,
    missing: dict[str, str],
    pictures: Pictures,
    *,
    n: int,
) -> dict[str, Any]:
    """Everything the page shows, for `write_evaluation`.

    Parameters
    ----------
    model : the fitted model
    dataset : ZeroShotDataset
    result : Evaluation
        With its answers.
    missing : dict
        Of `latem.evaluation.obstacles`.
    pictures : Pictures
    n : int
        Pictures per class.
    """
    answers = result.scored
    assert answers is not None
    shown = _Shown(answers, pictures, result, n)
    of = f" on {dataset.name}" if dataset.name else ""
    counts = answers.confusion()
    best = galleries_of(model, dataset, result.split, by=["class"], n=n, pictures=pictures.folder)
    return {
        "title": f"{result.model}{of}",
        "subtitle": f"{result.n_classes} unseen classes, {result.n_images} images, learned from "
        f"{len(model.classes_)} other classes",
        "notes": [pictures.note(answers.rows)],
        "figures": _figures(result),
        "classes": {
            "accuracies": result.per_class,
            "gallery": shown.by_class() if shown.has_pictures else None,
        },
        "confusions": {
            "classes": answers.classes.tolist(),
            "matrix": counts.to_numpy().tolist(),
            "gallery": shown.confusions() if shown.has_pictures else None,
        },
        "together": _together(result, missing["generalized"]),
        "sureness": _sureness(result, missing["calibrate"]),
        "best": best[0] if shown.has_pictures else None,
        "training": _training(model),
        "advice": advice(result, _learned(model, answers)),
        "settings": _settings(model, result),
    }


class _Shown:
    """Pictures of single answers."""

    def __init__(self, answers: Scored, pictures: Pictures, result: Evaluation, n: int):
        self.answers, self.pictures, self.n = answers, pictures, n
        self.frame = result.to_frame()
        found = result.probabilities
        self.confidence = answers.confidence(1.0 if found is None else found.test.temperature)
        names = [pictures.image(int(row)) for row in answers.rows]
        self.has_pictures = any(
            image["path"] or pictograph(image["class"], image["name"]) for image in names
        )

    def _image(self, place: int, **more: Any) -> dict[str, Any]:
        return self.pictures.image(int(self.answers.rows[place]), **more)

    def _surest(self, of: np.ndarray, n: int) -> list[int]:
        places = np.flatnonzero(of)
        return places[np.argsort(-self.confidence[places], kind="stable")[:n]].tolist()

    def by_class(self) -> dict[str, Any]:
        """Right and wrong answers of each class, the surest first."""
        groups = []
        for name, row in self.frame.sort_values("accuracy", kind="stable").iterrows():
            own, right = self.answers.y == name, self.answers.right
            n_wrong = min(self.n // 2, int((own & ~right).sum()))
            places = self._surest(own & right, self.n - n_wrong)
            places += self._surest(own & ~right, self.n - len(places))
            note = f"{percent(row['accuracy'])} of {row['images']} images right."
            if row["mistakes"]:
                note += f" Most often taken for {label(row['mistaken_for'])} ({row['mistakes']})."
            images = [self._image(i, named=str(self.answers.named[i])) for i in places]
            groups.append({"title": str(name), "notes": [note], "images": images})
        return {
            "id": "answers-per-class",
            "title": "Pictures of each class",
            "caption": "The worst class first; of each class the answers that are surest, right "
            "ones before wrong ones.",
            "groups": groups,
        }

    def confusions(self) -> dict[str, Any] | None:
        """For each frequent confusion an image so misnamed, and one it was taken for."""
        groups = []
        for true, named, count, of in (
            self.answers.top_confusions(_N_PAIRS)[["true", "named", "count", "of"]]
            .to_numpy()
            .tolist()
        ):
            wrong = self._surest((self.answers.y == true) & (self.answers.named == named), 1)
            own = self.answers.y == named
            typical = self._surest(own & self.answers.right, 1) or self._surest(own, 1)
            images = [self._image(wrong[0], named=str(named))]
            images += [self._image(i, note="what it was taken for") for i in typical]
            notes = [f"{count} of {of} images."]
            if not typical:
                notes.append(f"{label(named)} has no images here.")
            title = f"{label(true)} taken for {label(named)}"
            groups.append({"title": title, "notes": notes, "images": images})
        if not groups:
            return None
        return {
            "id": "confused-pairs",
            "narrow": True,
            "title": "The most frequent confusions",
            "caption": "An image that was given the wrong name, and beside it one of the class it "
            "was taken for.",
            "groups": groups,
        }


def _figures(result: Evaluation) -> list[dict[str, Any]]:
    """The numbers at the top of the page."""
    chance = f"guessing: {percent(1 / result.n_classes)}"
    figures: list[dict[str, Any]] = [
        {"name": "unseen classes named right", "share": result.top_1, "note": chance}
    ]
    if result.top_5 is not None and result.n_classes > 5:
        note = f"guessing: {percent(5 / result.n_classes)}"
        figures.append({"name": "right among the best five", "share": result.top_5, "note": note})
    if (found := result.generalized) is not None:
        figures += [
            {
                "name": "H, seen and unseen together",
                "share": found.stacked.harmonic,
                "note": f"with penalty γ = {found.gamma:.3g}; "
                f"without {percent(found.plain.harmonic)}",
            },
            {"name": "AUSUC", "share": found.ausuc, "note": "whatever the penalty"},
        ]
    if (sure := result.probabilities) is not None:
        figures.append(
            {
                "name": "calibration error",
                "share": sure.test.ece_after,
                "note": f"at temperature {sure.test.temperature:.3g}; "
                f"before {percent(sure.test.ece_before)}",
            }
        )
    return figures


def _together(result: Evaluation, missing: str) -> dict[str, Any] | None:
    found = result.generalized
    if found is None or found.curve is None:
        return {"missing": missing} if missing else None
    display = SeenUnseenDisplay(found.curve, found.plain, found.stacked, found.gamma)
    rows = {"no penalty": found.plain, f"γ = {found.gamma:.3g}": found.stacked}
    return {
        "columns": ["seen", "unseen", "H"],
        "table": {
            name: [scores.seen, scores.unseen, scores.harmonic] for name, scores in rows.items()
        },
        "plots": [
            {
                "title": "Accuracy on seen over unseen classes",
                "caption": f"Every penalty on the scores of the {found.n_seen} seen classes gives "
                f"a point; γ was chosen on held-out classes.",
                "display": display,
            }
        ],
    }


def _sureness(result: Evaluation, missing: str) -> dict[str, Any] | None:
    found, answers = result.probabilities, result.scored
    if found is None or answers is None:
        return {"missing": missing} if missing else None
    verdicts = {
        f"images of {part} classes": list(shares.values())
        for part, shares in (found.verdicts or {}).items()
    }
    return {
        "columns": list(VERDICTS),
        "table": verdicts,
        "plots": [
            {
                "title": "Reliability",
                "caption": "How often answers of a probability are right, before and after the "
                "temperature; larger marks are more answers.",
                "display": ReliabilityDisplay.from_predictions(
                    answers.y,
                    answers.scores,
                    answers.classes,
                    temperature=found.test.temperature,
                ),
            },
            {
                "title": "Risk and coverage",
                "caption": "Wrong answers if only the surest images get one.",
                "display": RiskCoverageDisplay(found.risk_coverage),
            },
        ],
    }


def _training(model: Any) -> dict[str, Any] | None:
    if not has_training_curve(model):
        return None
    return {
        "plots": [
            {
                "title": "Epoch by epoch",
                "caption": "Share of visited images whose margin was violated, and the mean loss.",
                "display": TrainingCurveDisplay.from_estimator(model),
            }
        ]
    }


def _learned(model: Any, answers: Scored) -> Learned:
    """What the model has learned from; a fusion has several class tables, and none is taken."""
    inner = inner_model(model, "report_evaluation")
    table = getattr(inner, "class_table_", None)
    parts = getattr(inner, "models_", [inner])  # of a committee or a fusion
    return Learned(
        n_classes=len(model.classes_),
        table=None if table is None else table.select(answers.classes.tolist()),
        balanced=any(getattr(one, "balance_classes", False) for one in parts),
        calibrated=hasattr(model, "acceptance_"),
    )


def _settings(model: Any, result: Evaluation) -> dict[str, Any]:
    """How the numbers came about."""
    params = inner_model(model, "report_evaluation").get_params(deep=False)
    plain = {
        name: value
        for name, value in params.items()
        if isinstance(value, str | int | float) and name not in ("verbose", "n_threads")
    }
    return {"model": result.model, "dataset": result.dataset, "split": result.split, **plain}


def _predictions(dataset: ZeroShotDataset, result: Evaluation) -> tuple[list[str], list[list[Any]]]:
    """Header and lines of the table of single answers."""
    answers = result.scored
    assert answers is not None
    images = np.full(len(answers), "") if dataset.images is None else dataset.images[answers.rows]
    best = answers.scores.max(axis=1)
    lines = zip(answers.rows, images, answers.y, answers.named, best, strict=True)
    return ["row", "image", "class", "named", "score"], [
        [int(row), str(image), true, named, float(score)]
        for row, image, true, named, score in lines
    ]
