"""What every model can say besides a name: how sure it is, and "none of these".

A model knows two numbers for it, both chosen on images it was not fitted to: the temperature of
its probabilities, and the smallest probability that counts as an answer. A fresh fit has neither.
"""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from latem.core import storage
from latem.core.messages import first_few
from latem.metrics.calibration import (
    CalibrationReport,
    RejectionReport,
    check_threshold,
    check_wanted,
    class_codes,
    fit_temperature,
    probabilities_of,
    risk_coverage_curve,
    threshold_for,
)
from latem.models.acceptance import AcceptanceMixin
from latem.models.lazy import on_blocks

_NUMBERS = ("temperature", "rejection_threshold", "seen_penalty")


class UncalibratedWarning(UserWarning):
    """Probabilities come from a model whose temperature was never fitted."""


class ProbabilityMixin(AcceptanceMixin, metaclass=ABCMeta):
    """Probabilities and rejection, for anything that scores images and classes.

    Attributes
    ----------
    temperature_ : float
        Only after `calibrate`.
    rejection_threshold_ : float
        Only after `choose_rejection`.
    seen_penalty_ : float
        γ of calibrated stacking; only after `latem.calibrate_answers`.
    """

    classes_: np.ndarray
    temperature_: float
    rejection_threshold_: float
    seen_penalty_: float

    @abstractmethod
    def decision_function(self, X: Any, classes: Any = None) -> np.ndarray:
        """Compatibility of images and classes, of shape (n_samples, n_classes)."""

    @abstractmethod
    def candidate_names(self, classes: Any = None) -> np.ndarray:
        """Names of the candidates, in the order of the columns of scores."""

    # -- probabilities ------------------------------------------------------------------------

    @on_blocks
    def predict_proba(self, X: Any, classes: Any = None) -> np.ndarray:
        """Probabilities of the classes.

        They are softmax(scores / temperature). Before `calibrate` the temperature is 1, the
        numbers say little about how often answers are right, and an `UncalibratedWarning` says so.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes may be the answer; see `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the precision of the scores. Rows add up to one; columns are in the order of the
            classes.
        """
        scores = self.class_scores(X, classes)
        probabilities = probabilities_of(scores, getattr(self, "temperature_", 1.0))
        if not hasattr(self, "temperature_"):
            warnings.warn(
                f"{type(self).__name__} gives uncalibrated probabilities: no temperature was "
                f"fitted, so 1 is used; call calibrate with images of held-out classes.",
                UncalibratedWarning,
                stacklevel=3,  # of who called the method, which `on_blocks` wraps
            )
        return probabilities.astype(scores.dtype, copy=False)

    def calibrate(self, X: Any, y: Any, classes: Any = None) -> CalibrationReport:
        """Fit the temperature of the probabilities on held-out classes.

        A threshold chosen before belongs to other probabilities and is forgotten.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Images of classes that the model was not fitted to.
        y : array-like of shape (n_samples,)
            Their class names, at least two different ones.
        classes
            The candidates, see `decision_function`; by default the classes in `y`. The more
            there are, the less sure a model is: take about as many as it will choose among.

        Returns
        -------
        CalibrationReport
            Log-loss and calibration error on these images, before and after.
        """
        check_is_fitted(self)
        y = column_or_1d(y)
        check_consistent_length(X, y)
        owner, present = type(self).__name__, np.unique(y).tolist()
        seen = set(self.classes_.tolist())
        known = [name for name in present if name in seen]
        if known:
            raise ValueError(
                f"{owner} must be calibrated on held-out classes, but was fitted to "
                f"{first_few(known)}; it is surer of those than it will be of unseen ones."
            )
        if len(present) < 2:
            raise ValueError(
                f"{owner} needs images of at least 2 held-out classes to be calibrated, but y has "
                f"only {present}."
            )
        candidates = present if classes is None else _listed(classes)
        codes = class_codes(y, self.candidate_names(candidates))
        scores = self.class_scores(X, candidates)
        temperature = fit_temperature(scores, codes)
        self.forget_calibration()
        self.temperature_ = temperature
        return CalibrationReport.of(scores, codes, temperature)

    # -- none of these ------------------------------------------------------------------------

    def predict_or_none(
        self, X: Any, classes: Any = None, *, threshold: float | None = None
    ) -> np.ndarray:
        """Most compatible class of each image, or None where the model is not sure enough.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes may be the answer; see `decision_function`.
        threshold : float, optional
            Smallest probability that counts as an answer; by default that of `choose_rejection`.
            If there is none either, what the model accepts by its `strangeness` is named.

        Returns
        -------
        ndarray of shape (n_samples,), object
            Class names, and None for "none of these".
        """
        check_is_fitted(self)
        classes = _listed(classes)
        if threshold is None:
            threshold = getattr(self, "rejection_threshold_", None)
        if threshold is None and hasattr(self, "acceptance_"):
            scores = self.class_scores(X, classes)
            named = self.candidate_names(classes)[scores.argmax(axis=1)].astype(object)
            strange = self.strangeness_of(X, classes, scores)
            named[strange > self.acceptance_.false_accept_rate] = None
            return named
        if threshold is None:
            raise ValueError(
                f"{type(self).__name__} has no threshold below which it gives no answer; choose "
                f"one with choose_rejection, or give threshold=."
            )
        check_threshold(threshold)
        best, confidence = self._confidence(X, classes)
        named = self.candidate_names(classes)[best].astype(object)
        named[confidence < threshold] = None
        return named

    def choose_rejection(
        self,
        X: Any,
        y: Any,
        classes: Any,
        *,
        coverage: float | None = None,
        false_accept_rate: float | None = None,
    ) -> RejectionReport:
        """Choose the threshold of `predict_or_none` for a coverage or a false-accept rate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Images that the model was not fitted to.
        y : array-like of shape (n_samples,) or None
            Their class names; those of none of the candidates are outsiders. None stands for
            images of candidates with `coverage`, and for outsiders with `false_accept_rate`.
        classes
            The candidates; see `decision_function`. The threshold belongs to them: among more
            classes a model is less sure.
        coverage : float, optional
            Share of the images of candidate classes that should get an answer.
        false_accept_rate : float, optional
            Share of the outsiders that may get one, at most.

        Returns
        -------
        RejectionReport
            With the risk-coverage curve, if `y` has images of candidate classes.
        """
        check_is_fitted(self)
        check_wanted(coverage, false_accept_rate)
        classes = _listed(classes)
        names = self.candidate_names(classes)
        best, confidence = self._confidence(X, classes)
        inside: np.ndarray
        if y is None:
            inside = np.full(len(confidence), coverage is not None)
        else:
            y = column_or_1d(y)
            check_consistent_length(X, y)
            known = set(names.tolist())
            inside = np.array([name in known for name in y.tolist()], bool)
        chosen_on = inside if coverage is not None else ~inside
        if not chosen_on.any():
            what = "candidate classes" if coverage is not None else "none of the candidate classes"
            raise ValueError(
                f"{type(self).__name__} got no images of {what} to choose the threshold on."
            )
        threshold = threshold_for(
            confidence[chosen_on], coverage=coverage, false_accept_rate=false_accept_rate
        )
        self.rejection_threshold_ = threshold
        answered = confidence >= threshold
        risk = curve = None
        if y is not None and inside.any():
            right = np.equal(names[best[inside]], y[inside])
            risk = _share(~right[answered[inside]])
            curve = risk_coverage_curve(confidence[inside], right)
        return RejectionReport(
            threshold=threshold,
            n_images=int(inside.sum()),
            n_outsiders=int((~inside).sum()),
            coverage=_share(answered[inside]),
            risk=risk,
            false_accept_rate=_share(answered[~inside]),
            curve=curve,
        )

    # -- shared -------------------------------------------------------------------------------

    @on_blocks
    def class_scores(self, X: Any, classes: Any = None) -> np.ndarray:
        """Scores with a column for every candidate, also of two seen classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes may be the answer; see `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns are in the order of `candidate_names`. Of two seen classes the first has the
            score 0, and the second by how much it is ahead.
        """
        scores = self.decision_function(X, classes)
        if scores.ndim == 1:  # two seen classes: their difference
            scores = np.column_stack([np.zeros_like(scores), scores])
        return scores

    def _confidence(self, X: Any, classes: Any) -> tuple[np.ndarray, np.ndarray]:
        """Columns of the most probable candidates, and their probabilities in float64."""
        scores = self.class_scores(X, classes)
        if scores.shape[1] < 2:
            raise ValueError(
                f"{type(self).__name__} is always sure of a single candidate; to know whether it "
                f"is none of these, name at least two."
            )
        probabilities = probabilities_of(scores, getattr(self, "temperature_", 1.0))
        return scores.argmax(axis=1), probabilities.max(axis=1)

    def forget_calibration(self) -> None:
        """Forget temperature, penalty and thresholds: they belong to scores that have changed."""
        for name in (*_NUMBERS, "acceptance"):
            self.__dict__.pop(f"{name}_", None)

    # -- files --------------------------------------------------------------------------------

    def _pack_calibration(self) -> dict[str, Any]:
        """The numbers that are known, for the model file; nothing if there are none."""
        found = {
            name: float(getattr(self, f"{name}_")) for name in _NUMBERS if hasattr(self, f"{name}_")
        }
        return {"calibration": found} if found else {}

    def _unpack_calibration(self, meta: dict[str, Any]) -> None:
        """Take back what `_pack_calibration` gave; files of older versions have none of it."""
        found = dict(meta.get("calibration", {}))
        for name in _NUMBERS:
            if name not in found:
                continue
            value = found[name]
            number = isinstance(value, float) and np.isfinite(value)
            if not number or (name == "temperature" and value <= 0):
                raise storage.FileFormatError(f"a {name} of {value!r}")
            setattr(self, f"{name}_", value)


def _listed(classes: Any) -> Any:
    """Candidates that can be looked at twice: an iterator becomes a list."""
    return list(classes) if isinstance(classes, Iterator) else classes


def _share(flags: np.ndarray) -> float | None:
    return float(flags.mean()) if len(flags) else None
