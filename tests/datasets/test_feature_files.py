"""Rows of features in files: chunks are the array, from any row on; what is wrong is told."""

import os
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from latem.datasets import feature_files
from latem.datasets.feature_files import are_features, open_features

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

X = np.arange(60, dtype=np.float32).reshape(20, 3)
KEYS = [f"row {i}" for i in range(len(X))]


def joined(rows, start=0, size=7):
    """All chunks in one, after a look at their lengths."""
    chunks = list(rows.chunks(start, size))
    left = rows.n_rows - start
    assert [len(chunk) for chunk in chunks] == [min(size, left - i) for i in range(0, left, size)]
    assert all(chunk.flags.c_contiguous and chunk.flags.writeable for chunk in chunks)
    return np.concatenate(chunks) if chunks else np.empty((0, rows.width))


def table(rows, form="columns", **others):
    """An Arrow table of rows of features."""
    if form == "columns":
        features = {f"f{i}": rows[:, i] for i in range(rows.shape[1])}
    else:
        length = rows.shape[1] if form == "fixed lists" else -1
        kind = pa.large_list if form == "large lists" else lambda kind: pa.list_(kind, length)
        features = {"rows": pa.array(list(rows), kind(pa.from_numpy_dtype(rows.dtype)))}
    return pa.table({**features, **others})


def parts(folder, rows, ends, *, form="columns", group=3):
    """Parquet files that end at some rows, with a few rows in a group."""
    for number, (start, end) in enumerate(zip([0, *ends], [*ends, len(rows)], strict=True)):
        part = table(rows[start:end], form, key=KEYS[start:end])
        parquet.write_table(part, folder / f"{number}.parquet", row_group_size=group)
    return folder


@pytest.fixture
def npy(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    return tmp_path / "rows.npy"


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "zoo"
    folder.mkdir()
    np.save(folder / "features.npy", X)
    (folder / "images.csv").write_text("image,class\n" + "".join(f"{key},ant\n" for key in KEYS))
    return folder


# -- chunks -----------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(
    data=st.data(),
    rows=hnp.arrays(
        st.sampled_from([np.float16, np.float32, np.float64, ">f4", np.int8, np.uint64, ">i2"]),
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=12),
    ),
    order=st.sampled_from("CF"),
)
def test_chunks_of_an_array_joined_are_the_array(data, rows, order, tmp_path_factory):
    path = tmp_path_factory.mktemp("npy") / "rows.npy"
    np.save(path, np.asarray(rows, order=order))
    opened = open_features(path)
    assert (opened.n_rows, opened.width) == rows.shape
    start = data.draw(st.integers(0, len(rows)))
    size = data.draw(st.integers(1, 14))
    np.testing.assert_array_equal(joined(opened, start, size), rows[start:])
    assert {chunk.dtype for chunk in opened.chunks(start, size)} <= {rows.dtype}


@settings(deadline=None, max_examples=60)
@given(
    data=st.data(),
    n=st.integers(1, 20),
    form=st.sampled_from(["columns", "lists", "large lists", "fixed lists"]),
)
def test_chunks_of_parquet_files_joined_are_the_array(data, n, form, tmp_path_factory):
    ends = sorted(data.draw(st.lists(st.integers(0, n), max_size=3)))  # some may be empty
    group = data.draw(st.integers(1, 21))
    folder = parts(tmp_path_factory.mktemp("parts"), X[:n], ends, form=form, group=group)
    opened = open_features(folder, id_column="key")
    assert (opened.n_rows, opened.width) == (n, 3)
    assert len(opened.files) == len(ends) + 1
    start, size = data.draw(st.integers(0, n)), data.draw(st.integers(1, 22))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feature_files, "_BATCH", data.draw(st.integers(1, 9)))
        found = joined(opened, start, size)
        names = list(opened.names(size))
    np.testing.assert_array_equal(found, X[start:n])
    assert [*chain(*names)] == KEYS[:n]
    assert {len(part) for part in names[:-1]} <= {size}


