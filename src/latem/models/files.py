"""`load`: any model from its file."""

from __future__ import annotations

from os import PathLike

from latem import storage
from latem.models.base import ZeroShotClassifier
from latem.models.latem import LatEm

MODELS: dict[str, type[ZeroShotClassifier]] = {model.__name__: model for model in (LatEm,)}


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
    name = meta.get("model")
    if not isinstance(name, str) or name not in MODELS:
        raise storage.FileFormatError(
            f"{path} holds a model called {name!r}; this latem knows {', '.join(MODELS)}."
        )
    try:
        return MODELS[name]._from_file(tensors, meta)
    except KeyError as error:
        raise storage.FileFormatError(f"{path} is damaged: it lacks {error}.") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise storage.FileFormatError(f"{path} is damaged: {error}.") from None
