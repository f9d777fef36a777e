"""The readers, one target each: bytes go to the product's own function.

A reader that takes a path gets a file in memory (`/dev/shm` where there is one). `TARGETS` is the
only list: the drivers, the kept corpus and the replay in the tests go by it.
"""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from unittest import mock

import numpy as np

from fuzz import mutators, watch


@dataclass(frozen=True)
class Target:
    """A reader under fuzzing.

    Attributes
    ----------
    name : str
    make : callable
        Gets an empty folder and returns the function of bytes that is called again and again.
    mutate : callable, optional
        One of `mutators`, for formats with an inside and an outside.
    largest : int
        Bytes of an input.
    words : tuple of bytes
        What is likely to matter, for libFuzzer's dictionary.
    floor : int
        Bytes of memory that are allowed for any input.
    """

    name: str
    make: Callable
    mutate: Callable | None = None
    largest: int = 4096
    words: tuple[bytes, ...] = ()
    floor: int = watch.FLOOR

    @property
    def read(self):
        """The reader, in a folder of its own that goes away with the process."""
        return _reader(self.name)


@cache
def _reader(name):
    memory = Path("/dev/shm")
    folder = Path(
        tempfile.mkdtemp(prefix=f"latem-fuzz-{name}-", dir=memory if memory.is_dir() else None)
    )
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return TARGETS[name].make(folder)


def _try(read):
    """The first of two readers of the same input: a refusal is no reason to leave out the other."""
    try:
        read()
    except watch.REFUSALS as error:
        if not watch.is_deliberate(error):
            raise


# -- models -----------------------------------------------------------------------------------


def _model(folder):
    from latem import load, read_info

    path = folder / "model.safetensors"

    def call(data):
        path.write_bytes(data)
        _try(lambda: read_info(path).to_dict())
        model = load(path)
        model.predict(np.zeros((1, model.n_features_in_), np.float32))

    return call


def _checkpoint(folder):
    from latem.models.sgd.checkpoint import Checkpoint
    from latem.models.sgd.loop import Progress
    from latem.models.sgd.pairs import PairClassSpace

    path = folder / "checkpoint.safetensors"
    vectors = np.eye(3, dtype=np.float32)

    def call(data):
        path.write_bytes(data)
        space = PairClassSpace(np.zeros((2, 4, 3), np.float32), vectors)
        progress = Progress(seed=0, visits=np.zeros(2, np.int64), violations=np.zeros(2, np.int64))
        Checkpoint(path, 1, "fingerprint").resume(space, progress, 10, fixed_seed=False)
        space.maps()

    return call


# -- datasets ---------------------------------------------------------------------------------

FOLDER = {
    "dataset.toml": b'name = "beasts"\n',
    "images.csv": b"image,class\na.png,ant\nb.png,bee\nc.png,cat\n",
    "embeddings/att.csv": b"class,legs,wings\nant,6,0\nbee,6,4\ncat,4,0\n",
    "embeddings/att.traits.json": b'{"traits": [{"name": "legs", "kind": "number", "values": [], '
    b'"mean": [5.0], "scale": [1.0], "fill": [0.0], "form": ""}, {"name": "wings", "kind": '
    b'"number", "values": [], "mean": [1.0], "scale": [2.0], "fill": [0.0], "form": ""}], '
    b'"notes": []}',
    "splits/standard.toml": b'train = ["ant"]\nval = ["bee"]\ntest = ["cat"]\nheld_out = [0]\n',
}


def _folder(folder):
    """The first line of an input names a file of a dataset folder, the rest is its content."""
    from latem.datasets.folder import read_folder

    def look(place):
        dataset = read_folder(place)
        assert repr(dataset)
        assert dataset.encoder is None or dataset.encoder["name"]

    return _in_folder(folder, look)


def _folder_check(folder):
    """The same inputs, for `latem data check`."""
    from latem.datasets.check import inspect_folder

    return _in_folder(folder, inspect_folder)


def _in_folder(folder, look):
    """A reader of dataset folders of which one file at a time is the input."""
    for part in ("embeddings", "splits"):
        (folder / part).mkdir()
    features = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.save(folder / "features.npy", features)
    whole = {**FOLDER, "features.npy": (folder / "features.npy").read_bytes()}
    optional = {"embeddings/att.traits.json"}
    for name in whole.keys() - optional:
        (folder / name).write_bytes(whole[name])

    def call(data):
        name, _, content = data.partition(b"\n")
        name = name.decode(errors="replace")
        if name not in whole:
            return
        (folder / name).write_bytes(content)
        try:
            look(folder)
        finally:
            if name in optional:
                (folder / name).unlink()
            else:
                (folder / name).write_bytes(whole[name])

    return call


def _features(ending, **options):
    """Rows of features; from the middle on they are the same as all of them from there."""

    def make(folder):
        from latem.datasets.feature_files import open_features

        path = folder / f"rows{ending}"

        def look(options):
            rows = open_features(path, **options)
            whole = list(islice(rows.chunks(0, 64), 40))  # a small file may promise any number
            list(islice(rows.names(64), 40))
            middle = min(rows.n_rows, 64 * 40) // 2
            half = list(islice(rows.chunks(middle, 64), 20))
            if half:
                tail = np.concatenate(whole)[middle:][: sum(map(len, half))]
                assert np.array_equal(np.concatenate(half)[: len(tail)], tail, equal_nan=True)

        def call(data):
            path.write_bytes(data)
            if options:
                _try(lambda: look(options))
            look({})

        return call

    return make


