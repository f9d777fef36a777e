"""Run folders: what a command leaves behind.

Files are written beside their place, in a hidden folder, and get their names together when all of
them are there, `run.json` last: a folder with a `run.json` is complete, and an earlier run stays as
it is until the next one is. One process at a time writes to a run folder.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import shutil
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import Any

from latem.core import atomic, storage
from latem.core.alone import only_one
from latem.core.atomic import writing
from latem.core.plain_json import parse_json

_log = logging.getLogger(__name__)
_MARK = ".latem-run"  # marks a run folder even before its run is complete, and is its lock
_NEW = ".latem-new"  # files that have not got their names yet


def check_run_folder(path: str | PathLike[str]) -> None:
    """Raise now what making this run folder would raise after long work."""
    path = Path(path)
    above = next((parent for parent in path.parents if parent.exists()), Path())
    if not above.is_dir():
        raise NotADirectoryError(f"{above} is a file, so {path} can be no folder; name another.")
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
        content = parse_json(file.read_bytes())
    except (OSError, ValueError):
        return False
    versions = content.get("versions") if isinstance(content, dict) else None
    return isinstance(versions, dict) and "latem" in versions


class RunFolder:
    """A folder for the results of one run: a context, which holds the folder for this process.

    Parameters
    ----------
    path : path
        Made if it does not exist. A folder that holds anything but a run is refused, and so is
        one that another process is writing to.
    """

    def __init__(self, path: str | PathLike[str]):
        self.path = Path(path)
        self._held = ExitStack()
        self._new = self.path / _NEW

    def __enter__(self) -> RunFolder:
        check_run_folder(self.path)
        busy = f"Another run is writing to {self.path}; wait, or name another folder."
        with writing(self.path), self._held as held:
            self.path.mkdir(parents=True, exist_ok=True)
            held.enter_context(only_one(self.path / _MARK, busy, target=self.path))
            held.enter_context(writing(self.path))
            held.callback(shutil.rmtree, self._new, ignore_errors=True)
            shutil.rmtree(self._new, ignore_errors=True)  # of a run that was killed
            self._new.mkdir()
            self._held = held.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._held.__exit__(*error)

    def file(self, name: str) -> Path:
        """Where to write a file of this run; it gets its place when the run is complete."""
        return self._new / name

    def store(self, name: str) -> Path:
        """Path in the folder itself, for what the next run goes on from."""
        return self.path / name

    def write_table(self, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write a CSV file."""
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(header)
        lines.writerows(rows)
        atomic.write_text(self.file(name), text.getvalue())

    def write_text(self, name: str, text: str) -> None:
        """Write a text file."""
        atomic.write_text(self.file(name), text)

    def finish(self, summary: dict[str, Any]) -> None:
        """Write `run.json`, the given summary and the versions of all libraries; publish all."""
        content = {**summary, "versions": storage.library_versions()}
        self.write_text("run.json", json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        (self.path / "run.json").unlink(missing_ok=True)
        for file in sorted(self._new.iterdir(), key=lambda file: file.name == "run.json"):
            file.replace(self.path / file.name)
        _log.info("wrote the run folder %s", self.path)
