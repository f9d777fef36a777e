"""Converters, against files written by SciPy, h5py, NumPy and pandas."""

import zipfile

import h5py
import numpy as np
import pandas as pd
import pytest
from helpers import SHARED
from matlab_files import CLASSES, gbu_parts, write_gbu
from scipy.io import loadmat, savemat
from typer.testing import CliRunner

from latem import ClassEmbeddings, read_folder
from latem.cli import app
from latem.core import memory
from latem.datasets.arrays import from_npz, from_pictures, from_table, list_pictures
from latem.datasets.mat_files import MatFile
from latem.datasets.matlab import from_gbu, from_release
from latem.datasets.picture_files import find_pictures

SPLITS = SHARED / "att_splits"


def write_hdf5(path, variables):
    """As MATLAB's -v7.3: arrays transposed, cells as references, a 512-byte user block."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in variables.items():
            if value.dtype == object:
                refs = np.empty(value.T.shape, h5py.ref_dtype)
                for i, cell in enumerate(value.ravel()):
                    codes = np.array([[ord(c)] for c in str(cell)], np.uint16)
                    refs.ravel()[i] = file.create_dataset(f"#refs#/{name}{i}", data=codes).ref
                file.create_dataset(name, data=refs).attrs["MATLAB_class"] = np.bytes_("cell")
            else:
                file.create_dataset(name, data=value.T)


def check_gbu(dataset):
    parts = gbu_parts()
    np.testing.assert_allclose(dataset.features, parts["features"]["features"].T, rtol=1e-6)
    assert dataset.labels[:6].tolist() == [*CLASSES, "ant"]
    assert dataset.images[1] == "bee/1.jpg"
    np.testing.assert_allclose(dataset.embeddings["att"].vectors, parts["splits"]["original_att"].T)
    split = dataset.split("proposed")
    assert (split.train, split.val, split.test) == (("ant", "bee", "cat"), (), ("dog", "eel"))
    assert split.held_out == (15, 16, 17)


def test_gbu_version_5(tmp_path):
    check_gbu(from_gbu(*write_gbu(tmp_path / "birds")))


def test_gbu_version_73(tmp_path):
    parts = gbu_parts()
    write_hdf5(tmp_path / "res101.mat", parts["features"])
    write_hdf5(tmp_path / "att_splits.mat", parts["splits"])
    check_gbu(from_gbu(tmp_path / "res101.mat", tmp_path / "att_splits.mat"))


def test_gbu_class_lists(tmp_path):
    pair = write_gbu(tmp_path / "birds")
    (tmp_path / "birds" / "valclasses1.txt").write_text("bee\n")
    (tmp_path / "standard").mkdir()
    (tmp_path / "standard" / "testclasses.txt").write_text("ant\neel\n")
    (tmp_path / "standard" / "valclasses.txt").write_text("cat\n")
    dataset = from_gbu(*pair, standard=tmp_path / "standard")
    assert dataset.name == "birds"
    assert dataset.split("proposed").val == ("bee",)
    standard = dataset.split("standard")
    assert (standard.train, standard.val) == (("bee", "dog"), ("cat",))
    assert standard.test == ("ant", "eel")
    (tmp_path / "standard" / "testclasses.txt").write_text("yak\n")
    with pytest.raises(ValueError, match=r"testclasses.txt lists \['yak'\]"):
        from_gbu(*pair, standard=tmp_path / "standard")


@pytest.mark.parametrize(
    ("part", "name", "change", "message"),
    [
        ("features", "features", lambda v: v.T, "res101.mat: features .* looks transposed"),
        ("features", "labels", lambda v: v - 1, "res101.mat: labels counts classes .* from 0"),
        ("features", "labels", lambda v: v + 1, "res101.mat: labels goes up to 6, but .* only 5"),
        ("features", "labels", lambda v: v + 0.5, "labels must hold whole numbers"),
        ("features", "features", lambda v: v * np.nan, "features holds NaN"),
        ("features", "features", None, "res101.mat has no variable 'features'; it has image_files"),
        ("splits", "original_att", lambda v: v.T, "att_splits.mat: original_att .* transposed"),
        ("splits", "trainval_loc", lambda v: v - 1, "trainval_loc counts images .* from 0"),
        ("splits", "test_seen_loc", lambda v: v + 99, "test_seen_loc goes up to"),
        ("splits", "trainval_loc", lambda v: v + 2, "are both seen and unseen"),
        ("splits", "trainval_loc", lambda v: v[1:], "each of the 20 images once, but name 19"),
        ("splits", "test_seen_loc", lambda v: v * 0 + 1, "each of the 20 images once"),
        ("splits", "allclasses_names", lambda v: np.array([["a"]] * 5, object), "unique names"),
    ],
)
def test_gbu_files_that_do_not_fit(tmp_path, part, name, change, message):
    parts = gbu_parts()
    if change is None:
        del parts[part][name]
    else:
        value = parts[part][name]
        parts[part][name] = change(value if value.dtype == object else value.astype(float))
    with pytest.raises(ValueError, match=message):
        from_gbu(*write_gbu(tmp_path / "birds", parts))


@pytest.mark.parametrize("hdf5", [False, True])
def test_cut_matlab_files(tmp_path, hdf5):
    path = tmp_path / "res101.mat"
    (write_hdf5 if hdf5 else savemat)(path, gbu_parts()["features"])
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ValueError, match=r"res101.mat is cut short"):
        MatFile(path)
    path.write_text("not a MATLAB file")
    with pytest.raises(ValueError, match=r"res101.mat is cut short or not a MATLAB file"):
        MatFile(path)
    with pytest.raises(FileNotFoundError, match="no MATLAB file"):
        MatFile(tmp_path / "none.mat")


def write_npz(path, n=4, width=3, **more):
    rng = np.random.default_rng(0)
    labels = np.array(["ant", "bee"])[np.arange(n) % 2]
    np.savez_compressed(path, features=rng.random((n, width)), labels=labels, **more)
    return path


TWO = {"att": ClassEmbeddings(["ant", "bee"], np.eye(2), name="att")}


def test_unrelated_arrays_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "LARGEST_UNPACKED", 100_000)
    path = write_npz(tmp_path / "a.npz", junk=np.zeros(10**6))
    assert len(from_npz(path, TWO).labels) == 4
    np.savez(tmp_path / "b.npz", features=np.eye(2), junk=np.eye(2))
    with pytest.raises(ValueError, match=r"no array 'labels'; it has features, junk"):
        from_npz(tmp_path / "b.npz", TWO)


def test_arrays_that_unpack_to_far_more(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "LARGEST_UNPACKED", 100_000)
    path = write_npz(tmp_path / "a.npz", images=np.zeros(10**5, "U10"))
    with pytest.raises(ValueError, match=r"^\S*a\.npz has .*would unpack to 4 MB.*numpy\.savez"):
        from_npz(path, TWO)


@pytest.mark.parametrize(("n", "width"), [(0, 3), (4, 0)])
def test_npz_without_images_or_features(tmp_path, n, width):
    with pytest.raises(ValueError, match=rf"shape \({n}, {width}\) hold no images or numbers"):
        from_npz(write_npz(tmp_path / "a.npz", n, width), TWO)


def test_tables_without_images_and_with_large_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("class,x,y\n")
    with pytest.raises(ValueError, match=r"a\.csv holds no images"):
        from_table(path, TWO)
    path.write_text("class,x,y\nant,99999999999999999999999,1\nbee,2,3\n")
    assert from_table(path, TWO).features.tolist() == [[1e23, 1.0], [2.0, 3.0]]
    path.write_text("class,x,y\nant,99999999999999999999999,1\nbee,four,3\n")
    with pytest.raises(ValueError, match="column 'x' must hold numbers, but image 1 has 'four'"):
        from_table(path, TWO)


def test_parquet_that_unpacks_to_far_more(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"class": "ant", "x": np.zeros(50_000), "y": np.ones(50_000)})
    frame.to_parquet(tmp_path / "a.parquet")
    assert len(from_table(tmp_path / "a.parquet", TWO).labels) == 50_000
    monkeypatch.setattr(memory, "LARGEST_UNPACKED", 100_000)
    with pytest.raises(ValueError, match=r"^\S*a\.parquet has .* would unpack to 1\.2 MB"):
        from_table(tmp_path / "a.parquet", TWO)


PUBLISHED = {  # name: images, classes, attributes, seen, unseen, unseen images ("GBU", Table 1)
    "CUB": (11788, 200, 312, 150, 50, 2967),
    "AWA1": (30475, 50, 85, 40, 10, 5685),
    "AWA2": (37322, 50, 85, 40, 10, 7913),
    "SUN": (14340, 717, 102, 645, 72, 1440),
    "APY": (15339, 32, 64, 20, 12, 7924),
}


@pytest.mark.skipif(not SPLITS.is_dir(), reason="the real att_splits.mat files are not here")
@pytest.mark.parametrize("name", PUBLISHED)
def test_real_splits_have_the_published_counts(tmp_path, name):
    images, classes, attributes, seen, unseen, unseen_images = PUBLISHED[name]
    real = loadmat(SPLITS / f"{name}.mat")
    unseen_rows = real["test_unseen_loc"].ravel() - 1
    # The feature half is made here: unseen rows get the last classes, all others the first.
    labels = np.resize(np.arange(1, seen + 1), images)
    labels[unseen_rows] = np.resize(np.arange(seen + 1, classes + 1), len(unseen_rows))
    features = np.random.default_rng(0).random((2, images)).astype(np.float32)
    savemat(tmp_path / "res101.mat", {"features": features, "labels": labels[:, None]})
    dataset = from_gbu(tmp_path / "res101.mat", SPLITS / f"{name}.mat")
    split = dataset.split("proposed")
    assert len(dataset.features) == images
    assert dataset.embeddings["att"].vectors.shape == (classes, attributes)
    assert (len(split.train + split.val), len(split.test)) == (seen, unseen)
    assert len(dataset.testing("proposed")[0]) == unseen_images
    n_training = len(dataset.training("proposed")[0])
    assert n_training == real["trainval_loc"].size
    assert n_training + len(split.held_out) + unseen_images == images


def release_parts():
    rng = np.random.default_rng(0)
    seen, unseen = {"att": rng.random((4, 3)), "w2v": rng.random((2, 3))}, {}
    unseen = {key: rng.random((len(value), 2)) for key, value in seen.items()}
    return {
        "trainval_X": rng.random((9, 5)),
        "trainval_labels": (np.arange(9) % 3 + 1)[:, None],
        "trainval_Y": seen,
        "val_X": rng.random((3, 5)),
        "val_labels": np.ones((3, 1)),
        "val_Y": {key: value[:, 1:2] for key, value in seen.items()},
        "test_X": rng.random((4, 5)),
        "test_labels": np.array([[1], [2], [2], [1]]),
        "test_Y": unseen,
    }


def test_release(tmp_path):
    parts = release_parts()
    savemat(tmp_path / "data_CUB.mat", parts)
    dataset = from_release(tmp_path / "data_CUB.mat")
    assert dataset.name == "data_CUB"
    split = dataset.split()
    assert split.train == ("seen 001", "seen 003")
    assert split.val == ("seen 002",)
    assert split.test == ("unseen 001", "unseen 002")
    X, y = dataset.testing()
    np.testing.assert_allclose(X, parts["test_X"], rtol=1e-6)
    assert y.tolist() == ["unseen 001", "unseen 002", "unseen 002", "unseen 001"]
    np.testing.assert_allclose(
        dataset.embeddings["w2v"]["unseen 002"], parts["test_Y"]["w2v"][:, 1]
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test_labels": np.array([[0], [1], [1], [0]])}, "test_labels counts columns .* from 0"),
        ({"test_X": np.ones((5, 4))}, "test_X has 5 rows, .* 4 test_labels; it looks transposed"),
        ({"test_X": np.ones((4, 6))}, "differ in width, 5 and 6"),
        ({"test_Y": {"att": np.ones((4, 2))}}, "hold different embeddings"),
        ({"val_Y": {"att": np.ones((4, 1))}}, "column 1 of val_Y is not a column of trainval_Y"),
        ({"test_Y": {"att": np.ones((4, 2)), "w2v": np.ones((2, 3))}}, "differ in number"),
        ({"test_Y": {"att": np.ones((3, 2)), "w2v": np.ones((2, 2))}}, "'att' have 4 .* and 3 in"),
        ({"test_Y": np.array([["x"]], object)}, "a containers.Map.*cell2struct"),
    ],
)
def test_release_files_that_do_not_fit(tmp_path, change, message):
    savemat(tmp_path / "data.mat", {**release_parts(), **change})
    with pytest.raises(ValueError, match=message):
        from_release(tmp_path / "data.mat")


TABLE = ClassEmbeddings(["ant", "bee", "cat"], [[6, 0], [6, 1], [4, 1]], columns=["legs", "fur"])


def test_npz(tmp_path):
    X = np.arange(8.0).reshape(4, 2)
    np.savez(tmp_path / "a.npz", features=X, labels=["ant", "bee", "bee", "cat"])
    dataset = from_npz(tmp_path / "a.npz", {"att": TABLE}, unseen=["cat"])
    assert dataset.split().test == ("cat",)
    assert dataset.training()[1].tolist() == ["ant", "bee", "bee"]
    np.savez(tmp_path / "b.npz", features=X, labels=[0, 1, 1, 2], classes=["ant", "bee", "cat"])
    assert from_npz(tmp_path / "b.npz", {}).labels.tolist() == ["ant", "bee", "bee", "cat"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"labels": ["ant"]}, "has no array 'features'; it has labels"),
        ({"features": np.ones((2, 1)), "labels": ["ant"]}, "2 rows of features but 1 labels"),
        ({"features": np.ones((2, 3)), "labels": ["ant"] * 3}, "they look transposed"),
        ({"features": np.ones((1, 1)), "labels": [1]}, "add an array 'classes'"),
        (
            {"features": np.ones((2, 1)), "labels": [1, 2], "classes": ["ant", "bee"]},
            "labels go from 1 to 2, .* seem to count from 1: subtract 1",
        ),
        (
            {"features": np.ones((1, 1)), "labels": ["yak"]},
            r"no rows for 'yak', which have images; add rows",
        ),
        ({"features": np.array([["x"]]), "labels": ["ant"]}, "features must be numbers"),
    ],
)
def test_bad_npz(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        from_npz(tmp_path / "a.npz", {"att": TABLE})


def test_npz_that_is_cut_or_pickled(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, features=np.ones((50, 50)), labels=["ant"] * 50)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(ValueError, match="a.npz is not a readable NPZ file"):
        from_npz(path, {})
    np.savez(path, features=np.array([{}], object), labels=["ant"])
    with pytest.raises(ValueError, match="a.npz is not .* NPZ file: it holds no plain numbers"):
        from_npz(path, {})


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_tables_of_images(tmp_path, suffix):
    names = {"image": ["1.jpg", "NA"], "class": ["ant", "cat"]}
    frame = pd.DataFrame({**names, "f1": [0.5, 1], "f2": [2, 3]})
    path = tmp_path / f"images.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="," if suffix == "csv" else "\t")
    dataset = from_table(path, {"att": TABLE}, unseen=["cat"])
    assert dataset.features.tolist() == [[0.5, 2], [1, 3]]
    assert dataset.images.tolist() == ["1.jpg", "NA"]
    assert dataset.testing()[1].tolist() == ["cat"]


def test_missing_cells_of_parquet(tmp_path):
    frame = pd.DataFrame({"image": ["xa.jpg", None], "class": ["ant", "cat"], "f": [1.0, 2.0]})
    frame.to_parquet(tmp_path / "i.parquet")
    assert from_table(tmp_path / "i.parquet", {}).images.tolist() == ["xa.jpg", ""]
    frame.assign(**{"class": ["ant", None]}).to_parquet(tmp_path / "i.parquet")
    with pytest.raises(ValueError, match="image 1 has no class"):
        from_table(tmp_path / "i.parquet", {})


def test_bad_tables_of_images(tmp_path):
    path = tmp_path / "images.csv"
    pd.DataFrame({"class": ["ant"], "f": [1.0]}).to_csv(path)
    with pytest.raises(ValueError, match="a column without a name, perhaps an index"):
        from_table(path, {})
    path.write_text("class,f\nant,1\ncat,x\n")
    with pytest.raises(ValueError, match="column 'f' must hold numbers, but image 1 has 'x'"):
        from_table(path, {})
    path.write_text("label,f\nant,1\n")
    with pytest.raises(ValueError, match="needs a column 'class'"):
        from_table(path, {})
    path.write_text("class,f\nant,1\n")
    with pytest.raises(ValueError, match=r"'dog': named as unseen, but without images"):
        from_table(path, {}, unseen=["dog"])
    with pytest.raises(FileNotFoundError, match="no table of images"):
        from_table(tmp_path / "none.csv", {})


def test_pictures_are_sorted_by_folder_then_file(tmp_path):
    for name in ("blue/1.jpg", "blue jay/1.jpg", "blue-b/1.jpg", "blue/._1.jpg", ".trash/1.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    images, labels = list_pictures(tmp_path)
    assert labels.tolist() == sorted(["blue", "blue jay", "blue-b"])
    assert images.tolist() == ["blue/1.jpg", "blue jay/1.jpg", "blue-b/1.jpg"]


def test_folders_of_pictures(tmp_path):
    for name in ("bee/b 1.jpg", "ant/ä.PNG", "ant/notes.txt", "ant/a.jpeg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    images, labels = list_pictures(tmp_path)
    assert images.tolist() == ["ant/a.jpeg", "ant/ä.PNG", "bee/b 1.jpg"]
    assert labels.tolist() == ["ant", "ant", "bee"]
    np.save(tmp_path / "features.npy", np.eye(3))
    dataset = from_pictures(tmp_path, tmp_path / "features.npy", {"att": TABLE}, unseen=["bee"])
    assert dataset.testing()[0].tolist() == [[0, 0, 1]]
    with pytest.raises(ValueError, match="2 rows of features but 3 labels"):
        from_pictures(tmp_path, np.ones((2, 2)), {})
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no class folders with pictures"):
        list_pictures(tmp_path / "empty")


def test_class_folders_are_listed_as_pictures_are_found(tmp_path):
    """Every suffix that pictures have, and folders inside of class folders."""
    for name in ("ant/a.jfif", "ant/2024/b.jpg", "bee/c.heic"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    images, labels = list_pictures(tmp_path)
    found, _ = find_pictures(tmp_path)
    assert images.tolist() == [one.image for one in found]
    assert labels.tolist() == ["ant", "ant", "bee"]
    assert set(images) == {"ant/a.jfif", "ant/2024/b.jpg", "bee/c.heic"}


# -- the command line -------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(app, ["data", *map(str, arguments)])


def test_convert_check_info_and_split_on_the_command_line(tmp_path):
    pair = write_gbu(tmp_path / "birds")
    result = run("convert", "gbu", *pair, "--out", tmp_path / "new")
    assert result.exit_code == 0, result.output
    check_gbu(read_folder(tmp_path / "new"))
    assert run("check", tmp_path / "new").exit_code == 0
    result = run("split", tmp_path / "new", "--sizes", "2,1,2", "--n", "2", "--held-out", "0.3")
    assert result.exit_code == 0, result.output
    assert len(read_folder(tmp_path / "new").split("random2").held_out) > 0
    assert run("split", tmp_path / "new", "--sizes", "2,1,2").exit_code == 1
    result = run("info", tmp_path / "new")
    assert "20 images × 3 features" in result.output
    assert "random2" in result.output
    assert '"classes": 5' in run("info", tmp_path / "new", "--json").output
    again = run("convert", "gbu", *pair, "--out", tmp_path / "new")
    assert again.exit_code == 1
    assert "exists already" in again.output


def test_failures_on_the_command_line_leave_nothing(tmp_path):
    pair = write_gbu(tmp_path / "birds")
    pair[0].write_bytes(pair[0].read_bytes()[:300])
    result = run("convert", "gbu", *pair, "--out", tmp_path / "new")
    assert result.exit_code == 1
    assert "res101.mat is cut short" in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "new").exists()
    (tmp_path / "x").mkdir()
    result = run("check", tmp_path / "x")
    assert result.exit_code == 1
    assert "needs features.npy" in result.output
    assert run("info", tmp_path / "x").exit_code == 1


@pytest.mark.parametrize(
    ("arrays", "arguments", "message"),
    [
        ({"features": np.full((3, 1), np.nan)}, (), "row 0, column 0 is not a finite number"),
        ({}, ("--unseen", "all.txt"), "a split needs train and test classes"),
        ({}, ("--unseen", "none.txt"), "holds no unseen classes"),
        ({}, ("--table", "../../evil=traits.csv"), "cannot be the name of a class table"),
        ({}, ("--table", "sub/traits.csv"), "Two tables would be called 'traits'"),
    ],
)
def test_unsound_datasets_are_not_made(tmp_path, monkeypatch, arrays, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("traits.csv", "sub/traits.csv"):
        TABLE.to_frame().to_csv(tmp_path / name)
    (tmp_path / "all.txt").write_text("ant\nbee\ncat\n")
    (tmp_path / "none.txt").write_text("\n")
    np.savez("a.npz", **{"features": np.eye(3), "labels": ["ant", "bee", "cat"], **arrays})
    before = sorted(tmp_path.rglob("*"))
    result = run("convert", "npz", "a.npz", "--out", "o/new", "--table", "traits.csv", *arguments)
    assert result.exit_code == 1
    assert message in result.output.replace("\n", " ")
    assert [p for p in sorted(tmp_path.rglob("*")) if p.name != "o"] == before


def test_split_names_stay_in_the_folder(tmp_path):
    run("convert", "gbu", *write_gbu(tmp_path / "birds"), "--out", tmp_path / "new")
    assert read_folder(tmp_path / "new").name == "birds"
    result = run("split", tmp_path / "new", "--sizes", "2,1,2", "--prefix", "../../x")
    assert result.exit_code == 1
    assert "cannot be the name" in result.output.replace("\n", " ")


def test_arrays_on_the_command_line(tmp_path):
    np.savez(tmp_path / "a.npz", features=np.eye(3), labels=["ant", "bee", "cat"])
    TABLE.to_frame().to_csv(tmp_path / "traits.csv")
    (tmp_path / "unseen.txt").write_text("cat\n")
    arguments = ("--table", f"att={tmp_path / 'traits.csv'}", "--unseen", tmp_path / "unseen.txt")
    result = run("convert", "npz", tmp_path / "a.npz", "--out", tmp_path / "new", *arguments)
    assert result.exit_code == 0, result.output
    assert read_folder(tmp_path / "new").embeddings["att"].columns == ("legs", "fur")
    pd.DataFrame({"class": ["ant", "cat"], "f": [1.0, 2.0]}).to_csv(tmp_path / "i.csv", index=False)
    result = run("convert", "table", tmp_path / "i.csv", "--out", tmp_path / "two", *arguments)
    assert result.exit_code == 0, result.output
    savemat(tmp_path / "data.mat", release_parts())
    result = run("convert", "release", tmp_path / "data.mat", "--out", tmp_path / "three")
    assert result.exit_code == 0, result.output


def test_parts_of_an_archive_that_are_no_arrays(tmp_path):
    path = write_npz(tmp_path / "a.npz")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("images.npy", b"hello")
    with pytest.raises(ValueError, match=r"a\.npz: 'images' is not an array"):
        from_npz(path, TWO)


def test_numbered_labels_need_a_list_of_names(tmp_path):
    arrays = {"features": np.eye(2), "labels": np.arange(2), "classes": np.array("ant")}
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match="add an array 'classes' of their names"):
        from_npz(tmp_path / "a.npz", TWO)
