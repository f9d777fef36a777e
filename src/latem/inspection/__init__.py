"""Why an image was given its name, and what a map has learned."""

from latem.inspection.explain import Explanation, explain_predictions
from latem.inspection.galleries import (
    MapProfile,
    TopImage,
    map_overlap,
    map_profiles,
    top_images,
)

__all__ = [
    "Explanation",
    "MapProfile",
    "TopImage",
    "explain_predictions",
    "map_overlap",
    "map_profiles",
    "top_images",
]
