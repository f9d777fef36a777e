"""What `latem serve` and `latem demo --serve` put on the shelf: models, a dataset, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from latem.core import storage
from latem.core.paths import no_file
from latem.datasets import ZeroShotDataset, hold_out, load_emoji, read_folder
from latem.inspection.pictures import pictures_folder
from latem.workflows.train import train_model

DEMO_SPLIT = "standard"
_DEMO_MODELS = {"emoji by keywords": "att", "emoji by sentences": "text"}


@dataclass(frozen=True)
class Served:
    """What is to be served.

    Attributes
    ----------
    models : dict of name to path of a model file
        The first is asked unless another is named.
    dataset : ZeroShotDataset or None
    pictures : path or None
        Folder of its pictures.
    """

    models: dict[str, Path]
    dataset: ZeroShotDataset | None = None
    pictures: Path | None = field(default=None)


def to_serve(paths: Sequence[str | PathLike[str]], pictures: Path | None = None) -> Served:
    """Model files, and at most one dataset folder, in any order.

    Parameters
    ----------
    paths : sequence of paths
    pictures : path, optional
        Folder of the dataset's pictures.
    """
    for path in map(Path, paths):
        if not path.exists():
            raise no_file(path, "model file or dataset folder")
    folders = [path for path in map(Path, paths) if path.is_dir()]
    files = [path for path in map(Path, paths) if not path.is_dir()]
    if not files:
        raise ValueError("Give a model file to serve, as latem train writes them.")
    if len(folders) > 1:
        raise ValueError(f"Give one dataset folder, not {len(folders)}.")
    models: dict[str, Path] = {}
    for path in files:
        if path.stem in models:
            raise ValueError(
                f"{models[path.stem]} and {path} would both be called {path.stem!r}; rename one."
            )
        models[path.stem] = path
    if not folders:
        if pictures is not None:
            raise ValueError("--pictures are those of a dataset: give its folder as well.")
        return Served(models)
    dataset = read_folder(folders[0])
    return Served(models, dataset, pictures_folder(folders[0], dataset, pictures))


def demo_to_serve(out: str | PathLike[str], *, seed: int = 0, verbose: bool = False) -> Served:
    """The bundled emoji, and models that know them by keywords and by sentences.

    Some drawings of seen things are held out, so that seen and unseen ones can be compared. Models
    are kept in the folder, and not trained again.

    Parameters
    ----------
    out : path of a folder that exists
    seed : int
    verbose : bool
        Whether to show progress.
    """
    emoji = load_emoji()
    split = hold_out(emoji, emoji.split(DEMO_SPLIT), share=0.2, seed=0)
    emoji = replace(emoji, splits={DEMO_SPLIT: split})
    models: dict[str, Path] = {}
    for name, embedding in _DEMO_MODELS.items():
        path = Path(out) / f"explorer_{embedding}_{seed}.safetensors"
        if not _is_model(path):
            model: Any = train_model(
                emoji, embedding, split=DEMO_SPLIT, seed=seed, verbose=verbose
            ).model
            model.save(path)
        models[name] = path
    return Served(models, emoji)


def _is_model(path: Path) -> bool:
    try:
        storage.read_file(path, "model")
    except (OSError, storage.FileFormatError):
        return False
    return True
