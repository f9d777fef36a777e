"""What `evaluate` found, as numbers, as lines for a spreadsheet, and as tables for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from latem.core.slim import needed
from latem.evaluation.scored import Scored
from latem.metrics.calibration import CalibrationReport, RiskCoverage
from latem.metrics.generalized import GeneralizedScores, SeenUnseenCurve

if TYPE_CHECKING:
    import pandas as pd

_COVERAGES = (1.0, 0.9, 0.7, 0.5)


@dataclass(frozen=True)
class GeneralizedEvaluation:
    """The generalised setting: seen and unseen classes together.

    Attributes
    ----------
    n_seen_images, n_unseen_images : int
    n_seen, n_unseen : int
        Candidate classes.
    plain : GeneralizedScores
        As the model is.
    stacked : GeneralizedScores
        With `gamma` subtracted from the scores of the seen classes.
    gamma : float
        Chosen on held-out classes.
    ausuc : float
        The same with and without γ.
    curve : SeenUnseenCurve or None
        Both accuracies for every other γ; not part of comparisons and of plain data.
    """

    n_seen_images: int
    n_unseen_images: int
    n_seen: int
    n_unseen: int
    plain: GeneralizedScores
    stacked: GeneralizedScores
    gamma: float
    ausuc: float
    curve: SeenUnseenCurve | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class ProbabilityEvaluation:
    """Quality of the probabilities, before and after the temperature.

    Attributes
    ----------
    val : CalibrationReport
        On the split's val classes, by the twin.
    test : CalibrationReport
        On the unseen classes, by the model.
    risk_coverage : RiskCoverage
        On the unseen classes: share of wrong names when the least sure ones are withheld.
    verdicts : dict of str to dict, or None
        Shares of images that are named, doubtful, and none of these, among the unseen classes:
        of "unseen" ones, and of "seen" ones that were held out, which are outsiders there. None if
        the model cannot tell outsiders.
    fitted : bool
        Whether the temperature was fitted to `val`; otherwise the model had it before.
    """

    val: CalibrationReport
    test: CalibrationReport
    risk_coverage: RiskCoverage
    verdicts: dict[str, dict[str, float]] | None = None
    fitted: bool = field(default=True, compare=False)


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found; accuracies are shares between 0 and 1.

    Attributes
    ----------
    model, dataset, split : str
        Their names.
    n_images, n_classes : int
        Of the unseen (test) classes.
    top_1 : float
        Mean per-class accuracy on the unseen classes, named among themselves.
    top_5 : float or None
        Mean per-class share of images whose class is among the five best; None if there are
        fewer than five classes.
    per_class : dict of class name to float
        Accuracy of each unseen class that has images.
    generalized : GeneralizedEvaluation or None
    probabilities : ProbabilityEvaluation or None
    scored : Scored or None
        Scores of the unseen images, one by one; not part of comparisons and of plain data.
    """

    model: str
    dataset: str
    split: str
    n_images: int
    n_classes: int
    top_1: float
    top_5: float | None
    per_class: dict[Any, float]
    generalized: GeneralizedEvaluation | None = None
    probabilities: ProbabilityEvaluation | None = None
    scored: Scored | None = field(default=None, repr=False, compare=False)

    def to_frame(self) -> pd.DataFrame:
        """One row per unseen class that has images.

        Returns
        -------
        DataFrame
            Index: class names. Columns: `accuracy`, and if the answers were kept `images` (how
            many the class has), `named` (how often it was the answer), `mistaken_for` (its most
            frequent wrong name, None if there is none) and `mistakes` (how often that was given).

        Examples
        --------
        >>> from latem import ESZSL, evaluate, make_latent_world
        >>> world = make_latent_world(n_poses=1, n_unseen=5, random_state=0)
        >>> frame = evaluate(ESZSL(world.embeddings["att"]), world).to_frame()
        >>> list(frame.columns)
        ['accuracy', 'images', 'named', 'mistaken_for', 'mistakes']
        """
        pd = needed("pandas", "Frames")
        accuracy = pd.Series(self.per_class, dtype=float)
        index = pd.Index(list(self.per_class), name="class")
        frame = pd.DataFrame({"accuracy": accuracy.to_numpy()}, index=index)
        if self.scored is None:
            return frame
        counts = self.scored.confusion()
        wrong = self.scored.top_confusions(None).drop_duplicates("true").set_index("true")
        given = wrong["named"].to_dict()
        frame["images"] = counts.sum(axis=1).reindex(index).to_numpy()
        frame["named"] = counts.sum(axis=0).reindex(index).to_numpy()
        frame["mistaken_for"] = pd.Series([given.get(n) for n in index], index, dtype=object)
        frame["mistakes"] = wrong["count"].reindex(index, fill_value=0).to_numpy()
        return frame

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        generalized, probabilities = self.generalized, self.probabilities
        plain = {name: getattr(self, name) for name in _PLAIN}
        plain["per_class"] = [
            {"class": name, "accuracy": accuracy} for name, accuracy in self.per_class.items()
        ]
        plain["generalized"] = None if generalized is None else _plain(generalized)
        plain["confusions"] = None if self.scored is None else [
            {"true": true, "named": named, "images": int(count), "of": int(of)}
            for true, named, count, of, _ in self.scored.top_confusions().to_numpy().tolist()
        ]  # fmt: skip
        plain["probabilities"] = probabilities and {
            "val": asdict(probabilities.val),
            "test": asdict(probabilities.test),
            "risk_coverage": {
                "area": probabilities.risk_coverage.area,
                "points": [
                    {"coverage": c, "risk": probabilities.risk_coverage.at(c)} for c in _COVERAGES
                ],
            },
            "verdicts": probabilities.verdicts,
        }
        return plain

    def to_rows(self) -> list[tuple[str, str, Any]]:
        """As lines (part, measure, value), for a spreadsheet."""
        rows: list[tuple[str, str, Any]] = [("unseen", "top_1", self.top_1)]
        if self.top_5 is not None:
            rows.append(("unseen", "top_5", self.top_5))
        rows += [("unseen, per class", str(name), value) for name, value in self.per_class.items()]
        if self.generalized is not None:
            found = self.generalized
            for part, scores in (("", found.plain), (", stacked", found.stacked)):
                measures = asdict(scores) | {"ausuc": found.ausuc}
                rows += [(f"generalised{part}", name, value) for name, value in measures.items()]
            rows.append(("generalised, stacked", "gamma", found.gamma))
        if self.probabilities is not None:
            for part in ("val", "test"):
                report = asdict(getattr(self.probabilities, part))
                rows += [(f"probabilities, {part}", name, value) for name, value in report.items()]
            curve = self.probabilities.risk_coverage
            rows.append(("probabilities, test", "risk_coverage_area", curve.area))
            for title, shares in (self.probabilities.verdicts or {}).items():
                rows += [(f"verdicts, {title}", name, value) for name, value in shares.items()]
        return rows

    def to_text(self) -> str:
        """As tables for people."""
        of = f" of {self.dataset}" if self.dataset else ""
        top_5 = "" if self.top_5 is None else f", top-5 {self.top_5:.1%}"
        parts = [
            f"{self.model}, split {self.split}{of}",
            f"Unseen classes among themselves ({self.n_classes} classes, {self.n_images} images), "
            f"mean per-class accuracy: top-1 {self.top_1:.1%}{top_5}",
            _table([[str(name), f"{value:.1%}"] for name, value in self.per_class.items()]),
        ]
        if self.generalized is not None:
            parts += _generalized_text(self.generalized)
        if self.probabilities is not None:
            parts += _probability_text(self.probabilities)
        return "\n\n".join(parts)

    __str__ = to_text


