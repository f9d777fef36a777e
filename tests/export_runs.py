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
