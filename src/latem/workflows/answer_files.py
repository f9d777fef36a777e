"""Files of answers: CSV, JSON lines and Parquet, whole or not at all.

Answers come one by one, or many at a time as columns, and are written as they come: memory does not
grow with their number. Both ways write the same.
"""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from latem.core.atomic import atomic_path, check_target
from latem.core.messages import first_few
from latem.models.answer_columns import AnswerColumns
from latem.models.answers import COLUMNS, VERDICTS, Answer

FORMATS = (".csv", ".jsonl", ".parquet")
_GROUP = 32_768  # lines, at least, of a group of rows of a Parquet file
_REPEATED = ["class", "verdict"]  # columns whose values are worth a dictionary

Named = tuple[list[str], AnswerColumns]  # what images are known by, and the answers about them


def check_bulk_target(
    out: Path, *, explain: bool = False, inputs: Iterable[str | PathLike[str] | None] = ()
) -> None:
    """Raise now what writing this file would raise after long work.

    Parameters
    ----------
    out : Path
    explain : bool
    inputs : iterable of path or None
        Files that are read, and must not be written over.
    """
    if out.suffix.lower() not in FORMATS:
        raise ValueError(f"{out} must end in {', '.join(FORMATS)}, which says how to write it.")
    if explain and out.suffix.lower() != ".jsonl":
        raise ValueError("Explanations do not fit into a table; write a .jsonl file.")
    if out.suffix.lower() == ".parquet":
        _parquet()
    check_target(out, inputs)


def check_there_is_one(pictures: Sequence[str | PathLike[str]]) -> None:
    """Refuse pictures of which none is there: a mistyped name must not replace a file of answers.

    Parameters
    ----------
    pictures : sequence of paths
    """
    if pictures and not any(os.path.lexists(path) for path in pictures):
        lost = first_few([os.fspath(path) for path in pictures])
        raise FileNotFoundError(f"There is no such file: {lost}.")


def write_answers(
    answers: Iterable[Answer], out: Path, columns: Sequence[str] = COLUMNS
) -> Counter[str]:
    """Write answers to the file that was asked for, whole or not at all, and count.

    Parameters
    ----------
    answers : iterable of Answer
    out : Path
        Ends in one of `FORMATS`.
    columns : sequence of str
        Names of the entries of `Answer.rows`.

    Returns
    -------
    Counter
        Number of answers by verdict, and under "error" of those that could not be read.
    """
    counts: Counter[str] = Counter()

    def counted() -> Iterator[Answer]:
        for answer in answers:
            counts["error" if answer.error else str(answer.verdict)] += 1
            yield answer

    writers = {".csv": _write_csv, ".jsonl": _write_jsonl, ".parquet": _write_parquet}
    with atomic_path(out) as temporary:
        writers[out.suffix.lower()](counted(), temporary, columns)
    return counts


def _write_csv(answers: Iterator[Answer], path: Path, columns: Sequence[str]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(columns)
        for answer in answers:
            lines.writerows(answer.rows())


def _write_jsonl(answers: Iterator[Answer], path: Path, columns: Sequence[str]) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for answer in answers:
            file.write(json.dumps(answer.to_dict(), ensure_ascii=False) + "\n")


def _write_parquet(answers: Iterator[Answer], path: Path, columns: Sequence[str]) -> None:
    arrow, parquet = _parquet()
    schema = _schema(columns)
    types = schema.types
    with parquet.ParquetWriter(path, schema, use_dictionary=_REPEATED) as file:
        waiting: list[tuple[Any, ...]] = []

        def write() -> None:
            parts = zip(*waiting, strict=True) if waiting else ([] for _ in columns)
            arrays = [
                arrow.array(
                    [None if v is None else str(v) for v in part] if t == arrow.string() else part,
                    t,
                )
                for part, t in zip(map(list, parts), types, strict=True)
            ]
            file.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            waiting.clear()

        for answer in answers:
            waiting += answer.rows()
            if len(waiting) >= _GROUP:
                write()
        if waiting:
            write()


def _schema(columns: Sequence[str]) -> Any:
    arrow, _ = _parquet()
    number = arrow.float64()
    numbers = {"probability": number, "score": number, "strangeness": number}
    kinds = {"place": arrow.int64(), **numbers}
    return arrow.schema([(name, kinds.get(name, arrow.string())) for name in columns])


def write_columns(answers: Iterable[Named], out: Path) -> Counter[str]:
    """Write answers that come as columns, as `write_answers` does those that come one by one.

    Parameters
    ----------
    answers : iterable of (list of str, AnswerColumns)
    out : Path
        Ends in one of `FORMATS`.

    Returns
    -------
    Counter
        Number of answers by verdict.
    """
    counts: Counter[str] = Counter()

    def counted() -> Iterator[Named]:
        for names, some in answers:
            counts.update({verdict: some.count(verdict) for verdict in VERDICTS})
            yield names, some

    writers = {
        ".csv": _columns_to_csv,
        ".jsonl": _columns_to_jsonl,
        ".parquet": _columns_to_parquet,
    }
    with atomic_path(out) as temporary:
        writers[out.suffix.lower()](counted(), temporary)
    return counts


def _columns_to_csv(answers: Iterator[Named], path: Path) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(COLUMNS)
        for names, some in answers:
            lines.writerows(some.rows(names))


def _columns_to_jsonl(answers: Iterator[Named], path: Path) -> None:
    one_by_one = (answer for names, some in answers for answer in some.answers(names))
    _write_jsonl(one_by_one, path, COLUMNS)


def _columns_to_parquet(answers: Iterator[Named], path: Path) -> None:
    arrow, parquet = _parquet()
    schema = _schema(COLUMNS)
    verdicts = arrow.array(VERDICTS)
    classes: Any = None
    with parquet.ParquetWriter(path, schema, use_dictionary=_REPEATED) as file:
        for names, some in _in_groups(answers):
            top = some.places.shape[1]
            n_lines = len(some) * top
            if classes is None:
                classes = arrow.array([str(name) for name in some.names.tolist()], arrow.string())
            of_image = arrow.array(np.repeat(np.arange(len(some)), top))
            known: dict[str, Any] = {
                "picture": arrow.array(names, arrow.string()).take(of_image),
                "place": arrow.array(np.tile(np.arange(1, top + 1), len(some))),
                "class": classes.take(arrow.array(some.places.ravel())),
                "score": arrow.array(some.scores.ravel()),
            }
            if some.probabilities is not None:
                known["probability"] = arrow.array(some.probabilities.ravel())
            if some.verdicts is not None:
                known["verdict"] = verdicts.take(arrow.array(some.verdicts)).take(of_image)
            if some.strangeness is not None:
                known["strangeness"] = arrow.array(some.strangeness).take(of_image)
            arrays = [
                known[field.name] if field.name in known else arrow.nulls(n_lines, field.type)
                for field in schema
            ]
            file.write_table(arrow.Table.from_arrays(arrays, schema=schema))


def _in_groups(answers: Iterator[Named]) -> Iterator[Named]:
    """The same answers, as many at a time as have `_GROUP` lines or more."""
    names: list[str] = []
    waiting: list[AnswerColumns] = []
    for known_by, some in answers:
        names += known_by
        waiting.append(some)
        if len(names) * some.places.shape[1] >= _GROUP:
            yield names, AnswerColumns.joined(waiting)
            names, waiting = [], []
    if waiting:
        yield names, AnswerColumns.joined(waiting)


def _parquet() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install 'latem[parquet]'.") from None
    return pyarrow, pyarrow.parquet
