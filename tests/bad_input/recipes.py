"""How the broken files of the catalogue are made, by name.

Texts stand in the cases themselves. What cannot be read by a person is made here: a recipe is a
function of the path, in the working folder of `workspace.build`, whose files it may start from.
"""

import gzip
import io
import json
import os
import pickle
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from broken_pictures import BROKEN, bomb
from helpers import rewrite
from matlab_files import gbu_parts
from safetensors.numpy import save_file
from scipy.io import savemat

DEEP = 100_000  # brackets in brackets
RECIPES = {}


def recipe(name):
    """Make a function a recipe under this name."""

    def add(make):
        RECIPES[name] = make
        return make

    return add


def content(name, data):
    """Recipe that only writes some bytes."""
    RECIPES[name] = lambda path: path.write_bytes(data() if callable(data) else data)


# -- anything -------------------------------------------------------------------------------------

content("nothing", b"")
content("zeros", bytes(5000))
content("noise", lambda: np.random.default_rng(0).bytes(5000))
content("a pickle", pickle.dumps({"run": "me"}))
content("text in UTF-16", "class,legs\nant,6\nbee,6\n".encode("utf-16"))
content("text in Latin-1", "class,legs\nkänguru,2\nbee,6\n".encode("latin-1"))
content("text with a NUL", b"class,legs\nant,6\0\nbee,6\n")
content("a gzipped table", lambda: gzip.compress(b"class,legs\nant,6\nbee,6\n"))
RECIPES["a folder"] = Path.mkdir
RECIPES["a pipe"] = os.mkfifo
RECIPES["a link to itself"] = lambda path: path.symlink_to(path.name)
RECIPES["a link to nothing"] = lambda path: path.symlink_to("nothing at all")


