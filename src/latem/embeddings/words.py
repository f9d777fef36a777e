"""Word vectors of class names (`w2v`, `glo`): looked up in a file, or trained on a text corpus.

Section 5 of the paper describes classes by the word2vec and GloVe vectors of their names.
`word_embeddings` says how a name becomes a vector; the files are read by `word_files`. Training is
gensim's.
"""

from __future__ import annotations

import csv
import difflib
import itertools
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from latem.core.atomic import atomic_path
from latem.core.memory import check_memory
from latem.core.messages import first_few
from latem.core.slim import needed
from latem.core.storage import FileFormatError
from latem.embeddings.table import ClassEmbeddings
from latem.embeddings.table_checks import check_names
from latem.embeddings.word_files import (
    existing,
    gensim_models,
    look_up_file,
    look_up_object,
    open_bytes,
    text_pieces,
)

if TYPE_CHECKING:
    import pandas as pd

_NUMBERING = re.compile(r"^\s*(?:n\d{8}[-_.\s]+|\d+[._]\s*)(?=[^\W\d_])")  # "n02085620-", "001."
_POSSESSIVE = re.compile(r"['’][sS]?(?![^\W_])")
_BETWEEN_WORDS = re.compile(r"[\s_\-+./,;()]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_STEM_SUFFIXES = (".gz", ".txt", ".bin", ".vec", ".kv")
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
        known, pool = look_up_file(path, wanted, limit, allow_pickle)
    else:
        source = type(vectors).__name__
        known, pool = look_up_object(vectors, wanted, limit)

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
    pd = needed("pandas", "Reports of words")
    index = pd.Index(classes, name="class")
    frame = pd.DataFrame(report, index=index, columns=["used", "missing", "how"])
    return ClassEmbeddings(classes, np.array(rows), name=name or ""), frame


def _class_names(names: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise TypeError(f"word_embeddings needs a list of class names, not the text {names!r}.")
    classes = check_names(list(names)).tolist()
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
    path = existing(synonyms, "file of synonyms")
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
                    raise FileFormatError(f"{place}: class {cells[0]!r} is listed twice.")
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
    return f" (it knows {first_few(near)})" if near else ""


def _warn_of_twins(classes: list[str], rows: list[np.ndarray]) -> None:
    groups: dict[bytes, list[str]] = {}
    for key, row in zip(classes, rows, strict=True):
        groups.setdefault(row.tobytes(), []).append(key)
    twins = [first_few(group) for group in groups.values() if len(group) > 1]
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
    models = gensim_models("Training word vectors")
    base: Any = models.callbacks.CallbackAny2Vec

    class Report(base):
        epoch = 0

        def on_epoch_end(self, model: Any) -> None:
            self.epoch += 1
            if progress is not None:
                progress(self.epoch, epochs)

    if out is not None and Path(out).suffix == ".gz":
        raise ValueError(f"train_word_vectors writes plain text, not {out}; leave out the .gz.")
    if vector_size < 1:
        raise ValueError(f"vector_size must be at least 1, but is {vector_size}.")
    check_memory(2 * 4 * vector_size, f"Even a single word, with vector_size={vector_size},")
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
    """Lists of words of a corpus, with phrases joined; can be read again and again."""

    def __init__(
        self, corpus: str | PathLike[str] | Iterable[Sequence[str]], phrases: Iterable[str]
    ):
        if isinstance(corpus, str | PathLike):
            self.corpus: Any = existing(corpus, "corpus")
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
            joined = self._join(list(words))
            while sentence := list(itertools.islice(joined, _SENTENCE)):
                yield sentence
            del words, joined  # before the next ones are read

    def _read(self) -> Iterator[list[str]]:
        with open_bytes(self.corpus) as file:
            for number, piece in text_pieces(file, self.corpus):
                try:
                    text = piece.decode()
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
