"""A network small enough to be made on the spot."""

import onnx
from onnx import TensorProto, helper


def tiny_onnx(path, shape, kind=TensorProto.FLOAT, flat=True):
    """A network whose features are the means of the channels, and a second output: their maxima."""
    nodes, x = [], "pictures"
    if kind != TensorProto.FLOAT:
        nodes.append(helper.make_node("Cast", [x], ["cast"], to=TensorProto.FLOAT))
        x = "cast"
    if shape[1] != 3:
        nodes.append(helper.make_node("Transpose", [x], ["turned"], perm=[0, 3, 1, 2]))
        x = "turned"
    if flat:
        nodes.append(helper.make_node("ReduceMean", [x], ["means"], axes=[2, 3], keepdims=0))
    else:
        nodes.append(helper.make_node("AveragePool", [x], ["means"], kernel_shape=[2, 2]))
    nodes.append(helper.make_node("ReduceMax", [x], ["maxima"], axes=[2, 3], keepdims=0))
    nodes.append(helper.make_node("Identity", [x], ["raw"]))
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        for name in ("means", "maxima", "raw")
    ]
    inputs = [helper.make_tensor_value_info("pictures", kind, shape)]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)
    return path
