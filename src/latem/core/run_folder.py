"""Run folders: what a command leaves behind.

Every file is written atomically, and `run.json` last: a folder with a `run.json` is complete.
"""

from __future__ import annotations

import csv
import io
import json
import logging
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from latem.core import storage

_log = logging.getLogger(__name__)
_MARK = ".latem-run"  # marks a run folder even before its run is complete


def check_run_folder(path: str | PathLike[str]) -> None:
    """Raise now what making this run folder would raise after long work."""
    path = Path(path)
    if not path.exists():
        return
    if not path.is_dir():
        raise NotADirectoryError(f"{path} is a file; name a folder to write to.")
    content = {entry.name for entry in path.iterdir()}
    if content and not content & {"run.json", _MARK}:
        raise FileExistsError(f"{path} is not empty and holds no earlier run; name another folder.")
    if "run.json" in content and not _is_ours(path / "run.json"):
        raise FileExistsError(f"{path / 'run.json'} was not written by latem; name another folder.")


def _is_ours(file: Path) -> bool:
    """Whether `RunFolder.finish` wrote a file: it names the version of latem."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    versions = content.get("versions") if isinstance(content, dict) else None
    return isinstance(versions, dict) and "latem" in versions


class RunFolder:
    """A folder for the results of one run.

    Parameters
    ----------
    path : path
        Made if it does not exist. A folder that holds anything but a run is refused.
    """

    def __init__(self, path: str | PathLike[str]):
        self.path = Path(path)
        check_run_folder(path)
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / _MARK).touch()
        (self.path / "run.json").unlink(missing_ok=True)

    def file(self, name: str) -> Path:
        """Path of a file in the folder."""
        return self.path / name

    def write_table(self, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write a CSV file."""
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(header)
        lines.writerows(rows)
        storage.write_text(self.file(name), text.getvalue())

    def write_text(self, name: str, text: str) -> None:
        """Write a text file."""
        storage.write_text(self.file(name), text)

    def finish(self, summary: dict[str, Any]) -> None:
        """Write `run.json`: the given summary and the versions of all libraries."""
        content = {**summary, "versions": storage.library_versions()}
        self.write_text("run.json", json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        _log.info("wrote the run folder %s", self.path)