def test_groups_of_rows_before_the_start_are_not_read(tmp_path, monkeypatch):
    rows = open_features(parts(tmp_path, X, [6]), id_column="key")
    asked = []
    original = parquet.ParquetFile.iter_batches

    def counted(self, *args, row_groups, **options):
        asked.append(row_groups)
        return original(self, *args, row_groups=row_groups, **options)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", counted)
    np.testing.assert_array_equal(joined(rows, 10, 4), X[10:])
    assert asked == [[1, 2, 3, 4]]  # nothing of the first file, and not the first group after it


def test_a_chunk_holds_rows_of_several_files(tmp_path):
    rows = open_features(parts(tmp_path, X, [2, 5, 6]), id_column="key")
    assert [len(chunk) for chunk in rows.chunks(1, 100)] == [19]


def test_columns_of_whole_numbers_come_as_floating_point(tmp_path):
    parquet.write_table(table(X.astype(np.int16)), tmp_path / "a.parquet")
    found = joined(open_features(tmp_path / "a.parquet"))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, X)


def test_a_missing_number_is_nan(tmp_path):
    parquet.write_table(pa.table({"a": [1.0, None], "b": [1, None]}), tmp_path / "a.parquet")
    found = joined(open_features(tmp_path / "a.parquet"))
    np.testing.assert_array_equal(found, [[1, 1], [np.nan, np.nan]])


# -- names ------------------------------------------------------------------------------------


def test_rows_of_an_array_are_known_by_their_numbers(npy):
    assert list(open_features(npy).names(15)) == [
        [str(i) for i in range(15)],
        [str(i) for i in range(15, 20)],
    ]


def test_rows_of_a_dataset_folder_are_known_by_their_images(dataset):
    rows = open_features(dataset)
    assert [*chain(*rows.names(6))] == KEYS
    assert rows.files == [dataset / "features.npy", dataset / "images.csv"]
    assert rows.place == str(dataset)
    np.testing.assert_array_equal(joined(rows, 4), X[4:])


def test_an_image_without_a_name_is_known_by_its_number(dataset):
    images = dataset / "images.csv"
    images.write_text(images.read_text().replace("row 3,", ","))
    assert [*chain(*open_features(dataset).names(6))][2:5] == ["row 2", "3", "row 4"]


def test_a_dataset_folder_without_a_list_of_images(dataset):
    (dataset / "images.csv").unlink()
    rows = open_features(dataset)
    assert next(rows.names(3)) == ["0", "1", "2"]
    assert rows.files == [dataset / "features.npy"]


def test_a_row_without_an_identifier_is_known_by_its_number(tmp_path):
    for number, key in enumerate((["a", None], [None, "None"])):
        part = pa.table({"x": [1.0, 2.0], "key": key})
        parquet.write_table(part, tmp_path / f"{number}.parquet")
    rows = open_features(tmp_path, id_column="key")
    assert list(rows.names(3)) == [["a", "1", "2"], ["None"]]


def test_identifiers_of_other_kinds_are_text(tmp_path):
    parquet.write_table(pa.table({"x": [1.0, 2.0], "key": [7, 8]}), tmp_path / "a.parquet")
    assert list(open_features(tmp_path / "a.parquet", id_column="key").names(9)) == [["7", "8"]]


def test_an_identifier_that_cannot_be_read(tmp_path):
    days = pa.array([0, 2**30], pa.date32())  # the second is no day of Python's
    parquet.write_table(pa.table({"x": [1.0, 2.0], "day": days}), tmp_path / "a.parquet")
    rows = open_features(tmp_path / "a.parquet", id_column="day")
    with pytest.raises(ValueError, match=r"the column 'day' has values that cannot be read"):
        list(rows.names(9))


# -- columns ----------------------------------------------------------------------------------


