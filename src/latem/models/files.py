"""`load`: any model from its file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

import numpy as np

from latem.core import storage
from latem.models import model_rows
from latem.models.base import ZeroShotClassifier


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
    with told_as_damage(path):
        return unpack(tensors, meta)


@contextmanager
def told_as_damage(path: str | PathLike[str]) -> Iterator[None]:
    """Tell what does not fit together in a file's content as damage of that file."""
    try:
        yield
    except UnknownModelError as error:
        raise UnknownModelError(f"{path} {error}") from None
    except KeyError as error:
        raise storage.FileFormatError(f"{path} is damaged: it lacks {error}.") from None
    except (TypeError, ValueError, AttributeError, OverflowError, IndexError) as error:
        raise storage.FileFormatError(f"{path} is damaged: {str(error).rstrip('.')}.") from None
    except (MemoryError, RecursionError):
        raise storage.FileFormatError(f"{path} is damaged: it promises more than fits.") from None


class UnknownModelError(storage.FileFormatError):
    """A file holds a model that is not registered here."""


def unpack(tensors: dict[str, np.ndarray], meta: dict[str, Any]) -> ZeroShotClassifier:
    """Model from the content of a file; only registered models are known by name."""
    return find_row(meta["model"]).load().unpack(tensors, meta)


def find_row(name: Any) -> model_rows.ModelRow:
    """Row of the model that a file names; one that is not registered is refused."""
    try:
        return model_rows.find(name)
    except (KeyError, TypeError):  # TypeError: not even a name
        known = ", ".join(row.name for row in model_rows.own_rows())
        raise UnknownModelError(
            f"holds a model called {name!r}, which is not registered here; import or install the "
            f"package that it comes from, or call latem.register with its class. Registered are "
            f"{known}."
        ) from None
