"""Word vectors of class names (`w2v`, `glo`): looked up in a file, or trained on a text corpus.

Section 4 of the paper describes classes by the word2vec and GloVe vectors of their names. Files
of word vectors hold millions of words and a data set names a few hundred, so a file is streamed
once and only the words that the names may need are kept. gensim's loaders know the same formats
but hold every vector (or the first `limit`) in memory: reading is written by hand for that
reason, and needs no gensim. Training, and reading what `KeyedVectors.save` wrote, is gensim's.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import importlib
import itertools
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from latem.embeddings.table import ClassEmbeddings, _check_names, _some
from latem.storage import FileFormatError, atomic_path

_NUMBERING = re.compile(r"^\s*(?:n\d{8}[-_.\s]+|\d+[._]\s*)(?=[^\W\d_])")  # "n02085620-", "001."
_POSSESSIVE = re.compile(r"['’][sS]?(?![^\W_])")
_BETWEEN_WORDS = re.compile(r"[\s_\-+./,;()]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_STEM_SUFFIXES = (".gz", ".txt", ".bin", ".vec", ".kv")
_CHUNK = 1 << 22  # bytes read at once
_LONGEST_WORD = 1 << 16  # bytes
_LARGEST_WIDTH = 1 << 16
_LARGEST_VALUE = 1e10
_POOL = 1000  # words with the same first two letters that are kept for suggestions
_SENTENCE = 10_000  # gensim ignores the words of a sentence beyond these


# -- names ------------------------------------------------------------------------------------


def normalise_name(name: str) -> list[str]:
    """Words of a class name, in lower case, without a numbering before and "'s" after them.

    Examples
    --------
    >>> normalise_name("001.Black_footed_Albatross")
    ['black', 'footed', 'albatross']
    >>> normalise_name("n02085620-Chihuahua"), normalise_name("grizzly+bear")
    (['chihuahua'], ['grizzly', 'bear'])
    """
    return [word.lower() for word in _words(_NUMBERING.sub("", name))]


def _words(text: str) -> list[str]:
    return [word for word in _BETWEEN_WORDS.split(_POSSESSIVE.sub("", text)) if word]


class _Candidates(NamedTuple):
    """What to look for, best first: whole phrases, else each word's spellings."""

    phrases: list[str]
    words: dict[str, list[str]]

    def all(self) -> Iterator[str]:
        return itertools.chain(self.phrases, *self.words.values())


def _candidates(text: str) -> _Candidates:
    text = _NUMBERING.sub("", text).strip()
    written = _words(text)
    lower = [word.lower() for word in written]
    title = [word.capitalize() for word in written]
    phrases = []
    if len(written) > 1:
        phrases = [re.sub(r"[\s+]+", "_", text)]
        phrases += [mark.join(form) for mark in "_ -" for form in (written, lower, title)]
    return _Candidates(phrases, {word.lower(): _spellings(word) for word in written})


def _spellings(word: str) -> list[str]:
    """The word as written, in lower case, capitalised; then its singular."""
    lower = word.lower()
    endings = {"ies": ("y",), "ves": ("f", "fe"), "s": ("",), "es": ("",)}
    singulars = [
        lower[: -len(ending)] + new
        for ending, news in endings.items()
        if lower.endswith(ending) and not lower.endswith(("ss", "us", "is")) and len(lower) > 3
        for new in news
    ]
    forms = [form for one in singulars for form in (one, one.capitalize())]
    return [word, lower, lower.capitalize(), *forms]


# -- looking up -------------------------------------------------------------------------------


