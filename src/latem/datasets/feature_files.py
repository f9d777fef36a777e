"""Features in files, chunk by chunk: `.npy`, dataset folders and Parquet.

Files are read in order and nothing is mapped, so memory holds a chunk at a time however many rows
there are; a Parquet file is decoded a few thousand rows at a time. Rows are known by the image
names of a dataset folder, by a column of Parquet files, or by their numbers.
"""

from __future__ import annotations

import glob
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from latem.core.blocks import feature_columns, features_of, is_list
from latem.core.messages import first_few
from latem.core.parquet_files import check_groups
from latem.core.paths import stamp_of
from latem.datasets.folder import image_names, why_unread

_BATCH = 4096  # rows of a Parquet file that are decoded together
_PARQUET = (".parquet", ".pq")

Source = str | PathLike[str]


class FeatureRows(ABC):
    """Rows of features in files.

    Attributes
    ----------
    place : str
        What the files are called in messages.
    files : list of Path
        Everything that is read.
    n_rows, width : int
    """

    place: str
    files: list[Path]
    n_rows: int
    width: int

    @abstractmethod
    def chunks(self, start: int, size: int) -> Iterator[np.ndarray]:
        """Features from a row on, of shape (size, width); the last chunk may be shorter."""

    def names(self, size: int) -> Iterator[list[str]]:
        """What all rows are known by, in lists of `size`; by default their numbers, from 0."""
        for first in range(0, self.n_rows, size):
            yield [str(i) for i in range(first, min(first + size, self.n_rows))]

    def _note_files(self) -> None:
        """Note what the files are like before their rows are read."""
        self._stamps = [stamp_of(path) for path in self.files]

    def check_unchanged(self) -> None:
        """Refuse files that are no longer what they were when they were opened."""
        for path, before in zip(self.files, self._stamps, strict=True):
            if stamp_of(path) != before:
                raise OSError(
                    f"{path} has changed while it was read; do it again when it is written."
                )

    def check_width(self, expected: int) -> None:
        """Refuse features that a model was not fitted to."""
        if self.width != expected:
            raise ValueError(
                f"{self.place} has {self.width} features in a row, but the model was fitted to "
                f"{expected}; give features of the network that it was trained with."
            )


class NpyRows(FeatureRows):
    """Rows of a `.npy` file of numbers, rows × features."""

    def __init__(self, path: Path):
        array = _opened(path)
        self.place, self.files = str(path), [path]
        self.n_rows, self.width = array.shape
        self._dtype, self._offset = array.dtype, array.offset
        self._by_row = bool(array.flags.c_contiguous)
        if not self.n_rows:
            raise ValueError(f"{path} holds no rows.")
        self._note_files()

    def chunks(self, start: int, size: int) -> Iterator[np.ndarray]:
        """Features from a row on, of shape (size, width); the last chunk may be shorter."""
        path = self.files[0]
        if not self._by_row:  # columns lie together: they are picked from the file
            for first in range(start, self.n_rows, size):
                yield np.array(_opened(path)[first : first + size], order="C")
            return
        with open(path, "rb") as file:
            file.seek(self._offset + start * self.width * self._dtype.itemsize)
            for first in range(start, self.n_rows, size):
                chunk = np.empty((min(size, self.n_rows - first), self.width), self._dtype)
                if file.readinto(chunk.data.cast("B")) != chunk.nbytes:
                    raise OSError(f"{path} has become shorter while it was read.")
                yield chunk


class FolderRows(NpyRows):
    """Rows of a dataset folder; they are known by the names in `images.csv`, if there are any."""

    def __init__(self, folder: Path):
        super().__init__(folder / "features.npy")
        self._images = folder / "images.csv"
        self.place = str(folder)
        self._listed = self._images.is_file()
        if not self._listed:
            return
        self.files.append(self._images)
        self._note_files()
        n_lines = sum(1 for _ in image_names(self._images))
        if n_lines != self.n_rows:
            raise ValueError(
                f"{folder}: features.npy has {self.n_rows} rows but images.csv has {n_lines} lines "
                f"after its header; they must match one to one."
            )

    def names(self, size: int) -> Iterator[list[str]]:
        """The images' names, and numbers of rows where a name is empty."""
        if not self._listed:
            yield from super().names(size)
            return
        names = (name or str(i) for i, name in enumerate(image_names(self._images)))
        while part := list(islice(names, size)):
            yield part


