"""Naming very many rows of features: files are read a little ahead, answers are kept as they come.

Rows come in chunks that stay in the caches of a processor. While every thread answers one of its
own, `READ_AHEAD` more are read; no more of the features is ever in memory. Answers go to a journal
in a hidden folder beside the output, as records of equal length with a checksum after each chunk,
and to the file that was asked for, which takes its place when all are there. Chunks depend on what
is asked and on the width of the features alone, so a run that was stopped or killed goes on to the
same bytes.
"""

from __future__ import annotations

import json
import math
import os
import time
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from latem.core.ahead import side_by_side
from latem.core.alone import work_folder
from latem.core.atomic import writing
from latem.core.threads import resolve_threads
from latem.datasets.feature_files import FeatureRows, Source, open_features
from latem.models.answer_columns import AnswerColumns
from latem.models.answering import Asked
from latem.models.answers import DOUBTFUL, NONE, Answer, Answers
from latem.models.bad_rows import shifted
from latem.models.checks import check_is_model
from latem.models.inputs import columns_by_place
from latem.models.scoring import block_rows
from latem.workflows.answer_files import check_bulk_target, write_columns
from latem.workflows.bulk import Bulk, identity_of

READ_AHEAD = 2  # chunks that are read before a thread is free for them
CHUNK_BYTES = 4 * 2**20  # of a chunk's features in single precision
_ANSWER_BYTES = 32  # of a name in an answer
_SYNC_SECONDS = 1.0  # of answers that a machine without power may lose
_SUM = 4  # bytes of a checksum


