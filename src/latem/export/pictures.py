"""One graph from pixels to answers: an encoder's graph put before a model's."""

from __future__ import annotations

from typing import Any

from latem.export.graph import onnx_module

_PREFIX = "encoder/"


def with_encoder(head: Any, encoder: Any, opset: int) -> Any:
    """A model's graph that takes pictures instead of features.

    Parameters
    ----------
    head : onnx model
        From `features` to answers.
    encoder : Encoder
        One that is an ONNX graph itself.
    opset : int
        Version of the operators in `head`, to which the encoder's graph is converted.

    Returns
    -------
    onnx model
        Its input `pictures` takes what `encoder.prepare` gives.
    """
    onnx = onnx_module()
    first = onnx.load_model_from_string(encoder.picture_graph())
    others = [one for one in first.opset_import if one.domain not in ("", "ai.onnx")]
    own = next(one.version for one in first.opset_import if one.domain in ("", "ai.onnx"))
    if own != opset:
        first = _converted(onnx, first, opset, own)
    first = onnx.compose.add_prefix(first, _PREFIX)
    merged = onnx.ModelProto()
    merged.CopyFrom(head)
    merged.ir_version = max(head.ir_version, first.ir_version)
    merged.opset_import.extend(others)
    merged.functions.extend(first.functions)
    graph = merged.graph
    (taken,) = [one for one in graph.input if one.name == "features"]
    graph.input.remove(taken)
    pictures = first.graph.input[0]
    pictures.name = "pictures"
    graph.input.insert(0, pictures)
    ends = [("pictures", f"{_PREFIX}pictures"), (f"{_PREFIX}features", "features")]
    before, after = (onnx.helper.make_node("Identity", [a], [b]) for a, b in ends)
    nodes = [before, *first.graph.node, after, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    graph.initializer.extend(first.graph.initializer)
    return merged


def _converted(onnx: Any, model: Any, opset: int, own: int) -> Any:
    from onnx import version_converter

    try:
        return version_converter.convert_version(model, opset)
    except Exception as error:  # onnx's converter has errors of several kinds
        raise ValueError(
            f"The encoder's graph is written in opset {own} and cannot be converted to {opset}: "
            f"{error}. Export with opset={own} (--opset {own})."
        ) from None
