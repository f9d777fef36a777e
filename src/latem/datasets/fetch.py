"""Downloads: with progress, resumable, checked, and never left half-written under their name.

A download goes to `FILE.part` beside its target and is renamed when it is complete and, where a
checksum is known, verified. What identifies the file on the server is kept in `FILE.part.json`:
an interrupted download continues only if the server still has the same file. While a file is
downloaded or unpacked, `.FILE.lock` keeps other processes from doing the same.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import logging
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from latem.core.alone import only_one
from latem.core.atomic import is_unwritable, write_text, writing
from latem.core.plain_json import parse_json
from latem.datasets.archives import unpack_datasets

_CHUNK = 2**18
_TIMEOUT = 60.0
_DIGITS = {"sha256": re.compile("[0-9a-fA-F]{64}"), "md5": re.compile("[0-9a-fA-F]{32}")}
Progress = Callable[[int, int | None], None]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Source:
    """A file that a public page offers for download.

    Attributes
    ----------
    url : str
        Address as the page states it.
    stated_by : str
        Where the address is stated.
    what : str
    """

    url: str
    stated_by: str
    what: str


SOURCES: dict[str, Source] = {
    "xlsa17": Source(
        url="http://datasets.d2.mpi-inf.mpg.de/xian/xlsa17.zip",
        stated_by=(
            "https://github.com/sebastianbujwid/zsl_text_imagenet (data/imagenet/README.md) with "
            "the project page https://www.mpi-inf.mpg.de/departments/"
            "computer-vision-and-machine-learning/research/zero-shot-learning/"
            "zero-shot-learning-the-good-the-bad-and-the-ugly/"
        ),
        what="ResNet-101 features, attributes and proposed splits of SUN, CUB, AWA1, AWA2 and aPY",
    ),
    "glove.6B": Source(
        url="http://nlp.stanford.edu/data/glove.6B.zip",
        stated_by=(
            "http://nlp.stanford.edu/projects/glove/, the source page that Keras's example of "
            "pretrained word embeddings names with this address"
        ),
        what="GloVe word vectors of 400,000 words, 50 to 300 dimensions",
    ),
}

ASK: dict[str, str] = {
    "CUB images": "https://www.vision.caltech.edu/datasets/cub_200_2011/",
    "AWA (first version)": "https://cvml.ista.ac.at/AwA/",
    "AWA2 images": "https://cvml.ista.ac.at/AwA2/",
    "Stanford Dogs": "http://vision.stanford.edu/aditya86/ImageNetDogs/",
    "SUN attributes": "https://cs.brown.edu/~gmpatter/sunattributes.html",
    "the LatEm release": "the paper's authors, Max Planck Institute for Informatics, Saarbrücken",
}
"""Where to ask for data that no program may download."""


def find_source(name_or_url: str) -> str:
    """Address of a known name, or the address itself; an unknown name says where to ask."""
    if "://" in name_or_url:
        return name_or_url
    if name_or_url in SOURCES:
        return SOURCES[name_or_url].url
    known = "; ".join(f"{name} ({source.what})" for name, source in SOURCES.items())
    ask = "; ".join(f"{what}: {where}" for what, where in ASK.items())
    raise ValueError(
        f"There is no download called {name_or_url!r}. Known: {known}. For the rest give an "
        f"address, or ask: {ask}."
    )


def download(
    url: str,
    target: str | PathLike[str],
    *,
    checksum: str | None = None,
    progress: Progress | None = None,
    timeout: float = _TIMEOUT,
) -> Path:
    """Download a file, continuing an earlier attempt if there is one.

    Parameters
    ----------
    url : str
        http, https or file address.
    target : path
        If it exists it is taken to be complete (and verified if `checksum` is given).
    checksum : str, optional
        "sha256:…" or "md5:…". A file that does not match is removed.
    progress : callable, optional
        Called with the bytes so far and the bytes in all (None if the server does not tell).
    timeout : float
        Seconds without an answer after which to give up; a later call continues.

    Returns
    -------
    Path
        The target.
    """
    target = Path(target)
    _check(url, checksum)
    with _folder_for(target), _alone(target):
        _complete(url, target, checksum, progress, timeout)
    return target


def _check(url: str, checksum: str | None) -> None:
    if urlsplit(url).scheme not in ("http", "https", "file"):
        raise ValueError(f"{url!r} is not an http, https or file address.")
    _parse_checksum(checksum)


@contextmanager
def _folder_for(target: Path) -> Iterator[None]:
    """Make the folder of a file; if nothing came to be in it, remove it again."""
    folder = target.parent
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        with writing(target):
            folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise NotADirectoryError(f"{folder} is a file; name a folder to write to.") from None
    try:
        yield
    finally:
        with suppress(OSError):  # not empty
            for path in missing:
                path.rmdir()


def _alone(target: Path) -> AbstractContextManager[None]:
    """Refuse a second process that wants to download or unpack the same file."""
    return only_one(
        target.with_name(f".{target.name}.lock"),
        f"Another process is fetching {target}; wait for it, or name another folder.",
        target=target,
        remove=True,
    )


def _complete(
    url: str, target: Path, checksum: str | None, progress: Progress | None, timeout: float
) -> None:
    part, note = Path(f"{target}.part"), Path(f"{target}.part.json")
    if not target.exists():
        _log.info("downloading %s", url)
        _continue(url, part, note, progress, timeout)
        _verify(part, url, checksum)
        part.replace(target)
    else:
        _verify(target, str(target), checksum)
    note.unlink(missing_ok=True)


def _continue(url: str, part: Path, note: Path, progress: Progress | None, timeout: float) -> None:
    """Bring `part` to its full length."""
    done, tag = _earlier_attempt(url, part, note)
    request = urllib.request.Request(url)
    if done:
        request.add_header("Range", f"bytes={done}-")
        request.add_header("If-Range", tag)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            if getattr(answer, "status", None) != 206:
                done = 0  # the server sends the whole file
            length = answer.headers.get("Content-Length")
            total = done + int(length) if length is not None else None
            tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
            with writing(part), open(part, "r+b" if done else "wb") as file:
                # Only now, when nothing is left of another file: a killed run may end here.
                write_text(note, json.dumps({"url": url, "tag": tag}))
                file.seek(done)
                while chunk := answer.read(_CHUNK):
                    file.write(chunk)
                    done += len(chunk)
                    if progress is not None:
                        progress(done, total)
                file.flush()
                os.fsync(file.fileno())
    except urllib.error.HTTPError as error:
        if error.code == 416 and done:  # what is here does not belong to what is there
            part.unlink()
            _continue(url, part, note, progress, timeout)
            return
        raise OSError(f"{url}: the server answered {error.code} {error.reason}.") from None
    except http.client.InvalidURL as error:
        raise ValueError(f"{url!r} is not a valid address: {error}.") from None
    except (urllib.error.URLError, TimeoutError, OSError, http.client.HTTPException) as error:
        if is_unwritable(error):
            raise
        reason = getattr(error, "reason", error)
        reason = getattr(reason, "strerror", None) or reason
        raise OSError(
            f"{url}: the download stopped after {done} bytes ({reason}); the same command "
            f"continues it."
        ) from None
    if total is not None and done != total:
        raise OSError(
            f"{url}: the download stopped after {done} of {total} bytes; the same command "
            f"continues it."
        )


def _earlier_attempt(url: str, part: Path, note: Path) -> tuple[int, str]:
    """Bytes that an earlier attempt left and the tag of the file they belong to."""
    if not (part.exists() and note.exists()):
        return 0, ""
    try:
        kept = parse_json(note.read_bytes())
        same = kept["url"] == url and bool(kept["tag"])
    except (ValueError, KeyError, TypeError):
        same = False  # a damaged note: start again
    if not same:
        return 0, ""
    return part.stat().st_size, kept["tag"]


def _parse_checksum(checksum: str | None) -> tuple[str, str]:
    kind, _, expected = (checksum or "md5:-").partition(":")
    if kind not in _DIGITS or (checksum and not _DIGITS[kind].fullmatch(expected)):
        raise ValueError(
            f"A checksum must be 'sha256:' and 64 or 'md5:' and 32 digits from 0 to f, not "
            f"{checksum!r}."
        )
    return kind, expected


def _verify(path: Path, origin: str, checksum: str | None) -> None:
    if checksum is None:
        return
    kind, expected = _parse_checksum(checksum)
    digest = hashlib.new(kind)
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    found = digest.hexdigest()
    if found != expected.lower():
        path.unlink()
        raise OSError(
            f"{origin} has {kind} {found}, not {expected}: it is damaged or a different file, "
            f"and was removed."
        )


def fetch(
    name_or_url: str,
    folder: str | PathLike[str],
    *,
    checksum: str | None = None,
    progress: Progress | None = None,
) -> tuple[Path, list[Path]]:
    """Download a file and make dataset folders of what is in it.

    A zip file may hold dataset folders, or pairs of `res101.mat` and `att_splits.mat`
    (`unpack_datasets`); anything else is left as it came.

    Parameters
    ----------
    name_or_url : str
        A name of `SOURCES`, or an address.
    folder : path
        Where the file and the dataset folders go.
    checksum, progress
        As for `download`.

    Returns
    -------
    file : Path
    datasets : list of Path
        Dataset folders that were made (or were there from an earlier call).
    """
    url = find_source(name_or_url)
    name = unquote(PurePosixPath(urlsplit(url).path).name)
    if name in ("", ".", "..") or "/" in name or "\\" in name:
        raise ValueError(f"{url!r} does not name a file.")
    folder = Path(folder)
    file = folder / name
    _check(url, checksum)
    with _folder_for(file), _alone(file):
        _complete(url, file, checksum, progress, _TIMEOUT)
        return file, unpack_datasets(file, folder)