def name_features(
    model: Any,
    features: Source | Sequence[Source] | FeatureRows,
    classes: Any = "unseen",
    *,
    top: int = 5,
    seen_penalty: float | None = None,
    false_accept_rate: float | None = None,
    id_column: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Answers:
    """Name rows of features in files; see `name_features_in_bulk` for files of answers.

    Parameters
    ----------
    model, features, classes, top, seen_penalty, false_accept_rate, id_column, progress
        As for `name_features_in_bulk`.

    Returns
    -------
    Answers
        They are all in memory.
    """
    rows = _opened(model, features, id_column)
    asked = Asked(model, classes, top, seen_penalty, false_accept_rate)
    size = chunk_rows(rows.width, asked.n_scored, asked.top)
    found: list[Answer] = []
    for names, columns in zip(
        rows.names(size), _answered(asked, rows, size, 0, progress), strict=True
    ):
        found += columns.answers(names)
    return Answers(found)


def name_features_in_bulk(
    model: Any,
    features: Source | Sequence[Source] | FeatureRows,
    out: str | PathLike[str],
    classes: Any = "unseen",
    *,
    top: int = 5,
    seen_penalty: float | None = None,
    false_accept_rate: float | None = None,
    id_column: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Bulk:
    """Name rows of features into a file; continue if an earlier run was stopped.

    Parameters
    ----------
    model : fitted model
    features : path, or sequence of paths
        A `.npy` file, a dataset folder, or Parquet files; see
        `latem.datasets.feature_files.open_features`.
    out : path
        A .csv file (a line for each name of each row), .jsonl (a line of JSON for each row) or
        .parquet (as .csv), with the columns that pictures have. What they call the picture is the
        image's name in a dataset folder, the value of `id_column`, or the row's number, from 0. An
        existing file is replaced when all answers are there.
    classes, top, seen_penalty, false_accept_rate
        As for the models' `answer`.
    id_column : str, optional
        Column of Parquet files that rows are known by.
    progress : callable, optional
        Called with the number of rows done and of all.

    Returns
    -------
    Bulk
    """
    out = Path(out)
    rows = _opened(model, features, id_column)
    check_bulk_target(out, inputs=rows.files)
    asked = Asked(model, classes, top, seen_penalty, false_accept_rate)
    size = chunk_rows(rows.width, asked.n_scored, asked.top)
    work = out.with_name(f".{out.name}.answers")
    busy = f"Another run is writing {out}; wait, or name another file."
    # what the rows are refused for will be so again, until they or the model are others
    with writing(out), work_folder(work, busy, useless=(ValueError,)):
        about = ["features", size, id_column]
        journal = ColumnJournal(
            work / "answers.journal",
            identity_of(asked, about, rows.files),
            asked,
            rows.n_rows,
            size,
        )
        done = journal.n_answers

        def new() -> Generator[AnswerColumns, None, None]:
            with journal:
                for columns in _answered(asked, rows, size, done, progress):
                    journal.write(columns)
                    yield columns

        with closing(new()) as rest:  # also if nothing more can be written
            known = chain(journal, rest)  # what is known is read before anything is added to it
            counts = write_columns(zip(rows.names(size), known, strict=True), out)
    return Bulk(rows.n_rows, 0, counts[DOUBTFUL], counts[NONE], n_resumed=done)


def chunk_rows(width: int, n_scored: Iterable[int], top: int) -> int:
    """Rows of a chunk: a multiple of those that are scored together, of about `CHUNK_BYTES`.

    Parameters
    ----------
    width : int
        Features of a row.
    n_scored : iterable of int
        How many classes are scored at a time, see `Asked`.
    top : int
        Names of an answer.
    """
    lengths = {block_rows(n, in_parts=parts) for n in n_scored for parts in (False, True)}
    together = math.lcm(*lengths)
    wanted = CHUNK_BYTES // max(4 * width, _ANSWER_BYTES * top)
    return together * max(wanted // together, 1)


def _opened(model: Any, features: Any, id_column: str | None) -> FeatureRows:
    check_is_model(model, "name_features")
    rows = (
        features
        if isinstance(features, FeatureRows)
        else open_features(
            features, id_column=id_column, wanted=getattr(model, "feature_names_in_", None)
        )
    )
    rows.check_width(model.n_features_in_)
    return rows


def _answered(
    asked: Asked,
    rows: FeatureRows,
    size: int,
    done: int,
    progress: Callable[[int, int], None] | None,
) -> Iterator[AnswerColumns]:
    """Answers to the rows that are left, chunk by chunk."""
    report = progress or (lambda done, total: None)
    report(done, rows.n_rows)

    def numbered() -> Iterator[tuple[int, np.ndarray]]:
        first = done
        for X in rows.chunks(done, size):
            yield first, X
            first += len(X)

    def answer(chunk: tuple[int, np.ndarray]) -> AnswerColumns:
        first, X = chunk
        try:
            with columns_by_place():  # chosen by their names, or the file has none
                return asked.columns(X)
        except ValueError as error:
            raise ValueError(f"{rows.place}: {shifted(error, first)}") from None

    n_threads = resolve_threads(getattr(asked.model, "n_threads", None))
    for columns in side_by_side(answer, numbered(), n_threads, READ_AHEAD):
        yield columns
        done += len(columns)
        report(done, rows.n_rows)
    rows.check_unchanged()


class ColumnJournal:
    """Answers in the order of the rows, as records, after a line that tells what was asked.

    Parameters
    ----------
    path : Path
        A journal of the same question is continued after its last whole chunk; any other is begun
        anew.
    identity : str
        What was asked.
    asked : Asked
    n_rows : int
        Of all answers.
    size : int
        Rows of a chunk; the last one may be shorter.

    Attributes
    ----------
    n_answers : int
        Answers that are there already.
    """

    def __init__(self, path: Path, identity: str, asked: Asked, n_rows: int, size: int):
        self.path, self.n_answers = path, 0
        self._names, self._n_rows, self._size = asked.names, n_rows, size
        known: list[Any] = [("places", "<i4", (asked.top,)), ("scores", "<f8", (asked.top,))]
        if hasattr(asked.model, "temperature_"):
            known.append(("probabilities", "<f8", (asked.top,)))
        if asked.rate is not None:
            known += [("strangeness", "<f8"), ("verdicts", "u1")]
        self._record = np.dtype(known)
        self._head = (json.dumps({"asked": identity}) + "\n").encode()
        self._synced = time.monotonic()
        self._file: Any = None
        length = self._whole_length()
        if length is None:
            path.write_bytes(self._head)
        else:
            os.truncate(path, length)

    def _whole_length(self) -> int | None:
        """Bytes up to the last whole chunk; None if it is no journal of this question."""
        if not self.path.is_file():
            return None
        with open(self.path, "rb") as file:
            if file.readline() != self._head:
                return None
            length = len(self._head)
            while (content := self._next(file, self.n_answers)) is not None:
                self.n_answers += len(content)
                length += content.nbytes + _SUM
        return length

    def _next(self, file: Any, done: int) -> np.ndarray | None:
        """The records of the next chunk; None at the end, or where they are not whole."""
        n = min(self._size, self._n_rows - done)
        if not n:
            return None
        content = file.read(n * self._record.itemsize)
        if len(content) < n * self._record.itemsize or file.read(_SUM) != _checksum(content):
            return None
        return np.frombuffer(content, self._record)

    def __enter__(self) -> ColumnJournal:
        self._file = open(self.path, "ab")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, columns: AnswerColumns) -> None:
        """Add a chunk; a killed process does not lose it any more."""
        records = np.zeros(len(columns), self._record)
        for name in self._record.names or ():
            records[name] = getattr(columns, name)
        content = records.tobytes()
        self._file.write(content + _checksum(content))
        self._file.flush()
        if time.monotonic() - self._synced > _SYNC_SECONDS:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def __iter__(self) -> Iterator[AnswerColumns]:
        with open(self.path, "rb") as file:
            file.readline()
            done = 0
            while (records := self._next(file, done)) is not None:
                known = {name: records[name] for name in self._record.names or ()}
                yield AnswerColumns(self._names, **known)
                done += len(records)


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_SUM, "little")
