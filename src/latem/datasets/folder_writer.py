"""Writing dataset folders: whole or not at all, and only such as can be read again."""

from __future__ import annotations

import csv
import json
import logging
import textwrap
from os import PathLike
from pathlib import Path

import numpy as np

from latem.core.atomic import atomic_folder, write_array, write_text, writing
from latem.datasets.check import inspect_folder
from latem.datasets.dataset import Split, ZeroShotDataset, check_is_dataset
from latem.embeddings.table_files import encoding_path

_log = logging.getLogger(__name__)


def write_folder(dataset: ZeroShotDataset, path: str | PathLike[str]) -> Path:
    """Write a dataset as a dataset folder.

    The folder is made under another name and renamed when it is complete, so that nothing
    half-written is ever at `path`, which must not exist yet.

    Parameters
    ----------
    dataset : ZeroShotDataset
        With str class names; features are written as they are (float16, float32 or float64).
    path : path of the new folder

    Returns
    -------
    Path
    """
    folder = Path(path)
    check_is_dataset(dataset, "write_folder")
    if dataset.labels.dtype.kind not in "UO" or dataset.features.dtype.kind != "f":
        raise TypeError("A dataset folder holds floating-point features and str class names.")
    with atomic_folder(folder) as made:
        _write_parts(dataset, made, dataset.name or folder.name)
        problems = inspect_folder(made).problems
        if problems:
            told = " ".join(problems).replace(str(made), str(folder))
            raise ValueError(f"This dataset would not be sound: {told}")
    _log.info("wrote the dataset folder %s", folder)
    return folder


def write_split(
    folder: str | PathLike[str], name: str, split: Split, *, replace: bool = False
) -> Path:
    """Save a split with a dataset folder, as `splits/NAME.toml`, atomically.

    Parameters
    ----------
    folder : path of the dataset folder
    name : str
        Name of the split.
    split : Split
    replace : bool
        Whether to write over a split of that name; otherwise it is refused.

    Returns
    -------
    Path
        The file.
    """
    check_name(name)
    target = Path(folder) / "splits" / f"{name}.toml"
    if target.exists() and not replace:
        raise FileExistsError(
            f"The dataset already has a split {name!r}; give another name, or replace it "
            f"(replace=True; --replace on the command line)."
        )
    with writing(target):
        target.parent.mkdir(exist_ok=True)
    lines = []
    for part in ("train", "val", "test"):
        names = "".join(f"  {_toml_value(str(c))},\n" for c in getattr(split, part))
        lines.append(f"{part} = [\n{names}]\n")
    if split.held_out:
        rows = textwrap.fill(", ".join(map(str, split.held_out)), 96)
        lines.append(f"held_out = [\n{textwrap.indent(rows, '  ')}\n]\n")
    write_text(target, "".join(lines))
    return target


def _write_parts(dataset: ZeroShotDataset, folder: Path, name: str) -> None:
    info = {**dataset.info, "name": name}
    plain = {key: value for key, value in info.items() if isinstance(value, str | int | float)}
    text = "".join(f"{json.dumps(k)} = {_toml_value(v)}\n" for k, v in plain.items())
    write_text(folder / "dataset.toml", text)
    write_array(folder / "features.npy", np.asarray(dataset.features))
    images = dataset.images if dataset.images is not None else [""] * len(dataset.labels)
    with open(folder / "images.csv", "w", encoding="utf-8", newline="") as lines:
        rows = csv.writer(lines, lineterminator="\n")
        rows.writerow(("image", "class"))
        rows.writerows(zip(images, dataset.labels, strict=True))
    (folder / "embeddings").mkdir()
    for name, table in dataset.embeddings.items():
        check_name(name)
        table.to_frame().to_csv(folder / "embeddings" / f"{name}.csv", lineterminator="\n")
        if table.encoding is not None:
            text = json.dumps(table.encoding.to_dict(), indent=1, ensure_ascii=False)
            write_text(encoding_path(folder / "embeddings" / f"{name}.csv"), text + "\n")
    (folder / "splits").mkdir()
    for name, split in dataset.splits.items():
        write_split(folder, name, split)


def check_name(name: str) -> None:
    """Refuse a name of a class table or split that cannot be a file's name."""
    if not name or name.startswith(".") or "/" in name or "\\" in name:
        raise ValueError(
            f"{name!r} cannot be the name of a class table or split, because a file gets "
            f"that name; use a name without slashes that does not begin with a dot."
        )


def _toml_value(value: str | int | float) -> str:
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    # TOML's basic strings, integers, floats and booleans are written as in JSON, but for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
