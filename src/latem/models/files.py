"""`load`: any model from its file."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import Any

import numpy as np

from latem import storage
from latem.models.base import ZeroShotClassifier

_HOMES = {
    "ALE": "latem.models.bilinear",
    "CCA": "latem.models.cca",
    "CMT": "latem.models.cmt",
    "ConSE": "latem.models.conse",
    "DAP": "latem.models.attributes",
    "DeViSE": "latem.models.bilinear",
    "ESZSL": "latem.models.eszsl",
    "ESZSLCV": "latem.models.eszsl",
    "HeldOutSearch": "latem.selection",
    "IAP": "latem.models.attributes",
    "LatEm": "latem.models.latem",
    "LatEmCV": "latem.selection",
    "LateFusion": "latem.fusion",
    "SJE": "latem.models.bilinear",
    "SemanticOutputCodes": "latem.models.regression",
    "WSABIE": "latem.models.wsabie",
}


def load(path: str | PathLike[str]) -> ZeroShotClassifier:
    """Model that was written with `save`.

    Reading a file runs no code from it.

    Parameters
    ----------
    path : path

    Returns
    -------
    the fitted model

    Examples
    --------
    >>> import tempfile, latem
    >>> world = latem.make_latent_world(random_state=0)
    >>> X, y = world.training("standard")
    >>> model = latem.LatEm(world.embeddings["att"], n_epochs=2, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.safetensors")
    ...     again = latem.load(f"{folder}/model.safetensors")
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    tensors, meta = storage.read_file(path, "model")
    try:
        return unpack(tensors, meta)
    except KeyError as error:
        raise storage.FileFormatError(f"{path} is damaged: it lacks {error}.") from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise storage.FileFormatError(f"{path} is damaged: {error}.") from None


def unpack(tensors: dict[str, np.ndarray], meta: dict[str, Any]) -> ZeroShotClassifier:
    """Model from the content of a file; only models of latem are known by name."""
    name = meta.get("model")
    if not isinstance(name, str) or name not in _HOMES:
        raise ValueError(
            f"it holds a model called {name!r}, and this latem knows {', '.join(_HOMES)}"
        )
    return getattr(import_module(_HOMES[name]), name)._unpack(tensors, meta)