def _half(source):
    def make(path):
        whole = Path(source).read_bytes()
        path.write_bytes(whole[: len(whole) // 2])

    return make


for _source in ("zoo.safetensors", "zoo.npz", "features.npy", "words.txt.gz"):
    RECIPES[f"half of {_source}"] = _half(_source)


# -- models and checkpoints -----------------------------------------------------------------------


def _header(head, length=None):
    data = head.encode()
    return struct.pack("<Q", len(data) if length is None else length) + data


content("a header that promises 2 GB", _header("{}", 2**31))
content("a header that promises more than the file", _header('{"a":', 5000))
content("a header nested deeply", lambda: _header('{"a":' + "[" * DEEP + "]" * DEEP + "}"))
content("a header that is no JSON", _header("these are not the maps you are looking for"))
content(
    "a tensor beyond the end",
    _header('{"maps":{"dtype":"F32","shape":[1000000,1000000],"data_offsets":[0,4000000000000]}}'),
)
content(
    "two tensors in the same place",
    lambda: (
        _header(
            '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
            '"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}'
        )
        + bytes(12)
    ),
)


@recipe("a model of another program")
def _(path):
    save_file({"weight": np.ones(3, np.float32)}, path)


@recipe("a model whose description is nested deeply")
def _(path):
    save_file({"map": np.ones(3)}, path, metadata={"latem": "[" * DEEP + "]" * DEEP})


@recipe("a model whose description is a list")
def _(path):
    save_file({"map": np.ones(3)}, path, metadata={"latem": "[1, 2, 3]"})


@recipe("twenty thousand tensors")
def _(path):
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    known = {"latem": json.dumps({"format": 1, "kind": "model"})}
    tensors = {f"t{i}": empty for i in range(20_000)}
    path.write_bytes(_header(json.dumps({"__metadata__": known, **tensors})))


def _changed(name, change, source="zoo.safetensors"):
    def make(path):
        shutil.copy(source, path)
        rewrite(path, change)

    RECIPES[name] = make


def _setting(part=None, **values):
    """Change of what a file's description says, or of a part of it."""
    return lambda tensors, meta: (meta if part is None else meta[part]).update(values)


def _class_named(name):
    return lambda tensors, meta: meta["classes"]["names"].__setitem__(0, name)


def _array_as(key, change):
    return lambda tensors, meta: tensors.update({key: change(tensors[key])})


def _lacking(key):
    return lambda tensors, meta: (tensors if key in tensors else meta).pop(key)


_changed("a model of a newer format", _setting(format=99))
_changed("a model whose format is a text", _setting(format="one"))
_changed("a file of another kind", _setting(kind="gallery"))
_changed("a model that is not registered", _setting(model="os.system"))
_changed("a model whose name is a list", _setting(model=["ESZSL"]))
_changed("a model without its map", _lacking("map"))
_changed("a model without its classes", _lacking("classes"))
_changed("a model without its table", _lacking("table"))
_changed("a model with NaN in its map", _array_as("map", lambda a: a * np.nan))
_changed("a model whose map has another shape", _array_as("map", lambda a: a[:5].copy()))
_changed("a model whose map holds whole numbers", _array_as("map", lambda a: a.astype(int)))
_changed("a model with a class twice", _class_named("bee"))
_changed("a model with a class it does not describe", _class_named("yak"))
_changed("a model with code for a type", _setting("classes", dtype="__import__('os')"))
_changed("a model with a parameter it does not have", _setting("params", colour="red"))
_changed("a model with a parameter out of range", _setting("params", gamma=-1))
_changed("a model scaled in an unknown way", _setting(scaling="sideways"))
_changed("a model with a negative temperature", _setting("calibration", temperature=-1))
_changed("a model of maps without their counters", _lacking("map_visits"), "maps.safetensors")


def _checkpoint(name, change):
    def make(path):
        from bad_input.workspace import checkpoint

        checkpoint(path)
        rewrite(path, change)

    RECIPES[name] = make


_checkpoint("a checkpoint of other images", _setting(fingerprint="0" * 32))
_checkpoint("a checkpoint without its history", _lacking("history"))
_checkpoint("a checkpoint after epoch -1", _setting(epoch=-1))
_checkpoint("a checkpoint with NaN", _array_as("space.rows", lambda a: a * np.nan))
_checkpoint("a checkpoint of another size", _array_as("space.rows", lambda a: a[:2].copy()))


# -- tables ---------------------------------------------------------------------------------------


def _workbook(path, frame):
    frame.to_excel(path, index=False)


RECIPES["a workbook of one column"] = lambda p: _workbook(p, pd.DataFrame({"class": ["ant"]}))
RECIPES["an empty workbook"] = lambda p: _workbook(p, pd.DataFrame())
RECIPES["a workbook with a class twice"] = lambda p: _workbook(
    p, pd.DataFrame({"class": ["ant", "ant"], "legs": [6, 6]})
)
content("an old workbook", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1000))


@recipe("half of a workbook")
def _(path):
    whole = io.BytesIO()
    pd.DataFrame({"class": ["ant", "bee"], "legs": [6, 6]}).to_excel(whole, index=False)
    path.write_bytes(whole.getvalue()[:2000])


@recipe("a workbook that unpacks to 2 GB")
def _(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b" " * 10**6)
    _promise_more(path, 2 * 10**9)


def _promise_more(path, size):
    """Let the directory of a zip file promise that its last member has so many bytes."""
    data = bytearray(path.read_bytes())
    place = data.rindex(b"PK\x01\x02")
    data[place + 24 : place + 28] = struct.pack("<I", size)
    path.write_bytes(data)


RECIPES["a Parquet file without numbers"] = lambda p: pd.DataFrame(
    {"class": ["ant", "bee"], "legs": [[6], [6, 7]]}
).to_parquet(p)
RECIPES["a Parquet file without rows"] = lambda p: pd.DataFrame({"class": [], "a": []}).to_parquet(
    p
)
RECIPES["a Parquet file with a gap"] = lambda p: pd.DataFrame(
    {"class": ["ant", None], "legs": [6.0, 6.0]}
).to_parquet(p)


@recipe("half of a Parquet file")
def _(path):
    pd.DataFrame({"class": ["ant", "bee"], "legs": [6, 6]}).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])


