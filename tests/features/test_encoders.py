"""Encoders: a real one from a package on real photos, ONNX files, what a spec promises."""

import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets
from onnx import TensorProto
from PIL import Image
from tiny_onnx import tiny_onnx

from latem.core.storage import FileFormatError
from latem.datasets import load_emoji
from latem.embeddings.wordnet import load_wordnet
from latem.features import Preprocessing, encoder_spec, load_encoder, read_picture
from latem.features import efficientnet as module

PHOTOS = Path(sklearn.datasets.__file__).parent / "images"
CHINA, FLOWER = PHOTOS / "china.jpg", PHOTOS / "flower.jpg"
# Every 40th of the 1280 features, and their norm; PyTorch with the same weights agrees to 1e-5.
# fmt: off
STORED = {
    CHINA: ([
        0, 1.52546, 0, 0.41842, 0, 0, 0, 0.00767, 0, 0.24314, 0, 0, 0, 0.01061, 0, 0, 0.06925, 0,
        0.26411, 0, 0, 0, 0, 0.02857, 0, 0, 0, 0.10198, 0, 0.0269, 0.02299, 0.00447,
    ], 15.05786),
    FLOWER: ([
        0, 0, 0, 0.05988, 0, 0.72658, 0.01049, 0.50237, 0, 0, 0.0054, 0, 0, 0, 0.13667, 0, 0.00179,
        0, 0.03954, 0.04061, 0, 0, 0, 0, 0, 0.37673, 0, 0.04646, 0, 0.40115, 0.20778, 0,
    ], 16.20376),
}
# fmt: on


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("efficientnet-lite0")


def test_vectors_of_real_photos(encoder):
    vectors = encoder.encode([CHINA, FLOWER])
    assert vectors.dtype == np.float32
    assert vectors.shape == (2, encoder.n_features) == (2, 1280)
    for vector, (entries, norm) in zip(vectors, STORED.values(), strict=True):
        np.testing.assert_allclose(vector[::40], entries, atol=1e-4)
        assert np.linalg.norm(vector) == pytest.approx(norm, abs=1e-3)


def test_the_classifier_knows_what_is_on_the_photos(encoder):
    weights, bias, ids = module.classifier()
    assert (weights.shape, bias.shape, len(set(ids))) == ((1000, 1280), (1000,), 1000)
    wordnet = load_wordnet()
    best = np.argsort(-encoder.logits([CHINA, FLOWER]), axis=1)[:, :3]
    china, flower = ([wordnet.synset(ids[i]).name for i in row] for row in best)
    assert china == ["palace.n.04", "bell_cote.n.01", "monastery.n.01"]
    assert flower[0] == "daisy.n.01"


def test_a_vector_depends_on_its_picture_only(encoder):
    pictures = [CHINA, FLOWER, CHINA, FLOWER, CHINA]
    together = encoder.encode(pictures)
    np.testing.assert_array_equal(together[0], together[4])
    np.testing.assert_array_equal(encoder.encode(pictures, batch_size=2), together)
    np.testing.assert_array_equal(encoder.encode([FLOWER]), together[1:2])
    for n_threads in (1, 3):
        other = load_encoder("efficientnet-lite0", n_threads=n_threads)
        np.testing.assert_array_equal(other.encode(pictures), together)
    assert encoder.encode([]).shape == (0, 1280)


def test_kinds_of_pictures(encoder):
    image = read_picture(CHINA)
    pixels = np.asarray(image)
    clear = np.dstack([pixels, np.full(pixels.shape[:2], 255, np.uint8)])
    vectors = encoder.encode([CHINA, str(CHINA), image, pixels, clear])
    assert (vectors == vectors[0]).all()
    assert encoder.encode([pixels[:, :, 0]]).shape == (1, 1280)
    for wrong in (pixels.astype(float), pixels[None], pixels[:, :, :2], pixels[:0]):
        with pytest.raises(ValueError, match="A picture must be uint8 of shape"):
            encoder.encode([wrong])
    with pytest.raises(TypeError, match="a PIL image or a uint8 array, not int"):
        encoder.encode([3])
    with pytest.raises(TypeError, match="needs a list of pictures"):
        encoder.encode(str(CHINA))


def test_a_large_jpeg_gives_nearly_the_same_vector_decoded_smaller(encoder, tmp_path):
    large = read_picture(CHINA).resize((2560, 1708), Image.Resampling.LANCZOS)
    large.save(tmp_path / "large.jpg", quality=95)
    quick, whole = encoder.encode([tmp_path / "large.jpg", large])
    cosine = quick @ whole / np.linalg.norm(quick) / np.linalg.norm(whole)
    assert cosine > 0.995


