"""Exported graphs, run by onnxruntime."""

import json

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from latem.features.onnx_encoder import onnxruntime, open_session  # noqa: E402


def newest_opset():
    """The newest opset that the installed onnxruntime runs."""
    helper = onnx.helper
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n"])
    made = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n"])
    node = helper.make_node("Abs", ["x"], ["y"])
    for opset in range(onnx.defs.onnx_opset_version(), 17, -1):
        opsets = [helper.make_opsetid("", opset)]
        model = helper.make_model(
            helper.make_graph([node], "g", [value], [made]),
            opset_imports=opsets,
            ir_version=helper.find_min_ir_version_for(opsets, ignore_unknown=True),
        )
        try:
            open_session(model.SerializeToString())
        except Exception:  # onnxruntime's errors have no common kind
            continue
        return opset
    raise AssertionError(f"onnxruntime {onnxruntime().__version__} runs nothing newer than 17")


def run(path, **given):
    """Outputs of a file by name."""
    session = open_session(path)
    names = [one.name for one in session.get_outputs()]
    arrays = {name: np.asarray(value) for name, value in given.items()}
    return dict(zip(names, session.run(names, arrays), strict=True))


def about(path):
    """What a file says about itself."""
    return json.loads(open_session(path).get_modelmeta().custom_metadata_map["latem"])


def gap(found, expected):
    """Largest difference, in shares of the largest expected number."""
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def evaluated(graph, made, **given):
    """What a value of a graph is."""
    shape = ["a", "b"]
    graph.output("y", made, shape[:1] if made.dtype == np.int64 else shape)
    helper = onnx.helper
    model = helper.make_model(
        helper.make_graph(graph.nodes, "g", graph.inputs, graph.outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", graph.opset)],
        ir_version=max(8, helper.find_min_ir_version_for([helper.make_opsetid("", graph.opset)])),
    )
    (found,) = open_session(model.SerializeToString()).run(["y"], given)
    return found


NETWORKS = {
    "colours first": (("n", 3, 16, 16), "FLOAT", "flat"),
    "colours last": (("n", 16, 16, 3), "FLOAT", "flat"),
    "half precision": (("n", 3, 16, 16), "FLOAT16", "flat"),
    "bytes": (("n", 16, 16, 3), "UINT8", "flat"),
    "maps of features": (("n", 3, 16, 16), "FLOAT", "maps"),
}


def network(path, shape, kind, how, opset=13):
    """A network whose features are means and maxima of the colours."""
    helper, kinds = onnx.helper, onnx.TensorProto
    x, nodes = "pictures", []
    if kind != "FLOAT":
        nodes.append(helper.make_node("Cast", [x], ["cast"], to=kinds.FLOAT))
        x = "cast"
    if shape[1] != 3:
        nodes.append(helper.make_node("Transpose", [x], ["turned"], perm=[0, 3, 1, 2]))
        x = "turned"
    pool = ["GlobalAveragePool", "GlobalMaxPool"]
    if how == "maps":
        nodes.append(helper.make_node("Concat", [x, x], ["deep"], axis=1))
    else:
        nodes += [helper.make_node(one, [x], [one]) for one in pool]
        nodes.append(helper.make_node("Concat", pool, ["deepest"], axis=1))
        nodes.append(helper.make_node("Flatten", ["deepest"], ["deep"], axis=1))
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("pictures", getattr(kinds, kind), shape)],
        [helper.make_tensor_value_info("deep", kinds.FLOAT, None)],
    )
    opsets = [helper.make_opsetid("", opset)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path
