"""Why an image was given its name, what a model has learned, and how far it can be trusted."""

from latem.inspection.class_displays import ConfusionDisplay, TrainingCurveDisplay
from latem.inspection.displays import (
    ReliabilityDisplay,
    RiskCoverageDisplay,
    SeenUnseenDisplay,
)
from latem.inspection.explain import Explanation, explain_predictions
from latem.inspection.maps import (
    MapProfile,
    TopImage,
    map_overlap,
    map_profiles,
    top_images,
)
from latem.inspection.traits import trait_agreement, trait_scores

__all__ = [
    "ConfusionDisplay",
    "Explanation",
    "MapProfile",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "SeenUnseenDisplay",
    "TopImage",
    "TrainingCurveDisplay",
    "explain_predictions",
    "map_overlap",
    "map_profiles",
    "top_images",
    "trait_agreement",
    "trait_scores",
]
