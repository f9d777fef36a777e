"""What models have in common that learn from sums over the images: they take images in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from latem.core.blocks import Blocks, as_blocks
from latem.models.base import forget_learned
from latem.models.block_images import BlockImages, ReadBlocks, divides, read_blocks
from latem.models.scaling import FeatureScaler
from latem.models.shared_images import SharedImages
from latem.models.table_model import TableClassifier


class FromSums(TableClassifier):
    """Base of models that learn from sums; `fit` begins with `_begin_images`.

    Attributes
    ----------
    takes_blocks : bool
        Whether `fit` takes images that come in blocks.
    """

    takes_blocks = True

    def _begin_images(self, X: Any, y: Any) -> SharedImages:
        """Validated images; sets all that a fit knows before it learns."""
        blocks = self.blocks_of(X, y)
        if blocks is not None:
            forget_learned(self)
            return self._prepare_blocks(blocks, X)
        X, codes = self._begin_anew(X, y)
        return SharedImages(X, codes, len(self.classes_), self.scaler_)

    def blocks_of(self, X: Any, y: Any) -> Blocks | ReadBlocks | None:
        """Images that come in blocks; None if they are an array, or the model needs one."""
        if not self.takes_blocks:
            return None
        return X if isinstance(X, ReadBlocks) else as_blocks(X, y)

    def _prepare_blocks(
        self, blocks: Blocks | ReadBlocks, given: Any, *, sample: bool = False
    ) -> BlockImages:
        """What `_begin_anew` does, of images that come in blocks: passes over them once.

        Parameters
        ----------
        blocks : Blocks or ReadBlocks
            The latter if they have been passed over.
        given
            The images as they were given to `fit`.
        sample : bool
            Whether some of them are needed in memory.
        """
        if isinstance(blocks, ReadBlocks):
            if blocks.unit == divides(self.feature_scaling):
                return self._know(blocks, given)
            blocks = blocks.blocks
        hashed = self.records_training
        read = read_blocks(blocks, self.feature_scaling, sample=sample, hashed=hashed)
        return self._know(read, given)

    def _know(self, read: ReadBlocks, given: Any) -> BlockImages:
        """Set what a model knows before it learns."""
        sums = read.sums
        self._note_columns(read.blocks.feature_names, len(sums.mean))
        self.note_encoder(given, len(sums.mean))
        self.class_view_ = self.check_classes(sums.classes)
        self.classes_ = self.class_view_.seen
        self.dtype_ = self.dtype
        std = np.sqrt(np.maximum(np.diag(sums.scatter), 0) / sums.n)
        self.scaler_ = FeatureScaler.of_columns(
            self.feature_scaling, sums.mean, std, sums.low, sums.high, sums.dtype
        )
        if sums.hashes is not None and self.records_training:
            self.training_rows_ = sums.hashes
        codes = np.empty(0, np.intp) if sums.sample is None else self.class_codes(sums.sample.y)
        return BlockImages(read, codes, self.scaler_)

    def _note_columns(self, names: list[str] | None, width: int) -> None:
        self.n_features_in_ = width
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
