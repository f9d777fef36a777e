"""An ONNX file with the preparation of its pictures written into the graph.

What `OnnxEncoder` does around a run, normalising pixels, turning axes and averaging maps of
features, becomes nodes before and after the file's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from latem.features.encoder import Preprocessing

_AXES_ARE_INPUTS = 18  # opset from which ReduceMean takes axes as an input
_FILE, _OWN = "file/", "latem/"  # before the names of what is in the file, and what is added


class PicturePorts(NamedTuple):
    """How a file takes pictures and gives features.

    Attributes
    ----------
    taken : str
        Name of its input.
    dtype : numpy dtype
        Type of the input.
    channels_first : bool
        Whether colours come before height and width.
    fixed : bool
        Whether the file fixes how many pictures a run takes.
    given : str
        Name of its output.
    averaged : bool
        Whether the output has height and width, which are averaged.
    """

    taken: str
    dtype: np.dtype
    channels_first: bool
    fixed: bool
    given: str
    averaged: bool


def picture_graph(path: Path, ports: PicturePorts, how: Preprocessing, n_features: int) -> bytes:
    """Graph from `pictures` to `features`.

    Parameters
    ----------
    path : path of an ONNX file
    ports : PicturePorts
    how : Preprocessing
    n_features : int

    Returns
    -------
    bytes
        See `Encoder.picture_graph`.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    if ports.fixed:
        raise ValueError(
            f"{path} fixes how many pictures a run takes, so it cannot be part of a graph that "
            f"takes any number; export the network again with a batch of variable length."
        )
    model = onnx.compose.add_prefix(onnx.load(str(path)), _FILE)
    graph = model.graph
    before: list[Any] = []
    constants: list[Any] = []

    def constant(name: str, value: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(value, _OWN + name))
        return _OWN + name

    def node(kind: str, *inputs: str, **attributes: Any) -> str:
        made = f"{_OWN}{len(before)}"
        before.append(helper.make_node(kind, list(inputs), [made], **attributes))
        return made

    x = "pictures"
    if ports.dtype != np.uint8:
        mean = (255 * np.array(how.mean)).astype(np.float32)
        scale = (1 / (255 * np.array(how.std))).astype(np.float32)
        x = node("Cast", x, to=TensorProto.FLOAT)
        x = node("Mul", node("Sub", x, constant("mean", mean)), constant("scale", scale))
        if ports.dtype == np.float16:
            x = node("Cast", x, to=TensorProto.FLOAT16)
    if ports.channels_first:
        x = node("Transpose", x, perm=[0, 3, 1, 2])
    before.append(helper.make_node("Identity", [x], [_FILE + ports.taken]))
    after = _features(model, ports, constant)
    nodes = [*before, *graph.node, *after]
    del graph.node[:]
    graph.node.extend(nodes)
    graph.initializer.extend(constants)
    del graph.input[:], graph.output[:]
    side = how.size
    graph.input.append(
        helper.make_tensor_value_info("pictures", TensorProto.UINT8, ["n", side, side, 3])
    )
    graph.output.append(
        helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", n_features])
    )
    del graph.value_info[:]  # shapes may speak of another name for the number of pictures
    onnx.checker.check_model(model)
    return model.SerializeToString()


def _features(model: Any, ports: PicturePorts, constant: Any) -> list[Any]:
    """Nodes from the file's output to features: the mean over height and width, if it has them."""
    from onnx import TensorProto, helper

    last = _FILE + ports.given
    nodes = []
    if ports.averaged:
        opset = next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
        options: dict[str, Any] = {"axes": [2, 3]}
        inputs = [last]
        if opset >= _AXES_ARE_INPUTS:
            inputs, options = [last, constant("axes", np.array([2, 3], np.int64))], {}
        last = f"{_OWN}mean_over_pictures"
        nodes.append(helper.make_node("ReduceMean", inputs, [last], keepdims=0, **options))
    return [*nodes, helper.make_node("Cast", [last], ["features"], to=TensorProto.FLOAT)]
