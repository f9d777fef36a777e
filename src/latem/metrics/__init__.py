"""Arrays in, numbers out: accuracy, seen against unseen, probabilities and rejection."""

from latem.metrics.accuracy import (
    confusion_matrix,
    mean_class_accuracy,
    per_class_accuracy,
    top_confusions,
    top_k_accuracy,
)
from latem.metrics.calibration import (
    CalibrationReport,
    RejectionReport,
    RiskCoverage,
    expected_calibration_error,
    fit_temperature,
    risk_coverage_curve,
    threshold_for,
)
from latem.metrics.generalized import (
    GeneralizedScores,
    SeenUnseenCurve,
    ausuc,
    best_gamma,
    calibrated_stacking,
    generalized_accuracy,
    harmonic_mean,
    seen_unseen_curve,
)
from latem.metrics.reliability import ReliabilityCurve, reliability_curve

__all__ = [
    "CalibrationReport",
    "GeneralizedScores",
    "RejectionReport",
    "ReliabilityCurve",
    "RiskCoverage",
    "SeenUnseenCurve",
    "ausuc",
    "best_gamma",
    "calibrated_stacking",
    "confusion_matrix",
    "expected_calibration_error",
    "fit_temperature",
    "generalized_accuracy",
    "harmonic_mean",
    "mean_class_accuracy",
    "per_class_accuracy",
    "reliability_curve",
    "risk_coverage_curve",
    "seen_unseen_curve",
    "threshold_for",
    "top_confusions",
    "top_k_accuracy",
]
