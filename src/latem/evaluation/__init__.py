"""`evaluate`: how good a model is on a dataset, on unseen classes and on seen ones beside them."""

from latem.evaluation.answers import Answers
from latem.evaluation.measure import evaluate, obstacles
from latem.evaluation.result import Evaluation, GeneralizedEvaluation, ProbabilityEvaluation

__all__ = [
    "Answers",
    "Evaluation",
    "GeneralizedEvaluation",
    "ProbabilityEvaluation",
    "evaluate",
    "obstacles",
]
