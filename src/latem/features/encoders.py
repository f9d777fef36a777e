"""The encoders there are, and how one is loaded by its name or from its spec.

One small interface over several libraries, none of which is imported before it is needed.
"""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Mapping
from os import PathLike
from typing import Any

from latem.core.messages import near_name
from latem.datasets.dataset import read_encoder
from latem.features.encoder import Encoder

DEFAULT_ENCODER = "efficientnet-lite0"
_TORCH = "latem.features.torch_encoders"

_log = logging.getLogger(__name__)

# name, or what stands before its colon → module and function that load it, options it takes;
# what stands behind the colon is the function's argument
_FAMILIES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "efficientnet-lite0": (
        "latem.features.efficientnet",
        "EfficientNetLite0",
        ("squash", "n_threads"),
    ),
    "googlenet": (_TORCH, "load_googlenet", ("weights", "device", "n_threads")),
    "resnet101": (_TORCH, "load_resnet101", ("weights", "device", "n_threads")),
    "timm": (_TORCH, "load_timm", ("weights", "device", "n_threads")),
    "open_clip": (_TORCH, "load_open_clip", ("weights", "device", "n_threads")),
    "onnx": (
        "latem.features.onnx_encoder",
        "OnnxEncoder",
        ("weights", "size", "mean", "std", "crop", "interpolation", "output", "n_threads"),
    ),
}
_FORMS = (
    *("efficientnet-lite0", "googlenet", "resnet101"),
    *("timm:NAME", "open_clip:NAME/PRETRAINED", "FILE.onnx"),
)


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
        squash : whether pictures are squeezed into a square (efficientnet-lite0 only).
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
        hint = near_name(name, _FORMS)
        raise ValueError(f"There is no encoder {name!r}; there are {', '.join(_FORMS)}.{hint}")
    module, function, allowed = _FAMILIES[family]
    for key in options:
        if key not in allowed:
            raise TypeError(
                f"Encoder {name!r} takes no option {key!r}; it takes {', '.join(allowed)}."
            )
    if spec:
        options = {key: value for key, value in spec.items() if key in allowed} | options
    load = getattr(importlib.import_module(module), function)
    encoder: Encoder = load(model, **options) if model else load(**options)
    if spec:
        _check_same(encoder, spec)
    _log.info("loaded the encoder %s: %d features", name, encoder.n_features)
    return encoder


def _check_same(encoder: Encoder, spec: Mapping[str, Any]) -> None:
    found = json.loads(json.dumps(encoder.spec))
    for key, value in spec.items():
        if key != "weights" and found.get(key) != (
            list(value) if key in ("mean", "std") else value
        ):
            raise ValueError(
                f"Encoder {encoder.name!r} is not the one the spec describes: its {key} "
                f"is {found.get(key)!r}, not {value!r}. Give the right file as weights, or embed "
                f"the pictures again."
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
