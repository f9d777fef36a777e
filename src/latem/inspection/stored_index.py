"""A graph of stored images beside their file, by which those that fit a class are soon found.

Where a score is the best of some linear pieces of the image, max_k (z · v_k + b_k), the images with
the k best scores are among those that are best for one of the pieces: the union of the pieces'
lists holds the answer. So every list is looked up in a graph of neighbours (HNSW, by usearch), and
the images on the lists are scored as always. What the graph misses is missing from the answer;
scores and order are exact.

Images that are divided by their lengths are looked up by direction, and one graph serves all models
that scale so: their (x/‖x‖ - m) · v differ from (x/‖x‖) · v by what is the same for all images.
Other scalings are part of the score, so their graph is one of inner products, for models with that
very scaling. Long images are near to everything by inner products, and sometimes a graph leads to
them alone. If it does, another one is made, in which each image z has one more coordinate,
√(L² - ‖z‖²) with L the longest length: all are equally long then, and directions beside (v, 0) are
in the order of z · v. It leads to all of them, but needs longer lists.

How long a list must be depends on the images: many that are nearly alike are hard to tell apart in
a graph. So a new index is asked for classes whose best images are known, and its lists become
longer until they hold nearly all of them.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from latem.core.alone import only_one
from latem.core.arrays import read_at_random
from latem.core.atomic import atomic_path, write_text
from latem.core.paths import stamp_of
from latem.core.plain_json import parse_json
from latem.core.threads import resolve_threads
from latem.features.encoder import file_digest
from latem.models.affine_form import AffineForm
from latem.models.scaling import FeatureScaler

INSTALL = "pip install 'latem[search]'"
MOST_PIECES = 64  # lists that are united for a class
BEST = 100  # of a class; so many of its images are to be on the lists
RECALL = 0.95  # of them are found, in the mean of some classes
_FORMAT = 2
_BATCH = 4096
_PASSES = 64
# many links, for of many images that are nearly alike, few ones would lead to some only
_GRAPH = {"connectivity": 48, "expansion_add": 128}
_SHORTEST = 400  # images on a list, or four times what is wanted
_LONGEST = (6400, 1 / 32)  # or a share of all images; to look through them takes no longer then
_LIKE_L2 = ("l2", "l2-centered")

_log = logging.getLogger(__name__)


class IndexMismatchError(ValueError):
    """An index is there, but it is not one of these images and this scaling."""


@dataclass(frozen=True, eq=False)
class KnownBest:
    """Classes whose best images are known, since all were looked through.

    Attributes
    ----------
    forms : sequence of AffineForm
        Of one class each, for images of the index's scaling.
    rows : ndarray of shape (n_classes, k)
    """

    forms: Sequence[AffineForm]
    rows: np.ndarray

    def recall(self, index: StoredIndex) -> float | None:
        """Share of the images that an index finds; None if it can tell none of the classes."""
        shares = []
        for form, right in zip(self.forms, self.rows, strict=True):
            found = index.candidates(form, len(right))
            if found is not None:
                shares.append(np.isin(right, found).mean())
        return float(np.mean(shares)) if shares else None


class StoredIndex:
    """An index file, opened beside the images that it is of.

    Parameters
    ----------
    graph : usearch.index.Index
    scaler : FeatureScaler
        How the images are scaled that the graph holds.
    listed : int
        Images on a list if a hundred are wanted or fewer.
    recall : float or None
        Which share of the best hundred is found so, as measured when the index was made.
    """

    def __init__(
        self,
        graph: Any,
        scaler: FeatureScaler,
        listed: int = _SHORTEST,
        recall: float | None = None,
    ):
        self._graph, self._scaler = graph, scaler
        self.listed, self.recall = listed, recall

    def __len__(self) -> int:
        return len(self._graph)

    def save(self, path: Path) -> None:
        """Write the graph to a file."""
        self._graph.save(str(path))

    def fits(self, scaler: FeatureScaler) -> bool:
        """Whether images of another scaling can be looked up."""
        return _looked_up(scaler).same(self._scaler)

    def candidates(self, form: AffineForm, k: int) -> np.ndarray | None:
        """Rows that may be the best ones for one class, ascending; None if they cannot be told.

        Parameters
        ----------
        form : AffineForm
            Of one class, for images of a scaling that `fits`.
        k : int
            How many rows are wanted; more are given.
        """
        single = form.one_group(MOST_PIECES)
        if single is None:
            return None
        directions = single.directions[0].astype(np.float64)
        lengths = np.linalg.norm(directions, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not (lengths > 0).all():
            return None
        n = min(self.listed * max(k, BEST) // BEST, len(self))
        queries = (directions / lengths).astype(np.float32)
        queries = np.pad(queries, ((0, 0), (0, self._graph.ndim - queries.shape[1])))
        lists = [self._graph.search(query, n, threads=1).keys for query in queries]
        return np.unique(np.concatenate(lists)).astype(np.int64)


def index_files(images: str | PathLike[str], scaler: FeatureScaler) -> tuple[Path, Path]:
    """Names of the index of some images and of what tells about it, beside their file.

    Parameters
    ----------
    images : path of an `.npy` file
    scaler : FeatureScaler
        Of a model that is to look them up.
    """
    stored = _looked_up(scaler)
    kind = "directions" if _by_direction(stored) else f"products-{_digest(stored)[:8]}"
    stem = Path(images).with_suffix("")
    return Path(f"{stem}-{kind}.usearch"), Path(f"{stem}-{kind}.json")


def build_index(
    images: str | PathLike[str],
    X: np.ndarray,
    scaler: FeatureScaler,
    *,
    known: Callable[[], KnownBest | None] | None = None,
    n_threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Path:
    """Make the index of a file of images, beside it; one that is there is replaced.

    Parameters
    ----------
    images : path of an `.npy` file
    X : ndarray of shape (n_images, n_features)
        What is in it, mapped.
    scaler : FeatureScaler
        Of the model that is to look them up.
    known : callable, optional
        Returns the classes by which the length of the lists is chosen; otherwise they are short.
    n_threads : int or None
        With several, images come into the graph in an order that is another one every time, and
        the file has other bytes.
    progress : callable, optional
        Called with the number of images done.

    Returns
    -------
    path of the index file
    """
    _usearch()
    images, stored = Path(images), _looked_up(scaler)
    path, note = index_files(images, scaler)
    busy = f"Another process is writing {path}; wait for it."
    with only_one(path.with_name(f".{path.name}.lock"), busy, target=path, remove=True):
        before = stamp_of(images)
        best, index, parameters = None, None, {}
        for metric in _metrics(stored)[0 if known else -1 :]:
            graph = _graph(images, X, stored, metric, n_threads, progress)
            best = best or (known and known())
            tried = with_long_lists(graph, stored, best)
            if index is None or (tried.recall or 0) > (index.recall or 0):
                index, parameters = tried, _parameters(stored, metric)
            if tried.recall is None or tried.recall >= RECALL:
                break
            progress = None  # a second graph is not counted
        assert index is not None
        facts = {
            "format": _FORMAT,
            "lists": {"length": index.listed, "recall": index.recall},
            "images": {"sha256": file_digest(images), "stamp": before},
            "rows": len(X),
            "width": X.shape[1],
            "scaling": _digest(stored),
            "parameters": parameters,
        }
        if stamp_of(images) != before:
            raise ValueError(f"{images} has changed while its index was made; make it again.")
        note.unlink(missing_ok=True)  # an index without a note is none
        with atomic_path(path) as temporary:
            index.save(temporary)
        facts["index"] = {"sha256": file_digest(path), "stamp": stamp_of(path)}
        write_text(note, json.dumps(facts, indent=2) + "\n")
    _log.info("made the index %s of %d images", path, len(X))
    return path


def _graph(
    images: Path,
    X: np.ndarray,
    stored: FeatureScaler,
    metric: str,
    n_threads: int | None,
    progress: Callable[[int], None] | None,
) -> Any:
    """A graph of all images."""
    lengthened = _is_lengthened(stored, metric)
    longest = _longest(X, stored, images) if lengthened else 0.0
    graph = _usearch().Index(ndim=X.shape[1] + lengthened, **_parameters(stored, metric))
    with read_at_random(X):
        for rows in _in_passes(len(X)):
            batch = _finite(X[rows], rows, stored, images)
            if lengthened:
                batch = _equally_long(batch, longest)
            graph.add(rows, batch, threads=resolve_threads(n_threads))
            if progress is not None:
                progress(len(rows))
    return graph


def open_index(
    images: str | PathLike[str], X: np.ndarray, scaler: FeatureScaler
) -> StoredIndex | None:
    """The index beside a file of images; None if there is none.

    It is mapped, not read. Files that were looked at before are known by their size and time;
    others have their digests taken, which reads them once.

    Parameters
    ----------
    images : path of an `.npy` file
    X : ndarray of shape (n_images, n_features)
        What is in it.
    scaler : FeatureScaler
        Of the model that is to look them up.

    Raises
    ------
    IndexMismatchError
        If it is the index of something else, or damaged.
    """
    path, note = index_files(images, scaler)
    if not (path.is_file() and note.is_file()):
        return None
    stored = _looked_up(scaler)
    again = f"make it again: latem data index (see docs/scale.md), or delete {path}"
    try:
        facts = parse_json(note.read_bytes())
        expected = {
            "format": _FORMAT,
            "rows": len(X),
            "width": X.shape[1],
            "scaling": _digest(stored),
        }
        odd = [name for name, value in expected.items() if facts[name] != value]
        metrics = [m for m in _metrics(stored) if facts["parameters"] == _parameters(stored, m)]
        odd += [] if metrics else ["parameters"]
        known = {name: facts[name] for name in ("images", "index")}
        lists = facts["lists"]["length"], facts["lists"]["recall"]
        fits = _are_lists(*lists) and all(
            _is_known(one["sha256"], one["stamp"]) for one in known.values()
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        odd, fits = [], False
    if odd:
        raise IndexMismatchError(
            f"{path} is of other images or of another kind ({', '.join(odd)}); {again}."
        )
    if not fits:
        raise IndexMismatchError(f"{note} is damaged; {again}.")
    for file, name in ((Path(images), "images"), (path, "index")):
        told = known[name]
        if told["stamp"] != stamp_of(file) and told["sha256"] != file_digest(file):
            raise IndexMismatchError(f"{path} does not belong to what is in {file} now; {again}.")
    usearch = _usearch()
    try:
        graph = usearch.Index.restore(str(path), view=True)
    except (ValueError, RuntimeError):
        graph = None
    wide = X.shape[1] + _is_lengthened(stored, metrics[0])
    if graph is None or len(graph) != len(X) or graph.ndim != wide:
        raise IndexMismatchError(f"{path} is damaged; {again}.")
    return StoredIndex(graph, stored, *lists)


def _in_passes(n: int) -> Iterator[np.ndarray]:
    """Batches of rows, in an order in which any part of the beginning is drawn from all of them.

    Images in the order of a file come with their like, and link to nothing else. Rows of a pass
    ascend, as a file is read best.
    """
    passes = np.random.default_rng(0).integers(_PASSES, size=n, dtype=np.uint8)
    order = np.argsort(passes, kind="stable")
    for first in range(0, n, _BATCH):
        yield order[first : first + _BATCH]


def _finite(X: np.ndarray, rows: np.ndarray, scaler: FeatureScaler, images: Path) -> np.ndarray:
    """Some images, scaled; `rows` are their numbers in the file."""
    with np.errstate(over="ignore", invalid="ignore"):
        batch = scaler.transform(X, np.float32)
    odd = rows[~np.isfinite(batch).all(axis=1)]
    if len(odd):
        raise ValueError(
            f"{images} holds numbers that are not finite, or too large, in row {odd[0]} "
            f"and perhaps others; drop such rows."
        )
    return batch


def _longest(X: np.ndarray, scaler: FeatureScaler, images: Path) -> float:
    """Length of the longest scaled image."""
    longest = 0.0
    for first in range(0, len(X), _BATCH):
        rows = np.arange(first, min(first + _BATCH, len(X)))
        batch = _finite(X[rows], rows, scaler, images).astype(np.float64)
        longest = max(longest, float(np.einsum("ij,ij->i", batch, batch).max()))
    return float(np.sqrt(longest)) or 1.0


def _equally_long(batch: np.ndarray, longest: float) -> np.ndarray:
    """Scaled images with one more coordinate each, by which all have the same length."""
    squares = np.einsum("ij,ij->i", batch, batch, dtype=np.float64)
    more = np.sqrt(np.maximum(longest**2 - squares, 0)).astype(np.float32)
    return np.hstack([batch, more[:, None]])


def with_long_lists(graph: Any, scaler: FeatureScaler, known: KnownBest | None) -> StoredIndex:
    """A graph with lists that hold nearly all of the best images of some classes.

    Parameters
    ----------
    graph : usearch.index.Index
    scaler : FeatureScaler
    known : KnownBest or None
        The classes; without them lists are short.
    """
    index = StoredIndex(graph, scaler)
    while known is not None:
        index.recall = known.recall(index)
        longer = 2 * index.listed
        too_long = longer > max(_LONGEST[0], _LONGEST[1] * len(index))
        if index.recall is None or index.recall >= RECALL or too_long:
            break
        index = StoredIndex(graph, scaler, longer)
    return index


def _looked_up(scaler: FeatureScaler) -> FeatureScaler:
    """The scaling of the images in a graph for models with this one."""
    if scaler.kind in _LIKE_L2:
        width = len(scaler.shift)
        return FeatureScaler("l2", np.zeros(width), np.ones(width))
    return scaler


def _by_direction(stored: FeatureScaler) -> bool:
    """Whether all images are equally long as they are."""
    return stored.kind == "l2"


def _metrics(stored: FeatureScaler) -> tuple[str, ...]:
    """How images in a graph may be compared: the quick way first, the safe one last."""
    return ("cos",) if _by_direction(stored) else ("ip", "cos")


def _is_lengthened(stored: FeatureScaler, metric: str) -> bool:
    """Whether images in a graph have a coordinate more, by which all are equally long."""
    return metric == "cos" and not _by_direction(stored)


def _parameters(stored: FeatureScaler, metric: str) -> dict[str, Any]:
    # a byte holds a coordinate of a direction; one that is added may be far larger than others
    return {"metric": metric, "dtype": "i8" if _by_direction(stored) else "bf16", **_GRAPH}


def _digest(stored: FeatureScaler) -> str:
    parts = (str(stored.kind).encode(), stored.shift.tobytes(), stored.scale.tobytes())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _are_lists(length: Any, recall: Any) -> bool:
    return type(length) is int and length >= 1 and (recall is None or isinstance(recall, float))


def _is_known(digest: Any, stamp: Any) -> bool:
    return isinstance(digest, str) and isinstance(stamp, list)


def _usearch() -> Any:
    try:
        import usearch.index
    except ImportError:
        raise ImportError(f"An index of images needs usearch: {INSTALL}.") from None
    return usearch.index