def test_wanted_columns_are_taken_in_the_order_of_the_model(tmp_path):
    note = ["x"] * len(X)
    parquet.write_table(table(X, note=note), tmp_path / "a.parquet")
    rows = open_features(tmp_path / "a.parquet", wanted=["f2", "f0"])
    assert rows.width == 2
    np.testing.assert_array_equal(joined(rows, 3), X[3:, [2, 0]])
    with pytest.raises(ValueError, match=r"lacks the columns 'f7', which the model was fitted to"):
        open_features(tmp_path / "a.parquet", wanted=["f2", "f7"])


def test_the_index_of_a_frame_is_no_feature(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abc"), index=np.arange(len(X)) * 10)
    frame.to_parquet(tmp_path / "a.parquet")
    rows = open_features(tmp_path / "a.parquet")
    np.testing.assert_array_equal(joined(rows), X)


def test_names_of_columns_may_have_dots(tmp_path):
    parquet.write_table(pa.table({"f.1": [1.0], "f": [2.0], "f.1.x": [3.0]}), tmp_path / "a.pq")
    assert joined(open_features(tmp_path / "a.pq")).tolist() == [[1.0, 2.0, 3.0]]


def write(content):
    return lambda folder: parquet.write_table(pa.table(content), folder / "a.parquet")


NUMBERS = pa.list_(pa.float32())


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            write({"x": [1.0], "key": ["a"], "id": ["a"]}),
            r"the columns 'key' are no numbers; leave",
        ),
        (write({"key": [1.0]}), r"a\.parquet has no column 'id'; it has 'key'\."),
        (write({"id": ["a"]}), r"a\.parquet has no columns of features\."),
        (write({"x": [True], "id": ["a"]}), r"the columns 'x' are no numbers"),
        (write({"x": [{"a": 1.0}], "id": ["a"]}), r"the columns 'x' are no numbers"),
        (write({"x": [[[1.0]]], "id": ["a"]}), r"the columns 'x' are no numbers"),
        (write({"x": [[1.0]], "y": [[1.0]], "id": ["a"]}), r"several columns of lists \(x, y\)"),
        (write({"x": pa.array([], pa.float32()), "id": pa.array([], pa.string())}), "no rows"),
        (write({"x": pa.array([[], []], NUMBERS), "id": ["a", "b"]}), r"lists without numbers"),
    ],
)
def test_columns_that_are_refused(tmp_path, make, sentence):
    make(tmp_path)
    with pytest.raises(ValueError, match=sentence):
        open_features(tmp_path / "a.parquet", id_column="id")


