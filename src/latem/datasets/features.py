"""Features that know the encoder that made them: a model fitted to them can name pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class EncodedFeatures(np.ndarray):
    """Array of features with the spec of their encoder.

    Rows, columns' order and precision may be chosen from it; whatever computes new numbers from it
    gives a plain array, because those are no longer the encoder's.

    Attributes
    ----------
    encoder : mapping or None
    """

    encoder: Mapping[str, Any] | None

    def __array_finalize__(self, source: Any) -> None:
        self.encoder = getattr(source, "encoder", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [_without_encoder(value) for value in inputs]
        if options.get("out") is not None:
            options["out"] = tuple(_without_encoder(value) for value in options["out"])
        return getattr(ufunc, method)(*plain, **options)

    def __reduce__(self) -> Any:
        return (_rebuilt, (np.asarray(self), self.encoder))


def with_encoder(features: np.ndarray, encoder: Mapping[str, Any] | None) -> np.ndarray:
    """The same numbers together with their encoder; unchanged if there is none."""
    if encoder is None:
        return features
    view = np.asarray(features).view(EncodedFeatures)
    view.encoder = dict(encoder)
    return view


def _rebuilt(features: np.ndarray, encoder: Mapping[str, Any] | None) -> np.ndarray:
    return with_encoder(features, encoder)


def _without_encoder(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, EncodedFeatures) else value
