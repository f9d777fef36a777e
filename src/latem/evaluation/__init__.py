"""`evaluate`: what a model is worth on a dataset, and seen against unseen classes."""

from latem.evaluation.measure import evaluate
from latem.evaluation.result import Evaluation, GeneralizedEvaluation, ProbabilityEvaluation

__all__ = ["Evaluation", "GeneralizedEvaluation", "ProbabilityEvaluation", "evaluate"]