def _toml(folder):
    from latem.datasets.folder import read_split

    path = folder / "file.toml"

    def call(data):
        path.write_bytes(data)
        read_split(path)  # reads the file as any TOML first

    return call


def _npz(folder):
    from latem.datasets.arrays import from_npz

    path, table = folder / "data.npz", _small_table()

    def call(data):
        path.write_bytes(data)
        from_npz(path, {"att": table}, unseen=["cat"])

    return call


def _image_table(folder):
    from latem.datasets.arrays import from_table

    path, table = folder / "images.csv", _small_table()

    def call(data):
        path.write_bytes(data)
        from_table(path, {"att": table}, unseen=["cat"])

    return call


def _small_table():
    from latem import ClassEmbeddings

    return ClassEmbeddings(["ant", "bee", "cat"], np.eye(3))


def _matlab(folder):
    """A file by itself, and in the place of each file of the layouts that are known.

    It is read once, although the layouts would read it again; so is the other file of a pair.
    """
    from matlab_files import write_gbu

    from latem.datasets import matlab
    from latem.datasets.mat_files import MatFile

    path = folder / "file.mat"
    features, splits = write_gbu(folder / "pair")
    read = {one: MatFile(one) for one in (features, splits)}

    def call(data):
        path.write_bytes(data)
        read[path] = known = MatFile(path)
        with mock.patch.object(matlab, "MatFile", read.__getitem__):
            if "features" in known:
                matlab.from_gbu(path, splits)
            elif "allclasses_names" in known:
                matlab.from_gbu(features, path)
            else:
                matlab.from_release(path)

    return call


def _zip(folder):
    from latem.datasets.archives import unpack_datasets

    path, place = folder / "data.zip", folder / "unpacked"

    def call(data):
        path.write_bytes(data)
        place.mkdir()
        try:
            unpack_datasets(path, place)
        finally:
            shutil.rmtree(place)

    return call


# -- class descriptions -----------------------------------------------------------------------


def _table(ending):
    """Tables of numbers."""

    def make(folder):
        from latem import ClassEmbeddings

        path = folder / f"att{ending}"

        def call(data):
            path.write_bytes(data)
            ClassEmbeddings.read(path)

        return call

    return make


def _raw_table(ending):
    """Tables of raw traits, which `--table` takes."""

    def make(folder):
        from latem.embeddings.attributes import read_attributes

        path = folder / f"att{ending}"

        def call(data):
            path.write_bytes(data)
            read_attributes(path)

        return call

    return make


ATTRIBUTES = {
    "awa/classes.txt": b"1\tant\n2\tbee\n",
    "awa/predicates.txt": b"1\tlegs\n2\twings\n3\tfur\n",
    "awa/predicate-matrix-continuous.txt": b"6 0 -1\n6.0 4 1e2\n",
    "cub/classes.txt": b"1 001.Ant\n2 002.Bee\n",
    "cub/attributes.txt": b"1 legs::many\n2 wings::two\n",
    "cub/class_attribute_labels_continuous.txt": b"6.0 0.0\n6.0 4.0\n",
}


def _attribute_folder(folder):
    """The first line of an input names a file of AwA's or CUB's, the rest is its content."""
    from latem.embeddings.attributes import read_attributes

    for name, content in ATTRIBUTES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)

    def call(data):
        name, _, content = data.partition(b"\n")
        name = name.decode(errors="replace")
        if name not in ATTRIBUTES:
            return
        (folder / name).write_bytes(content)
        try:
            read_attributes(folder / Path(name).parent)
        finally:
            (folder / name).write_bytes(ATTRIBUTES[name])

    return call


def _words(folder):
    from latem.embeddings.word_files import WordVectors, look_up_file

    path = folder / "vectors.txt"

    def call(data):
        path.write_bytes(data)
        _try(lambda: WordVectors(path))
        look_up_file(path, {"ant", "bee cat"}, None, False)

    return call


def _synonyms(folder):
    from latem import word_embeddings

    class Vectors(dict):
        vector_size = 2

    vectors = Vectors(ant=np.ones(2), bee=np.arange(2.0))
    path = folder / "synonyms.csv"

    def call(data):
        path.write_bytes(data)
        word_embeddings(["ant", "bee"], vectors, synonyms=path)

    return call


def _senses(folder):
    from latem import hierarchy_embeddings

    path = folder / "senses.csv"

    def call(data):
        path.write_bytes(data)
        hierarchy_embeddings(["ant", "bee"], senses=path)

    return call


def _sentences(folder):
    from latem.embeddings.text import text_embeddings

    class Encoder:
        n_dimensions = 2

        def encode(self, texts):
            return np.ones((len(texts), 2))

    path = folder / "sentences.csv"

    def call(data):
        path.write_bytes(data)
        text_embeddings(path, encoder=Encoder())

    return call


