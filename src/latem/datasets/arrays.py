"""Datasets from plain arrays and tables: NPZ, CSV and Parquet files, folders of pictures.

These hold images and labels; class descriptions come from class tables given beside them, and the
split from a list of unseen classes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latem.core.memory import TooLargeError, check_unpacked
from latem.core.messages import first_few
from latem.core.paths import no_file, no_folder
from latem.core.slim import needed
from latem.datasets.dataset import Split, ZeroShotDataset
from latem.datasets.folder import read_features, why_unread
from latem.datasets.picture_files import find_pictures
from latem.embeddings.table import as_class_embeddings
from latem.embeddings.table_files import as_number, parquet_frame

if TYPE_CHECKING:
    import pandas as pd

Tables = Mapping[str, Any]
_NPZ = ("features", "labels", "classes", "images")  # arrays that are read; others may be there


def from_npz(
    path: str | PathLike[str], tables: Tables, *, unseen: Sequence[str] = (), name: str = ""
) -> ZeroShotDataset:
    """Dataset from an NPZ file with arrays `features` (images × features) and `labels`.

    Parameters
    ----------
    path : path
        Optional further array: `images`, the images' names. `labels` are class names, or
        numbers of an array `classes` of names, counted from 0.
    tables : mapping of str to class table
        Class descriptions by name, each a table, DataFrame or path.
    unseen : sequence of class names
        Test classes of the split "standard"; those without images need not be named.
    name : str

    Returns
    -------
    ZeroShotDataset
    """
    path = Path(path)
    try:
        with open(path, "rb") as stream:
            loaded = np.load(stream, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                raise TypeError("it is one array, not an archive as numpy.savez writes it")
            with loaded as file:
                known, wanted = file.files, [key for key in _NPZ if key in file.files]
                promised = {info.filename: info.file_size for info in file.zip.infolist()}
                check_unpacked(
                    path,
                    sum(promised.get(f"{key}.npy", 0) for key in wanted),
                    "save it with numpy.savez, which does not compress",
                )
                arrays = {key: file[key] for key in wanted}
    except (FileNotFoundError, IsADirectoryError):
        raise no_file(path, "NPZ file") from None
    except TooLargeError:
        raise
    except Exception as error:  # zip and NumPy raise many kinds for truncated files
        raise ValueError(f"{path} is not a readable NPZ file: {why_unread(error)}.") from None
    for key in ("features", "labels"):
        if key not in arrays:
            raise ValueError(f"{path} has no array {key!r}; it has {', '.join(sorted(known))}.")
    for key, array in arrays.items():
        if not isinstance(array, np.ndarray):  # NumPy gives the bytes of what is no array
            raise ValueError(f"{path}: {key!r} is not an array.")
        if array.dtype.kind == "U" and not _is_text(array):
            raise ValueError(
                f"{path}: {key!r} holds numbers that are no characters; it is damaged."
            )
    labels = arrays["labels"]
    if labels.dtype.kind in "iu":
        labels = _numbered(path, labels.ravel(), arrays.get("classes"))
    return _assemble(path, arrays["features"], labels, arrays.get("images"), tables, unseen, name)


def _is_text(array: np.ndarray) -> bool:
    """Whether all code points of an array of texts exist: NumPy takes any from a file."""
    points = np.frombuffer(array.tobytes(), np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    return not points.size or bool(points.max() <= sys.maxunicode)


def from_table(
    path: str | PathLike[str], tables: Tables, *, unseen: Sequence[str] = (), name: str = ""
) -> ZeroShotDataset:
    """Dataset from a CSV, TSV or Parquet file with one line per image.

    Columns: `class`, optionally `image`, and one per feature, all numbers. Other parameters are
    those of `from_npz`.
    """
    path = Path(path)
    if not path.is_file():
        raise no_file(path, "table of images")
    if path.suffix.lower() in (".parquet", ".pq"):
        frame = parquet_frame(path)
    else:
        pd = needed("pandas", "Tables of features")
        separator = "\t" if path.suffix.lower() == ".tsv" else ","
        text: Any = {"class": str, "image": str}
        try:
            frame = pd.read_csv(
                path, sep=separator, dtype=text, keep_default_na=False, compression=None
            )
            if not isinstance(frame.index, pd.RangeIndex):
                raise ValueError("it has lines with more cells than its header")
        except UnicodeDecodeError:
            raise ValueError(f"{path} is not UTF-8 text; save it as 'CSV UTF-8'.") from None
        except Exception as error:  # pandas raises many kinds for truncated or mislabelled files
            reason = str(error).rstrip(".")
            raise ValueError(f"{path} is not a readable table: {reason}.") from None
    if "class" not in frame:
        raise ValueError(f"{path} needs a column 'class'; it has {list(frame.columns[:5])}.")
    unnamed = [c for c in frame if not str(c).strip() or str(c).startswith("Unnamed:")]
    if unnamed:
        raise ValueError(
            f"{path} has a column without a name, perhaps an index; name it or leave it out "
            f"(pandas: to_csv(index=False))."
        )
    unknown = frame["class"].isna() | (frame["class"] == "")
    if unknown.any():
        line = int(np.flatnonzero(unknown)[0])
        raise ValueError(f"{path}: image {line} has no class; write one, or leave the line out.")
    features = frame.drop(columns=[c for c in ("class", "image") if c in frame])
    if not len(frame):
        raise ValueError(f"{path} holds no images: it needs one line per image after its header.")
    features = features.apply(lambda column: _numbers(path, column))
    images = frame["image"].fillna("").astype(str).to_numpy(str) if "image" in frame else None
    labels = frame["class"].astype(str).to_numpy(str)
    return _assemble(path, features.to_numpy(), labels, images, tables, unseen, name)


def _numbers(path: Path, column: pd.Series) -> pd.Series:
    """A column of numbers; such as are too large for whole numbers become floating-point ones."""
    pd = needed("pandas", "Tables of features")
    if pd.api.types.is_numeric_dtype(column):
        return column
    cells = [as_number(cell) for cell in column]
    if None in cells:
        line = cells.index(None)
        raise ValueError(
            f"{path}: column {column.name!r} must hold numbers, but image {line} has "
            f"{column.iloc[line]!r}."
        )
    return pd.Series(cells, index=column.index, dtype=np.float64)


def list_pictures(folder: str | PathLike[str]) -> tuple[np.ndarray, np.ndarray]:
    """Pictures in class folders: paths relative to `folder`, and class names.

    Sorted by class, then by name, as `find_pictures` finds them. Files that are not pictures, and
    hidden ones, are left out.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise no_folder(folder, "folder of pictures")
    pictures, _ = find_pictures(folder)
    return np.array([one.image for one in pictures]), np.array([one.label for one in pictures])


