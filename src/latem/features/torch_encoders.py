"""Encoders that PyTorch runs: torchvision's, timm's and OpenCLIP's.

GoogLeNet's pooled 1024 features are the paper's; ResNet-101's 2048 are those of later work. The
weights are the libraries' own downloads, or local files: those are read as data (safetensors, or
PyTorch's files with `weights_only=True`), so that opening one runs no code.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from latem.core.storage import FileFormatError
from latem.features.encoder import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Encoder,
    Preprocessing,
    file_digest,
)

INSTALL = "pip install 'latem[torch]'"
Weights = str | PathLike[str] | None


class TorchEncoder(Encoder):
    """Encoder around a PyTorch module.

    Parameters
    ----------
    name : str
    module : torch.nn.Module
        Turns pictures, batch × 3 × size × size, into vectors by its method `forward`.
    preprocessing : Preprocessing
    libraries : tuple of str
        Packages the numbers may depend on.
    origin : dict
        What the spec tells about the weights.
    forward : str
    device : str, optional
        By default a GPU if PyTorch has one.
    n_threads : int, optional
        PyTorch's threads, in the whole process; by default PyTorch's own choice.
    """

    def __init__(
        self,
        name: str,
        module: Any,
        preprocessing: Preprocessing,
        *,
        libraries: tuple[str, ...],
        origin: Mapping[str, Any],
        forward: str = "__call__",
        device: str | None = None,
        n_threads: int | None = None,
    ):
        torch = _library("torch")
        self.name = name
        self.preprocessing = preprocessing
        self.versions = {key: str(_library(key).__version__) for key in ("torch", *libraries)}
        self._origin = dict(origin)
        if n_threads is not None:
            torch.set_num_threads(n_threads)
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._module = module.eval().requires_grad_(False).to(self.device)
        self._forward: Callable[[Any], Any] = getattr(self._module, forward)
        blank = np.zeros((1, preprocessing.size, preprocessing.size, 3), np.uint8)
        made = self._run(blank)
        if made.ndim != 2:
            raise ValueError(
                f"Encoder {name!r} gives numbers of shape {made.shape} for a picture, not a "
                f"vector; choose a model with pooled features."
            )
        self.n_features = made.shape[1]

    def _more_spec(self) -> dict[str, Any]:
        return self._origin

    def encode_batch(self, batch: np.ndarray) -> np.ndarray:  # noqa: D102 - as in Encoder
        return self._run(batch)

    def _run(self, batch: np.ndarray) -> np.ndarray:
        torch = _library("torch")
        numbers = self.preprocessing.normalise(batch).transpose(0, 3, 1, 2)
        with torch.inference_mode():
            given = torch.from_numpy(np.ascontiguousarray(numbers)).to(self.device)
            return self._forward(given).float().cpu().numpy()


def load_googlenet(*, weights: Weights = None, **options: Any) -> TorchEncoder:
    """torchvision's GoogLeNet up to its pooled features, 1024 of them."""
    models = _library("torchvision").models
    pretrained = None if weights is not None else models.GoogLeNet_Weights.IMAGENET1K_V1
    # torchvision's weights expect inputs that are scaled differently: transform_input does that
    with _download("googlenet"):
        module = models.googlenet(weights=pretrained, init_weights=False, transform_input=True)
    module.aux1 = module.aux2 = None  # branches for training
    return _torchvision("googlenet", module, weights, pretrained, **options)


def load_resnet101(*, weights: Weights = None, **options: Any) -> TorchEncoder:
    """torchvision's ResNet-101 up to its pooled features, 2048 of them."""
    models = _library("torchvision").models
    pretrained = None if weights is not None else models.ResNet101_Weights.IMAGENET1K_V1
    with _download("resnet101"):
        module = models.resnet101(weights=pretrained)
    return _torchvision("resnet101", module, weights, pretrained, **options)


def _torchvision(
    name: str, module: Any, weights: Weights, pretrained: Any, **options: Any
) -> TorchEncoder:
    module.fc = _library("torch").nn.Identity()
    origin = (
        {"pretrained": pretrained.name} if weights is None else _load_file(name, module, weights)
    )
    preprocessing = Preprocessing(224, IMAGENET_MEAN, IMAGENET_STD, interpolation="bilinear")
    return TorchEncoder(
        name, module, preprocessing, libraries=("torchvision",), origin=origin, **options
    )


