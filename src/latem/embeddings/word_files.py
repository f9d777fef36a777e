"""Vectors of some words, from a file of millions or from an object in memory.

Files of word vectors hold millions of words and a dataset names a few hundred, so a file is
streamed once and only the wanted words are kept. gensim's loaders know the same formats but hold
every vector (or the first `limit`) in memory: reading is written by hand for that reason, and
needs no gensim. Only what `KeyedVectors.save` wrote is read by gensim.
"""

from __future__ import annotations

import gzip
import importlib
import io
import itertools
import logging
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from latem.core.memory import check_unpacked
from latem.core.paths import no_file
from latem.core.storage import FileFormatError

_CHUNK = 1 << 22  # bytes read at once
_WORD = 300  # bytes of memory for a word, beside its numbers
PIECE = 1 << 20  # bytes of a line of text that are read at once
_LONGEST_WORD = 1 << 16  # bytes
_LARGEST_WIDTH = 1 << 16
_LARGEST_VALUE = 1e10
_POOL = 1000  # words with the same first two letters that are kept for suggestions

_log = logging.getLogger(__name__)


# -- vectors in memory ------------------------------------------------------------------------


def look_up_object(
    vectors: Any, wanted: set[str], limit: int | None
) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    """Vectors of the wanted words that an object knows, and a pool of near words."""
    needed = ("__contains__", "__getitem__", "vector_size")
    if not all(hasattr(vectors, attribute) for attribute in needed):
        raise TypeError(
            "word_embeddings needs the path of a word-vector file or an object like gensim's "
            f"KeyedVectors (with {', '.join(needed)}), not {type(vectors).__name__}."
        )
    order: Any = getattr(vectors, "key_to_index", None)
    if limit is not None and order is None:
        raise ValueError(
            f"word_embeddings got limit={limit}, but {type(vectors).__name__} does not say which "
            f"words come first; leave limit out."
        )
    # gensim's fastText vectors claim to contain any text, so the list of words is asked first.
    listed = vectors if order is None else set(itertools.islice(order, limit))
    known = {}
    for word in wanted:
        if word in listed:
            vector = np.asarray(vectors[word])
            if vector.shape != (vectors.vector_size,):
                raise ValueError(
                    f"The vector of {word!r} has the shape {vector.shape}, but "
                    f"{type(vectors).__name__} promises vectors of {vectors.vector_size} values."
                )
            known[word] = vector
    starts = {word[:2] for word in wanted}
    first = itertools.islice(order or (), limit)
    return known, _pool(word for word in first if word[:2] in starts)


def gensim_models(task: str) -> Any:
    """The module `gensim.models`, or an error that says how to install it."""
    try:
        return importlib.import_module("gensim.models")
    except ImportError:
        raise ImportError(f"{task} needs gensim: pip install 'latem[words]'.") from None


def _pool(words: Iterable[str]) -> dict[str, list[str]]:
    """Words by their first two letters, the first few of each."""
    pool: dict[str, list[str]] = {}
    for word in words:
        alike = pool.setdefault(word[:2].lower(), [])
        if len(alike) < _POOL:
            alike.append(word)
    return pool


# -- vectors in files -------------------------------------------------------------------------


class _Layout(NamedTuple):
    """How a file holds its vectors: `start` is where the words begin, in bytes."""

    binary: bool
    start: int
    n_words: int | None
    width: int


def look_up_file(
    path: Path, wanted: set[str], limit: int | None, allow_pickle: bool
) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    """Vectors of the wanted words that a file knows, and a pool of near words."""
    # Words stay bytes while streaming: decoding millions is slow, and some files hold a few
    # that are not UTF-8. Files are ordered by frequency, so the pool gets the frequent words.
    keys = {word.encode(): word for word in wanted}
    near: dict[bytes, list[bytes]] = {key[:2]: [] for key in keys}
    known: dict[str, np.ndarray] = {}
    with open_bytes(path) as file:
        if file.read(1) == b"\x80":
            return look_up_object(_load_pickle(path, allow_pickle), wanted, limit)
        layout = _layout(file, path)
        file.seek(layout.start)
        entries = (_binary_entries if layout.binary else _text_entries)(file, path, layout)
        for i, (place, word, values) in enumerate(itertools.islice(entries, limit)):
            key = keys.get(word)
            if key is not None or i == 0:  # the first vector shows whether all make sense
                vector = _parse(path, place, word, values, layout)
                if key is not None:
                    known.setdefault(key, vector)
            alike = near.get(word[:2])
            if alike is not None and len(alike) < _POOL:
                alike.append(word)
    _log.info("%s knows %d of %d words", path, len(known), len(wanted))
    kept = itertools.chain.from_iterable(near.values())
    return known, _pool(word.decode(errors="replace") for word in kept)


