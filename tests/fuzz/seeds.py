"""Small files that readers accept, from which fuzzing starts; all made by code."""

import gzip
import io
import json
import tempfile
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
from broken_pictures import halves
from matlab_files import gbu_parts, write_gbu
from PIL import features as pillow_features
from pyarrow import parquet
from scipy.io import savemat

import latem
from fuzz.targets import FOLDER


def seeds(name):
    """Inputs of a target to start from."""
    return list(_SEEDS[name]())


def _models():
    rng = np.random.default_rng(0)
    names = ["ant", "bee", "cat", "dog", "eel", "fox"]
    table = latem.ClassEmbeddings(names, rng.normal(size=(6, 3)), name="att")
    X, y = rng.normal(size=(40, 3)), np.repeat(names[:4], 10)
    made = [
        latem.ESZSL(table),
        latem.LatEm(table, n_maps=2, n_epochs=1, random_state=0),
        latem.ConSE(table),
        latem.SAE(table),
        latem.EXEM(table),
        latem.LateFusion([("a", latem.ESZSL(table)), ("b", latem.SAE(table))]),
        latem.Committee(table),
    ]
    for model in made:
        yield _saved(model.fit(X, y).save, "model.safetensors")
    traits = pd.DataFrame({"legs": [6, 6, 4, 4, 0, 4], "coat": list("abcabc")}, index=names)
    model = latem.ESZSL(latem.ClassEmbeddings.from_traits(traits)).fit(X, y)
    latem.calibrate_answers(model, X, y)
    yield _saved(model.save, "model.safetensors")


def _checkpoints():
    from latem.models.sgd.checkpoint import Checkpoint
    from latem.models.sgd.loop import Progress
    from latem.models.sgd.pairs import PairClassSpace

    space = PairClassSpace(np.zeros((2, 4, 3), np.float32), np.eye(3, dtype=np.float32))
    progress = Progress(seed=0, visits=np.zeros(2, np.int64), violations=np.zeros(2, np.int64))
    yield _saved(
        lambda path: Checkpoint(path, 1, "fingerprint").write(space, progress, last=True),
        "checkpoint.safetensors",
    )


def _folders():
    for name, content in FOLDER.items():
        yield name.encode() + b"\n" + content
    yield b"features.npy\n" + _npy(np.arange(12, dtype=np.float32).reshape(3, 4))
    spec = json.dumps({"name": "onnx", "weights": "model.onnx"})
    yield f"dataset.toml\nname = 'x'\nencoder_spec = '{spec}'\n".encode()
    yield b"embeddings/att.csv\nclass;legs;coat\nant;6;black\nbee;;striped\ncat;4;\n"


def _feature_arrays():
    rows = np.arange(12).reshape(3, 4)
    for kind in ("<f4", ">f8", "<f2", "|i1"):
        yield _npy(rows.astype(kind))
    yield _npy(np.asfortranarray(rows, dtype=np.float32))


def _feature_tables():
    """Columns or lists, with groups of two rows."""
    rows = np.arange(15, dtype=np.float32).reshape(5, 3)
    columns = {name: rows[:, i] for i, name in enumerate("abc")}
    lists = pa.array(list(rows), pa.list_(pa.float32()))
    keys = ["ant", "bee", None, "cat", "dog"]
    for content in (
        columns | {"key": keys},
        columns | {"a": [1, None, 3, 4, 5]},
        {"rows": lists, "key": keys},
        {"rows": lists.cast(pa.list_(pa.float32(), 3))},
    ):
        for compression in ("none", "snappy"):
            file = io.BytesIO()
            parquet.write_table(pa.table(content), file, row_group_size=2, compression=compression)
            yield file.getvalue()


def _tomls():
    yield FOLDER["splits/standard.toml"]
    yield b"[a.b]\nc = [1, 2.5, true, \"x\\u00e9\", 1979-05-27]\n[[d]]\ne = {f = '''g'''}\n"


def _npzs():
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, features=np.ones((3, 2), np.float32), labels=np.array(["ant", "bee", "cat"]))
        yield file.getvalue()
    file = io.BytesIO()
    np.savez(
        file,
        features=np.ones((3, 2)),
        labels=np.arange(3),
        classes=np.array(["ant", "bee", "cat"]),
        images=np.array(["a", "b", "c"]),
    )
    yield file.getvalue()


def _image_tables():
    yield b"class,image,a,b\nant,a.png,1,2\nbee,b.png,3,4.5\ncat,c.png,-1e3,0\n"


