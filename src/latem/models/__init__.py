"""Models: scikit-learn classifiers that can name unseen classes."""

from latem.models.base import ZeroShotClassifier
from latem.models.conse import ConSE
from latem.models.eszsl import ESZSL, ESZSLCV
from latem.models.files import load
from latem.models.latem import LatEm
from latem.models.regression import SemanticOutputCodes
from latem.models.training import EpochInfo

__all__ = [
    "ESZSL",
    "ESZSLCV",
    "ConSE",
    "EpochInfo",
    "LatEm",
    "SemanticOutputCodes",
    "ZeroShotClassifier",
    "load",
]