def _plain(found: GeneralizedEvaluation) -> dict[str, Any]:
    """As plain data, without the curve."""
    numbers = {f.name: getattr(found, f.name) for f in fields(found) if f.name != "curve"}
    return numbers | {"plain": asdict(found.plain), "stacked": asdict(found.stacked)}


_PLAIN = ("model", "dataset", "split", "n_images", "n_classes", "top_1", "top_5")


def _generalized_text(found: GeneralizedEvaluation) -> list[str]:
    lines = [["", "seen", "unseen", "H", "AUSUC"]]
    for title, scores in (
        ("as it is", found.plain),
        (f"calibrated stacking, γ = {found.gamma:.4g}", found.stacked),
    ):
        values = (scores.seen, scores.unseen, scores.harmonic, found.ausuc)
        lines.append([title, *(f"{value:.1%}" for value in values)])
    return [
        f"Generalised: {found.n_seen} seen and {found.n_unseen} unseen classes together "
        f"({found.n_seen_images} and {found.n_unseen_images} images); γ chosen on held-out classes",
        _table(lines),
    ]


def _probability_text(found: ProbabilityEvaluation) -> list[str]:
    lines = [["", "log-loss before", "after", "calibration error before", "after"]]
    for title, report in (("held-out classes", found.val), ("unseen classes", found.test)):
        losses = f"{report.log_loss_before:.3f}", f"{report.log_loss_after:.3f}"
        errors = f"{report.ece_before:.1%}", f"{report.ece_after:.1%}"
        lines.append([title, *losses, *errors])
    curve = found.risk_coverage
    risks = ", ".join(f"{curve.at(c):.1%} at {c:.0%}" for c in _COVERAGES)
    verdicts = []
    if found.verdicts is not None:
        lines_of = [["", *next(iter(found.verdicts.values()))]]
        for title, shares in found.verdicts.items():
            lines_of.append([f"images of {title} classes", *(f"{v:.1%}" for v in shares.values())])
        verdicts = ["Verdicts among the unseen classes", _table(lines_of)]
    n_held_out = f"{found.val.n_classes} held-out classes"
    origin = f"fitted on {n_held_out}" if found.fitted else f"the model's own, here on {n_held_out}"
    return [
        f"Probabilities at temperature {found.val.temperature:.4g}, {origin}",
        _table(lines),
        f"Wrong names at coverage: {risks}; area under the curve {curve.area:.3f}",
        *verdicts,
    ]


def _table(lines: list[list[str]]) -> str:
    """Columns side by side, numbers to the right."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  " + "  ".join([line[0].ljust(widths[0])] + [
            cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)
        ])
        for line in lines
    )  # fmt: skip
