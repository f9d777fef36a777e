"""Images that several closed forms learn from: what they have in common is computed once."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from latem.models.axes import PrincipalAxes
from latem.models.normal_equations import ImageSums
from latem.models.scaling import FeatureScaler


class SharedImages:
    """Training images with their sums and principal axes, each made when first asked for.

    Parameters
    ----------
    X : ndarray of shape (n_images, n_features)
    codes : ndarray of shape (n_images,)
        Class numbers.
    n_classes : int
    scaler : FeatureScaler
    """

    def __init__(self, X: np.ndarray, codes: np.ndarray, n_classes: int, scaler: FeatureScaler):
        self.X, self.codes, self.n_classes, self.scaler = X, codes, n_classes, scaler

    @cached_property
    def sums(self) -> ImageSums:
        """Σ x xᵀ, and images added up by class."""
        return ImageSums(self.X, self.codes, self.n_classes, self.scaler)

    @cached_property
    def principal(self) -> PrincipalAxes:
        """Scaled features in their principal axes."""
        return PrincipalAxes(self.scaler.transform(self.X, np.float64))