def load_timm(model: str, *, weights: Weights = None, **options: Any) -> TorchEncoder:
    """A model of timm by its name, without its classifier."""
    timm = _library("timm")
    if not timm.is_model(model):
        near = timm.list_models(f"*{model.partition('.')[0]}*")[:5]
        hint = f"; it has {', '.join(near)}" if near else ""
        raise ValueError(f"timm has no model {model!r}{hint}.")
    with _download(f"timm:{model}"):
        module = timm.create_model(model, pretrained=weights is None, num_classes=0)
    if weights is None:
        origin = {"pretrained": str(module.pretrained_cfg.get("tag") or "default")}
    else:
        origin = _load_file(f"timm:{model}", module, weights)
    config = timm.data.resolve_model_data_config(module)
    if config["input_size"][1] != config["input_size"][2]:
        raise ValueError(
            f"timm's {model} takes pictures of {config['input_size']}, not square ones."
        )
    preprocessing = Preprocessing(
        int(config["input_size"][1]),
        config["mean"],
        config["std"],
        float(config["crop_pct"]),
        config["interpolation"],
        squash=config.get("crop_mode") == "squash",
    )
    return TorchEncoder(
        f"timm:{model}", module, preprocessing, libraries=("timm",), origin=origin, **options
    )


def load_open_clip(model: str, *, weights: Weights = None, **options: Any) -> TorchEncoder:
    """The image half of an OpenCLIP model, "NAME/PRETRAINED" or "NAME" with a weight file."""
    open_clip = _library("open_clip")
    architecture, _, pretrained = model.partition("/")
    if architecture not in open_clip.list_models():
        raise ValueError(
            f"OpenCLIP has no model {architecture!r}; open_clip.list_models() names those it has."
        )
    if weights is None and not pretrained:
        tags = ", ".join(open_clip.list_pretrained_tags_by_model(architecture)) or "none"
        raise ValueError(
            f"OpenCLIP's {architecture} needs weights: a local file, or one of its own as "
            f"open_clip:{architecture}/PRETRAINED (there are: {tags})."
        )
    origin = {}
    if weights is None:
        with _download(f"open_clip:{model}"):
            module = open_clip.create_model(architecture, pretrained=pretrained)
    else:
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)  # it would say that the weights are random
        try:
            module = open_clip.create_model(architecture)
        finally:
            logging.disable(before)
        origin = _load_file(f"open_clip:{model}", module, weights)
    config = open_clip.get_model_preprocess_cfg(module)
    size = config["size"]
    sides = (size, size) if isinstance(size, int) else tuple(size)
    mode = config.get("resize_mode", "shortest")
    if sides[0] != sides[1] or mode not in ("shortest", "squash"):
        raise ValueError(
            f"OpenCLIP's {model} takes pictures of {sides}, resized by {mode!r}; only square ones, "
            f"cut from the centre or squashed, are supported."
        )
    preprocessing = Preprocessing(
        int(sides[0]),
        config["mean"],
        config["std"],
        crop=1.0,
        interpolation=config.get("interpolation", "bicubic"),
        squash=mode == "squash",
    )
    return TorchEncoder(
        f"open_clip:{model}",
        module,
        preprocessing,
        libraries=("open_clip",),
        origin=origin,
        forward="encode_image",
        **options,
    )


@contextmanager
def _download(name: str) -> Iterator[None]:
    """Around a library's own download: say what to do if it fails."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        raise OSError(
            f"The weights of {name} could not be downloaded: {error}. Without a network give a "
            f"local file (--weights FILE, in Python weights=)."
        ) from None


def _load_file(name: str, module: Any, weights: str | PathLike[str]) -> dict[str, Any]:
    """Fill a module from a weight file; say in plain data which file it was.

    Heads that the module no longer has (a classifier, GoogLeNet's branches) are left out.
    """
    path = Path(weights)
    digest = file_digest(path)
    tensors = _read_file(path)
    known = module.state_dict()
    missing = [key for key in known if key not in tensors]
    wrong = [key for key in known if key in tensors and tensors[key].shape != known[key].shape]
    if missing or wrong:
        what = f"it lacks {missing[0]}" if missing else f"{wrong[0]} has another shape"
        raise FileFormatError(f"{path} does not hold the weights of {name}: {what}.")
    module.load_state_dict({key: tensors[key] for key in known})
    return {"weights": str(path.absolute()), "digest": digest}


def _read_file(path: Path) -> dict[str, Any]:
    torch = _library("torch")
    try:
        if path.suffix.lower() == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # pickle, zip and PyTorch errors, some with unsafe advice
        raise FileFormatError(
            f"{path} cannot be read as a weight file: it is damaged, or holds more than plain "
            f"weights. Save the model's state_dict() alone."
        ) from None
    for key in ("state_dict", "model"):  # a checkpoint of a training holds more than weights
        if isinstance(tensors, dict) and isinstance(tensors.get(key), dict):
            tensors = tensors[key]
    if not isinstance(tensors, dict) or not all(torch.is_tensor(t) for t in tensors.values()):
        raise FileFormatError(f"{path} holds no weights by name (a state_dict).")
    return {str(key).removeprefix("module."): value for key, value in tensors.items()}


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError, OSError) as error:  # builds that do not fit each other
        raise ImportError(
            f"This encoder needs {name}, which cannot be imported ({error}): {INSTALL}."
        ) from None