def _matlab_5():
    for compressed in (False, True):
        for content in (*gbu_parts().values(), _release()):
            file = io.BytesIO()
            savemat(file, content, do_compression=compressed)
            yield file.getvalue()


def _release():
    return {
        "trainval_X": np.ones((4, 2)),
        "trainval_labels": np.array([[1], [2], [3], [1]]),
        "trainval_Y": {"att": np.eye(3), "glo": np.ones((2, 3))},
        "test_X": np.zeros((2, 2)),
        "test_labels": np.array([[1], [2]]),
        "test_Y": {"att": np.eye(3)[:, :2], "glo": np.ones((2, 2))},
        "val_Y": {"att": np.eye(3)[:, :1], "glo": np.ones((2, 1))},
    }


def _matlab_7():
    for content in (*gbu_parts().values(), _release()):
        file = io.BytesIO()
        with h5py.File(file, "w", libver="earliest") as made:
            for key, value in content.items():
                if isinstance(value, dict):
                    for field, numbers in value.items():
                        made[f"{key}/{field}"] = numbers.T
                elif value.dtype == object:
                    texts = [
                        made.create_dataset(f"#refs#/{key}{i}", data=np.array([list(t.encode())]).T)
                        for i, t in enumerate(value.ravel())
                    ]
                    made.create_dataset(key, (1, len(texts)), h5py.ref_dtype)
                    for i, text in enumerate(texts):
                        made[key][0, i] = text.ref
                else:
                    made[key] = value.T
        yield file.getvalue()


def _zips():
    names = dict(FOLDER) | {"features.npy": _npy(np.ones((3, 4), np.float16))}
    del names["embeddings/att.traits.json"]
    yield _zipped({f"beasts/{name}": content for name, content in names.items()})
    with tempfile.TemporaryDirectory() as folder:
        pair = write_gbu(Path(folder) / "pair", gbu_parts())
        yield _zipped({f"x/{path.name}": path.read_bytes() for path in pair}, zipfile.ZIP_DEFLATED)


def _tables():
    yield FOLDER["embeddings/att.csv"]
    yield b'\xef\xbb\xbfclass\tlegs\tcoat\n"ant"\t6\tblack\nbee\t\tstriped\ncat\t2-4\t?\n'
    yield b'class;"size, cm";wild;kind\nant;0.5;yes;low\nbee;1.5 cm;no;high\ncat;40;yes;low\n'


_FRAME = pd.DataFrame(
    {"class": ["ant", "bee", "cat"], "legs": [6, 6, 4], "coat": ["black", "striped", None]}
)


def _excels():
    for frame in (_FRAME, _FRAME[["class", "legs"]]):
        file = io.BytesIO()
        frame.to_excel(file, index=False)
        yield file.getvalue()


def _parquets():
    for frame in (_FRAME, _FRAME[["class", "legs"]], _FRAME.set_index("class")[["legs"]]):
        for compression in (None, "snappy"):
            file = io.BytesIO()
            frame.to_parquet(file, compression=compression)
            yield file.getvalue()


def _attribute_folders():
    yield b"awa/classes.txt\n1\tant\n2\tbee\n"
    yield b"awa/predicates.txt\n1\tlegs\n2\twings\n3\tfur\n"
    yield b"awa/predicate-matrix-continuous.txt\n6 0 -1\n6.0 4 1e2\n"
    yield b"cub/classes.txt\n1 001.Ant\n2 002.Bee\n"
    yield b"cub/attributes.txt\n1 legs::many\n2 wings::two\n"
    yield b"cub/class_attribute_labels_continuous.txt\n6.0 0.0\n6.0 4.0\n"


def _word_vectors():
    plain = b"ant 1 2 3\nbee 0.5 -1e-2 0\nbee cat 1 1 1\ncat 1 0 0\n"
    yield plain
    yield b"4 3\n" + plain
    numbers = np.arange(1, 4, dtype="<f4").tobytes()
    binary = b"3 3\n" + b"".join(word + b" " + numbers + b"\n" for word in (b"ant", b"bee", b"cat"))
    yield binary
    yield gzip.compress(plain, mtime=0)
    yield gzip.compress(binary, mtime=0)


def _synonyms():
    yield b'class,words\nant,bee\n"bee","ant bee"\n'


def _senses():
    yield b"class,synset\nant,n02219486\nbee,bee.n.01\n"
    yield b"class;synset;note\nbee;bee.n.01;x\n"


