"""Blocks of images: what they are made of, and how results over them are added up."""

import numpy as np
import pytest

from latem.core.blocks import ArrowBlocks, DaskBlocks, IteratorBlocks, as_blocks

X = np.arange(40.0).reshape(10, 4)
Y = np.array(list("aabbbcccca"))


class Said(str):
    """Adding says who was added to whom."""

    def __add__(self, other):
        return Said(f"({self}{other})")


def places(X, y, place):
    return Said(".".join(map(str, place)))


def total(X, y, place):
    return np.array([X.sum(), len(y), (y == "a").sum()])


@pytest.fixture
def da():
    return pytest.importorskip("dask.array")


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_the_order_of_additions_is_the_number_of_blocks_alone(da, n):
    pairs = [(X, Y)] * n
    one = IteratorBlocks(iter(pairs)).total(places)
    images = da.concatenate([da.from_array(X, chunks=X.shape)] * n)
    assert DaskBlocks(images, np.tile(Y, n)).total(places) == one
    assert one.count("(") == n - 1


def test_dask_arrays(da):
    for labels in (Y, da.from_array(Y, chunks=4)):
        for chunks in ((3, 4), (10, 2), (1, 1)):
            blocks = as_blocks(da.from_array(X, chunks=chunks), labels)
            assert blocks.total(total).tolist() == [X.sum(), 10, 3]
    unknown = da.from_array(X, chunks=(5, 4))[da.from_array(np.ones(10, bool), chunks=5)]
    labels = da.from_array(Y, chunks=5)
    assert as_blocks(unknown, labels).total(total).tolist() == [X.sum(), 10, 3]
    with pytest.raises(ValueError, match="is not known, so their labels must be a Dask array"):
        as_blocks(unknown, Y)
    with pytest.raises(ValueError, match="2 blocks and labels in 5"):
        as_blocks(unknown, da.from_array(Y, chunks=2))


def test_bad_dask_arrays(da):
    with pytest.raises(ValueError, match="need labels: give y"):
        as_blocks(da.from_array(X), None)
    with pytest.raises(ValueError, match="two dimensions, not 1"):
        as_blocks(da.from_array(X[0]), Y)
    for labels in (Y[:9], da.from_array(Y[:9])):
        with pytest.raises(ValueError, match="10 images have 9 labels"):
            as_blocks(da.from_array(X), labels)


def test_dask_frames():
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("wxyz")), npartitions=3)
    labels = dd.from_pandas(pd.Series(Y), npartitions=3)
    blocks = as_blocks(frame, labels)
    assert blocks.feature_names == list("wxyz")
    assert blocks.total(total).tolist() == [X.sum(), 10, 3]
    with pytest.raises(ValueError, match="Dask array or Series of the same blocks"):
        as_blocks(frame, Y)


def write(folder, columns, rows=3):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from pyarrow import dataset

    for i in range(0, 10, rows):
        table = pa.table({name: values[i : i + rows] for name, values in columns.items()})
        parquet.write_table(table, folder / f"{i:02}.parquet")
    return dataset.dataset(folder)


def test_arrow_datasets(tmp_path):
    lists = {"features": X.tolist(), "class": Y.tolist()}
    blocks = as_blocks(write(tmp_path, lists), "class")
    assert isinstance(blocks, ArrowBlocks)
    assert blocks.feature_names is None
    assert blocks.total(total).tolist() == [X.sum(), 10, 3]
    again = blocks.total(places)
    assert again.count("(") == 3
    assert blocks.total(places) == again


def test_columns_of_arrow_datasets(tmp_path):
    columns = {"class": Y.tolist(), "p": X[:, 0], "q": X[:, 1]}
    blocks = as_blocks(write(tmp_path, columns), "class")
    assert blocks.feature_names == ["p", "q"]
    assert blocks.total(total).tolist() == [X[:, :2].sum(), 10, 3]


def test_bad_arrow_datasets(tmp_path):
    for name, columns in {
        "two lists": {"p": X.tolist(), "q": X.tolist(), "class": Y.tolist()},
        "texts": {"p": Y.tolist(), "class": Y.tolist()},
        "ragged": {"p": [[1.0] * (1 + i % 2) for i in range(10)], "class": Y.tolist()},
        "two on average": {"p": [[1.0] * (1 + i % 3) for i in range(9)], "class": Y[:9].tolist()},
    }.items():
        (tmp_path / name).mkdir()
        write(tmp_path / name, columns)
    from pyarrow import dataset

    with pytest.raises(ValueError, match="must be the name of the column with labels"):
        as_blocks(dataset.dataset(tmp_path / "texts"), "animal")
    with pytest.raises(ValueError, match=r"several columns of lists \(p, q\)"):
        as_blocks(dataset.dataset(tmp_path / "two lists"), "class")
    with pytest.raises(ValueError, match="Columns p are no numbers"):
        as_blocks(dataset.dataset(tmp_path / "texts"), "class").total(total)
    for name in ("ragged", "two on average"):
        with pytest.raises(ValueError, match="differ in length or are missing"):
            as_blocks(dataset.dataset(tmp_path / name), "class").total(total)


def test_iterators():
    blocks = as_blocks(iter([(X[:4], Y[:4]), (X[4:], Y[4:])]))
    assert blocks.once
    assert blocks.total(total).tolist() == [X.sum(), 10, 3]
    with pytest.raises(ValueError, match="used up"):
        blocks.total(total)
    with pytest.raises(TypeError, match="y must not be given beside it"):
        as_blocks(iter([]), Y)


def test_arrays_are_no_blocks():
    assert as_blocks(X, Y) is None
    assert as_blocks(X.tolist(), Y) is None
    blocks = as_blocks(iter([]))
    assert as_blocks(blocks) is blocks
