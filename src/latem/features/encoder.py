"""What an encoder is: a network, trained elsewhere, that turns a picture into a vector.

What it is can be written down as a plain dict, its *spec*, which a dataset or a model file keeps:
`latem.features.encoders.load_encoder` builds the same encoder from it again, or an error says what
has changed.
"""

from __future__ import annotations

import hashlib
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latem.core.paths import no_file
from latem.features.pictures import pillow, read_picture, to_rgb

if TYPE_CHECKING:
    from PIL import Image

INTERPOLATIONS = ("bicubic", "bilinear", "lanczos", "nearest")
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Preprocessing:
    """How a picture becomes an encoder's input.

    The square in the middle of the picture, `crop` times as wide as the picture's shorter side,
    is resized to `size` × `size`. (With the usual crop of 0.875 and 224 pixels that is "resize
    the shorter side to 256, cut 224 from the centre", in one step.) Then the pixels, counted
    from 0 to 1, have `mean` subtracted and are divided by `std`, channel by channel.

    Parameters
    ----------
    size : int
    mean, std : three floats
        For red, green and blue.
    crop : float
        From 0 (exclusive) to 1.
    interpolation : {"bicubic", "bilinear", "lanczos", "nearest"}
    squash : bool
        The whole picture is made square instead; nothing is cut.
    """

    size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    crop: float = 0.875
    interpolation: str = "bicubic"
    squash: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise ValueError(f"size must be a number of pixels, but is {self.size!r}.")
        for key in ("mean", "std"):
            values = getattr(self, key)
            values = values if isinstance(values, Sequence) else (values,)
            try:
                values = tuple(float(value) for value in values)
            except (TypeError, ValueError):
                values = ()
            if len(values) != 3 or not np.isfinite(values).all():
                raise ValueError(
                    f"{key} must be three numbers, for red, green and blue counted from 0 to 1, "
                    f"but is {getattr(self, key)!r}."
                )
            object.__setattr__(self, key, values)
        if min(self.std) <= 0:
            raise ValueError(f"std must be positive, but is {self.std}.")
        if not 0 < self.crop <= 1:
            raise ValueError(f"crop must lie above 0 and not above 1, but is {self.crop!r}.")
        if self.interpolation not in INTERPOLATIONS:
            raise ValueError(
                f"interpolation must be one of {', '.join(INTERPOLATIONS)}, not "
                f"{self.interpolation!r}."
            )

    def fit(self, picture: Image.Image) -> np.ndarray:
        """Input pixels of an RGB picture: uint8 of shape (size, size, 3)."""
        width, height = picture.size
        across = down = min(width, height) * self.crop
        if self.squash:
            across, down = width, height
        left, top = (width - across) / 2, (height - down) / 2
        method = pillow().Resampling[self.interpolation.upper()]
        box = (left, top, left + across, top + down)
        return np.asarray(picture.resize((self.size, self.size), method, box=box))

    def normalise(self, batch: np.ndarray) -> np.ndarray:
        """Input numbers of uint8 pixels: float32 of the same shape (…, 3)."""
        mean = (255 * np.array(self.mean)).astype(np.float32)
        scale = (1 / (255 * np.array(self.std))).astype(np.float32)
        return (batch.astype(np.float32) - mean) * scale


class Encoder(ABC):
    """Turns pictures into vectors.

    Attributes
    ----------
    name : str
        What `load_encoder` knows it by.
    n_features : int
        Width of the vectors.
    preprocessing : Preprocessing
    versions : dict of str to str
        Versions of the libraries its numbers may depend on.
    """

    name: str
    n_features: int
    preprocessing: Preprocessing
    versions: Mapping[str, str] = {}

    @property
    def spec(self) -> dict[str, Any]:
        """What the encoder is, as plain data; `load_encoder` builds it again from this."""
        ours = self.preprocessing
        return {
            "name": self.name,
            "n_features": self.n_features,
            "size": ours.size,
            "mean": list(ours.mean),
            "std": list(ours.std),
            "crop": ours.crop,
            "interpolation": ours.interpolation,
            "squash": ours.squash,
            **self._more_spec(),
        }

    def _more_spec(self) -> dict[str, Any]:
        return {}

    @abstractmethod
    def encode_batch(self, batch: np.ndarray) -> np.ndarray:
        """Vectors of prepared pictures.

        Parameters
        ----------
        batch : ndarray of shape (n, size, size, 3), uint8

        Returns
        -------
        ndarray of shape (n, n_features), float32
        """

    def picture_graph(self) -> bytes:
        """The encoder as an ONNX graph, if it is one.

        Its one input is `pictures`, (n, size, size, 3) uint8 as `prepare` gives them, and its one
        output `features`, (n, n_features) float32.
        """
        raise TypeError(
            f"Encoder {self.name!r} is no ONNX graph, so it cannot be written as one; embed the "
            f"pictures with efficientnet-lite0 or an ONNX file, or leave the encoder out."
        )

    def prepare(self, picture: Any) -> np.ndarray:
        """Input pixels of one picture: uint8 of shape (size, size, 3).

        Parameters
        ----------
        picture : path, bytes of a picture file, binary file, PIL image, or uint8 array
            Arrays are height × width (grey), or that × 3 (RGB) or × 4 (RGBA).
        """
        if isinstance(picture, bytes | bytearray | memoryview):
            picture = io.BytesIO(picture)
        if isinstance(picture, str | PathLike) or callable(getattr(picture, "read", None)):
            # twice what is needed: a JPEG decoded at half its size looks the same then
            ours = self.preprocessing
            return ours.fit(read_picture(picture, at_least=round(2 * ours.size / ours.crop)))
        if isinstance(picture, np.ndarray):
            deep = picture.ndim == 3 and picture.shape[2] in (3, 4)
            if picture.dtype != np.uint8 or not (deep or picture.ndim == 2) or not picture.size:
                raise ValueError(
                    f"A picture must be uint8 of shape height × width, × 3 or × 4, not "
                    f"{picture.dtype} of shape {picture.shape}."
                )
            picture = pillow().fromarray(picture)
        elif not isinstance(picture, pillow().Image):
            raise TypeError(
                f"A picture must be a path, the bytes of a file, a binary file, a PIL image or a "
                f"uint8 array, not {type(picture).__name__}."
            )
        return self.preprocessing.fit(to_rgb(picture))

    def encode(self, pictures: Iterable[Any], *, batch_size: int = 32) -> np.ndarray:
        """Vectors of pictures.

        Parameters
        ----------
        pictures : iterable of paths, bytes, binary files, PIL images or uint8 arrays
        batch_size : int

        Returns
        -------
        ndarray of shape (n_pictures, n_features), float32
        """
        if isinstance(pictures, str | PathLike):
            raise TypeError(f"encode needs a list of pictures; write [{str(pictures)!r}].")
        pictures = list(pictures)
        vectors = np.empty((len(pictures), self.n_features), np.float32)
        for first in range(0, len(pictures), batch_size):
            some = pictures[first : first + batch_size]
            batch = np.stack([self.prepare(picture) for picture in some])
            vectors[first : first + len(some)] = self.encode_batch(batch)
        return vectors

    def __repr__(self) -> str:
        return f"<encoder {self.name}: {self.n_features} features>"


def file_digest(path: Path) -> str:
    """SHA-256 of a weight file, as "sha256:…"."""
    if not os.path.isfile(path):  # False also for what cannot be a name of a file
        raise no_file(path, "weight file")
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return f"sha256:{digest.hexdigest()}"