def word_embeddings(
    names: Iterable[str],
    vectors: Any,
    *,
    synonyms: Mapping[str, str] | str | PathLike[str] | None = None,
    name: str | None = None,
    limit: int | None = None,
    allow_pickle: bool = False,
) -> tuple[ClassEmbeddings, pd.DataFrame]:
    r"""Word vectors of class names, and a report of the words they came from.

    A name loses its numbering and is split into words (see `normalise_name`). Then

    1. if the vectors know the whole phrase, its words joined by underscores, spaces or hyphens
       and spelled as written, in lower case or in Title Case, that vector is the class's;
    2. otherwise the class gets the mean of its words' vectors. Each word is tried as written,
       in lower case and capitalised, then in the singular; words unknown in every spelling are
       left out and reported;
    3. a class without any known word is an error that suggests near spellings.

    Parameters
    ----------
    names : iterable of str
        Class names, all different.
    vectors : path or KeyedVectors
        A file in word2vec's text or binary format, GloVe's text format or fastText's `.vec`
        format, each also gzipped; the format is recognised by content. Such a file is streamed:
        memory does not grow with its size. Or a file written by gensim's `KeyedVectors.save`
        (see `allow_pickle`). Or gensim's `KeyedVectors`, or anything else that has
        `__contains__`, `__getitem__` and `vector_size`.
    synonyms : mapping of str to str, or path of a CSV file with the columns class,words; optional
        Words to look up in place of a class's name, by the same rule, such as
        ``{"bobcat": "lynx", "jay_01": "blue jay"}``. Entries for other classes are ignored.
    name : str, optional
        The table's name; by default that of the file without its suffixes.
    limit : int, optional
        Use only the first `limit` words, which in most files are the most frequent ones.
    allow_pickle : bool, default=False
        Read files of `KeyedVectors.save`. They are pickles, which can run any code when they are
        read: allow it only for files you trust.

    Returns
    -------
    table : ClassEmbeddings of shape (n_classes, n_dimensions)
    report : DataFrame with one row per class
        `used`: the words or the phrase found; `missing`: words left out; `how`: "phrase",
        "words" or "synonym".

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.txt")
    >>> _ = path.write_text("polar 0 1\nbear 1 0\nblue_whale 3 4\n")
    >>> table, report = word_embeddings(["polar+bear", "7.Blue_Whale"], path)
    >>> table
    ClassEmbeddings('tiny', 2 classes × 2 dimensions)
    >>> table["polar+bear"]
    array([0.5, 0.5])
    >>> report
                        used missing     how
    class
    polar+bear   polar, bear           words
    7.Blue_Whale  blue_whale          phrase
    """
    classes = _class_names(names)
    if limit is not None and limit < 1:
        raise ValueError(f"word_embeddings got limit={limit}; give at least 1, or None for all.")
    instead = _synonyms(synonyms)
    candidates = {key: _candidates(instead.get(key, key)) for key in classes}
    wanted = {word for options in candidates.values() for word in options.all()}
    if isinstance(vectors, str | PathLike):
        path = Path(vectors)
        source = str(path)
        name = _stem(path) if name is None else name
        known, pool = _look_up_file(path, wanted, limit, allow_pickle)
    else:
        source = type(vectors).__name__
        known, pool = _look_up_object(vectors, wanted, limit)

    rows: list[np.ndarray] = []
    report, unknown = [], []
    for key in classes:
        phrase = next((form for form in candidates[key].phrases if form in known), None)
        words = candidates[key].words
        found = {w: next((s for s in forms if s in known), None) for w, forms in words.items()}
        used = [phrase] if phrase else [spelling for spelling in found.values() if spelling]
        missing = [] if phrase else [word for word, spelling in found.items() if not spelling]
        if not used:
            unknown.append(key)
            continue
        rows.append(np.array([known[word] for word in used], dtype=np.float64).mean(axis=0))
        how = "synonym" if key in instead else "phrase" if phrase else "words"
        report.append((", ".join(used), ", ".join(missing), how))
    if unknown:
        hints = [f"  {key!r}{_near(candidates[key], pool)}" for key in unknown]
        raise ValueError(
            f"word_embeddings found no word of these {len(unknown)} classes in {source}:\n"
            + "\n".join(hints)
            + f"\nSay which words to use instead: synonyms={{{unknown[0]!r}: '...'}}, or a CSV "
            "file with the columns class,words."
        )
    _warn_of_twins(classes, rows)
    index = pd.Index(classes, name="class")
    frame = pd.DataFrame(report, index=index, columns=["used", "missing", "how"])
    return ClassEmbeddings(classes, np.array(rows), name=name or ""), frame