class WordVectors:
    """Word vectors in memory, for looking words up again and again.

    Parameters
    ----------
    path : path
        A file as `word_embeddings` takes it, but for pickles.
    limit : int, optional
        Keep only the first `limit` words, which in most files are the most frequent ones.

    Attributes
    ----------
    vector_size : int
    key_to_index : dict of word to place
    """

    def __init__(self, path: str | PathLike[str], limit: int | None = None):
        path = existing(path, "file of word vectors")
        self.key_to_index: dict[str, int] = {}
        rows: list[np.ndarray] = []
        with open_bytes(path) as file:
            if file.read(1) == b"\x80":
                raise FileFormatError(f"{path} is a pickle; give vectors in text or binary form.")
            layout = _layout(file, path)
            file.seek(layout.start)
            entries = (_binary_entries if layout.binary else _text_entries)(file, path, layout)
            for place, word, values in itertools.islice(entries, limit):
                key = word.decode(errors="replace")
                if self.key_to_index.setdefault(key, len(rows)) == len(rows):
                    # rows are copied once, when they become one array
                    taken = (2 * 4 * layout.width + _WORD) * (len(rows) + 1)
                    check_unpacked(path, taken, "read its first words only (limit)")
                    rows.append(_parse(path, place, word, values, layout).astype(np.float32))
        self.vector_size = layout.width
        self._vectors = np.array(rows)
        _log.info("read %d word vectors from %s", len(rows), path)

    def __contains__(self, word: object) -> bool:
        return word in self.key_to_index

    def __getitem__(self, word: str) -> np.ndarray:
        return self._vectors[self.key_to_index[word]]


def existing(path: str | PathLike[str], what: str) -> Path:
    """Path of a file that must exist; `what` says in a message what it is."""
    path = Path(path)
    if not path.is_file():
        raise no_file(path, what)
    return path


@contextmanager
def open_bytes(path: str | PathLike[str]) -> Iterator[Any]:
    """Bytes of a file, unpacked if they are gzipped."""
    with open(existing(path, "file of word vectors"), "rb", buffering=_CHUNK) as file:
        zipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not zipped:
            yield file
            return
        try:
            with gzip.GzipFile(fileobj=file) as unzipped:
                yield io.BufferedReader(_Bounded(unzipped, Path(path)), _CHUNK)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise FileFormatError(f"{path} is a damaged gzip file: {error}") from None


class _Bounded(io.RawIOBase):
    """A file that is unpacked while it is read, unless it is far larger than its packed form."""

    def __init__(self, unzipped: gzip.GzipFile, path: Path):
        self._unzipped, self._path = unzipped, path

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        return self._unzipped.seek(place, whence)

    def readinto(self, buffer: Any) -> int:
        n_bytes = self._unzipped.readinto(buffer)
        check_unpacked(self._path, self._unzipped.tell(), "unpack it first")
        return n_bytes