def test_a_spec_builds_the_same_encoder(encoder):
    spec = json.loads(json.dumps(encoder.spec))
    assert spec["name"] == "efficientnet-lite0"
    assert spec["digest"].startswith("sha256:57934424")
    again = load_encoder(spec)
    np.testing.assert_array_equal(again.encode([FLOWER]), encoder.encode([FLOWER]))
    assert encoder_spec({"encoder_spec": json.dumps(spec)}) == spec
    for key, value in (("digest", "sha256:0"), ("size", 240), ("future", 1)):
        with pytest.raises(ValueError, match=f"not the one the spec describes: its {key} is"):
            load_encoder({**spec, key: value})
    with pytest.raises(ValueError, match="needs its name; it has size"):
        load_encoder({"size": 3})
    with pytest.raises(ValueError, match="does not say which encoder"):
        encoder_spec({"name": "birds"})
    with pytest.raises(ValueError, match="must be an encoder's spec"):
        encoder_spec({"encoder_spec": "{"})


def test_unknown_encoders_and_options():
    with pytest.raises(ValueError, match="no encoder 'resnet-101'.*Did you mean 'resnet101'"):
        load_encoder("resnet-101")
    for name in ("timm", "timm:", "googlenet:x", "nonsense"):
        with pytest.raises(ValueError, match="There is no encoder"):
            load_encoder(name)
    with pytest.raises(TypeError, match="takes no option 'size'; it takes squash, n_threads"):
        load_encoder("efficientnet-lite0", size=240)


@pytest.mark.parametrize(
    ("missing", "name", "install"),
    [
        ("onnxruntime", "efficientnet-lite0", "images"),
        ("torchvision", "googlenet", "torch"),
        ("torchvision", "resnet101", "torch"),
        ("timm", "timm:resnet50", "torch"),
        ("open_clip", "open_clip:ViT-B-32/openai", "torch"),
    ],
)
def test_missing_libraries_name_their_install_command(monkeypatch, missing, name, install):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=rf"needs {missing}.*pip install 'latem\[{install}\]'"):
        load_encoder(name)


def test_missing_weights_and_pillow(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "PIL", None)
        with pytest.raises(ImportError, match=r"needs Pillow: pip install 'latem\[images\]'"):
            read_picture(CHINA)
    with monkeypatch.context() as patch:
        patch.setattr(module, "DIGEST", "sha256:0")
        with pytest.raises(FileFormatError, match="not the known weight file"):
            load_encoder("efficientnet-lite0")
    monkeypatch.setattr(module, "PACKAGE", "no_such_package")
    with pytest.raises(ImportError, match="needs the package no_such_package"):
        load_encoder("efficientnet-lite0")


def test_the_graph_is_kept_and_made_again_if_damaged(encoder, monkeypatch, tmp_path):
    monkeypatch.setenv("LATEM_CACHE", str(tmp_path / "new"))
    load_encoder("efficientnet-lite0")
    (kept,) = (tmp_path / "new").iterdir()
    content = kept.read_bytes()
    with monkeypatch.context() as patch:  # a graph that is kept needs no onnx
        patch.setitem(sys.modules, "onnx", None)
        load_encoder("efficientnet-lite0")
        kept.write_bytes(content[:1000])
        with pytest.raises(ImportError, match="needs onnx to be prepared"):
            load_encoder("efficientnet-lite0")
        flipped = bytearray(content)
        flipped[-2000] ^= 4  # a number of the network: still a graph that works
        kept.write_bytes(bytes(flipped))
        with pytest.raises(ImportError, match="needs onnx to be prepared"):
            load_encoder("efficientnet-lite0")
    again = load_encoder("efficientnet-lite0")
    assert kept.read_bytes() == content
    (tmp_path / "file").touch()  # no place to keep anything
    monkeypatch.setenv("LATEM_CACHE", str(tmp_path / "file"))
    homeless = load_encoder("efficientnet-lite0")
    for other in (again, homeless):
        np.testing.assert_array_equal(other.encode([CHINA]), encoder.encode([CHINA]))


class Evil:
    def __reduce__(self):
        return (open, ("evidence", "w"))


def test_a_weight_file_can_run_no_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    head = [module._MAGIC, module._PROTOCOL, {"little_endian": True}]
    for values in ([Evil()], [*head, {"a": Evil()}, []]):
        Path("evil.pth").write_bytes(b"".join(pickle.dumps(value, 2) for value in values))
        with pytest.raises(FileFormatError, match=r"it asks for \w+\.open, which is not data"):
            module.read_weights(Path("evil.pth"))
    assert not Path("evidence").exists()