def _class_names(names: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise TypeError(f"word_embeddings needs a list of class names, not the text {names!r}.")
    classes = _check_names(list(names)).tolist()
    if not isinstance(classes[0], str):
        raise TypeError(
            f"word_embeddings needs class names as text, but {classes[0]!r} is "
            f"{type(classes[0]).__name__}."
        )
    return classes


def _synonyms(synonyms: Mapping[str, str] | str | PathLike[str] | None) -> Mapping[str, str]:
    if synonyms is None or isinstance(synonyms, Mapping):
        for key, words in (synonyms or {}).items():
            if not isinstance(words, str):
                raise TypeError(
                    f"synonyms gives class {key!r} {words!r}; give its words as one text, such "
                    f"as 'blue jay'."
                )
        return synonyms or {}
    path = _existing(synonyms)
    mapping: dict[str, str] = {}
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, strict=True)
            header = next(lines, [])
            if header != ["class", "words"]:
                raise FileFormatError(
                    f"{path}: a file of synonyms starts with the line class,words, not "
                    f"{','.join(header)!r}."
                )
            for cells in filter(None, lines):
                place = f"{path}, line {lines.line_num}"
                if len(cells) != 2:
                    raise FileFormatError(f"{place}: {len(cells)} cells; class,words needs 2.")
                if cells[0] in mapping:
                    raise FileFormatError(f"{place}: class {cells[0]!r} stands twice.")
                mapping[cells[0]] = cells[1]
    except UnicodeDecodeError:
        raise FileFormatError(f"{path} is not UTF-8 text; save it as 'CSV UTF-8'.") from None
    except csv.Error as error:
        raise FileFormatError(f"{path}, line {lines.line_num}: {error}.") from None
    return mapping


def _near(options: _Candidates, pool: Mapping[str, list[str]]) -> str:
    """Known spellings near the words of a class without any."""
    near = [
        match
        for word in options.words
        for match in difflib.get_close_matches(word, pool.get(word[:2], []), n=3)
    ]
    return f" (it knows {_some(near)})" if near else ""


def _pool(words: Iterable[str]) -> dict[str, list[str]]:
    """Words by their first two letters, the first few of each."""
    pool: dict[str, list[str]] = {}
    for word in words:
        alike = pool.setdefault(word[:2].lower(), [])
        if len(alike) < _POOL:
            alike.append(word)
    return pool


def _warn_of_twins(classes: list[str], rows: list[np.ndarray]) -> None:
    groups: dict[bytes, list[str]] = {}
    for key, row in zip(classes, rows, strict=True):
        groups.setdefault(row.tobytes(), []).append(key)
    twins = [_some(group) for group in groups.values() if len(group) > 1]
    if twins:
        warnings.warn(
            f"Classes with identical vectors, which no model can tell apart: {'; '.join(twins)}. "
            f"Give them different words with synonyms.",
            UserWarning,
            stacklevel=3,
        )


def _stem(path: Path) -> str:
    stem = path.name
    while stem.lower().endswith(_STEM_SUFFIXES) and Path(stem).stem != stem:
        stem = Path(stem).stem
    return stem


# -- vectors in memory ------------------------------------------------------------------------


