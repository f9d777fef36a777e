"""Naming very many pictures: answers are kept as they come, and a stopped run goes on.

Answers go batch by batch to a journal in a hidden folder beside the output, and become the file
that was asked for when all are there: a file of that name is always complete. A run that was
stopped, killed or lost its power is continued by asking the same again; if model, candidates,
options or pictures have changed, it starts anew. Batches are composed by the order of the pictures
alone, so the file has the same bytes whatever happened in between.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from latem.core.alone import work_folder
from latem.core.atomic import writing
from latem.core.paths import stamp_of
from latem.core.storage import library_versions
from latem.inspection.families import family_of_columns
from latem.inspection.speakers import inner_model
from latem.models.answering import BATCH, Asked
from latem.models.answers import DOUBTFUL, NONE, Answer
from latem.models.checks import check_is_model
from latem.workflows.answer_files import check_bulk_target, check_there_is_one, write_answers
from latem.workflows.name_pictures import answered


@dataclass(frozen=True)
class Bulk:
    """What a run over many pictures, or rows of features, came to.

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
    check_there_is_one(pictures)
    check_is_model(model, "name_in_bulk")
    asked = Asked(model, classes, top, seen_penalty, false_accept_rate)
    work = out.with_name(f".{out.name}.answers")
    busy = f"Another run is writing {out}; wait, or name another file."
    with writing(out), work_folder(work, busy):
        journal = Journal(
            work / "journal.jsonl",
            identity_of(asked, [_families(asked, groups) if explain else None, BATCH], pictures),
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
    return Bulk(len(pictures), counts["error"], counts[DOUBTFUL], counts[NONE], n_resumed=n_resumed)


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


def identity_of(asked: Asked, about: list[Any], files: Iterable[str | PathLike[str]]) -> str:
    """Digest of everything that answers depend on.

    Parameters
    ----------
    asked : Asked
    about : list
        What else they depend on, as plain data.
    files : iterable of path
        What is answered about; size and time of each file are looked at.
    """
    digest = hashlib.sha256()
    tensors, meta = asked.model.pack()
    for name, array in sorted(tensors.items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(array).data)
    vectors = getattr(asked.classes, "vectors", None)
    digest.update(b"" if vectors is None else np.ascontiguousarray(vectors).data)
    facts = [
        json.dumps(meta, default=str, sort_keys=True),
        [str(name) for name in asked.names.tolist()],
        [asked.top, asked.penalty, asked.rate, about],
        library_versions(),
        [[os.fspath(file), *_stamp(file)] for file in files],
    ]
    digest.update(json.dumps(facts).encode())
    return digest.hexdigest()


def _stamp(path: str | PathLike[str]) -> list[int | None]:
    try:
        return [*stamp_of(path)]
    except OSError:
        return [None, None]
