"""Balance between classes: scores of the same size for every class.

Under bilinear maps the scores of a class over the training images have the mean square yᵀ M y, with
M = Wᵀ E[x xᵀ] W, the mean over maps. Where that is large, a class is named often, whatever the
image. A model with `balance_classes` divides each class vector by its root, in answers only. M is
part of its `ClassView`, so that classes described later are treated the same way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from latem.core.storage import FileFormatError

IN_FILES = "class_metric"  # what model files call the balance
ROUNDING = 1e-5  # of scores, relative to the largest they could be; maps are in single precision


class ImageMoment(NamedTuple):
    """Σ x xᵀ over some scaled images, and how many they are."""

    total: np.ndarray
    n_images: int

    def __add__(self, other: Any) -> ImageMoment:
        return ImageMoment(self.total + other.total, self.n_images + other.n_images)


def score_moment(maps: np.ndarray, images: ImageMoment) -> np.ndarray:
    """M, of shape (n_dimensions, n_dimensions), for maps (n_maps, n_features, n_dimensions)."""
    exact = maps.astype(np.float64)
    return sum(one.T @ images.total @ one for one in exact) / (images.n_images * len(exact))


def spreads(vectors: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """Root mean square of the scores of each class, or 1 where it is nothing but rounding.

    Parameters
    ----------
    vectors : ndarray of shape (n_classes, n_dimensions)
    moment : ndarray of shape (n_dimensions, n_dimensions)
        M.
    """
    squares = np.einsum("ij,ij->i", vectors @ moment, vectors)
    lengths = np.einsum("ij,ij->i", vectors, vectors)
    nothing = squares <= ROUNDING**2 * lengths * np.trace(moment)
    return np.sqrt(np.where(nothing, 1.0, squares))


class BalanceMixin:
    """Files of models with the parameter `balance_classes`, which is decided when they are fitted.

    It comes before the model's base class and adds to what that does.
    """

    balance_classes: bool
    class_view_: Any

    def _stored_params(self) -> dict[str, Any]:
        balanced = self.class_view_.balance is not None
        return {**super()._stored_params(), "balance_classes": balanced}  # type: ignore[misc]

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors, record = super()._state()  # type: ignore[misc]
        if self.class_view_.balance is not None:
            tensors[IN_FILES] = self.class_view_.balance
        return tensors, record

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        super()._restore(tensors, record)  # type: ignore[misc]
        if not self.balance_classes:
            return
        moment, width = tensors[IN_FILES], self.class_view_.width
        if moment.shape != (width, width) or not np.isfinite(moment).all():
            raise FileFormatError(
                f"{IN_FILES} of shape {moment.shape}, not a finite {(width, width)}"
            )
        self.class_view_ = self.class_view_.balanced(moment.astype(np.float64))
