"""Plots of how far a model can be trusted, as scikit-learn's displays are made.

A display holds the numbers; `plot` draws them, on given axes or on new ones, and returns the
display, whose `ax_` and `figure_` are then the axes and the figure. Colours are those of the
style in use. matplotlib is imported when something is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latem.evaluation import Scored
from latem.inspection.axes import axes_for, legend_above
from latem.metrics.calibration import RiskCoverage, class_codes, risk_coverage_curve
from latem.metrics.generalized import (
    GeneralizedScores,
    SeenUnseenCurve,
    generalized_accuracy,
    seen_unseen_curve,
)
from latem.metrics.reliability import ReliabilityCurve, reliability_curve

if TYPE_CHECKING:
    from typing_extensions import Self

_LARGEST = 170.0  # area in points of the mark of a bin that holds all answers


class ReliabilityDisplay:
    """Reliability diagram: how often answers are right, by how sure the model is of them.

    Parameters
    ----------
    before : ReliabilityCurve
        At temperature 1.
    after : ReliabilityCurve or None
        At the model's temperature.
    temperature : float or None

    Attributes
    ----------
    ax_, figure_
        Where it was drawn, after `plot`.

    Examples
    --------
    >>> from latem import ReliabilityDisplay
    >>> scores, classes = [[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]], ["a", "b"]
    >>> display = ReliabilityDisplay.from_predictions(["a", "b", "b"], scores, classes)
    >>> display.before.counts.tolist()
    [1, 1, 1]
    """

    def __init__(
        self,
        before: ReliabilityCurve,
        after: ReliabilityCurve | None = None,
        temperature: float | None = None,
    ):
        self.before, self.after, self.temperature = before, after, temperature

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        scores: Any,
        classes: Any,
        *,
        temperature: float | None = None,
        n_bins: int = 15,
    ) -> Self:
        """Display of scores.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            True class names.
        scores : array-like of shape (n_samples, n_classes)
            As returned by `decision_function(X, classes)`.
        classes : array-like of shape (n_classes,)
            Names of the columns.
        temperature : float, optional
            Show what it does to the probabilities, too.
        n_bins : int
        """
        answers = _answers(y, scores, classes)
        confidence = answers.confidence()
        before, after = reliability_curve(confidence, answers.right, n_bins), None
        if temperature is not None:
            confidence = answers.confidence(temperature)
            after = reliability_curve(confidence, answers.right, n_bins)
        return cls(before, after, temperature)

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, classes: Any = None, *, n_bins: int = 15
    ) -> Self:
        """Display of a fitted model, at temperature 1 and at its own if it is calibrated.

        Parameters
        ----------
        model : a fitted model
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes
            Which classes may be the answer; see `decision_function`.
        n_bins : int
        """
        check_is_fitted(model)
        names, temperature = model.candidate_names(classes), getattr(model, "temperature_", None)
        scores = model.class_scores(X, classes)
        return cls.from_predictions(y, scores, names, temperature=temperature, n_bins=n_bins)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the diagram; the larger a mark, the more answers are in its bin.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.
        **kwargs
            Passed on to the lines.

        Returns
        -------
        self
        """
        self.ax_, self.figure_, colours = axes_for(ax)
        self.ax_.plot([0, 1], [0, 1], ":", color=colours.muted, label="as sure as right")
        curves: list[tuple[str, ReliabilityCurve | None]]
        if self.after is None:
            curves = [("temperature 1", self.before)]
        else:
            curves = [("before", self.before), (f"T = {self.temperature:.3g}", self.after)]
        for i, (name, curve) in enumerate(curves):
            assert curve is not None
            colour = colours.series[1 - i if len(curves) > 1 else 0]
            style = {"color": colour, "linewidth": 1.6, "linestyle": "-" if i else "--"} | kwargs
            label = f"{name}, error {curve.error:.1%}"
            self.ax_.plot(curve.confidence, curve.accuracy, label=label, **style)
            sizes = 8 + _LARGEST * curve.counts / curve.counts.sum()
            marks = {"color": style["color"], "marker": "o" if i else "s", "linewidth": 0}
            self.ax_.scatter(curve.confidence, curve.accuracy, sizes, zorder=3, **marks)
        self.ax_.set(
            xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="probability", ylabel="share right"
        )
        legend_above(self.ax_)
        return self