def _look_up_object(
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


def _gensim(task: str) -> Any:
    try:
        return importlib.import_module("gensim.models")
    except ImportError:
        raise ImportError(f"{task} needs gensim: pip install 'latem[words]'.") from None


# -- vectors in files -------------------------------------------------------------------------


class _Layout(NamedTuple):
    """How a file holds its vectors: `start` is where the words begin, in bytes."""

    binary: bool
    start: int
    n_words: int | None
    width: int


def _look_up_file(
    path: Path, wanted: set[str], limit: int | None, allow_pickle: bool
) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    """Vectors of the wanted words that a file knows, and a pool of near words."""
    # Words stay bytes while streaming: decoding millions is slow, and some files hold a few
    # that are not UTF-8. Files are ordered by frequency, so the pool gets the frequent words.
    keys = {word.encode(): word for word in wanted}
    near: dict[bytes, list[bytes]] = {key[:2]: [] for key in keys}
    known: dict[str, np.ndarray] = {}
    with _open(path) as file:
        if file.read(1) == b"\x80":
            return _look_up_object(_load_pickle(path, allow_pickle), wanted, limit)
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
    kept = itertools.chain.from_iterable(near.values())
    return known, _pool(word.decode(errors="replace") for word in kept)


def _existing(path: str | PathLike[str]) -> Path:
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    return path


@contextmanager
def _open(path: str | PathLike[str]) -> Iterator[Any]:
    """Bytes of a file, unpacked if they are gzipped."""
    with open(_existing(path), "rb", buffering=_CHUNK) as file:
        zipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not zipped:
            yield file
            return
        try:
            with gzip.GzipFile(fileobj=file) as unzipped:
                yield unzipped
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise FileFormatError(f"{path} is a damaged gzip file: {error}") from None


def _load_pickle(path: Path, allow_pickle: bool) -> Any:
    if not allow_pickle:
        raise ValueError(
            f"{path} is a pickle, as gensim's KeyedVectors.save writes, and reading a pickle can "
            f"run any code. If you trust it, pass allow_pickle=True, or convert it once: "
            f"KeyedVectors.load(path).save_word2vec_format('vectors.bin', binary=True)."
        )
    loaded = _gensim(f"Reading {path}").KeyedVectors.load(
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
    for line_number, line in enumerate(file, start=1 if count is None else 2):
        line = line.rstrip(b" \t\r\n")
        if not line:
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
                    f"{_shown(cells[0])}, but the first line says {width} for every word."
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
                    f"{path}: word {number} has no end; it is not a word2vec binary file, or "
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
            f"line promises: that line is wrong, or it is not a word2vec binary file."
        )


def _parse(path: Path, place: int, word: bytes, values: bytes, layout: _Layout) -> np.ndarray:
    """Vector of one word, float32."""
    where = f"{path}, {'word' if layout.binary else 'line'} {place} ({_shown(word)})"
    if layout.binary:
        vector = np.frombuffer(values, dtype="<f4").astype(np.float64)
    else:
        cells = values.split()
        for cell in cells:
            if not _is_number(cell):
                raise FileFormatError(f"{where}: {_shown(cell)} is not a number.")
        vector = np.array([float(cell) for cell in cells])
    if len(vector) != layout.width:
        raise FileFormatError(f"{where}: {len(vector)} values where {layout.width} are due.")
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
    return True


def _shown(word: bytes) -> str:
    return repr(word[:40].decode(errors="replace"))


# -- training ---------------------------------------------------------------------------------


def train_word_vectors(
    corpus: str | PathLike[str] | Iterable[Sequence[str]],
    *,
    vector_size: int = 400,
    window: int = 5,
    min_count: int = 5,
    epochs: int = 5,
    sg: bool = True,
    seed: int = 0,
    workers: int = 1,
    phrases: Iterable[str] | None = None,
    out: str | PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Train word2vec on a text corpus, with gensim.

    Parameters
    ----------
    corpus : path, or iterable of lists of words
        A UTF-8 text file, gzipped or not, with one sentence or document per line; it is read
        anew in every epoch, lower-cased and split at everything that is not a letter ("'s" is
        dropped). Lists of words are taken as they are; a generator is read into memory.
    vector_size, window, min_count, epochs : int
        Width of the vectors, words of context on each side, occurrences below which a word is
        left out, passes over the corpus.
    sg : bool, default=True
        Skip-gram; False for continuous bag of words.
    seed, workers : int
        With ``workers=1`` the same seed and corpus give the same vectors; more threads are
        faster, but their timing changes the result.
    phrases : iterable of str, optional
        Class names of several words that become one token where they occur, "blue jay" →
        "blue_jay", and which `word_embeddings` then finds as phrases.
    out : path, optional
        File to write the vectors to, in word2vec's text format.
    progress : callable, optional
        Called as ``progress(epoch, epochs)`` after each epoch, counted from 1.

    Returns
    -------
    gensim.models.KeyedVectors
    """
    models = _gensim("Training word vectors")
    base: Any = models.callbacks.CallbackAny2Vec

    class Report(base):
        epoch = 0

        def on_epoch_end(self, model: Any) -> None:
            self.epoch += 1
            if progress is not None:
                progress(self.epoch, epochs)

    if out is not None and Path(out).suffix == ".gz":
        raise ValueError(f"train_word_vectors writes plain text, not {out}; leave out the .gz.")
    sentences = _Sentences(corpus, phrases or ())
    # Opened first: a folder that is not there should be reported before the training.
    with nullcontext() if out is None else atomic_path(out) as temporary:
        model = models.Word2Vec(
            vector_size=vector_size,
            window=window,
            min_count=min_count,
            epochs=epochs,
            sg=int(sg),
            seed=seed,
            workers=workers,
        )
        model.build_vocab(sentences)
        if not model.corpus_total_words:
            raise ValueError(f"train_word_vectors got a corpus without words: {sentences.title}.")
        if not len(model.wv):
            raise ValueError(
                f"train_word_vectors found no word {min_count} times or more among the "
                f"{model.corpus_total_words} of {sentences.title}; give a smaller min_count or a "
                f"larger corpus."
            )
        model.train(
            sentences, total_examples=model.corpus_count, epochs=epochs, callbacks=[Report()]
        )
        if temporary is not None:
            model.wv.save_word2vec_format(str(temporary), binary=False)
    return model.wv


class _Sentences:
    """Lists of words of a corpus, with phrases joined; can be gone through again and again."""

    def __init__(
        self, corpus: str | PathLike[str] | Iterable[Sequence[str]], phrases: Iterable[str]
    ):
        if isinstance(corpus, str | PathLike):
            self.corpus: Any = _existing(corpus)
            self.title = str(corpus)
        else:
            self.corpus = list(corpus) if isinstance(corpus, Iterator) else corpus
            self.title = f"a {type(corpus).__name__}"
        self.phrases: dict[str, list[list[str]]] = {}  # by first word, the longest first
        for words in sorted(map(normalise_name, phrases), key=len, reverse=True):
            if len(words) > 1:
                self.phrases.setdefault(words[0], []).append(words)

    def __iter__(self) -> Iterator[list[str]]:
        for words in self._read() if isinstance(self.corpus, Path) else self.corpus:
            if isinstance(words, str):
                raise TypeError(
                    f"train_word_vectors needs sentences as lists of words, not the text "
                    f"{words[:40]!r}; split it first."
                )
            joined = list(self._join(list(words)))
            for start in range(0, len(joined), _SENTENCE):
                yield joined[start : start + _SENTENCE]

    def _read(self) -> Iterator[list[str]]:
        with _open(self.corpus) as file:
            for number, line in enumerate(file, start=1):
                try:
                    text = line.decode()
                except UnicodeDecodeError:
                    raise FileFormatError(
                        f"{self.corpus}, line {number} is not UTF-8 text."
                    ) from None
                yield _LETTERS.findall(_POSSESSIVE.sub("", text.lower()))

    def _join(self, words: list[str]) -> Iterator[str]:
        position = 0
        while position < len(words):
            length = 1
            for phrase in self.phrases.get(words[position], ()):
                if words[position : position + len(phrase)] == phrase:
                    length = len(phrase)
                    break
            yield "_".join(words[position : position + length])
            position += length