def test_damaged_weight_files(tmp_path):
    path = tmp_path / "cut.pth"
    whole = module.weight_file().read_bytes()
    for content in (whole[:-1], whole[:100_000], whole[:300], b"", b"text", b"PK\3\4" + whole):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=r"cut\.pth"):
            module.read_weights(path)


def test_preprocessing_is_resize_and_centre_crop():
    picture = read_picture(CHINA)
    fitted = Preprocessing(224, (0, 0, 0), (1, 1, 1)).fit(picture).astype(float)
    resized = picture.resize((round(256 * 640 / 427), 256), Image.Resampling.BICUBIC)
    left = (resized.width - 224) // 2
    usual = np.asarray(resized.crop((left, 16, left + 224, 240)), float)
    assert np.abs(fitted - usual).mean() < 4  # of 255; shifted by a fraction of a pixel
    whole = Preprocessing(64, (0, 0, 0), (1, 1, 1), squash=True).fit(picture)
    np.testing.assert_array_equal(whole, picture.resize((64, 64), Image.Resampling.BICUBIC))
    numbers = Preprocessing(8, (0.5, 0.25, 0), (0.5, 0.5, 1)).normalise(np.full((1, 3), 255, "u1"))
    np.testing.assert_allclose(numbers, [[1, 1.5, 1]], rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 0}, "size must be a number of pixels"),
        ({"mean": (1, 2)}, "mean must be three numbers"),
        ({"mean": 0.5}, "mean must be three numbers"),
        ({"std": ("a", "b", "c")}, "std must be three numbers"),
        ({"std": (0, 1, 1)}, "std must be positive"),
        ({"crop": 0}, "crop must lie above 0"),
        ({"interpolation": "cubist"}, "interpolation must be one of bicubic"),
    ],
)
def test_wrong_preprocessing(changes, message):
    with pytest.raises(ValueError, match=message):
        Preprocessing(**{"size": 8, "mean": (0, 0, 0), "std": (1, 1, 1), **changes})


SCALE = {"mean": (0.5, 0.25, 0.0), "std": (0.5, 0.5, 0.25)}


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        (("n", 3, 16, 16), TensorProto.FLOAT),
        (("n", 16, 16, 3), TensorProto.FLOAT),
        ((4, 3, 16, 16), TensorProto.FLOAT),
        ((1, 3, "h", "w"), TensorProto.FLOAT),
        (("n", 3, 16, 16), TensorProto.FLOAT16),
    ],
)
def test_onnx_files(tmp_path, shape, kind):
    encoder = load_encoder(tiny_onnx(tmp_path / "tiny.onnx", shape, kind), size=16, **SCALE)
    pictures = [np.full((20, 30, 3), colour, np.uint8) for colour in ([255, 0, 51], [0, 0, 0])] * 3
    vectors = encoder.encode(pictures)
    expected = [[1, -0.5, 0.8], [-1, -0.5, 0]] * 3
    np.testing.assert_allclose(vectors, expected, atol=1e-3)
    assert vectors.dtype == np.float32
    again = load_encoder(json.loads(json.dumps(encoder.spec)))
    np.testing.assert_array_equal(again.encode(pictures), vectors)


def test_onnx_file_that_takes_bytes(tmp_path):
    path = tiny_onnx(tmp_path / "tiny.onnx", ("n", 16, 16, 3), TensorProto.UINT8)
    vectors = load_encoder(path).encode([np.full((9, 9, 3), (3, 2, 1), np.uint8)])
    np.testing.assert_array_equal(vectors, [[3, 2, 1]])


def test_onnx_outputs(tmp_path):
    path = tiny_onnx(tmp_path / "tiny.onnx", ("n", 3, 16, 16), flat=False)
    photo = [CHINA]
    plain = {"mean": (0, 0, 0), "std": (1, 1, 1)}
    encoder = load_encoder(path, **plain)  # height × width is averaged
    pixels = encoder.prepare(CHINA) / 255
    np.testing.assert_allclose(encoder.encode(photo)[0], pixels.mean(axis=(0, 1)), atol=0.02)
    maxima = load_encoder(path, output="maxima", **plain)
    np.testing.assert_allclose(maxima.encode(photo)[0], pixels.max(axis=(0, 1)), rtol=1e-5)
    assert maxima.spec["output"] == "maxima"
    with pytest.raises(ValueError, match="has no output 'mean'; it has means, maxima, raw"):
        load_encoder(path, output="mean", **plain)


def test_the_packaged_network_as_an_onnx_file(encoder, tmp_path):
    path = tmp_path / "lite0.onnx"
    path.write_bytes(module.build_graph(module.read_weights(module.weight_file())))
    other = load_encoder(path)
    np.testing.assert_array_equal(other.encode([CHINA]), encoder.encode([CHINA]))