class SeenUnseenDisplay:
    """Accuracy on seen classes over accuracy on unseen ones, for every penalty γ on seen classes.

    Parameters
    ----------
    curve : SeenUnseenCurve
    plain : GeneralizedScores or None
        The point without a penalty.
    stacked : GeneralizedScores or None
        The point at γ.
    gamma : float or None

    Attributes
    ----------
    ax_, figure_
        Where it was drawn, after `plot`.

    Examples
    --------
    >>> from latem import SeenUnseenDisplay
    >>> scores, classes = [[0.9, 0.7], [0.8, 0.1]], ["horse", "zebra"]
    >>> display = SeenUnseenDisplay.from_predictions(
    ...     ["zebra", "horse"], scores, classes, seen=["horse"], gamma=0.5)
    >>> display.plain.harmonic, display.stacked.harmonic
    (0.0, 1.0)
    """

    def __init__(
        self,
        curve: SeenUnseenCurve,
        plain: GeneralizedScores | None = None,
        stacked: GeneralizedScores | None = None,
        gamma: float | None = None,
    ):
        self.curve, self.plain, self.stacked, self.gamma = curve, plain, stacked, gamma

    @classmethod
    def from_predictions(
        cls, y: Any, scores: Any, classes: Any, *, seen: Any, gamma: float | None = None
    ) -> Self:
        """Display of scores.

        Parameters
        ----------
        y, scores, classes, seen
            As for `latem.generalized_accuracy`.
        gamma : float, optional
            A penalty to mark, chosen on held-out classes (`latem.best_gamma`).
        """
        measured = (scores, y, classes, seen)
        stacked = None if gamma is None else generalized_accuracy(*measured, gamma)
        return cls(seen_unseen_curve(*measured), generalized_accuracy(*measured), stacked, gamma)

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, classes: Any = "all", *, gamma: float | None = None
    ) -> Self:
        """Display of a fitted model.

        Parameters
        ----------
        model : a fitted model
        X : array-like of shape (n_samples, n_features)
            Images of seen and of unseen classes that it did not learn from.
        y : array-like of shape (n_samples,)
        classes
            Which classes may be the answer; see `decision_function`.
        gamma : float, optional
            A penalty to mark; by default that of the model's training, if it has one.
        """
        check_is_fitted(model)
        gamma = getattr(model, "seen_penalty_", None) if gamma is None else gamma
        names, scores = model.candidate_names(classes), model.class_scores(X, classes)
        return cls.from_predictions(y, scores, names, seen=model.classes_, gamma=gamma)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the curve with its marked points.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.
        **kwargs
            Passed on to the line.

        Returns
        -------
        self
        """
        self.ax_, self.figure_, colours = axes_for(ax)
        style = {"color": colours.series[0], "linewidth": 1.6} | kwargs
        label = f"every γ, area {self.curve.area:.1%}"
        self.ax_.plot(self.curve.unseen, self.curve.seen, label=label, **style)
        points = [(self.plain, "s", "no penalty")]
        if self.gamma is not None:
            points.append((self.stacked, "o", f"γ = {self.gamma:.3g}"))
        for i, (point, marker, name) in enumerate(points):
            if point is not None:
                self.ax_.plot(
                    point.unseen,
                    point.seen,
                    marker,
                    color=colours.series[i + 1],
                    markersize=8,
                    label=f"{name}, H {point.harmonic:.1%}",
                )
        self.ax_.set(
            xlim=(-0.02, 1.02), ylim=(-0.02, 1.02),
            xlabel="accuracy on unseen classes", ylabel="accuracy on seen classes",
        )  # fmt: skip
        legend_above(self.ax_)
        return self


class RiskCoverageDisplay:
    """Share of wrong names among the answers that are given, by how many are given.

    Parameters
    ----------
    curve : RiskCoverage

    Attributes
    ----------
    ax_, figure_
        Where it was drawn, after `plot`.

    Examples
    --------
    >>> from latem import RiskCoverageDisplay
    >>> scores, classes = [[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]], ["a", "b"]
    >>> display = RiskCoverageDisplay.from_predictions(["a", "b", "b"], scores, classes)
    >>> display.curve.risk.round(2).tolist()
    [0.0, 0.0, 0.33]
    """

    def __init__(self, curve: RiskCoverage):
        self.curve = curve

    @classmethod
    def from_predictions(
        cls, y: Any, scores: Any, classes: Any, *, temperature: float = 1.0
    ) -> Self:
        """Display of scores.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            True class names.
        scores : array-like of shape (n_samples, n_classes)
            As returned by `decision_function(X, classes)`.
        classes : array-like of shape (n_classes,)
            Names of the columns.
        temperature : float
            Of the probabilities, which decide which answers are withheld first.
        """
        answers = _answers(y, scores, classes)
        return cls(risk_coverage_curve(answers.confidence(temperature), answers.right))

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any, classes: Any = None) -> Self:
        """Display of a fitted model.

        Parameters
        ----------
        model : a fitted model
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes
            Which classes may be the answer; see `decision_function`.
        """
        check_is_fitted(model)
        names, scores = model.candidate_names(classes), model.class_scores(X, classes)
        return cls.from_predictions(
            y, scores, names, temperature=getattr(model, "temperature_", 1.0)
        )

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.
        **kwargs
            Passed on to the line.

        Returns
        -------
        self
        """
        self.ax_, self.figure_, colours = axes_for(ax)
        coverage, risk = 100 * self.curve.coverage, 100 * self.curve.risk
        style = {"color": colours.series[0], "linewidth": 1.6} | kwargs
        label = f"mean {self.curve.area:.1%}"
        self.ax_.plot(coverage, risk, label=label, **style)
        self.ax_.axhline(risk[-1], linestyle=":", color=colours.muted, label="all answered")
        self.ax_.set(
            xlim=(0, 100), ylim=(0, max(1.08 * float(risk.max()), 1.0)),
            xlabel="images that get an answer (%)", ylabel="wrong answers (%)",
        )  # fmt: skip
        legend_above(self.ax_)
        return self


def _answers(y: Any, scores: Any, classes: Any) -> Scored:
    """Checked answers of images that belong to no dataset."""
    names, scores = np.asarray(classes), np.asarray(scores, np.float64)
    codes = class_codes(y, names)
    if scores.shape != (len(codes), len(names)):
        raise ValueError(
            f"scores must have one row per label and one column per class, ({len(codes)}, "
            f"{len(names)}), but have shape {scores.shape}."
        )
    return Scored(np.arange(len(codes)), names[codes], names, scores)
