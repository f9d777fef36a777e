"""`evaluate`: how good a model is on a dataset, on unseen classes and on seen ones beside them."""

from latem.evaluation.measure import evaluate, obstacles
from latem.evaluation.result import Evaluation, GeneralizedEvaluation, ProbabilityEvaluation
from latem.evaluation.scored import Scored

__all__ = [
    "Evaluation",
    "GeneralizedEvaluation",
    "ProbabilityEvaluation",
    "Scored",
    "evaluate",
    "obstacles",
]
