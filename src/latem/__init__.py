"""latem: name classes you have no pictures of.

Learns which images fit which class descriptions, so that it can name classes it has never seen
an image of. Implements *Latent Embeddings for Zero-shot Classification* (Xian et al., CVPR 2016).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from latem.calibration import (
        CalibrationReport,
        RejectionReport,
        expected_calibration_error,
        fit_temperature,
        risk_coverage_curve,
        threshold_for,
    )
    from latem.datasets import (
        Split,
        ZeroShotDataset,
        hold_out,
        load_emoji,
        make_latent_world,
        random_class_splits,
        read_folder,
        write_folder,
    )
    from latem.embeddings import (
        ClassEmbeddings,
        as_class_embeddings,
        hierarchy_embeddings,
        read_attributes,
        text_embeddings,
        train_word_vectors,
        word_embeddings,
    )
    from latem.embeddings.describe import Description
    from latem.evaluation import Evaluation, evaluate
    from latem.explain import Explanation, explain_predictions
    from latem.fusion import LateFusion
    from latem.galleries import map_overlap, map_profiles, top_images
    from latem.generalized import (
        GeneralizedScores,
        ausuc,
        best_gamma,
        calibrated_stacking,
        generalized_accuracy,
        harmonic_mean,
        seen_unseen_curve,
    )
    from latem.metrics import (
        confusion_matrix,
        mean_class_accuracy,
        per_class_accuracy,
        top_k_accuracy,
    )
    from latem.models.attributes import DAP, IAP
    from latem.models.base import ZeroShotClassifier
    from latem.models.bilinear import ALE, SJE, DeViSE
    from latem.models.cca import CCA
    from latem.models.cmt import CMT
    from latem.models.conse import ConSE
    from latem.models.eszsl import ESZSL, ESZSLCV
    from latem.models.files import load
    from latem.models.latem import LatEm
    from latem.models.probabilities import UncalibratedWarning
    from latem.models.regression import SemanticOutputCodes
    from latem.models.training import EpochInfo
    from latem.models.wsabie import WSABIE
    from latem.selection import HeldOutSearch, LatEmCV
    from latem.storage import FileFormatError

__version__ = "0.1.0"

# Imported when first used, so that `import latem` is quick.
_HOMES = {
    "latem.calibration": (
        "CalibrationReport",
        "RejectionReport",
        "expected_calibration_error",
        "fit_temperature",
        "risk_coverage_curve",
        "threshold_for",
    ),
    "latem.datasets": (
        "Split",
        "ZeroShotDataset",
        "hold_out",
        "load_emoji",
        "make_latent_world",
        "random_class_splits",
        "read_folder",
        "write_folder",
    ),
    "latem.embeddings": (
        "ClassEmbeddings",
        "as_class_embeddings",
        "hierarchy_embeddings",
        "read_attributes",
        "text_embeddings",
        "train_word_vectors",
        "word_embeddings",
    ),
    "latem.embeddings.describe": ("Description",),
    "latem.evaluation": ("Evaluation", "evaluate"),
    "latem.explain": ("Explanation", "explain_predictions"),
    "latem.fusion": ("LateFusion",),
    "latem.galleries": ("map_overlap", "map_profiles", "top_images"),
    "latem.generalized": (
        "GeneralizedScores",
        "ausuc",
        "best_gamma",
        "calibrated_stacking",
        "generalized_accuracy",
        "harmonic_mean",
        "seen_unseen_curve",
    ),
    "latem.metrics": (
        "confusion_matrix",
        "mean_class_accuracy",
        "per_class_accuracy",
        "top_k_accuracy",
    ),
    "latem.models.attributes": ("DAP", "IAP"),
    "latem.models.base": ("ZeroShotClassifier",),
    "latem.models.bilinear": ("ALE", "SJE", "DeViSE"),
    "latem.models.cca": ("CCA",),
    "latem.models.cmt": ("CMT",),
    "latem.models.conse": ("ConSE",),
    "latem.models.eszsl": ("ESZSL", "ESZSLCV"),
    "latem.models.files": ("load",),
    "latem.models.latem": ("LatEm",),
    "latem.models.probabilities": ("UncalibratedWarning",),
    "latem.models.regression": ("SemanticOutputCodes",),
    "latem.models.training": ("EpochInfo",),
    "latem.models.wsabie": ("WSABIE",),
    "latem.selection": ("HeldOutSearch", "LatEmCV"),
    "latem.storage": ("FileFormatError",),
}
_ROOMS = (
    "datasets",
    "embeddings",
    "features",
    "fusion",
    "metrics",
    "models",
    "selection",
    "storage",
)
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ALE",
    "CCA",
    "CMT",
    "DAP",
    "ESZSL",
    "ESZSLCV",
    "IAP",
    "SJE",
    "WSABIE",
    "CalibrationReport",
    "ClassEmbeddings",
    "ConSE",
    "DeViSE",
    "Description",
    "EpochInfo",
    "Evaluation",
    "Explanation",
    "FileFormatError",
    "GeneralizedScores",
    "HeldOutSearch",
    "LatEm",
    "LatEmCV",
    "LateFusion",
    "RejectionReport",
    "SemanticOutputCodes",
    "Split",
    "UncalibratedWarning",
    "ZeroShotClassifier",
    "ZeroShotDataset",
    "__version__",
    "as_class_embeddings",
    "ausuc",
    "best_gamma",
    "calibrated_stacking",
    "confusion_matrix",
    "evaluate",
    "expected_calibration_error",
    "explain_predictions",
    "fit_temperature",
    "generalized_accuracy",
    "harmonic_mean",
    "hierarchy_embeddings",
    "hold_out",
    "load",
    "load_emoji",
    "make_latent_world",
    "map_overlap",
    "map_profiles",
    "mean_class_accuracy",
    "per_class_accuracy",
    "random_class_splits",
    "read_attributes",
    "read_folder",
    "risk_coverage_curve",
    "seen_unseen_curve",
    "text_embeddings",
    "threshold_for",
    "top_images",
    "top_k_accuracy",
    "train_word_vectors",
    "word_embeddings",
    "write_folder",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"latem.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'latem' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