def test_a_moved_onnx_file_is_recognised_by_its_digest(tmp_path):
    path = tiny_onnx(tmp_path / "tiny.onnx", ("n", 3, 16, 16))
    encoder = load_encoder(path, **SCALE)
    path.rename(tmp_path / "moved.onnx")
    with pytest.raises(FileNotFoundError, match=r"no weight file .*tiny\.onnx"):
        load_encoder(encoder.spec)
    moved = load_encoder(encoder.spec, weights=tmp_path / "moved.onnx")
    np.testing.assert_array_equal(moved.encode([CHINA]), encoder.encode([CHINA]))
    other = tiny_onnx(tmp_path / "other.onnx", ("m", 3, 16, 16))
    with pytest.raises(ValueError, match="not the one the spec describes: its digest"):
        load_encoder(encoder.spec, weights=other)


def test_wrong_onnx_files(tmp_path):
    free = tiny_onnx(tmp_path / "free.onnx", ("n", 3, "h", "w"))
    fixed = tiny_onnx(tmp_path / "fixed.onnx", ("n", 3, 16, 16))
    oblong = tiny_onnx(tmp_path / "oblong.onnx", ("n", 3, 16, 20))
    deep = tiny_onnx(tmp_path / "deep.onnx", ("n", 16, 16, 4))
    text = tmp_path / "text.onnx"
    text.write_text("not a network")
    for path, options, message in (
        (free, SCALE, "does not say how large its pictures are; give size"),
        (fixed, {**SCALE, "size": 20}, "takes pictures of 16 pixels, not of 20"),
        (fixed, {}, r"needs mean and std .*mean 0\.485,0\.456,0\.406"),
        (oblong, SCALE, "they must be square"),
        (deep, SCALE, "must have one input of pictures"),
        (text, SCALE, "cannot be opened as an ONNX file"),
    ):
        with pytest.raises(ValueError, match=message):
            load_encoder(path, **options)
    with pytest.raises(FileNotFoundError, match="no weight file 'none.onnx'"):
        load_encoder("none.onnx")
    with pytest.raises(ValueError, match="needs weights, the path of an ONNX file"):
        load_encoder("onnx")


@pytest.mark.parametrize(("name", "n_features"), [("googlenet", 1024), ("resnet101", 2048)])
def test_torchvision_with_a_local_file(tmp_path, name, n_features):
    torch = pytest.importorskip("torch")
    models = pytest.importorskip("torchvision").models
    torch.manual_seed(0)
    options = {"init_weights": False, "transform_input": True} if name == "googlenet" else {}
    network = getattr(models, name)(weights=None, **options).eval()
    torch.save(network.state_dict(), tmp_path / "weights.pth")
    encoder = load_encoder(name, weights=tmp_path / "weights.pth", device="cpu")
    vectors = encoder.encode([CHINA, FLOWER])
    assert vectors.shape == (2, n_features)
    network.fc = torch.nn.Identity()
    numbers = encoder.preprocessing.normalise(np.stack([encoder.prepare(CHINA)]))
    with torch.inference_mode():
        expected = network(torch.from_numpy(numbers.transpose(0, 3, 1, 2).copy())).numpy()
    np.testing.assert_allclose(vectors[:1], expected, rtol=1e-4, atol=1e-4 * abs(expected).max())
    again = load_encoder(json.loads(json.dumps(encoder.spec)))
    np.testing.assert_array_equal(again.encode([CHINA, FLOWER]), vectors)
    torch.save({"network": Evil()}, tmp_path / "evil.pth")
    with pytest.raises(FileFormatError, match="holds more than plain weights"):
        load_encoder(name, weights=tmp_path / "evil.pth")
    torch.save({"a": torch.zeros(3)}, tmp_path / "other.pth")
    with pytest.raises(FileFormatError, match=f"does not hold the weights of {name}"):
        load_encoder(name, weights=tmp_path / "other.pth")


def test_the_emoji_know_their_encoder():
    emoji = load_emoji()
    spec = load_encoder("efficientnet-lite0", squash=True).spec
    assert emoji.encoder == spec
    assert load_encoder(emoji.encoder).preprocessing.squash


def test_squashed_pictures_are_shown_whole():
    wide = np.zeros((100, 200, 3), np.uint8)
    wide[:, :25] = 255  # the left edge, which the middle square does not show
    whole, middle = (
        load_encoder("efficientnet-lite0", squash=squash).prepare(wide) for squash in (True, False)
    )
    assert whole[:, :20].min() > 250
    assert middle.max() == 0