def from_pictures(
    folder: str | PathLike[str],
    features: Any,
    tables: Tables,
    *,
    unseen: Sequence[str] = (),
    name: str = "",
) -> ZeroShotDataset:
    """Dataset from class folders of pictures whose features are known.

    Parameters
    ----------
    folder : path
        One folder per class, as `list_pictures` reads it.
    features : array-like of shape (n_pictures, n_features), or path of a .npy file
        One row per picture, in the order of `list_pictures`.
    tables, unseen, name
        As for `from_npz`.

    Returns
    -------
    ZeroShotDataset
    """
    images, labels = list_pictures(folder)
    if isinstance(features, str | PathLike):
        if not Path(features).is_file():
            raise no_file(features, "file of features")
        features = read_features(Path(features))
    return _assemble(Path(folder), np.asarray(features), labels, images, tables, unseen, name)


def _numbered(path: Path, labels: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    if classes is None or classes.ndim != 1:
        raise ValueError(f"{path}: labels are numbers; add an array 'classes' of their names.")
    if len(labels) and (labels.min() < 0 or labels.max() >= len(classes)):
        hint = " They seem to count from 1: subtract 1." if labels.max() == len(classes) else ""
        raise ValueError(
            f"{path}: labels go from {labels.min()} to {labels.max()}, but 'classes' has "
            f"{len(classes)} names, numbered from 0.{hint}"
        )
    return classes[labels]


def _assemble(
    path: Path,
    features: np.ndarray,
    labels: np.ndarray,
    images: np.ndarray | None,
    tables: Tables,
    unseen: Sequence[str],
    name: str,
) -> ZeroShotDataset:
    labels = np.asarray(labels).astype(str).ravel()
    if features.ndim != 2 or features.dtype.kind not in "fiu":
        raise ValueError(f"{path}: features must be numbers, images × features.")
    if not features.size:
        raise ValueError(f"{path}: features of shape {features.shape} hold no images or numbers.")
    if len(features) != len(labels):
        turned = "; they look transposed" if features.shape[1] == len(labels) else ""
        raise ValueError(
            f"{path}: {len(features)} rows of features but {len(labels)} labels{turned}."
        )
    embeddings = {key: as_class_embeddings(table) for key, table in tables.items()}
    pictured = sorted(set(labels.tolist()))
    for key, table in embeddings.items():
        missing = [c for c in pictured if c not in table]
        if missing:
            raise ValueError(
                f"Class table {key!r} has no rows for {first_few(missing)}, which have images; add "
                f"rows, or leave out these images."
            )
    odd = sorted(set(unseen) - set(pictured))
    if odd:
        raise ValueError(
            f"{first_few(odd)}: named as unseen, but without images to test on; correct the names "
            f"or take them off the list."
        )
    splits = {}
    if unseen:
        seen = tuple(c for c in pictured if c not in set(unseen))
        splits["standard"] = Split(seen, (), tuple(sorted(unseen)))
    dtype = features.dtype if features.dtype.kind == "f" else np.float32
    return ZeroShotDataset(
        features=np.ascontiguousarray(features, dtype=dtype),
        labels=labels,
        embeddings=embeddings,
        splits=splits,
        images=None if images is None else np.asarray(images).astype(str),
        name=name or path.stem,
        info={"source": path.name},
    )