def test_columns_of_the_same_name(tmp_path):
    twice = pa.table([pa.array([1.0]), pa.array([2.0]), pa.array([3.0])], names=["x", "y", "x"])
    parquet.write_table(twice, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet has several columns of the name 'x'\."):
        open_features(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    "lists",
    [
        [[1.0, 2.0, 3.0], [1.0, 2.0], [1.0, 2.0, 3.0, 4.0]],  # three on average
        [[1.0, 2.0, 3.0], [1.0, 2.0]],
        [[1.0, 2.0, 3.0], None],
        [[1.0, 2.0, 3.0], []],
    ],
)
def test_lists_that_differ_in_length_are_refused(tmp_path, lists):
    parquet.write_table(pa.table({"x": pa.array(lists, NUMBERS)}), tmp_path / "a.parquet")
    rows = open_features(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet: Lists in the column 'x' differ in length"):
        joined(rows)


def test_batches_of_lists_that_differ_in_length_are_refused(tmp_path, monkeypatch):
    lists = pa.array([[1.0, 2.0]] * 4 + [[1.0]] * 4, NUMBERS)
    parquet.write_table(pa.table({"x": lists}), tmp_path / "a.parquet")
    monkeypatch.setattr(feature_files, "_BATCH", 4)
    with pytest.raises(ValueError, match=r"a\.parquet has 1 features in a row, but 2 before\."):
        joined(open_features(tmp_path / "a.parquet"))


def test_files_must_have_the_same_columns(tmp_path):
    for other in (
        table(X[:, :2]),
        table(X.astype(np.float64)),
        table(X).select(["f1", "f0", "f2"]),
        table(X, "lists"),
    ):
        parquet.write_table(table(X), tmp_path / "0.parquet")
        parquet.write_table(other, tmp_path / "1.parquet")
        with pytest.raises(ValueError, match=r"1\.parquet has other columns of features than .*0"):
            open_features(tmp_path)
    parquet.write_table(table(X, "lists"), tmp_path / "0.parquet")
    parquet.write_table(table(X[:, :2], "lists"), tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"1\.parquet has other columns of features than .*0"):
        open_features(tmp_path)


def test_files_without_rows_are_no_rows(tmp_path):
    for number in range(2):
        parquet.write_table(table(X[:0], "lists"), tmp_path / f"{number}.parquet")
    with pytest.raises(ValueError, match=r"0\.parquet and 1 more holds no rows\."):
        open_features(tmp_path)


# -- what is given ----------------------------------------------------------------------------


def test_width_of_another_network(npy):
    open_features(npy).check_width(3)
    with pytest.raises(ValueError, match=r"rows\.npy has 3 features in a row, but the .* to 5; "):
        open_features(npy).check_width(5)


def test_files_can_be_given_in_several_ways(tmp_path):
    parts(tmp_path, X, [6, 11])
    (tmp_path / ".3.parquet").write_bytes(b"hidden")
    (tmp_path / "notes.txt").write_bytes(b"no features")
    files = sorted(tmp_path.glob("[0-9].parquet"))
    for sources in (tmp_path, str(tmp_path), files, [tmp_path], tmp_path / "[0-9].parquet"):
        rows = open_features(sources, id_column="key")
        assert rows.files == files
        np.testing.assert_array_equal(joined(rows), X)
    turned = open_features(files[::-1], id_column="key")
    np.testing.assert_array_equal(joined(turned), np.concatenate([X[11:], X[6:11], X[:6]]))


def test_a_name_with_signs_of_a_pattern_is_a_name_if_there_is_the_file(tmp_path):
    parquet.write_table(table(X), tmp_path / "[0].parquet")
    np.testing.assert_array_equal(joined(open_features(tmp_path / "[0].parquet")), X)


def test_sources_that_are_refused(npy, dataset, tmp_path):
    parquet.write_table(table(X), tmp_path / "a.parquet")
    for sources, sentence in (
        ([], r"^No features are given\.$"),
        ([npy, npy], r"rows\.npy is one of 2 sources of features; give one \.npy file"),
        ([tmp_path / "a.parquet", dataset], r"zoo is one of 2 sources of features"),
        (tmp_path / "*.pq", r"holds no Parquet files, and no features\.npy"),
    ):
        with pytest.raises(ValueError, match=sentence):
            open_features(sources)
    for source in (npy, dataset):
        with pytest.raises(ValueError, match=r"has no columns, so none can be the one of ident"):
            open_features(source, id_column="key")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty holds no Parquet files, and no features\.npy"):
        open_features(tmp_path / "empty")
    for name in ("gone.npy", "gone.parquet"):
        with pytest.raises(FileNotFoundError, match=rf"There is no file of features '.*{name}'"):
            open_features(tmp_path / name)


def test_what_looks_like_features(npy, dataset, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(b"")
    parquet.write_table(table(X), tmp_path / "photos" / ".hidden.parquet")
    for source in (npy, dataset, "some/A.PARQUET"):
        assert are_features([source])
    for sources in ([], [tmp_path / "photos"], ["a.png", "gone"]):
        assert not are_features(sources)
    parquet.write_table(table(X), tmp_path / "photos" / "a.PQ")
    assert are_features([tmp_path / "photos", npy])
    with pytest.raises(ValueError, match=r"rows\.npy has features and a\.png is none of them"):
        are_features([npy, "a.png"])


# -- damage -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.zeros(3), r"must hold numbers, rows × features, not float64 of shape \(3,\)"),
        (np.zeros((2, 2, 2)), r"not float64 of shape \(2, 2, 2\)"),
        (np.zeros((2, 0)), r"not float64 of shape \(2, 0\)"),
        (np.zeros((2, 2), bool), r"not bool of shape"),
        (np.zeros((2, 2), complex), r"not complex128 of shape"),
        (np.array([["a"]]), r"not <U1 of shape"),
        (np.array([[None]]), r"is not a readable \.npy array: it holds no plain numbers\."),
        (np.zeros((0, 2)), r"rows\.npy holds no rows\."),
    ],
)
def test_arrays_that_are_refused(tmp_path, array, sentence):
    np.save(tmp_path / "rows.npy", array)
    with pytest.raises(ValueError, match=sentence):
        open_features(tmp_path / "rows.npy")


def test_an_archive_is_no_array(tmp_path):
    np.savez(tmp_path / "rows.npz", X)
    (tmp_path / "rows.npz").rename(tmp_path / "rows.npy")
    with pytest.raises(ValueError, match=r"is an archive of arrays, not one \.npy array\."):
        open_features(tmp_path / "rows.npy")


@pytest.mark.parametrize("length", [0, 5, 40, 128, 300])
def test_an_array_that_is_cut(npy, length):
    os.truncate(npy, length)
    with pytest.raises(ValueError, match=r"rows\.npy is not a readable \.npy array: .*\w\.$"):
        open_features(npy)


@pytest.mark.parametrize("order", "CF")
def test_an_array_that_becomes_shorter(npy, order):
    rows = np.tile(X, (1000, 1))  # more than is read ahead
    np.save(npy, np.asarray(rows, order=order))
    chunks = open_features(npy).chunks(0, 4)
    np.testing.assert_array_equal(next(chunks), X[:4])
    os.truncate(npy, npy.stat().st_size // 2)
    with pytest.raises(
        OSError if order == "C" else ValueError, match=r"has become shorter|is not a readable"
    ):
        list(chunks)


@pytest.mark.parametrize(
    ("n", "sentence"),
    [
        (15, r"a\.parquet has become shorter while it was read\."),
        (25, r"a\.parquet has become longer while it was read\."),
        (47, r"a\.parquet has become longer while it was read\."),
    ],
)
def test_a_parquet_file_that_changes_after_it_was_opened(tmp_path, n, sentence):
    parquet.write_table(table(X), tmp_path / "a.parquet")
    rows = open_features(tmp_path / "a.parquet")
    parquet.write_table(table(np.resize(X, (n, 3))), tmp_path / "a.parquet", row_group_size=5)
    with pytest.raises(OSError, match=sentence):
        list(rows.chunks(0, 10))


def test_lists_of_images_that_do_not_fit(dataset):
    images = dataset / "images.csv"
    images.write_text(images.read_text() + "more,ant\n")
    with pytest.raises(ValueError, match=r"features\.npy has 20 rows but images\.csv has 21 lines"):
        open_features(dataset)
    images.write_text("picture,class\na,ant\n")
    with pytest.raises(ValueError, match=r"images\.csv needs the column 'image'"):
        open_features(dataset)


def test_a_parquet_file_that_is_cut_or_none(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(table(X), path)
    whole = path.read_bytes()
    for content in (b"", b"PAR1", whole[:100], whole[:-5], X.tobytes()):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"a\.parquet is damaged, or no Parquet file\.$"):
            open_features(path)


@pytest.mark.parametrize("form", ["columns", "lists"])
def test_pages_that_are_damaged_are_told(tmp_path, form):
    """Wherever a byte of the pages is changed, there is a sentence, or the rows are read."""
    path = tmp_path / "a.parquet"
    parquet.write_table(table(X, form), path, compression="snappy")
    whole = path.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little")
    told = []
    for place in range(4, len(whole) - footer - 8):
        changed = bytearray(whole)
        changed[place] ^= 0xFF
        path.write_bytes(changed)
        try:
            joined(open_features(path))
        except (ValueError, OSError) as error:
            told.append(str(error))
    assert len(told) > 20
    assert [one for one in told if not one.startswith(str(path))] == []