def text_pieces(file: Any, path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers; very long ones in pieces, cut at white space."""
    number, rest = 1, b""
    while piece := rest + file.readline(PIECE):
        rest = b""
        if not piece.endswith(b"\n") and len(piece) >= PIECE:
            kept = piece.rstrip()
            words = kept.rsplit(None, 1) if len(kept) == len(piece) else [piece, b""]
            if len(words) < 2:
                raise FileFormatError(
                    f"{path}, line {number} has no space among {len(piece)} bytes; separate words "
                    f"by spaces."
                )
            piece, rest = words
        yield number, piece
        number += piece.endswith(b"\n")


def _load_pickle(path: Path, allow_pickle: bool) -> Any:
    if not allow_pickle:
        raise ValueError(
            f"{path} is a pickle, as gensim's KeyedVectors.save writes, and reading a pickle can "
            f"run any code. If you trust it, pass allow_pickle=True, or convert it once: "
            f"KeyedVectors.load(path).save_word2vec_format('vectors.bin', binary=True)."
        )
    loaded = gensim_models(f"Reading {path}").KeyedVectors.load(
        str(path), mmap=None if path.suffix == ".gz" else "r"
    )
    return getattr(loaded, "wv", loaded)  # a saved Word2Vec model holds its vectors in `wv`


def _layout(file: Any, path: Path) -> _Layout:
    """Format of a file: by its first line, and by the bytes after a header."""
    file.seek(0)
    line = file.readline(_CHUNK)
    if not line.strip():
        raise FileFormatError(f"{path} is empty or starts with an empty line: no word vectors.")
    bom = 3 if line.startswith(b"\xef\xbb\xbf") else 0
    cells = line[bom:].split()
    if len(cells) == 2 and all(cell.isdigit() for cell in cells):
        count, width = map(int, cells)
        if not (count > 0 and 0 < width <= _LARGEST_WIDTH):
            raise FileFormatError(
                f"{path} promises {count} words of {width} values in its first line; at least 1 "
                f"word and 1 to {_LARGEST_WIDTH} values make sense."
            )
        sample = file.read(_LONGEST_WORD + 4 * width).lstrip(b"\n")
        return _Layout(_looks_binary(sample, width), len(line), count, width)
    if len(cells) < 2 or len(line) == _CHUNK or b"\0" in line:
        raise FileFormatError(
            f"{path} is not a file of word vectors: its first line is {line[:40]!r}. Give "
            f"word2vec's text or binary format, GloVe's text or fastText's .vec, gzipped or not "
            f"(unpack .zip archives; fastText's .bin models come with a .vec)."
        )
    return _Layout(False, bom, None, len(cells) - 1)


def _looks_binary(sample: bytes, width: int) -> bool:
    """Whether the first word is followed by float32 numbers rather than by text numbers."""
    following = sample.partition(b" ")[2]
    line = following.partition(b"\n")[0]
    control = set(range(32)) - set(b"\t\r\n")
    return (
        any(byte > 126 for byte in line[: 4 * width])
        or any(byte in control for byte in following[: max(4 * width, 256)])
        or not any(_is_number(cell) for cell in line.split())
    )


# Number of the line (text) or word (binary), the word, and its values as stored.
_Entries = Iterator[tuple[int, bytes, bytes]]


def _text_entries(file: Any, path: Path, layout: _Layout) -> _Entries:
    width, count, found = layout.width, layout.n_words, 0
    lines = iter(lambda: file.readline(_CHUNK), b"")
    for line_number, line in enumerate(lines, start=1 if count is None else 2):
        if len(line) == _CHUNK and not line.endswith(b"\n"):
            raise FileFormatError(
                f"{path}, line {line_number} does not end within {_CHUNK} bytes; this is not a "
                f"file of word vectors."
            )
        line = line.rstrip(b" \t\r\n")
        if not line.strip():
            continue
        found += 1
        if line.count(b" ") == width:
            word, _, values = line.partition(b" ")
        else:
            cells = line.split()
            surplus = len(cells) - 1 - width  # a few words of GloVe's files hold spaces
            if surplus < 0 or any(_is_number(cell) for cell in cells[1 : 1 + surplus]):
                raise FileFormatError(
                    f"{path}, line {line_number}: {len(cells) - 1} values after "
                    f"{_quoted(cells[0])}, but the first line says {width} for every word."
                )
            word, values = b" ".join(cells[: 1 + surplus]), b" ".join(cells[1 + surplus :])
        yield line_number, word, values
    if count is not None and found != count:
        raise FileFormatError(
            f"{path} promises {count} words in its first line, but holds {found}; it may be "
            f"cut off: fetch it again, or correct the first line."
        )


def _binary_entries(file: Any, path: Path, layout: _Layout) -> _Entries:
    size, count = 4 * layout.width, layout.n_words or 0
    buffer, position = b"", 0
    for number in range(1, count + 1):
        end = buffer.find(b" ", position)
        while end < 0 or end + 1 + size > len(buffer):
            if end < 0 and len(buffer) - position > _LONGEST_WORD:
                raise FileFormatError(
                    f"{path}: word {number} does not end; this is not a word2vec binary file, or "
                    f"its first line ({count} {layout.width}) is wrong."
                )
            chunk = file.read(_CHUNK)
            if not chunk:
                raise FileFormatError(
                    f"{path} is cut off: its first line promises {count} words of "
                    f"{layout.width} values, but it ends within word {number}; fetch it again."
                )
            buffer, position = buffer[position:] + chunk, 0
            end = buffer.find(b" ")
        word = buffer[position:end].lstrip(b"\n")
        position = end + 1 + size
        yield number, word, buffer[end + 1 : position]
    if (buffer[position:] + file.read(_LONGEST_WORD)).strip():
        raise FileFormatError(
            f"{path} goes on after the {count} words of {layout.width} values that its first "
            f"line promises: that line is wrong, or this is not a word2vec binary file."
        )


def _parse(path: Path, place: int, word: bytes, values: bytes, layout: _Layout) -> np.ndarray:
    """Vector of one word, float32."""
    where = f"{path}, {'word' if layout.binary else 'line'} {place} ({_quoted(word)})"
    if layout.binary:
        vector = np.frombuffer(values, dtype="<f4").astype(np.float64)
    else:
        cells = values.split()
        try:
            vector = np.array([float(cell) for cell in cells])
            odd_cells = [cell for cell in cells if b"_" in cell] if b"_" in values else []
        except ValueError:
            odd_cells = [cell for cell in cells if not _is_number(cell)]
        if odd_cells:
            raise FileFormatError(f"{where}: {_quoted(odd_cells[0])} is not a number.")
    if len(vector) != layout.width:
        raise FileFormatError(f"{where}: {len(vector)} values instead of {layout.width}.")
    if not (np.abs(vector) <= _LARGEST_VALUE).all():  # also catches nan
        odd = vector[~(np.abs(vector) <= _LARGEST_VALUE)][0]
        hint = "; it may be big-endian or not a word2vec binary file" if layout.binary else ""
        raise FileFormatError(f"{where}: {odd:g} cannot be part of a word vector{hint}.")
    return vector.astype(np.float32)


def _is_number(cell: bytes) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return b"_" not in cell  # Python would read 4_0 as 40


def _quoted(word: bytes) -> str:
    return repr(word[:40].decode(errors="replace"))
