"""An ONNX file with the preparation of its pictures in the graph."""

import sys

import numpy as np
import pytest
from export_runs import NETWORKS, network, onnx, open_session

from latem.features import load_encoder

SCALE = {"mean": (0.5, 0.25, 0.0), "std": (0.5, 0.5, 0.25)}


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("kind", NETWORKS)
def test_features_are_those_of_the_encoder(kind, opset, tmp_path):
    path = network(tmp_path / "net.onnx", *NETWORKS[kind], opset=opset)
    encoder = load_encoder(path, **({} if kind == "bytes" else SCALE))
    content = encoder.picture_graph()
    session = open_session(content)
    (taken,) = session.get_inputs()
    (given,) = session.get_outputs()
    assert (taken.name, taken.type, taken.shape) == ("pictures", "tensor(uint8)", ["n", 16, 16, 3])
    assert (given.name, given.type) == ("features", "tensor(float)")
    pixels = np.random.default_rng(0).integers(0, 256, (5, 16, 16, 3), dtype=np.uint8)
    (found,) = session.run(None, {"pictures": pixels})
    np.testing.assert_allclose(found, encoder.encode_batch(pixels), rtol=1e-3, atol=1e-5)
    onnx.checker.check_model(onnx.load_model_from_string(content), full_check=True)


def test_a_fixed_number_of_pictures_is_refused(tmp_path):
    path = network(tmp_path / "net.onnx", (2, 3, 16, 16), "FLOAT", "flat")
    with pytest.raises(ValueError, match=r"net\.onnx fixes how many pictures a run takes"):
        load_encoder(path, **SCALE).picture_graph()


def test_without_onnx(tmp_path, monkeypatch):
    encoder = load_encoder(network(tmp_path / "net.onnx", *NETWORKS["bytes"]))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"needs onnx to be written down: pip install"):
        encoder.picture_graph()
