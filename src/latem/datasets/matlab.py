"""Datasets from MATLAB files.

Two layouts are known: the pair `res101.mat` and `att_splits.mat` of "Zero-Shot Learning: The Good,
the Bad and the Ugly", and the `data_*.mat` files of the LatEm authors' release. MATLAB counts from
1 and stores columns first. What does not fit together is refused by file and variable, because
labels that are off by one give no other sign. The files themselves are read by `mat_files`.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from latem.core.text_files import read_utf8
from latem.datasets.dataset import Split, ZeroShotDataset
from latem.datasets.mat_files import MatFile
from latem.embeddings.table import ClassEmbeddings


def from_gbu(
    features: str | PathLike[str],
    splits: str | PathLike[str],
    *,
    standard: str | PathLike[str] | None = None,
    name: str = "",
) -> ZeroShotDataset:
    """Dataset from the pair of files of "The Good, the Bad and the Ugly".

    Parameters
    ----------
    features : path of `res101.mat`
    splits : path of `att_splits.mat`
        Gives the class table "att" (the original attributes) and the split "proposed", with
        the held-out images of seen classes. Its val classes are those of `valclasses1.txt`
        beside it, or of `val_loc` if they are disjoint from those of `train_loc`; otherwise
        all seen classes are train classes.
    standard : path of a folder, optional
        With `testclasses.txt` (and, if there, `valclasses1.txt` or `valclasses.txt`): gives the
        split "standard" over the same images.
    name : str

    Returns
    -------
    ZeroShotDataset
    """
    images, tables = MatFile(features), MatFile(splits)
    classes = tables.get("allclasses_names")
    if not isinstance(classes, list) or len(set(classes)) != len(classes):
        raise ValueError(f"{tables.path}: allclasses_names must be a cell array of unique names.")
    matrix = images.matrix("features")
    n = images.matrix("labels").size
    if matrix.shape[1] != n:
        turned = "; it looks transposed: store images as columns" if matrix.shape[0] == n else ""
        raise ValueError(
            f"{images.path}: features have {matrix.shape[1]} columns, but there are {n} "
            f"labels{turned}."
        )
    labels = images.numbers("labels", len(classes), f"classes in {tables.path.name}")
    attribute = "original_att" if "original_att" in tables else "att"
    vectors = tables.matrix(attribute)
    if vectors.shape[1] != len(classes):
        turned = vectors.shape[0] == len(classes)
        hint = "; it looks transposed: store classes as columns" if turned else ""
        raise ValueError(
            f"{tables.path}: {attribute} has {vectors.shape[1]} columns, but there are "
            f"{len(classes)} classes{hint}."
        )
    names = np.array(classes)
    rows = {
        part: tables.numbers(f"{part}_loc", n, f"images in {images.path.name}")
        for part in ("trainval", "test_seen", "test_unseen", "train", "val")
        if f"{part}_loc" in tables or part in ("trainval", "test_seen", "test_unseen")
    }
    of = {part: set(names[labels[r]].tolist()) for part, r in rows.items()}
    both = sorted(of["trainval"] & of["test_unseen"])
    if both:
        raise ValueError(
            f"{tables.path}: {both[:3]} are both seen and unseen; its locations do not fit "
            f"the labels in {images.path}."
        )
    parts = np.concatenate([rows[part] for part in ("trainval", "test_seen", "test_unseen")])
    if len(parts) != n or len(np.unique(parts)) != n:
        raise ValueError(
            f"{tables.path}: trainval_loc, test_seen_loc and test_unseen_loc must name each of the "
            f"{n} images once, but name {len(parts)}, {len(np.unique(parts))} different ones."
        )
    strange = sorted(of["test_seen"] - of["trainval"])
    if strange:
        raise ValueError(
            f"{tables.path}: test_seen_loc has images of {strange[:3]}, which are not seen classes."
        )
    val = _listed(tables.path.parent, classes, "valclasses1.txt")
    if val is None and "val" in of and not of["val"] & of.get("train", set()):
        val = of["val"]
    val = (val or set()) & of["trainval"]
    found = {
        "proposed": Split(
            train=tuple(sorted(of["trainval"] - val)),
            val=tuple(sorted(val)),
            test=tuple(sorted(of["test_unseen"])),
            held_out=tuple(sorted(rows["test_seen"].tolist())),
        )
    }
    if standard is not None:
        found["standard"] = _standard_split(Path(standard), classes)
    files = images.variables.get("image_files")
    return ZeroShotDataset(
        features=np.ascontiguousarray(matrix.T, dtype=np.float32),
        labels=names[labels],
        embeddings={"att": ClassEmbeddings(names, vectors.T, name="att")},
        splits=found,
        images=_short_names(files, n),
        name=name or images.path.parent.name,
        info={"source": f"{images.path.name}, {tables.path.name}"},
    )


def from_release(path: str | PathLike[str], *, name: str = "") -> ZeroShotDataset:
    """Dataset from a `data_*.mat` file of the LatEm authors' release.

    It holds, for `trainval`, `test` and perhaps `train` and `val`: `*_X` (a row per image),
    `*_labels` (column numbers of the class vectors, from 1) and `*_Y` (class vectors as columns,
    a struct with one field per embedding, or one matrix). Classes have no names in such a
    file; they are called "seen 001", … and "unseen 001", …

    Parameters
    ----------
    path : path
    name : str

    Returns
    -------
    ZeroShotDataset
    """
    file = MatFile(path)
    seen, unseen = _release_part(file, "trainval"), _release_part(file, "test")
    if seen[0].shape[1] != unseen[0].shape[1]:
        raise ValueError(
            f"{file.path}: trainval_X and test_X differ in width, {seen[0].shape[1]} and "
            f"{unseen[0].shape[1]}; both need a row per image."
        )
    if set(seen[2]) != set(unseen[2]):
        raise ValueError(f"{file.path}: trainval_Y and test_Y hold different embeddings.")
    for key, vectors in seen[2].items():
        if vectors.shape[1] != unseen[2][key].shape[1]:
            raise ValueError(
                f"{file.path}: the class vectors {key!r} have {vectors.shape[1]} numbers in "
                f"trainval_Y and {unseen[2][key].shape[1]} in test_Y; both need a column per class."
            )
    names = {
        part: np.array([f"{part} {i:03d}" for i in range(1, content[3] + 1)])
        for part, content in (("seen", seen), ("unseen", unseen))
    }
    tables = {
        key: ClassEmbeddings(
            np.concatenate([names["seen"], names["unseen"]]),
            np.concatenate([seen[2][key], unseen[2][key]]),
            name=key,
        )
        for key in seen[2]
    }
    val = _release_val(file, seen[2], names["seen"]) if "val_Y" in file else set()
    split = Split(
        train=tuple(c for c in names["seen"].tolist() if c not in val),
        val=tuple(sorted(val)),
        test=tuple(names["unseen"].tolist()),
    )
    return ZeroShotDataset(
        features=np.concatenate([seen[0], unseen[0]]).astype(np.float32),
        labels=np.concatenate([names["seen"][seen[1]], names["unseen"][unseen[1]]]),
        embeddings=tables,
        splits={"standard": split},
        name=name or file.path.stem,
        info={"source": file.path.name},
    )


def _release_part(
    file: MatFile, part: str
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray], int]:
    """Features, labels from 0, class vectors by embedding (a row per class), number of classes."""
    X = file.matrix(f"{part}_X")
    tables = _release_tables(file, part)
    n_classes = {len(table) for table in tables.values()}
    if len(n_classes) != 1:
        raise ValueError(f"{file.path}: the embeddings of {part}_Y differ in number of classes.")
    labels = file.numbers(f"{part}_labels", n_classes.copy().pop(), f"columns of {part}_Y")
    if len(X) != len(labels):
        turned = "; it looks transposed: a row per image is needed"
        raise ValueError(
            f"{file.path}: {part}_X has {len(X)} rows, but there are {len(labels)} "
            f"{part}_labels{turned if X.shape[1] == len(labels) else ''}."
        )
    return X, labels, tables, n_classes.pop()


def _release_tables(file: MatFile, part: str) -> dict[str, np.ndarray]:
    value = file.get(f"{part}_Y")
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        return {"att": file.matrix(f"{part}_Y").T}
    if not isinstance(value, Mapping):
        raise ValueError(
            f"{file.path}: {part}_Y is a MATLAB object (a containers.Map), which only MATLAB can "
            f"open. There, turn it into a struct and save the file again: "
            f"{part}_Y = cell2struct(values({part}_Y), keys({part}_Y), 2);"
        )
    return {key: np.asarray(matrix, dtype=float).T for key, matrix in value.items()}


def _release_val(file: MatFile, seen: dict[str, np.ndarray], names: np.ndarray) -> set[str]:
    """Seen classes whose vectors are columns of val_Y, compared in the first embedding."""
    key = next(iter(seen))
    val = _release_tables(file, "val")
    if key not in val or val[key].shape[1:] != seen[key].shape[1:]:
        raise ValueError(f"{file.path}: val_Y does not hold the same embeddings as trainval_Y.")
    found = set()
    for number, row in enumerate(val[key], start=1):
        distances = np.abs(seen[key] - row).max(axis=1)
        if distances.min() > 1e-5 * max(np.abs(row).max(), 1e-30):
            raise ValueError(
                f"{file.path}: column {number} of val_Y is not a column of trainval_Y."
            )
        found.add(names[distances.argmin()].item())
    return found


def _listed(folder: Path, classes: list[str], *names: str) -> set[str] | None:
    """Classes listed in the first of some text files that exists."""
    for name in names:
        path = folder / name
        if path.is_file():
            listed = [line.strip() for line in read_utf8(path).split("\n") if line.strip()]
            odd = sorted(set(listed) - set(classes))
            if odd:
                raise ValueError(f"{path} lists {odd[:3]}, which are not among the classes.")
            return set(listed)
    return None


def _standard_split(folder: Path, classes: list[str]) -> Split:
    test = _listed(folder, classes, "testclasses.txt")
    if test is None:
        raise FileNotFoundError(f"{folder} holds no testclasses.txt to make the split from.")
    val = _listed(folder, classes, "valclasses1.txt", "valclasses.txt") or set()
    seen = set(classes) - test
    return Split(
        train=tuple(sorted(seen - val)), val=tuple(sorted(seen & val)), test=tuple(sorted(test))
    )


def _short_names(files: Any, n: int) -> np.ndarray | None:
    """Folder and file name of each image, if the file tells them."""
    if not isinstance(files, list) or len(files) != n:
        return None
    return np.array(["/".join(str(f).replace("\\", "/").split("/")[-2:]) for f in files])
