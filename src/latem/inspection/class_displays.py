"""Plots of which classes are mistaken for which, and of the course of a training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latem.inspection.axes import axes_for, legend_above, plot_label
from latem.inspection.speakers import by_maps
from latem.metrics import confusion_matrix, top_confusions

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Self

_SHARES = {"violation_rate": "margin violated", "validation_score": "held-out classes right"}


class ConfusionDisplay:
    """The most frequent confusions, as bars.

    Parameters
    ----------
    confusions : DataFrame
        As returned by `latem.metrics.top_confusions`.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn, after `plot`.

    Examples
    --------
    >>> from latem import ConfusionDisplay
    >>> display = ConfusionDisplay.from_predictions(["cat", "cat", "dog"], ["cat", "dog", "dog"])
    >>> display.confusions[["true", "named", "count"]].to_numpy().tolist()
    [['cat', 'dog', 1]]
    """

    def __init__(self, confusions: pd.DataFrame):
        self.confusions = confusions

    @classmethod
    def from_predictions(cls, y_true: Any, y_pred: Any, *, n: int = 10) -> Self:
        """Display of answers.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_samples,)
            Class names.
        n : int
            Confusions to show at most.
        """
        return cls(top_confusions(confusion_matrix(y_true, y_pred), n))

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, classes: Any = None, *, n: int = 10
    ) -> Self:
        """Display of a fitted model.

        Parameters
        ----------
        model : a fitted model
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes
            Which classes may be the answer; see `decision_function`.
        n : int
            Confusions to show at most.
        """
        check_is_fitted(model)
        return cls.from_predictions(y, model.predict(X, classes), n=n)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw a bar for each confusion, the most frequent on top.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.
        **kwargs
            Passed on to the bars.

        Returns
        -------
        self
        """
        self.ax_, self.figure_, colours = axes_for(ax)
        found = self.confusions
        names = [
            f"{plot_label(true, 20)} → {plot_label(named, 20)}"
            for true, named in zip(found["true"], found["named"], strict=True)
        ]
        bars = {"color": colours.series[1]} | kwargs
        drawn = self.ax_.barh(range(len(found)), found["count"], **bars)
        self.ax_.bar_label(drawn, [f"of {of}" for of in found["of"]], padding=3)
        self.ax_.set_yticks(range(len(found)), names)
        self.ax_.margins(x=0.15)
        self.ax_.invert_yaxis()
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        self.ax_.set_xlabel("images")
        return self


class TrainingCurveDisplay:
    """The course of a training, epoch by epoch.

    Parameters
    ----------
    history : mapping of str to list
        A model's `history_`: "violation_rate", "mean_loss" and perhaps "validation_score".
    best_epoch : int or None
        The epoch whose maps were kept.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn, after `plot`.
    loss_ax_ : axes of the mean loss, at the right

    Examples
    --------
    >>> from latem import LatEm, TrainingCurveDisplay, make_latent_world
    >>> world = make_latent_world(random_state=0)
    >>> model = LatEm(world.embeddings["att"], n_maps=2, n_epochs=3, random_state=0)
    >>> display = TrainingCurveDisplay.from_estimator(model.fit(*world.training()))
    >>> len(display.history["mean_loss"])
    3
    """

    def __init__(self, history: Mapping[str, Any], best_epoch: int | None = None):
        self.history, self.best_epoch = history, best_epoch

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Display of a fitted model that was learned in epochs, or of a search over one."""
        if not has_training_curve(model):
            raise TypeError(
                f"{type(model).__name__} was not learned in epochs and has no training curve; "
                f"LatEm, SJE, ALE, DeViSE and WSABIE have one."
            )
        model = by_maps(model, "TrainingCurveDisplay")
        return cls(model.history_, getattr(model, "best_epoch_", None))

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw shares in percent, and the mean loss on an axis at the right.

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
        self.loss_ax_ = self.ax_.twinx()
        lines = []
        for i, (key, name) in enumerate(_SHARES.items()):
            if self.history.get(key):
                values = 100 * np.asarray(self.history[key], float)
                style = {
                    "color": colours.series[2 * i],
                    "marker": "os"[i],
                    "markersize": 4,
                } | kwargs
                lines += self.ax_.plot(np.arange(1, len(values) + 1), values, label=name, **style)
        loss = np.asarray(self.history["mean_loss"], float)
        style = {"color": colours.series[1], "linestyle": "--"} | kwargs
        lines += self.loss_ax_.plot(
            np.arange(1, len(loss) + 1), loss, label="mean loss (right)", **style
        )
        if self.best_epoch is not None and self.best_epoch < len(loss):
            lines.append(
                self.ax_.axvline(
                    self.best_epoch, linestyle=":", color=colours.muted, label="epoch that was kept"
                )
            )
        self.ax_.set(xlabel="epoch", ylabel="images (%)")
        self.ax_.set_ylim(bottom=0)
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        self.loss_ax_.set_ylabel("mean loss")
        self.loss_ax_.set_ylim(bottom=0)
        self.loss_ax_.spines["right"].set_visible(True)
        self.loss_ax_.grid(visible=False)
        legend_above(self.ax_, lines)
        return self


def has_training_curve(model: Any) -> bool:
    """Whether a fitted model, or what a search has chosen, was learned in epochs."""
    inner = by_maps(model, "TrainingCurveDisplay")
    return bool(getattr(inner, "history_", {}).get("mean_loss"))