# -- rows of features -----------------------------------------------------------------------------


def _rows(change=lambda rows: rows):
    """Recipe that writes rows that a model of the zoo could answer, changed."""
    return lambda path: np.save(path, change(np.load("features.npy")))


def _spoilt(value):
    def change(rows):
        rows[2, 5] = value
        return rows

    return change


RECIPES["rows of five features"] = _rows(lambda rows: rows[:, :5])
RECIPES["no rows"] = _rows(lambda rows: rows[:0])
RECIPES["rows without features"] = _rows(lambda rows: rows[:, :0])
RECIPES["a single row without its dimension"] = _rows(lambda rows: rows[0])
RECIPES["rows in three dimensions"] = _rows(lambda rows: rows[None])
RECIPES["rows with NaN"] = _rows(_spoilt(np.nan))
RECIPES["rows with infinity"] = _rows(_spoilt(np.inf))
RECIPES["rows that are too large"] = _rows(lambda rows: _spoilt(1e300)(rows.astype(np.float64)))
RECIPES["rows of complex numbers"] = _rows(lambda rows: rows.astype(complex))
RECIPES["rows of texts"] = _rows(lambda rows: rows.astype(str))
RECIPES["copy of zoo.npz"] = lambda path: shutil.copy("zoo.npz", path)
RECIPES["rows of objects"] = lambda path: np.save(path, np.load("features.npy").astype(object))


def _table_of_rows(change):
    """Recipe that writes the same as Parquet, a column for each feature, changed."""

    def make(path):
        rows = np.load("features.npy")
        columns = [f"f{i}" for i in range(rows.shape[1])]
        change(pd.DataFrame(rows, columns=columns)).to_parquet(path)

    return make


RECIPES["Parquet rows of five features"] = _table_of_rows(lambda frame: frame.iloc[:, :5])
RECIPES["Parquet rows of other columns"] = _table_of_rows(
    lambda frame: frame.rename(columns={"f0": "g0"})
)
RECIPES["Parquet rows"] = _table_of_rows(lambda frame: frame)
RECIPES["Parquet rows with a column of texts"] = _table_of_rows(
    lambda frame: frame.assign(name="ant")
)
RECIPES["Parquet rows with a gap"] = _table_of_rows(lambda frame: frame.reindex([0, 9, 2]))
RECIPES["Parquet without numbers"] = _table_of_rows(lambda frame: pd.DataFrame({"name": ["ant"]}))
RECIPES["Parquet without columns"] = _table_of_rows(lambda frame: frame[[]])
RECIPES["Parquet rows, none"] = _table_of_rows(lambda frame: frame.iloc[:0])
RECIPES["Parquet lists that differ in length"] = _table_of_rows(
    lambda frame: pd.DataFrame({"rows": [[1.0] * 12, [1.0] * 11]})
)
RECIPES["Parquet lists of texts"] = _table_of_rows(lambda frame: pd.DataFrame({"rows": [["ant"]]}))
RECIPES["Parquet with two columns of lists"] = _table_of_rows(
    lambda frame: pd.DataFrame({"rows": [[1.0] * 12], "more": [[1.0] * 12]})
)


@recipe("a cell of 200,000 characters")
def _(path):
    path.write_text(f"class,legs\nant,{'6' * 200_000}\n")


# -- word vectors ---------------------------------------------------------------------------------

content("binary vectors that are cut", b"2 3\nant " + struct.pack("<3f", 1, 2, 3) + b"bee \0\0")
content("binary vectors with a word without end", lambda: b"2 3\n" + b"x" * 200_000)
content("binary vectors that are not finite", b"1 3\nant " + struct.pack("<3f", 1, np.nan, 3))
content("a line without end", lambda: b"ant " + b"1" * (5 << 20))
content("a gzipped line without end", lambda: gzip.compress(b"ant " + b"1" * (8 << 20)))
content("gzip of noise", lambda: b"\x1f\x8b\x08\0" + np.random.default_rng(0).bytes(500))
content("words in UTF-16", "ant 1 2 3\nbee 1 2 3\n".encode("utf-16"))


