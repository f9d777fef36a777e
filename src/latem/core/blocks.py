"""Images that come in blocks: Dask arrays and frames, Arrow datasets, iterators.

What only needs sums of the images never holds all of them: a task is run on every block, wherever
the blocks are, and its results are added up two by two. The order of the additions depends on the
number of blocks alone, so sums are the same bytes on any number of workers.

- A Dask array or DataFrame: its own scheduler runs the tasks, which is a cluster if the process is
  a client of one.
- A `pyarrow.dataset`: files are spread by joblib (`latem.core.parallel`), and each is read batch by
  batch.
- An iterator of pairs (images, labels): in this process, once.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from latem.core.parallel import run_tasks
from latem.core.threads import single_threaded_blas

_N_GROUPS = 16  # of an Arrow dataset's files, on any machine: it decides the order of additions
_BATCH_ROWS = 16384
_READ_AHEAD = 2  # batches that Arrow may read before they are asked for


class Summable(Protocol):
    """What can be added up."""

    def __add__(self, other: Any, /) -> Any: ...


Sum = TypeVar("Sum", bound=Summable)
Task = Callable[[np.ndarray, np.ndarray, tuple[int, ...]], Sum]


class Blocks(ABC):
    """Images and their labels, block by block.

    Attributes
    ----------
    feature_names : list of str or None
        Names of the columns, where the images have any.
    once : bool
        Whether the blocks can be had once only.
    """

    feature_names: list[str] | None = None
    once = False

    @abstractmethod
    def total(self, task: Task[Sum]) -> Sum:
        """The sum of `task(features, labels, place)` over all blocks.

        Parameters
        ----------
        task : callable
            A function of a module, or an object with `__call__` that can be pickled: it may run in
            other processes. The place of a block is a tuple of numbers that no other block has.
        """


def as_blocks(X: Any, y: Any = None) -> Blocks | None:
    """Images that come in blocks, or None if these are an array in memory.

    Parameters
    ----------
    X : Dask array or DataFrame, pyarrow Dataset, iterator of pairs, Blocks, or anything else
    y : labels
        Of Dask images a Dask array or Series, or an array; of an Arrow dataset the name of a
        column; None for iterators, whose blocks are pairs of images and labels.
    """
    if isinstance(X, Blocks):
        return X
    if hasattr(X, "__dask_graph__"):
        return DaskBlocks(X, y)
    arrow = sys.modules.get("pyarrow.dataset")
    if arrow is not None and isinstance(X, arrow.Dataset):
        return ArrowBlocks(X, y)
    if isinstance(X, Iterator):
        return IteratorBlocks(X, y)
    return None


class IteratorBlocks(Blocks):
    """Pairs of images and labels, as an iterator gives them; they can be had once."""

    once = True

    def __init__(self, pairs: Iterator[Any], y: Any = None):
        if y is not None:
            raise TypeError(
                "An iterator of images must give pairs of images and labels, and y must not be "
                "given beside it: pass ((X, y) for ...)."
            )
        self._pairs = pairs
        self._used = False

    def total(self, task: Task[Sum]) -> Sum:
        """The sum of `task(features, labels, place)` over all blocks."""
        if self._used:
            raise ValueError(
                "The iterator of images is used up: it was read once. Give a Dask array, a pyarrow "
                "dataset or a new iterator where images are needed a second time."
            )
        self._used = True
        with single_threaded_blas():
            return _add_up(task(*_pair(one, i), (i,)) for i, one in enumerate(self._pairs))


class DaskBlocks(Blocks):
    """Chunks of a Dask array, or partitions of a Dask DataFrame."""

    def __init__(self, X: Any, y: Any):
        if y is None:
            raise ValueError("Images in a Dask array or DataFrame need labels: give y, too.")
        if _is_frame(X):
            self.feature_names = [str(name) for name in X.columns]
            self._images, lengths = X.to_delayed(), None
        else:
            if X.ndim != 2:
                raise ValueError(f"Images must have two dimensions, not {X.ndim}: one row each.")
            X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
            self._images, lengths = X.to_delayed().ravel().tolist(), _lengths(X)
        self._labels = self._of_blocks(y, lengths)

    def _of_blocks(self, y: Any, lengths: tuple[int, ...] | None) -> list[Any]:
        """Labels of every block."""
        if not hasattr(y, "__dask_graph__"):
            if lengths is None:
                raise ValueError(
                    "How long the blocks of images are is not known, so their labels must be a "
                    "Dask array or Series of the same blocks."
                )
            y = np.asarray(y)
            _check_equal(sum(lengths), len(y))
            return np.split(y, np.cumsum(lengths)[:-1])
        if _is_frame(y):
            labels = y.to_delayed()
        else:
            known = _lengths(y)
            if lengths is not None and known is not None and lengths != known:
                _check_equal(sum(lengths), sum(known))
                y = y.rechunk((lengths,))
            labels = y.to_delayed().ravel().tolist()
        if len(labels) != len(self._images):
            raise ValueError(
                f"Images come in {len(self._images)} blocks and labels in {len(labels)}, and how "
                f"long they are is not known; partition both alike, or call compute_chunk_sizes() "
                f"on Dask arrays first."
            )
        return labels

    def total(self, task: Task[Sum]) -> Sum:
        """The sum of `task(features, labels, place)` over all blocks."""
        import dask

        run, add = dask.delayed(_run, pure=False), dask.delayed(_plus, pure=False)
        pairs = zip(self._images, self._labels, strict=True)
        parts = [run(task, X, y, i) for i, (X, y) in enumerate(pairs)]
        if not parts:
            raise _nothing()
        while len(parts) > 1:
            parts = [add(*parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)] + (
                parts[-1:] if len(parts) % 2 else []
            )
        return parts[0].compute()


def _is_frame(X: Any) -> bool:
    return hasattr(X, "partitions") and hasattr(X, "divisions")


def _lengths(array: Any) -> tuple[int, ...] | None:
    """Lengths of a Dask array's blocks; None if they are not known."""
    chunks = array.chunks[0]
    return None if np.isnan(chunks).any() else chunks