def _sentences():
    yield b'class,text\nant,"It is small, and works."\nbee,It flies.\nant,Another.\n'


def _corpora():
    yield b"the ant works\nthe bee flies\n\n"
    yield gzip.compress(b"the ant works\nthe bee flies\n", mtime=0)


def _names():
    yield b"ant\nbee\n"
    yield b"\xef\xbb\xbf ant \r\n\r\nbee"


def _image_lists():
    yield FOLDER["images.csv"]
    yield b'image;class\n../a.png;ant\n"/etc/x";bee\n;cat\n'


def _pictures():
    for mode, kind in (
        *(("RGB", "PNG"), ("1", "PNG"), ("L", "PNG"), ("P", "PNG"), ("RGBA", "PNG")),
        *(("I;16", "PNG"), ("LA", "PNG"), ("RGB", "JPEG"), ("L", "JPEG"), ("CMYK", "JPEG")),
        *(("P", "GIF"), ("RGB", "BMP"), ("1", "BMP"), ("P", "BMP"), ("RGB", "TIFF")),
        *(("F", "TIFF"), ("CMYK", "TIFF"), ("1", "TIFF"), ("RGB", "PPM"), ("L", "PPM")),
    ):
        yield _picture(mode, kind)
    yield _picture("RGB", "JPEG", progressive=True, exif=b"Exif\0\0" + _exif(6))
    yield _picture("RGB", "PNG", exif=_exif(3))
    yield _picture("RGB", "TIFF", compression="tiff_lzw")
    yield _picture("RGB", "TIFF", compression="tiff_adobe_deflate")
    supported = pillow_features.get_supported()  # of those that this version of Pillow knows
    for kind, feature in (("WEBP", "webp"), ("JPEG2000", "jpg_2000"), ("AVIF", "avif")):
        if feature in supported:
            yield _picture("RGB", kind)
    if "webp" in supported:
        yield _picture("RGBA", "WEBP", lossless=True)


def _picture(mode, kind, **options):
    file = io.BytesIO()
    picture = (
        halves("L", (8, 6)).convert("I").convert(mode) if mode == "I;16" else halves(mode, (8, 6))
    )
    picture.save(file, kind, **options)
    return file.getvalue()


def _exif(orientation):
    """A note of how a picture is turned, as cameras write it."""
    entry = b"\x12\x01\x03\0\x01\0\0\0" + bytes([orientation, 0, 0, 0])
    return b"II*\0\x08\0\0\0\x01\0" + entry + bytes(4)


def _encoder_specs():
    yield json.dumps({"name": "onnx", "weights": "/nowhere/model.onnx", "mean": [0.5]}).encode()
    yield json.dumps({"name": "efficientnet", "n_features": 1280}).encode()


def _requests():
    tensor = {"name": "input", "datatype": "FP32", "shape": [2, 2]}
    yield json.dumps({"inputs": [tensor | {"data": [1, 2, 3, 4.5]}]}).encode()
    yield json.dumps({"inputs": [tensor]}).encode() + b"\n" + bytes(16)
    texts = {"name": "image", "datatype": "BYTES", "shape": [1]}
    yield json.dumps({"inputs": [texts | {"data": ["YW50"]}]}).encode()
    yield json.dumps({"inputs": [texts]}).encode() + b"\n\x03\0\0\0ant"


def _saved(save, name):
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / name)
        return (Path(folder) / name).read_bytes()


def _npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _zipped(files, packing=zipfile.ZIP_STORED):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, packing)
    return made.getvalue()


_SEEDS = {
    "model": _models,
    "checkpoint": _checkpoints,
    "features-npy": _feature_arrays,
    "features-parquet": _feature_tables,
    "dataset-folder": _folders,
    "dataset-check": _folders,
    "toml": _tomls,
    "npz": _npzs,
    "image-table": _image_tables,
    "matlab-5": _matlab_5,
    "matlab-7.3": _matlab_7,
    "zip": _zips,
    "table-text": _tables,
    "table-traits": _tables,
    "table-excel": _excels,
    "table-parquet": _parquets,
    "attribute-folder": _attribute_folders,
    "word-vectors": _word_vectors,
    "synonyms": _synonyms,
    "senses": _senses,
    "sentences": _sentences,
    "word-corpus": _corpora,
    "names": _names,
    "image-list": _image_lists,
    "pictures": _pictures,
    "encoder-spec": _encoder_specs,
    "tensors": _requests,
}
