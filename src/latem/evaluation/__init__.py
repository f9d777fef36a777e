"""`evaluate`: how good a model is on a dataset, on unseen classes and on seen ones beside them."""

from latem.evaluation.measure import evaluate
from latem.evaluation.result import Evaluation, GeneralizedEvaluation, ProbabilityEvaluation

__all__ = ["Evaluation", "GeneralizedEvaluation", "ProbabilityEvaluation", "evaluate"]
