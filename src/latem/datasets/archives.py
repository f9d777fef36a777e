"""Dataset folders from zip files, which may be damaged, locked, or larger than they look.

What a file promises is checked before anything is unpacked (`core/memory.py` has the rule), and so
is the free space of the disk. A dataset is unpacked into a hidden folder beside its place, read,
and only then renamed: what is there afterwards is whole.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from latem.core.atomic import writing
from latem.core.memory import check_disk, check_unpacked
from latem.datasets.folder import read_folder
from latem.datasets.folder_writer import write_folder
from latem.datasets.matlab import from_gbu

_CHUNK = 2**18
Members = dict[PurePosixPath, zipfile.ZipInfo]


def unpack_datasets(file: Path, folder: Path) -> list[Path]:
    """Dataset folders of what is in a zip file; of any other file, none.

    Parameters
    ----------
    file : path
        It may hold dataset folders, or pairs of `res101.mat` and `att_splits.mat`. A dataset that
        lies at its root gets the file's name without its ending (with ".dataset" if it has none).
    folder : path
        Where the dataset folders go.

    Returns
    -------
    list of Path
        Dataset folders that were made, or were there from an earlier call.
    """
    with _reading(file):
        is_zip = zipfile.is_zipfile(file)
    if not is_zip:
        with open(file, "rb") as content:
            begins_as_zip = content.read(4) == b"PK\x03\x04"
        if begins_as_zip or file.suffix.lower() == ".zip":
            raise OSError(f"{file} is cut short or no zip file; delete it and fetch it again.")
        return []
    with _reading(file):
        archive = zipfile.ZipFile(file)
    with archive:
        members = _members(archive)
        roots = _roots(file, members)
        wanted = [info for root in roots for info in _below(root, members).values()]
        size = sum(info.file_size for info in wanted)
        check_unpacked(file, size, "unpack it by hand")
        scratch = folder / f".{file.name}.unpacking"
        shutil.rmtree(scratch, ignore_errors=True)  # of a run that was killed
        made = []
        for root in sorted(roots):
            target = folder / (root.name or _root_name(file))
            if not _is_there(target):
                check_disk(folder, size, f"Unpacking {file}")
                try:
                    _extract(archive, file, _below(root, members), scratch)
                    _publish(scratch, target, file)
                finally:
                    shutil.rmtree(scratch, ignore_errors=True)
            made.append(target)
    return made


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    """Turn whatever a zip file raises into a sentence."""
    try:
        yield
    except NotImplementedError as error:  # an unknown compression
        raise OSError(f"{file} cannot be unpacked: {error}; unpack it by hand.") from None
    except RuntimeError:
        raise OSError(f"{file} needs a password; unpack it by hand.") from None
    except Exception as error:  # decoders raise many kinds for damaged files
        reason = str(error) or type(error).__name__
        raise OSError(f"{file} is damaged: {reason}; delete it and fetch it again.") from None


def _members(archive: zipfile.ZipFile) -> Members:
    """Files of an archive by their places, without those that lead out of it."""
    named = (i for i in archive.infolist() if i.filename and not i.is_dir())
    members = {PurePosixPath(i.filename): i for i in named}
    return {path: info for path, info in members.items() if ".." not in path.parts}


def _roots(file: Path, members: Members) -> set[PurePosixPath]:
    """Where the datasets of an archive are."""
    roots = {path.parent for path in members if path.name == "dataset.toml"}
    pairs = {path.parent for path in members if path.name == "res101.mat"}
    roots |= {root for root in pairs if root / "att_splits.mat" in members}
    names = [root.name for root in roots]
    twins = sorted({name for name in names if names.count(name) > 1})
    if twins:
        raise ValueError(f"{file} holds several datasets called {twins}; unpack it by hand.")
    return roots


def _root_name(file: Path) -> str:
    return file.stem if file.suffix else f"{file.name}.dataset"


def _is_there(target: Path) -> bool:
    """Whether a dataset folder is there already; anything else in its place is refused."""
    if target.exists() and not (target / "dataset.toml").is_file():
        raise FileExistsError(f"{target} exists and is no dataset folder; move it away.")
    return target.exists()


def _below(root: PurePosixPath, members: Members) -> Members:
    """Files below a folder of the archive, at most one folder deep, by their places in it."""
    below = {p.relative_to(root): info for p, info in members.items() if p.is_relative_to(root)}
    return {path: info for path, info in below.items() if 0 < len(path.parts) <= 2}


def _extract(archive: zipfile.ZipFile, file: Path, members: Members, target: Path) -> None:
    """Write each of some files to its place below `target`."""
    if both := sorted(str(p.parent) for p in members if p.parent in members):
        raise ValueError(f"{file} has a file and a folder called {both[0]!r}; unpack it by hand.")
    for path, member in members.items():
        place = target.joinpath(*path.parts)
        with writing(place):
            place.parent.mkdir(parents=True, exist_ok=True)
        with _reading(file):
            source = archive.open(member)
        with source, writing(place), open(place, "wb") as copy:
            while True:
                with _reading(file):
                    chunk = source.read(_CHUNK)
                if not chunk:
                    break
                copy.write(chunk)


def _publish(inside: Path, target: Path, file: Path) -> None:
    """Give an unpacked dataset its place, if it can be read."""
    try:
        if (inside / "dataset.toml").is_file():
            read_folder(inside)
            inside.rename(target)
        else:
            pair = inside / "res101.mat", inside / "att_splits.mat"
            write_folder(from_gbu(*pair, name=target.name), target)
    except (ValueError, TypeError, FileNotFoundError) as error:
        told = str(error).replace(str(inside), target.name)
        raise ValueError(f"{file} holds a dataset that cannot be used: {told}") from None