# -- arrays ---------------------------------------------------------------------------------------


def _array(name, array, **options):
    def make(path):
        with open(path, "wb") as file:  # np.save adds an ending to a path that has another one
            np.save(file, array, **options)

    RECIPES[name] = make


_array("an array of objects", np.array([{"run": "me"}], object), allow_pickle=True)
_array("an array of texts", np.array([["a", "b"]]))
_array("an array of one dimension", np.ones(4))
_array("an array without columns", np.ones((60, 0)))
_array("an array with NaN", np.full((60, 12), np.nan))
_array("an array of whole numbers", np.ones((60, 12), int))
_array("an array of complex numbers", np.ones((60, 12), complex))


@recipe("an array that promises 8 TB")
def _(path):
    np.save(path, np.ones((1, 1)))
    path.write_bytes(
        path.read_bytes().replace(b"(1, 1), }" + 14 * b" ", b"(1000000, 1000000), }  ")
    )


@recipe("an array with an open bracket")
def _(path):
    np.save(path, np.ones((1, 1)))
    path.write_bytes(path.read_bytes().replace(b"(1, 1), }", b"(1, 1, { "))


@recipe("an array with a shape of code")
def _(path):
    np.save(path, np.ones((1, 1)))
    path.write_bytes(path.read_bytes().replace(b"(1, 1), }   ", b"exit(), }   "))


def _arrays(name, **arrays):
    RECIPES[name] = lambda path: np.savez(path, **arrays)


_X, _Y = np.ones((4, 2)), np.array(["ant", "bee", "ant", "bee"])
_arrays("arrays without labels", features=_X)
_arrays("arrays without features", labels=_Y)
_arrays("arrays of different lengths", features=_X, labels=_Y[:3])
_arrays("arrays that look transposed", features=_X.T, labels=_Y)
_arrays("labels that are numbers without names", features=_X, labels=np.arange(4))
_arrays("labels that count from one", features=_X, labels=np.arange(1, 5), classes=_Y)
_arrays("labels of classes without a description", features=_X, labels=np.array(["yak"] * 4))
_arrays("features that are texts", features=_X.astype(str), labels=_Y)
_arrays("no images", features=_X[:0], labels=_Y[:0])


@recipe("labels that are objects")
def _(path):
    np.savez(path, features=_X, labels=np.array([*_Y[:3], None], object))


@recipe("arrays that unpack to 2 GB")
def _(path):
    np.savez_compressed(path, labels=_Y, features=np.zeros((1000, 100)))
    _promise_more(path, 2 * 10**9)


# -- MATLAB ---------------------------------------------------------------------------------------


def _matlab(name, part, change):
    def make(path):
        found = gbu_parts()[part]
        change(found)
        savemat(path, found)

    RECIPES[name] = make


_matlab("features as MATLAB has them", "features", lambda found: None)
_matlab("splits as MATLAB has them", "splits", lambda found: None)


def _without(*keys):
    return lambda found: [found.pop(key) for key in keys]


def _first(key, value):
    return lambda found: found[key].__setitem__((0, 0), value)


def _cut_to(key, n):
    return lambda found: found.update({key: found[key][:n]})


def _same(key, other):
    return lambda found: found.update({key: found[other]})


_matlab("MATLAB features without labels", "features", _without("labels"))
_matlab("MATLAB features without features", "features", _without("features"))
_matlab("MATLAB labels beyond the classes", "features", _first("labels", 99))
_matlab("MATLAB labels that are too few", "features", _cut_to("labels", 3))
_matlab("MATLAB features with NaN", "features", _first("features", np.nan))
_matlab("MATLAB splits without attributes", "splits", _without("att", "original_att"))
_matlab("MATLAB splits without classes", "splits", _without("allclasses_names"))
_matlab("MATLAB splits beyond the images", "splits", _first("trainval_loc", 9999))
_matlab("MATLAB splits that overlap", "splits", _same("test_unseen_loc", "trainval_loc"))
_matlab("MATLAB classes of the same name", "splits", _first("allclasses_names", "bee"))