def _corpus(folder):
    from latem.embeddings.word_files import open_bytes, text_pieces

    path = folder / "corpus.txt"

    def call(data):
        path.write_bytes(data)
        with open_bytes(path) as file:
            for _, piece in text_pieces(file, path):
                piece.split()

    return call


def _names(folder):
    from latem.core.text_files import read_lines

    path = folder / "names.txt"

    def call(data):
        path.write_bytes(data)
        read_lines(path, "class names")

    return call


def _image_list(folder):
    from latem.datasets.picture_files import find_pictures

    path = folder / "list.csv"

    def call(data):
        path.write_bytes(data)
        find_pictures(path)

    return call


# -- pictures, encoders, requests -------------------------------------------------------------


def _pictures(folder):
    from io import BytesIO

    from latem.features.pictures import read_picture

    def call(data):
        read_picture(BytesIO(data))
        read_picture(BytesIO(data), at_least=2)

    return call


def _encoder_spec(folder):
    from latem.datasets.dataset import read_encoder
    from latem.features.encoders import load_encoder

    def call(data):
        spec = read_encoder({"encoder_spec": data.decode(errors="replace")})
        if spec["name"] == "onnx":  # others are loaded by what was installed with latem
            load_encoder(spec)

    return call


def _tensors(folder):
    """JSON of a request for tensors on the first line; the bytes after it are its first tensor."""
    from pydantic import ValidationError
    from pydantic_core import from_json

    from latem.server.problems import ProblemError
    from latem.server.routes.v2 import InferRequest
    from latem.server.tensors import read_tensor

    def call(data):
        head, newline, rest = data.partition(b"\n")
        try:
            content = from_json(head)
        except ValueError:
            return  # which the server tells as 422
        try:
            for one in InferRequest.model_validate(content).inputs:
                raw = rest if newline else None
                read_tensor(one.name, one.datatype, one.shape, one.data, raw)
        except (ValidationError, ProblemError):
            return

    return call


_IN_FOLDER = mutators.after_name([*FOLDER, "features.npy"])

_TARGETS = (
    Target(
        "model",
        _model,
        mutators.in_safetensors,
        largest=16384,
        words=(b"inner", b"members", b"content", b"table", b"names", b"<U5", b"|O", b"dtype"),
    ),
    Target("checkpoint", _checkpoint, mutators.in_safetensors, largest=8192),
    Target(
        "features-npy",
        _features(".npy"),
        mutators.in_npy,
        words=(b"'<f4'", b"'>i8'", b"'<f16'", b"'|O'", b"True", b"False", b"(3, 4)", b"(-1, 0)"),
    ),
    Target(
        "features-parquet",
        _features(".parquet", id_column="key"),
        largest=8192,
        words=(b"key", b"schema", b"element", b"list", b"PAR1"),
    ),
    Target("dataset-folder", _folder, _IN_FOLDER, words=(b"held_out = [", b"fortran_order")),
    Target("dataset-check", _folder_check, _IN_FOLDER),
    Target(
        "toml",
        _toml,
        words=(b"'''", b'"""', b"\\u", b"[[", b"]]", b"0x", b"1979-05-27T07:32:00Z", b"inf"),
    ),
    Target("npz", _npz, mutators.in_zip, words=(b"'descr': '", b"fortran_order")),
    Target("image-table", _image_table, words=(b"class", b"image", b"nan", b"inf", b"1e400")),
    Target("matlab-5", _matlab, mutators.in_mat, largest=8192),
    Target("matlab-7.3", _matlab, largest=32768),
    Target("zip", _zip, mutators.in_zip, largest=8192),
    Target("table-traits", _raw_table(".csv"), words=(b"class", b"unknown", b"2-4", b"yes")),
    Target(
        "table-text",
        _table(".csv"),
        words=(b"class", b"nan", b"unknown", b"1e400", b"\xef\xbb\xbf"),
    ),
    Target(
        "table-excel",
        _raw_table(".xlsx"),
        mutators.in_zip,
        largest=16384,
        words=(b'r="XFD1048576"', b'ref="A1:XFD9"', b't="s"', b't="d"', b"<v>", b"</v>", b'<c r="'),
    ),
    Target("table-parquet", _table(".parquet"), largest=8192),
    Target("attribute-folder", _attribute_folder, mutators.after_name(ATTRIBUTES)),
    Target("word-vectors", _words, mutators.in_gzip, words=(b"ant ", b"2 3\n", b"1e11", b"nan")),
    Target("synonyms", _synonyms, words=(b"class,words\n",)),
    Target("senses", _senses, words=(b"class,synset\n", b"n02084071", b"bee.n.01")),
    Target("sentences", _sentences, words=(b"class,text\n",)),
    Target("word-corpus", _corpus, mutators.in_gzip),
    Target("names", _names),
    Target("image-list", _image_list),
    Target("pictures", _pictures, mutators.in_png, largest=8192),
    Target("encoder-spec", _encoder_spec, mutators.in_json),
    Target("tensors", _tensors),
)
TARGETS = {target.name: target for target in _TARGETS}
