"""Encoders: networks, trained elsewhere, that turn a picture into a vector.

One small interface over several libraries, none of which is imported before it is needed. What an
encoder is can be written down as a plain dict, its *spec*, which a dataset or a model file keeps:
from it the same encoder is built again, or an error says what has changed.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latem.datasets.dataset import read_encoder
from latem.features.pictures import pillow, read_picture, to_rgb

if TYPE_CHECKING:
    from PIL import Image

DEFAULT_ENCODER = "efficientnet-lite0"
INTERPOLATIONS = ("bicubic", "bilinear", "lanczos", "nearest")
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

# name, or what stands before its colon → module and function that load it, options it takes;
# what stands behind the colon is the function's argument
_FAMILIES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "efficientnet-lite0": ("efficientnet", "EfficientNetLite0", ("n_threads",)),
    "googlenet": ("torch_encoders", "load_googlenet", ("weights", "device", "n_threads")),
    "resnet101": ("torch_encoders", "load_resnet101", ("weights", "device", "n_threads")),
    "timm": ("torch_encoders", "load_timm", ("weights", "device", "n_threads")),
    "open_clip": ("torch_encoders", "load_open_clip", ("weights", "device", "n_threads")),
    "onnx": (
        "onnx_encoder",
        "OnnxEncoder",
        ("weights", "size", "mean", "std", "crop", "interpolation", "output", "n_threads"),
    ),
}
_FORMS = (
    *("efficientnet-lite0", "googlenet", "resnet101"),
    *("timm:NAME", "open_clip:NAME/PRETRAINED", "FILE.onnx"),
)


@dataclass(frozen=True)
class Preprocessing:
    """How a picture becomes an encoder's input.

    The square in the middle of the picture, `crop` times as wide as the picture's shorter side,
    is resized to `size` × `size`. (With the usual crop of 0.875 and 224 pixels that is "resize
    the shorter side to 256, cut 224 from the centre", in one step.) Then the pixels, counted
    from 0 to 1, lose `mean` and are divided by `std`, channel by channel.

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

    def prepare(self, picture: Any) -> np.ndarray:
        """Input pixels of one picture: uint8 of shape (size, size, 3).

        Parameters
        ----------
        picture : path, PIL image, or uint8 array
            Arrays are height × width, with nothing (grey), 3 (RGB) or 4 (RGBA) channels behind.
        """
        if isinstance(picture, str | PathLike):
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
                f"A picture must be a path, a PIL image or a uint8 array, not "
                f"{type(picture).__name__}."
            )
        return self.preprocessing.fit(to_rgb(picture))

    def encode(self, pictures: Iterable[Any], *, batch_size: int = 32) -> np.ndarray:
        """Vectors of pictures.

        Parameters
        ----------
        pictures : iterable of paths, PIL images or uint8 arrays
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


def load_encoder(name_or_spec: str | PathLike[str] | Mapping[str, Any], **options: Any) -> Encoder:
    """Encoder by its name, or again from its spec.

    Parameters
    ----------
    name_or_spec : str, path or mapping
        "efficientnet-lite0" (its weights come with a package), "googlenet" or "resnet101"
        (torchvision's), "timm:NAME", "open_clip:NAME/PRETRAINED", the path of an ONNX file, or
        an encoder's `spec`.
    **options
        weights : path of a local weight file; without it the library downloads its own.
        size, mean, std, crop, interpolation : how pictures are prepared (ONNX files only).
        output : which output of an ONNX file to take; by default the first.
        device : "cpu", "cuda", …; by default what PyTorch has.
        n_threads : by default every core.

    Returns
    -------
    Encoder

    Raises
    ------
    ImportError
        If a library is missing; the message says how to install it.
    ValueError
        If the encoder is unknown, or is not the one the spec describes.
    """
    spec = dict(name_or_spec) if isinstance(name_or_spec, Mapping) else None
    if spec is not None and not isinstance(spec.get("name"), str):
        raise ValueError(
            f"An encoder's spec needs its name; it has {', '.join(spec) or 'nothing'}."
        )
    name = spec["name"] if spec else str(name_or_spec)
    if name.lower().endswith(".onnx"):
        options = {"weights": name, **options}
        name = "onnx"
    family, _, model = name.partition(":")
    if family not in _FAMILIES or bool(model) != (family in ("timm", "open_clip")):
        near = difflib.get_close_matches(name, _FORMS, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"There is no encoder {name!r}; there are {', '.join(_FORMS)}.{hint}")
    module, function, allowed = _FAMILIES[family]
    for key in options:
        if key not in allowed:
            raise TypeError(
                f"Encoder {name!r} takes no option {key!r}; it takes {', '.join(allowed)}."
            )
    if spec:
        options = {key: value for key, value in spec.items() if key in allowed} | options
    load = getattr(importlib.import_module(f"latem.features.{module}"), function)
    encoder: Encoder = load(model, **options) if model else load(**options)
    if spec:
        _check_same(encoder, spec)
    return encoder


def _check_same(encoder: Encoder, spec: Mapping[str, Any]) -> None:
    found = json.loads(json.dumps(encoder.spec))
    for key, value in spec.items():
        if key != "weights" and found.get(key) != (
            list(value) if key in ("mean", "std") else value
        ):
            raise ValueError(
                f"Encoder {encoder.name!r} is not the one that is wanted: its {key} is "
                f"{found.get(key)!r}, not {value!r}. Give the right file as weights, or embed the "
                f"pictures anew."
            )


def encoder_spec(dataset: Any) -> dict[str, Any]:
    """Spec of the encoder that made a dataset's features.

    Parameters
    ----------
    dataset : ZeroShotDataset, or its `info`

    Returns
    -------
    dict
        For `load_encoder`.
    """
    spec = read_encoder(getattr(dataset, "info", dataset))
    if spec is None:
        raise ValueError(
            "This dataset does not say which encoder made its features; datasets made by "
            "latem embed images do."
        )
    return spec


def file_digest(path: Path) -> str:
    """SHA-256 of a weight file, as "sha256:…"."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no weight file {str(path)!r}.")
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return f"sha256:{digest.hexdigest()}"
