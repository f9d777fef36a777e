"""Naming very many pictures: answers are kept as they come, and a stopped run goes on.

Answers go batch by batch to a journal in a hidden folder beside the output, and become the file
that was asked for when all are there: a file of that name is always complete. A run that was
stopped, killed or lost its power is continued by asking the same again; if model, candidates,
options or pictures have changed, it starts anew. Batches are composed by the order of the pictures
alone, so the file has the same bytes whatever happened in between.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from latem.core.storage import atomic_path, check_target, library_versions, only_one
from latem.inspection.families import family_of_columns
from latem.inspection.speakers import inner_model
from latem.models.answering import BATCH, Asked
from latem.models.answers import COLUMNS, DOUBTFUL, NONE, Answer
from latem.models.checks import check_is_model
from latem.workflows.name_pictures import answered

FORMATS = (".csv", ".jsonl", ".parquet")
_CHUNK = 1000  # answers that are written to a Parquet file together


@dataclass(frozen=True)
class Bulk:
    """What a run over many pictures came to.

    Attributes
    ----------
    n_pictures, n_unreadable, n_doubtful, n_none : int
        All, those that could not be read, that are doubtful, and that are none of these.
    n_resumed : int
        Those that an earlier run had answered.
    """

    n_pictures: int
    n_unreadable: int
    n_doubtful: int
    n_none: int
    n_resumed: int


def name_in_bulk(
    model: Any,
    pictures: Sequence[str | PathLike[str]],
    out: str | PathLike[str],
    classes: Any = "unseen",
    *,
    top: int = 5,
    seen_penalty: float | None = None,
    false_accept_rate: float | None = None,
    explain: bool = False,
    groups: Any = None,
    encoder_options: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Bulk:
    """Name many pictures into a file; continue if an earlier run was stopped.

    Parameters
    ----------
    model : fitted model that knows its encoder
    pictures : sequence of paths
    out : path
        A .csv file (a line for each name of each picture), .jsonl (a line of JSON for each
        picture) or .parquet (as .csv). An existing file is replaced when all answers are there.
    classes, top, seen_penalty, false_accept_rate, explain, groups, encoder_options
        As for `latem.workflows.name_pictures.name_pictures`; explanations need .jsonl.
    progress : callable, optional
        Called with the number of pictures done and of all.

    Returns
    -------
    Bulk
    """
    out = Path(out)
    check_bulk_target(out, explain=explain)
    check_is_model(model, "name_in_bulk")
    asked = Asked(model, classes, top, seen_penalty, false_accept_rate)
    work = out.with_name(f".{out.name}.answers")
    work.mkdir(exist_ok=True)
    with only_one(work / "lock", f"Another run is writing {out}; wait, or name another file."):
        journal = Journal(
            work / "journal.jsonl",
            _identity(asked, pictures, _families(asked, groups) if explain else None),
        )
        done = n_resumed = journal.n_answers
        report = progress or (lambda done, total: None)
        report(done, len(pictures))
        rest = pictures[done:]
        with journal:
            for answers in answered(
                asked, rest, explain=explain, groups=groups, encoder_options=encoder_options
            ):
                journal.write(answers)
                done += len(answers)
                report(done, len(pictures))
        counts = write_answers(journal, out)
    shutil.rmtree(work, ignore_errors=True)  # some systems remove no file that is open
    return Bulk(len(pictures), counts["error"], counts[DOUBTFUL], counts[NONE], n_resumed=n_resumed)


def check_bulk_target(out: Path, *, explain: bool = False) -> None:
    """Raise now what writing this file would raise after long work."""
    if out.suffix.lower() not in FORMATS:
        raise ValueError(f"{out} must end in {', '.join(FORMATS)}, which says how to write it.")
    if explain and out.suffix.lower() != ".jsonl":
        raise ValueError("Explanations do not fit into a table; write a .jsonl file.")
    if out.suffix.lower() == ".parquet":
        _parquet()
    check_target(out)


class Journal:
    """Answers in the order of the pictures, a line each, after a line that tells what was asked.

    Parameters
    ----------
    path : Path
        A journal of the same question is continued after its last whole batch; any other is
        begun anew.
    identity : str
        What was asked.

    Attributes
    ----------
    n_answers : int
        Answers that are there already.
    """

    def __init__(self, path: Path, identity: str):
        self.path = path
        self.n_answers = 0
        head = (json.dumps({"asked": identity}) + "\n").encode()
        length = self._whole_length(head)
        if length is None:
            path.write_bytes(head)
        else:
            os.truncate(path, length)
        self._file: Any = None

    def _whole_length(self, head: bytes) -> int | None:
        """Bytes up to the last whole batch; None if it is no journal of this question."""
        if not self.path.is_file():
            return None
        with open(self.path, "rb") as file:
            if file.readline() != head:
                return None
            place = whole = len(head)
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break
                place += len(line)
                if number % BATCH == 0:
                    whole, self.n_answers = place, number
        return whole

    def __enter__(self) -> Journal:
        self._file = open(self.path, "ab")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, answers: list[Answer]) -> None:
        """Add a batch; it is on the disk when this returns."""
        text = "".join(json.dumps(asdict(answer)) + "\n" for answer in answers)
        self._file.write(text.encode())
        self._file.flush()
        os.fsync(self._file.fileno())

    def __iter__(self) -> Iterator[Answer]:
        with open(self.path, encoding="utf-8") as file:
            file.readline()
            for line in file:
                yield Answer(**json.loads(line))


def _families(asked: Asked, groups: Any) -> list[Any]:
    """Which traits belong together, as explanations will have it."""
    table = inner_model(asked.model, "name_in_bulk").class_table_
    return sorted(family_of_columns(table, groups).items())


def _identity(
    asked: Asked, pictures: Sequence[str | PathLike[str]], families: list[Any] | None
) -> str:
    """Digest of everything the answers depend on; `families` of what is to be explained."""
    digest = hashlib.sha256()
    tensors, meta = asked.model.pack()
    for name, array in sorted(tensors.items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    vectors = getattr(asked.classes, "vectors", None)
    digest.update(b"" if vectors is None else np.ascontiguousarray(vectors).tobytes())
    facts = [
        json.dumps(meta, default=str, sort_keys=True),
        [str(name) for name in asked.names.tolist()],
        [asked.top, asked.penalty, asked.rate, families, BATCH],
        library_versions(),
        [[os.fspath(picture), *_stamp(picture)] for picture in pictures],
    ]
    digest.update(json.dumps(facts).encode())
    return digest.hexdigest()


def _stamp(path: str | PathLike[str]) -> list[int | None]:
    try:
        facts = os.stat(path)
    except OSError:
        return [None, None]
    return [facts.st_size, facts.st_mtime_ns]


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
    text, number = arrow.string(), arrow.float64()
    numbers = {"probability": number, "score": number, "strangeness": number}
    kinds = {"place": arrow.int64(), **numbers}
    types = [kinds.get(name, text) for name in columns]
    schema = arrow.schema(list(zip(columns, types, strict=True)))
    with parquet.ParquetWriter(path, schema) as file:
        waiting: list[Answer] = []

        def write() -> None:
            rows = [row for answer in waiting for row in answer.rows()]
            parts = zip(*rows, strict=True) if rows else ([] for _ in columns)
            arrays = [
                arrow.array([None if v is None else str(v) for v in part] if t == text else part, t)
                for part, t in zip(map(list, parts), types, strict=True)
            ]
            file.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            waiting.clear()

        for answer in answers:
            waiting.append(answer)
            if len(waiting) == _CHUNK:
                write()
        if waiting:
            write()


def _parquet() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install 'latem[parquet]'.") from None
    return pyarrow, pyarrow.parquet