class ParquetRows(FeatureRows):
    """Rows of Parquet files, one after the other.

    Features are the one column of lists of numbers, or else all columns but the one that rows are
    known by.

    Parameters
    ----------
    files : list of Path
    id_column : str, optional
        What rows are known by.
    wanted : sequence of str, optional
        Columns that a model was fitted to, if it knows their names.
    """

    def __init__(
        self, files: list[Path], id_column: str | None = None, wanted: Sequence[str] | None = None
    ):
        self.files, self._id = files, id_column
        self.place = str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
        kinds = []
        self.n_rows = 0
        for path in files:
            with _parquet_file(path) as file:
                schema = _schema(path, file)
                columns, width = self._columns_of(path, schema, wanted)
                types = [str(schema.field(name).type) for name in columns]
                kinds.append((path, columns, types, width))
                self.n_rows += file.metadata.num_rows
        if not self.n_rows:
            raise ValueError(f"{self.place} holds no rows.")
        _, self._columns, kind, _ = kinds[0]
        width = next((width for *_, width in kinds if width is not None), None)
        if width is None:
            raise ValueError(f"{self.place} is damaged: rows that it counts are not there.")
        self.width = width
        for path, columns, types, width in kinds:
            if (columns, types) != (self._columns, kind) or width not in (None, self.width):
                raise ValueError(f"{path} has other columns of features than {files[0]}.")
        if not self.width:
            raise ValueError(f"{self.place} has lists without numbers as features.")
        self._note_files()

    def _columns_of(
        self, path: Path, schema: Any, wanted: Sequence[str] | None
    ) -> tuple[list[str], int | None]:
        """Columns of features, and how many numbers are in a row, if the file tells."""
        if self._id is not None and self._id not in schema.names:
            raise ValueError(
                f"{path} has no column {self._id!r}; it has {first_few(schema.names)}."
            )
        try:
            columns, named = feature_columns(schema, self._id)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        if named is not None and wanted is not None:
            if missing := [name for name in wanted if name not in named]:
                raise ValueError(
                    f"{path} lacks the columns {first_few(missing)}, which the model was fitted to."
                )
            columns = list(wanted)
        if not columns:
            raise ValueError(f"{path} has no columns of features.")
        if odd := [name for name in columns if not _is_numeric(schema.field(name).type)]:
            raise ValueError(
                f"{path}: the columns {first_few(odd)} are no numbers; leave them out of the file, "
                f"or name the one that rows are known by (--id, in Python id_column=)."
            )
        if named is not None:
            return columns, len(columns)
        return columns, self._list_length(path, columns)

    def _list_length(self, path: Path, columns: list[str]) -> int | None:
        """How long the first list is; None in a file without rows."""
        with _parquet_file(path) as file:
            for batch in _decoded(path, file, 1, columns=columns):
                if batch.num_rows:
                    return _checked(path, batch, columns).shape[1]
        return None

    def _batches(self, columns: list[str], start: int = 0) -> Iterator[tuple[Path, Any]]:
        """Batches of all files from a row on; earlier groups of rows are not read."""
        for path in self.files:
            with _parquet_file(path) as file:
                groups: list[int] = []
                for i in range(file.num_row_groups):
                    length = file.metadata.row_group(i).num_rows
                    if groups or start < length:
                        groups.append(i)
                    else:
                        start -= length
                if not groups:
                    continue
                for batch in _decoded(path, file, _BATCH, row_groups=groups, columns=columns):
                    if start < batch.num_rows:
                        yield path, batch.slice(start)
                    start = max(start - batch.num_rows, 0)

    def chunks(self, start: int, size: int) -> Iterator[np.ndarray]:
        """Features from a row on, of shape (size, width); the last chunk may be shorter."""
        chunk, filled, left = None, 0, self.n_rows - start  # left: rows that are in no chunk yet
        for path, batch in self._batches(self._columns, start):
            rows = _checked(path, batch, self._columns)
            if rows.shape[1] != self.width:
                raise ValueError(
                    f"{path} has {rows.shape[1]} features in a row, but {self.width} before."
                )
            if len(rows) > left:
                raise OSError(f"{path} has become longer while it was read.")
            while len(rows):
                if chunk is None:
                    chunk, filled = np.empty((min(size, left), self.width), rows.dtype), 0
                taken = rows[: len(chunk) - filled]
                chunk[filled : filled + len(taken)] = taken
                filled, left, rows = filled + len(taken), left - len(taken), rows[len(taken) :]
                if filled == len(chunk):
                    yield chunk
                    chunk = None
        if left > 0:
            raise OSError(f"{self.place} has become shorter while it was read.")

    def names(self, size: int) -> Iterator[list[str]]:
        """The column that rows are known by, and numbers of rows where it has no value."""
        if self._id is None:
            yield from super().names(size)
            return
        values = chain.from_iterable(
            self._identifiers(path, batch, self._id) for path, batch in self._batches([self._id])
        )
        found = (str(i if value is None else value) for i, value in enumerate(values))
        while part := list(islice(found, size)):
            yield part

    @staticmethod
    def _identifiers(path: Path, batch: Any, column: str) -> list[Any]:
        try:
            return batch.column(column).to_pylist()
        except Exception as error:  # bytes that are no text, days that no calendar has
            raise ValueError(
                f"{path}: the column {column!r} has values that cannot be read: {error}."
            ) from None


