"""latem: name classes you have no pictures of.

Learns which images fit which class descriptions, so that it can name classes it has never seen
an image of. Implements *Latent Embeddings for Zero-shot Classification* (Xian et al., CVPR 2016).
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from latem.core.version import __version__
from latem.models.model_rows import ModelRow, own_rows, register
from latem.models.registry import MODELS

logging.getLogger("latem").addHandler(logging.NullHandler())  # heard only by those who listen

if TYPE_CHECKING:
    from latem.core.storage import FileFormatError
    from latem.datasets import (
        Split,
        ZeroShotDataset,
        hold_out,
        load_emoji,
        make_latent_world,
        random_class_splits,
        read_folder,
        redraw_seen,
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
    from latem.export import OnnxExport, export_onnx
    from latem.inspection import (
        ConfusionDisplay,
        Explanation,
        ReliabilityDisplay,
        RiskCoverageDisplay,
        SeenUnseenDisplay,
        TrainingCurveDisplay,
        explain_predictions,
        map_overlap,
        map_profiles,
        top_images,
        trait_scores,
    )
    from latem.metrics import (
        CalibrationReport,
        GeneralizedScores,
        RejectionReport,
        ausuc,
        best_gamma,
        calibrated_stacking,
        confusion_matrix,
        expected_calibration_error,
        fit_temperature,
        generalized_accuracy,
        harmonic_mean,
        mean_class_accuracy,
        per_class_accuracy,
        risk_coverage_curve,
        seen_unseen_curve,
        threshold_for,
        top_k_accuracy,
    )
    from latem.models.attributes import DAP, IAP
    from latem.models.base import ZeroShotClassifier
    from latem.models.bilinear import ALE, SJE, DeViSE
    from latem.models.cca import CCA
    from latem.models.cmt import CMT
    from latem.models.committee import Committee
    from latem.models.conse import ConSE
    from latem.models.eszsl import ESZSL, ESZSLCV
    from latem.models.exem import EXEM
    from latem.models.files import load
    from latem.models.fusion import LateFusion
    from latem.models.gfzsl import GFZSL
    from latem.models.grid_edges import GridEdgeWarning
    from latem.models.info import ModelInfo, read_info
    from latem.models.latem import LatEm
    from latem.models.measured import Measured
    from latem.models.probabilities import UncalibratedWarning
    from latem.models.regression import SemanticOutputCodes
    from latem.models.sae import SAE
    from latem.models.sgd.loop import EpochInfo
    from latem.models.sync import SynC
    from latem.models.table_model import TableClassifier
    from latem.models.wsabie import WSABIE
    from latem.selection import CommitteeCV, HeldOutSearch, LatEmCV
    from latem.selection.calibration import AnswerReport, calibrate_answers
    from latem.workflows.find import find_images, index_images
    from latem.workflows.train import train

for _row in MODELS:
    register(_row)
register(ModelRow("HeldOutSearch", "latem.selection.held_out_search", on_command_line=False))
register(ModelRow("CommitteeCV", "latem.selection.committee_cv", on_command_line=False))
register(ModelRow("LatEmCV", "latem.selection.latem_cv", on_command_line=False))

# Imported when first used, so that `import latem` is quick. Models: see latem.models.registry.
_HOMES = {
    "latem.core.storage": ("FileFormatError",),
    "latem.datasets": (
        "Split",
        "ZeroShotDataset",
        "hold_out",
        "load_emoji",
        "make_latent_world",
        "random_class_splits",
        "read_folder",
        "redraw_seen",
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
    "latem.export": ("OnnxExport", "export_onnx"),
    "latem.inspection": (
        "ConfusionDisplay",
        "Explanation",
        "ReliabilityDisplay",
        "RiskCoverageDisplay",
        "SeenUnseenDisplay",
        "TrainingCurveDisplay",
        "explain_predictions",
        "map_overlap",
        "map_profiles",
        "top_images",
        "trait_scores",
    ),
    "latem.metrics": (
        "CalibrationReport",
        "GeneralizedScores",
        "RejectionReport",
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
        "risk_coverage_curve",
        "seen_unseen_curve",
        "threshold_for",
        "top_k_accuracy",
    ),
    "latem.models.base": ("ZeroShotClassifier",),
    "latem.models.files": ("load",),
    "latem.models.grid_edges": ("GridEdgeWarning",),
    "latem.models.info": ("ModelInfo", "read_info"),
    "latem.models.measured": ("Measured",),
    "latem.models.probabilities": ("UncalibratedWarning",),
    "latem.models.sgd.loop": ("EpochInfo",),
    "latem.models.table_model": ("TableClassifier",),
    "latem.selection.calibration": ("AnswerReport", "calibrate_answers"),
    "latem.workflows.find": ("find_images", "index_images"),
    "latem.workflows.train": ("train",),
}
_ROOMS = (
    "datasets",
    "embeddings",
    "evaluation",
    "export",
    "features",
    "inspection",
    "metrics",
    "models",
    "selection",
    "workflows",
)
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODELS = {row.name: row for row in own_rows()}

__all__ = [
    "ALE",
    "CCA",
    "CMT",
    "DAP",
    "ESZSL",
    "ESZSLCV",
    "EXEM",
    "GFZSL",
    "IAP",
    "SAE",
    "SJE",
    "WSABIE",
    "AnswerReport",
    "CalibrationReport",
    "ClassEmbeddings",
    "Committee",
    "CommitteeCV",
    "ConSE",
    "ConfusionDisplay",
    "DeViSE",
    "Description",
    "EpochInfo",
    "Evaluation",
    "Explanation",
    "FileFormatError",
    "GeneralizedScores",
    "GridEdgeWarning",
    "HeldOutSearch",
    "LatEm",
    "LatEmCV",
    "LateFusion",
    "Measured",
    "ModelInfo",
    "ModelRow",
    "OnnxExport",
    "RejectionReport",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "SeenUnseenDisplay",
    "SemanticOutputCodes",
    "Split",
    "SynC",
    "TableClassifier",
    "TrainingCurveDisplay",
    "UncalibratedWarning",
    "ZeroShotClassifier",
    "ZeroShotDataset",
    "__version__",
    "as_class_embeddings",
    "ausuc",
    "best_gamma",
    "calibrate_answers",
    "calibrated_stacking",
    "confusion_matrix",
    "evaluate",
    "expected_calibration_error",
    "explain_predictions",
    "export_onnx",
    "find_images",
    "fit_temperature",
    "generalized_accuracy",
    "harmonic_mean",
    "hierarchy_embeddings",
    "hold_out",
    "index_images",
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
    "read_info",
    "redraw_seen",
    "register",
    "risk_coverage_curve",
    "seen_unseen_curve",
    "text_embeddings",
    "threshold_for",
    "top_images",
    "top_k_accuracy",
    "train",
    "train_word_vectors",
    "trait_scores",
    "word_embeddings",
    "write_folder",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"latem.{name}")
    if name in _MODELS:
        value = _MODELS[name].load()
    elif name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module 'latem' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