def _check_equal(n_images: int, n_labels: int) -> None:
    if n_images != n_labels:
        raise ValueError(f"{n_images} images have {n_labels} labels.")


class ArrowBlocks(Blocks):
    """Files of an Arrow dataset (Parquet, Feather, CSV), read batch by batch.

    Features are the one column of lists of numbers, or else all columns but the labels.
    """

    def __init__(self, dataset: Any, y: Any):
        names = list(dataset.schema.names)
        if not isinstance(y, str) or y not in names:
            raise ValueError(
                f"Of a pyarrow dataset, y must be the name of the column with labels, not {y!r}; "
                f"columns are {', '.join(names[:8])}{' …' if len(names) > 8 else ''}."
            )
        self._columns, self.feature_names = feature_columns(dataset.schema, y)
        self._dataset, self._y = dataset, y

    def total(self, task: Task[Sum]) -> Sum:
        """The sum of `task(features, labels, place)` over all blocks."""
        files = list(enumerate(self._dataset.get_fragments()))
        size = -(-len(files) // _N_GROUPS) or 1
        groups = [files[i : i + size] for i in range(0, len(files), size)]
        shared = (task, self._columns, self._y)
        parts = run_tasks(_of_files, groups, shared=shared)
        return _add_up(part for part in parts if part is not None)


def is_list(kind: Any) -> bool:
    """Whether a type of Arrow is one of lists, of any sort.

    Parameters
    ----------
    kind : pyarrow.DataType
    """
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def feature_columns(schema: Any, other: str | None) -> tuple[list[str], list[str] | None]:
    """Which columns of an Arrow schema are features: the one of lists, or all but one.

    The index of a pandas DataFrame is none.

    Parameters
    ----------
    schema : pyarrow.Schema
    other : str or None
        A column that is none, such as the labels.

    Returns
    -------
    columns : list of str
    feature_names : list of str or None
        The same, where every feature has a column of its own.
    """
    lists = [field.name for field in schema if is_list(field.type)]
    if len(lists) > 1:
        raise ValueError(
            f"The dataset has several columns of lists ({', '.join(lists)}); select one of them"
            f"{'' if other is None else ' and ' + repr(other)}."
        )
    if lists:
        return lists, None
    # pandas writes the index of a table as a column of this name
    names = [
        name for name in schema.names if name != other and not name.startswith("__index_level_")
    ]
    return names, names


def _of_files(files: list[Any], task: Any, columns: list[str], label: str) -> Any:
    """The sum over some files of an Arrow dataset; None if they are empty."""
    parts = (
        task(features_of(batch, columns), _values(batch.column(label)), (i, j))
        for i, file in files
        for j, batch in enumerate(
            file.to_batches(
                columns=[*columns, label], batch_size=_BATCH_ROWS, batch_readahead=_READ_AHEAD
            )
        )
        if batch.num_rows
    )
    return _add_up(parts, empty=True)


def features_of(batch: Any, columns: Sequence[str]) -> np.ndarray:
    """Features of an Arrow batch, of shape (n_rows, n_features), by the rules of `ArrowBlocks`."""
    first = batch.column(columns[0])
    if len(columns) == 1 and hasattr(first, "value_lengths"):
        if first.null_count or len(set(_values(first.value_lengths()).tolist())) > 1:
            raise ValueError(f"Lists in the column {columns[0]!r} differ in length or are missing.")
        values = _values(first.flatten())
        return values.reshape(len(first), len(values) // max(len(first), 1))
    arrays = [_values(batch.column(name)) for name in columns]
    odd = [name for name, one in zip(columns, arrays, strict=True) if one.dtype.kind not in "fiu"]
    if odd:
        raise ValueError(
            f"Columns {', '.join(odd[:5])} are no numbers; select columns of features and labels."
        )
    return np.column_stack(arrays)


def _values(column: Any) -> np.ndarray:
    return column.to_numpy(zero_copy_only=False)


def _pair(one: Any, place: int) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(one, tuple | list) or len(one) != 2:
        raise TypeError(
            f"An iterator of images must give pairs of images and labels; number {place} is a "
            f"{type(one).__name__}."
        )
    return np.asarray(one[0]), np.asarray(one[1])


def _run(task: Any, X: Any, y: Any, place: int) -> Any:
    with single_threaded_blas():
        return task(np.asarray(X), np.asarray(y), (place,))


def _plus(a: Any, b: Any) -> Any:
    with single_threaded_blas():
        return a + b


def _add_up(parts: Any, *, empty: bool = False) -> Any:
    """The sum of some results, two by two: log₂ n of them are held at a time."""
    waiting: list[tuple[int, Any]] = []  # (how many parts it is the sum of, sum)
    for part in parts:
        size = 1
        while waiting and waiting[-1][0] == size:
            part, size = waiting.pop()[1] + part, 2 * size
        waiting.append((size, part))
    if not waiting:
        if empty:
            return None
        raise _nothing()
    result = waiting.pop()[1]
    while waiting:
        result = waiting.pop()[1] + result
    return result


def _nothing() -> ValueError:
    return ValueError("There are no images: no block has any row.")