def are_features(sources: Sequence[Source]) -> bool:
    """Whether some paths are files of features rather than pictures.

    Features are `.npy` and `.parquet` files, folders with a `features.npy` in them (dataset
    folders), and folders of Parquet files.

    Raises
    ------
    ValueError
        If only some are.
    """
    found = [_looks_like_features(source) for source in sources]
    if any(found) and not all(found):
        one, other = sources[found.index(True)], sources[found.index(False)]
        raise ValueError(
            f"{one} has features and {other} is none of them; name pictures and features one after "
            f"the other."
        )
    return any(found)


def _looks_like_features(source: Source) -> bool:
    path = Path(source)
    if path.is_dir():
        return (path / "features.npy").exists() or bool(_parquet_in(path))
    return path.suffix.lower() in (".npy", *_PARQUET)


def _parquet_in(folder: Path) -> list[Path]:
    try:
        return sorted(
            path
            for path in folder.iterdir()
            if path.suffix.lower() in _PARQUET and not path.name.startswith(".")
        )
    except OSError:
        return []


def open_features(
    sources: Source | Sequence[Source],
    *,
    id_column: str | None = None,
    wanted: Sequence[str] | None = None,
) -> FeatureRows:
    """Rows of features, to be read chunk by chunk.

    Parameters
    ----------
    sources : path or sequence of paths
        One `.npy` file, one dataset folder, or Parquet files: one or several, a folder of them, a
        pattern such as ``"parts/*.parquet"``.
    id_column : str, optional
        Column of Parquet files that rows are known by.
    wanted : sequence of str, optional
        Columns of Parquet files that a model was fitted to, if it knows their names.

    Returns
    -------
    FeatureRows
    """
    paths = [Path(one) for one in ([sources] if isinstance(sources, str | PathLike) else sources)]
    if not paths:
        raise ValueError("No features are given.")
    files: list[Path] = []
    for path in paths:
        if path.suffix.lower() == ".npy" or (path.is_dir() and (path / "features.npy").exists()):
            if len(paths) > 1:
                raise ValueError(
                    f"{path} is one of {len(paths)} sources of features; give one .npy file or "
                    f"dataset folder, or any number of Parquet files."
                )
            if id_column is not None:
                raise ValueError(f"{path} has no columns, so none can be the one of identifiers.")
            return FolderRows(path) if path.is_dir() else NpyRows(path)
        if path.is_dir():
            inside = _parquet_in(path)
        elif not path.exists() and glob.has_magic(str(path)):
            inside = [Path(name) for name in sorted(glob.glob(str(path)))]
        else:
            inside = [path]
        if not inside:
            raise ValueError(f"{path} holds no Parquet files, and no features.npy.")
        files += inside
    return ParquetRows(files, id_column, wanted)


def _opened(path: Path) -> np.memmap:
    """Map of a `.npy` file; its pages are read only where they are looked at."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file of features {str(path)!r}.") from None
    except Exception as error:  # NumPy raises many kinds for files that are cut or not its own
        raise ValueError(f"{path} is not a readable .npy array: {why_unread(error)}.") from None
    if not isinstance(array, np.memmap):
        array.close()
        raise ValueError(f"{path} is an archive of arrays, not one .npy array.")
    if array.ndim != 2 or array.dtype.kind not in "fiu" or not array.shape[1]:
        raise ValueError(
            f"{path} must hold numbers, rows × features, not {array.dtype} of shape {array.shape}."
        )
    return array


def _parquet_file(path: Path) -> Any:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install 'latem[parquet]'.") from None
    try:
        file = ParquetFile(path, pre_buffer=False)
        check_groups(file.metadata)
        return file
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file of features {str(path)!r}.") from None
    except Exception as error:  # pyarrow's errors are of many kinds
        raise _unreadable(path, error) from None


def _schema(path: Path, file: Any) -> Any:
    """Columns of a Parquet file, which have a name each."""
    try:
        schema = file.schema_arrow
    except Exception as error:  # pyarrow's own, of types that are damaged
        raise _unreadable(path, error) from None
    if twice := sorted(name for name, n in Counter(schema.names).items() if n > 1):
        raise ValueError(f"{path} has several columns of the name {first_few(twice)}.")
    return schema


def _decoded(path: Path, file: Any, size: int, **chosen: Any) -> Iterator[Any]:
    """Batches of a Parquet file."""
    batches = file.iter_batches(size, **chosen)
    while True:
        try:
            batch = next(batches, None)
        except Exception as error:  # pyarrow's own, of pages that are damaged
            raise _unreadable(path, error) from None
        if batch is None:
            return
        yield batch


def _unreadable(path: Path, error: Exception) -> Exception:
    if isinstance(error, OSError) and error.errno is not None:
        return OSError(f"{path} cannot be read: {error.strerror}.")
    return ValueError(f"{path} is damaged, or no Parquet file.")


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if is_list(kind) else kind
    return bool(types.is_floating(kind) or types.is_integer(kind))


def _checked(path: Path, batch: Any, columns: list[str]) -> np.ndarray:
    try:
        rows = features_of(batch, columns)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return rows if rows.dtype.kind == "f" else rows.astype(np.float64)