@recipe("half of a MATLAB file")
def _(path):
    RECIPES["features as MATLAB has them"](path)
    path.write_bytes(path.read_bytes()[:400])


def _hdf5(name, make_content):
    def make(path):
        import h5py

        with h5py.File(path, "w", userblock_size=512) as file:
            make_content(file, h5py)

    RECIPES[name] = make


def _linked(file, h5py):
    file["features"] = h5py.ExternalLink("other.mat", "/features")


def _huge(file, h5py):
    file.create_dataset("features", (10**6, 10**6), "f8", chunks=(9, 9))


def _circle(file, h5py):
    file.create_group("a")["b"] = file["/"]


_hdf5("MATLAB 7.3 without anything", lambda file, h5py: None)
_hdf5("MATLAB 7.3 with a link to another file", _linked)
_hdf5("MATLAB 7.3 that promises 8 TB", _huge)
_hdf5("MATLAB 7.3 with a circle", _circle)


@recipe("half of MATLAB 7.3")
def _(path):
    import h5py

    with h5py.File(path, "w") as file:
        file["features"] = np.ones((100, 100))
    path.write_bytes(path.read_bytes()[:3000])


# -- pictures -------------------------------------------------------------------------------------

for _name, (_data, _) in BROKEN.items():
    content(f"picture {_name}", _data)
content("a picture of ten billion pixels", bomb(100_000, 100_000))


# -- archives -------------------------------------------------------------------------------------


def _archive(name, members, after=None):
    def make(path):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for place, data in members().items():
                archive.writestr(place, data)
        if after is not None:
            after(path)

    RECIPES[name] = make


def _zoo(at="zoo2", **changes):
    def members():
        files = {
            str(p.relative_to("zoo")): p.read_bytes()
            for p in Path("zoo").rglob("*.*")
            if p.is_file()
        }
        files.update(
            {key.replace("__", "/").replace("_", "."): data for key, data in changes.items()}
        )
        return {f"{at}/{key}": data for key, data in files.items() if data is not None}

    return members


def _locked(path):
    data = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = data.find(mark)
        while start >= 0:
            data[start + place] |= 1
            start = data.find(mark, start + 4)
    path.write_bytes(data)


def _flipped(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


_archive("a locked archive", _zoo(), _locked)
_archive("a damaged archive", _zoo(), _flipped)
_archive(
    "half of an archive", _zoo(), lambda p: p.write_bytes(p.read_bytes()[: p.stat().st_size // 2])
)
_archive("an archive that unpacks to 4 GB", _zoo(), lambda p: _promise_more(p, 4 * 10**9))
_archive("an archive of a dataset without images", _zoo(images_csv=None))
_archive("an archive of a dataset with broken features", _zoo(features_npy=b"\x93NUMPY"))
_archive("an archive of two datasets of one name", lambda: {**_zoo("a/zoo2")(), **_zoo("b/zoo2")()})
_archive("an archive of a dataset called photos", _zoo("photos"))
content("text called an archive", b"these are not the bytes you are looking for")


# -- folders and lists ----------------------------------------------------------------------------

content("TOML nested deeply", lambda: b"name = " + b"[" * DEEP + b"]" * DEEP)
content("JSON nested deeply", lambda: b"[" * DEEP + b"]" * DEEP)
RECIPES["features of four images"] = lambda path: shutil.copy("features.npy", path)


def _folder(name, **files):
    def make(path):
        path.mkdir()
        for file, text in files.items():
            (path / file.replace("_", ".")).write_text(text)

    RECIPES[name] = make


_folder("a folder with something else", notes_txt="mine")
_folder("a folder with another run.json", run_json='{"mine": true}')
