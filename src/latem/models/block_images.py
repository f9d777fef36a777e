"""Images that are known by their sums, and by a sample of them: what models learn from blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from latem.core.blocks import Blocks
from latem.models.axes import PrincipalAxes
from latem.models.balance import ImageMoment
from latem.models.block_sums import BlockSums, SumUp, checked_block
from latem.models.normal_equations import ImageSums
from latem.models.scaling import FeatureScaler
from latem.models.shared_images import Projection, Scatter, SharedImages

SAMPLE_BYTES = 2**30
"""Memory for the images that ranking models and searches draw from those that come in blocks."""


@dataclass(frozen=True)
class ReadBlocks:
    """Images that come in blocks, after the one pass over them.

    Attributes
    ----------
    blocks : Blocks
    unit : bool
        Whether the sums are those of images divided by their lengths.
    sums : BlockSums
    """

    blocks: Blocks
    unit: bool
    sums: BlockSums

    def drawn(self) -> tuple[np.ndarray, np.ndarray]:
        """Images of the sample, and their labels."""
        if self.sums.sample is None:
            raise ValueError("No images were drawn when the blocks were passed over.")
        return self.sums.sample.X, self.sums.sample.y


def read_blocks(blocks: Blocks, scaling: Any, *, sample: bool, hashed: bool) -> ReadBlocks:
    """Pass over all blocks once.

    Parameters
    ----------
    blocks : Blocks
    scaling : {"zmax", "zscore", "l2", "l2-centered"} or None
        How features will be scaled.
    sample : bool
        Whether to draw images.
    hashed : bool
        Whether to remember images by their hashes.
    """
    unit = divides(scaling)
    task = SumUp(unit, SAMPLE_BYTES if sample else 0, hashed)
    return ReadBlocks(blocks, unit, blocks.total(task))


def divides(scaling: Any) -> bool:
    """Whether a scaling divides images by their lengths."""
    return scaling in ("l2", "l2-centered")


class BlockImages(SharedImages):
    """Sums and principal axes of images that are nowhere in memory.

    Parameters
    ----------
    read : ReadBlocks
    codes : ndarray of shape (n_drawn,)
        Class numbers of the sample; empty if there is none.
    scaler : FeatureScaler

    Attributes
    ----------
    X, codes
        The sample.
    """

    def __init__(self, read: ReadBlocks, codes: np.ndarray, scaler: FeatureScaler):
        sums = read.sums
        X = np.empty((0, len(sums.mean))) if sums.sample is None else sums.sample.X
        super().__init__(X, codes, len(sums.classes), scaler)
        self._read = read

    @property
    def counts(self) -> np.ndarray:
        """Number of images of each class."""
        return self._read.sums.counts

    @cached_property
    def scatter(self) -> Scatter:
        """Mean, products about it and sums by class about it, of the scaled images."""
        sums, scaler = self._read.sums, self.scaler
        if scaler.kind is None or scaler.kind == "l2":
            return Scatter(sums.n, sums.mean, sums.scatter, sums.by_class)
        scale = scaler.scale
        mean = (sums.mean - scaler.shift) * scale
        return Scatter(sums.n, mean, sums.scatter * np.outer(scale, scale), sums.by_class * scale)

    @cached_property
    def sums(self) -> ImageSums:
        """Σ x xᵀ, and images added up by class."""
        n, mean, total, by_class = self.scatter
        moment = ImageMoment(total + n * np.outer(mean, mean), n)
        return ImageSums(moment, by_class + np.outer(self.counts, mean))

    @cached_property
    def principal(self) -> PrincipalAxes:
        """Principal axes of the scaled features, without the images in them."""
        return PrincipalAxes.of_scatter(self.scatter.total, self.scatter.mean, self.scatter.n)

    def along(self, kept: slice) -> tuple[np.ndarray, Projection]:
        """Some of the principal axes, as columns, and the classes along them."""
        axes = self.principal.Q[:, kept]
        return axes, _SummedProjection(self, axes)

    def total(self, task: Any) -> Any:
        """The sum of a task over all blocks, in a further pass."""
        return self._read.blocks.total(task)


class _SummedProjection(Projection):
    def __init__(self, images: BlockImages, axes: np.ndarray):
        self._images, self._axes = images, axes
        self.means = images.scatter.by_class @ axes / images.counts[:, None]

    def deviations(self) -> np.ndarray:
        images = self._images
        codes = {label: i for i, label in enumerate(images._read.sums.classes.tolist())}
        task = _Squares(images.scaler, images.scatter.mean, self._axes, self.means, codes)
        squares = images.total(task)
        return np.sqrt(squares / images.counts[:, None]).mean(axis=0)

    def within(self) -> np.ndarray:
        n, _, total, by_class = self._images.scatter
        between = (by_class.T / self._images.counts) @ by_class
        return self._axes.T @ (total - between) @ self._axes / n


@dataclass(frozen=True)
class _Squares:
    """A task for `Blocks.total`: squared distances from class means along axes, by class."""

    scaler: FeatureScaler
    mean: np.ndarray
    axes: np.ndarray
    means: np.ndarray
    codes: dict[Any, int]

    def __call__(self, X: np.ndarray, y: np.ndarray, place: tuple[int, ...]) -> np.ndarray:
        X, y = checked_block(X, y, place)
        codes = np.array([self.codes[label] for label in y.tolist()])
        total = np.zeros_like(self.means)
        for first in range(0, len(X), 1024):
            rows = slice(first, first + 1024)
            along = (self.scaler.transform(X[rows], np.float64) - self.mean) @ self.axes
            np.add.at(total, codes[rows], np.square(along - self.means[codes[rows]]))
        return total
