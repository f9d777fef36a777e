"""Vectors of many pictures: decoded in threads, encoded in batches, resumable.

While the encoder works on one batch, threads read, decode and shrink the pictures of the next.
Eight batches make a *chunk*, which is written to a folder as soon as it is done. A chunk's name is
a digest of everything its numbers depend on: encoder, library versions, and the path, size and time
of each file. So an interrupted run continues with the chunks that are there, a changed picture or
encoder is noticed, and batches are composed alike whether there was an interruption or not: the
vectors are the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from latem.core.atomic import atomic_path
from latem.core.storage import FileFormatError, read_file, write_file
from latem.core.version import __version__
from latem.datasets.picture_files import Picture, PictureError
from latem.features.encoder import Encoder

N_BATCHES = 8  # in a chunk
_AHEAD = 4  # batches that are decoded in advance
_KIND = "chunk of embedded pictures"

Progress = Callable[[int, int], None]


class Chunks:
    """The vectors of some pictures, chunk by chunk, kept in a folder.

    Parameters
    ----------
    pictures : list of Picture
    encoder : Encoder
    work : Path
        A folder that exists.
    batch_size : int
    n_threads : int
        Threads that decode.

    Attributes
    ----------
    n_reused : int
        Pictures that an earlier run had done.
    """

    def __init__(
        self, pictures: list[Picture], encoder: Encoder, work: Path, batch_size: int, n_threads: int
    ):
        self.pictures = pictures
        self.encoder = encoder
        self.work = work
        self.batch_size = batch_size
        self.n_threads = n_threads
        self.n_reused = 0

    def features(self, progress: Progress) -> tuple[np.ndarray, dict[int, str]]:
        """Vectors of all pictures that can be read, and why the others cannot.

        Parameters
        ----------
        progress : callable
            Called with the number of pictures done and of all pictures.

        Returns
        -------
        features : memory map of shape (n_readable, n_features), float32
        failures : dict of int to str
            Reason by the picture's number.
        """
        total, length = len(self.pictures), N_BATCHES * self.batch_size
        chunks = [range(first, min(first + length, total)) for first in range(0, total, length)]
        files = [self._file(chunk) for chunk in chunks]
        waiting = [i for i, file in enumerate(files) if not _usable(file)]
        n_done = self.n_reused = total - sum(len(chunks[i]) for i in waiting)
        progress(n_done, total)
        with Decoder(self.encoder, self.n_threads, _AHEAD * self.batch_size) as decoder:
            prepared = decoder.read(self.pictures[row].path for i in waiting for row in chunks[i])
            for i in waiting:
                vectors = [np.empty((0, self.encoder.n_features), np.float32)]
                failures: dict[str, str] = {}
                for first in range(0, len(chunks[i]), self.batch_size):
                    rows = chunks[i][first : first + self.batch_size]
                    vectors.append(self._encode(rows, prepared, failures))
                    n_done += len(rows)
                    progress(n_done, total)
                tensors = {"vectors": np.concatenate(vectors)}
                write_file(files[i], _KIND, tensors, {"failures": failures})
        return self._assemble(files)

    def _encode(
        self, rows: range, prepared: Iterator[np.ndarray | str], failures: dict[str, str]
    ) -> np.ndarray:
        """Vectors of the next batch; why pictures in it cannot be read goes to `failures`."""
        batch = []
        for row in rows:
            pixels = next(prepared)
            if isinstance(pixels, str):
                failures[str(row)] = pixels
            else:
                batch.append(pixels)
        if not batch:
            return np.empty((0, self.encoder.n_features), np.float32)
        vectors = self.encoder.encode_batch(np.stack(batch))
        if not np.isfinite(vectors).all():
            raise ValueError(
                f"Encoder {self.encoder.name!r} gave numbers that are not finite in the "
                f"batch that begins with {self.pictures[rows[0]].image!r}; check the encoder's "
                f"file, mean and std."
            )
        return vectors

    def _file(self, chunk: range) -> Path:
        """Where a chunk is kept; the name tells what its numbers depend on."""
        spec = {key: value for key, value in self.encoder.spec.items() if key != "weights"}
        versions = {**self.encoder.versions, "latem": __version__, "pillow": pillow_version()}
        pictures = [_identity(self.pictures[row]) for row in chunk]
        facts = json.dumps([spec, versions, self.batch_size, pictures])
        digest = hashlib.sha256(facts.encode()).hexdigest()
        return self.work / f"{chunk.start:08d}-{digest[:32]}.safetensors"

    def _assemble(self, files: list[Path]) -> tuple[np.ndarray, dict[int, str]]:
        failures: dict[int, str] = {}
        for file in files:
            meta = read_file(file, _KIND)[1]
            failures |= {int(row): reason for row, reason in meta["failures"].items()}
        shape = (len(self.pictures) - len(failures), self.encoder.n_features)
        target = self.work / "features.npy"
        layout = {"descr": "<f4", "fortran_order": False, "shape": shape}
        # Written, not mapped: on a full disk a map would end the process without a word.
        with atomic_path(target) as temporary, open(temporary, "wb") as features:
            np.lib.format.write_array_header_1_0(features, layout)
            for file in files:
                features.write(np.asarray(read_file(file, _KIND)[0]["vectors"], "<f4").tobytes())
        return np.load(target, mmap_mode="r"), failures


def _usable(file: Path) -> bool:
    """Whether a chunk is there, and whole."""
    if not file.is_file():
        return False
    try:
        read_file(file, _KIND)
    except FileFormatError:
        return False
    return True


def _identity(picture: Picture) -> list:
    try:
        facts = os.stat(picture.path)
    except OSError:
        return [picture.image, None, None]
    return [picture.image, facts.st_size, facts.st_mtime_ns]


def pillow_version() -> str:
    """Version of Pillow, which the pixels may depend on."""
    import PIL

    return PIL.__version__


class Decoder:
    """Threads that prepare pictures for an encoder, a little ahead of it, in order.

    Parameters
    ----------
    encoder : Encoder
    n_threads : int
    ahead : int
        How many pictures to prepare in advance.
    """

    def __init__(self, encoder: Encoder, n_threads: int, ahead: int):
        self._encoder = encoder
        self._ahead = ahead + n_threads
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix="decode")

    def __enter__(self) -> Decoder:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def read(self, paths: Iterator[Path]) -> Iterator[np.ndarray | str]:
        """Pixels of each picture, or the reason why there are none."""
        waiting: deque[Future[np.ndarray | str]] = deque()
        for path in paths:
            waiting.append(self._pool.submit(prepared, self._encoder, path))
            if len(waiting) > self._ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def prepared(encoder: Encoder, picture: Any) -> np.ndarray | str:
    """Pixels of a picture for an encoder, or the reason why there are none.

    Parameters
    ----------
    encoder : Encoder
    picture
        As for `Encoder.prepare`.
    """
    try:
        return encoder.prepare(picture)
    except PictureError as error:
        return error.reason
    except (ValueError, MemoryError) as error:  # of a picture with extreme sides
        return f"it cannot be resized: {error or 'out of memory'}"
