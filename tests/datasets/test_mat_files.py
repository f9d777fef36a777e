"""MATLAB files that are odd, damaged, or made to do harm."""

import os

import h5py
import numpy as np
import pytest
import scipy.sparse
from scipy.io import savemat

from latem.core import memory
from latem.datasets.mat_files import MatFile


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.mat"


def test_compressed_files_that_unpack_to_far_more(path, monkeypatch):
    savemat(path, {"features": np.zeros((300, 300))}, do_compression=True)
    assert MatFile(path).matrix("features").shape == (300, 300)
    monkeypatch.setattr(memory, "LARGEST_UNPACKED", 100_000)
    with pytest.raises(ValueError, match=r"data\.mat has .* but would unpack to 720 kB.*save -v6"):
        MatFile(path)
    savemat(path, {"features": np.zeros((300, 300))}, do_compression=False)
    assert MatFile(path).matrix("features").shape == (300, 300)


def test_texts_of_other_programs(path):
    with h5py.File(path, "w") as file:
        file["names"] = ["zebra", "okapi"]
        file["bytes"] = np.array([b"zebra", b"okapi"])
    assert MatFile(path).get("names") == ["zebra", "okapi"]
    assert MatFile(path).get("bytes") == ["zebra", "okapi"]


def test_a_driver_of_any_size_is_not_looked_for(path):
    """HDF5 would make room for as much as the file says of it."""
    with h5py.File(path, "w", libver="earliest", userblock_size=512) as file:
        file["features"] = np.eye(3)
    assert MatFile(path).matrix("features").shape == (3, 3)
    content = bytearray(path.read_bytes())
    assert content[512 + 48 : 512 + 56] == b"\xff" * 8
    content[512 + 48 : 512 + 56] = (600).to_bytes(8, "little")
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"data\.mat is damaged: it tells of a file driver"):
        MatFile(path)


@pytest.mark.parametrize("version", ["earliest", "v108", "v110", "latest"])
def test_hdf5_of_every_version(path, version):
    with h5py.File(path, "w", libver=version) as file:
        file["features"] = np.eye(3)
    assert MatFile(path).matrix("features").shape == (3, 3)


def test_sparse_matrices(path):
    savemat(path, {"features": scipy.sparse.eye(5).tocsc(), "labels": np.ones((5, 1))})
    with pytest.raises(ValueError, match=r"features is a sparse matrix.*features = full\(features"):
        MatFile(path).matrix("features")
    assert MatFile(path).matrix("labels").shape == (5, 1)


def make_dangling(file):
    file["a"] = h5py.SoftLink("/nowhere")


def make_elsewhere(file):
    file["a"] = h5py.ExternalLink("other.h5", "/secret")


def make_circle(file):
    file.create_group("a")["b"] = file["/"]


def make_own_circle(file):
    group = file.create_group("a")
    group["a"] = group


def make_null_reference(file):
    file.create_dataset("a", (2,), h5py.ref_dtype)


def make_other_file(file):
    file.create_dataset("a", (10,), "u1", external=[(os.fspath("/etc/hostname"), 0, 10)])


def make_virtual(file):
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "x", (4,))
    file.create_virtual_dataset("a", layout)


def make_huge(file):
    file.create_dataset("a", (10**6, 10**6), "f8", chunks=(100, 100), compression="gzip")


def make_long_text(file):
    text = file.create_dataset("#refs#/b", (200_000,), "u2", chunks=(100_000,))
    file.create_dataset("a", data=np.array([text.ref], h5py.ref_dtype))


def make_lists(file):
    file.create_dataset("a", (2,), h5py.vlen_dtype(np.int32))


def make_compound(file):
    file["a"] = np.zeros(3, [("x", "f4"), ("y", "i4")])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (make_dangling, "'a' is a link"),
        (make_elsewhere, "'a' is a link"),
        (make_circle, "lies in too many structs"),
        (make_own_circle, "lies in too many structs"),
        (make_null_reference, "damaged"),
        (make_other_file, "the data of 'a' are not in the file"),
        (make_virtual, "the data of 'a' are not in the file"),
        (make_huge, "would unpack to 8 TB"),
        (make_long_text, "cell array of texts of up to 100000"),
        (make_lists, "no numbers or texts"),
        (make_compound, "no numbers or texts"),
    ],
)
def test_strange_hdf5_files(path, make, message):
    with h5py.File(path, "w") as file:
        make(file)
    with pytest.raises(ValueError, match=rf"data\.mat.*{message}"):
        MatFile(path)
