"""Images in Dask arrays and frames: answers as Dask arrays, computed block by block when asked for.

A method that is `on_blocks` answers arrays in memory as it always did. Of a Dask collection it
makes a graph with a task for each block, on whatever scheduler the graph is computed later, a
cluster included. The model is one node of that graph which all tasks refer to: it is pickled once,
however many blocks there are, and a worker keeps what it has prepared of the classes between tasks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from latem.core.slim import is_frame
from latem.core.threads import one_thread

Method = TypeVar("Method", bound=Callable[..., Any])


def is_lazy(X: Any) -> bool:
    """Whether images are in a Dask collection; does not import Dask."""
    return hasattr(X, "__dask_graph__")


def on_blocks(method: Method) -> Method:
    """Let a method of a model, whose first argument is images, take Dask collections as well."""
    arguments = inspect.signature(method)

    @wraps(method)
    def answered(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if not is_lazy(X):
            return method(self, X, *args, **options)
        given = arguments.bind(self, X, *args, **options).arguments
        return lazily(self, method.__name__, X, dict(list(given.items())[2:]))

    return cast(Method, answered)


def lazily(model: Any, method: str, X: Any, options: dict[str, Any]) -> Any:
    """Answers of a method about a Dask array or DataFrame of images.

    Parameters
    ----------
    model : fitted model
    method : str
    X : Dask array of shape (n_samples, n_features), or Dask DataFrame
    options : dict
        Further arguments of the method.

    Returns
    -------
    Dask array, or a tuple of them if the method gives one
        With a block for each block of rows of `X`.
    """
    import dask

    if "classes" in options:
        options = {**options, "classes": model.settled(options["classes"])}
    question = _Question(model, method, options)
    question.sample = sample = question.tried(X)
    asked = dask.delayed(question, traverse=False)
    if hasattr(X, "partitions") and hasattr(X, "divisions"):
        return _of_frame(X, asked, sample)
    X = X.rechunk({1: -1})
    if not isinstance(sample, tuple):
        return _mapped(_ask, X, sample, question=asked)
    both = X.map_blocks(_ask, question=asked, dtype=object, meta=sample[0])  # blocks are tuples
    return tuple(_mapped(_entry, both, one, number=i) for i, one in enumerate(sample))


def _mapped(function: Callable[..., Any], X: Any, sample: np.ndarray, **options: Any) -> Any:
    """Array of a function of each block of rows."""
    options |= {"dtype": sample.dtype, "meta": sample}
    if sample.ndim == 1:
        return X.map_blocks(function, drop_axis=1, **options)
    return X.map_blocks(function, chunks=(X.chunks[0], (sample.shape[1],)), **options)


def _of_frame(X: Any, asked: Any, sample: Any) -> Any:
    """Arrays about a Dask DataFrame; how long their blocks are is not known."""
    import dask.array as da

    blocks = [asked(part) for part in X.to_delayed()]

    def joined(parts: list[Any], one: np.ndarray) -> Any:
        shape = (np.nan, *one.shape[1:])
        return da.concatenate(
            [da.from_delayed(part, shape, one.dtype, meta=one) for part in parts],
            allow_unknown_chunksizes=True,
        )

    if not isinstance(sample, tuple):
        return joined(blocks, sample)
    return tuple(joined([part[i] for part in blocks], one) for i, one in enumerate(sample))


def _ask(images: Any, question: Any = None) -> Any:
    return question(images)


def _entry(found: Any, number: int = 0) -> Any:
    return found[number]


class _Question:
    """A method of a model with its arguments: a function of a block of images."""

    def __init__(self, model: Any, method: str, options: dict[str, Any]):
        self.model, self.method, self.options = model, method, options
        self.sample: Any = None

    def tried(self, X: Any) -> Any:
        """What the method gives for no images at all; refuses what it would refuse of some."""
        if len(X.shape) != 2:
            raise ValueError(f"Images must have two dimensions, not {len(X.shape)}: one row each.")
        if hasattr(X, "_meta_nonempty"):  # a DataFrame, whose columns have names
            images: Any = X._meta_nonempty.iloc[:1]
        else:
            images = np.zeros((1, X.shape[1]), X.dtype)
        found = self._asked(images)
        return tuple(one[:0] for one in found) if isinstance(found, tuple) else found[:0]

    def __call__(self, images: Any) -> Any:
        """Answers about a block; a block without rows has none."""
        if not len(images):
            return self.sample
        images = images if is_frame(images) else np.ascontiguousarray(images)
        with one_thread():  # Dask works on several blocks at a time
            return self._asked(images)

    def _asked(self, images: Any) -> Any:
        return getattr(self.model, self.method)(images, **self.options)
