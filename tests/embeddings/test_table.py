"""ClassEmbeddings: made from everything people have, and clear about what is wrong."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from latem import ClassEmbeddings, as_class_embeddings

NAMES = ["zebra", "horse", "okapi"]
VECTORS = [[1.0, 1.0], [0.0, 1.0], [0.5, 1.0]]


@pytest.fixture
def table():
    return ClassEmbeddings(NAMES, VECTORS, name="att", columns=["striped", "hoofed"])


def test_made_from_everything(table, tmp_path):
    frame = pd.DataFrame(VECTORS, index=NAMES, columns=["striped", "hoofed"])
    frame.rename_axis("class").to_csv(tmp_path / "att.csv")
    frame.rename_axis("class").to_csv(tmp_path / "att.tsv", sep="\t")
    frame.rename_axis("class").to_parquet(tmp_path / "att.parquet")
    frame.rename_axis("class").reset_index().to_parquet(tmp_path / "flat.parquet")
    by_path = [ClassEmbeddings.read(tmp_path / f"att.{end}") for end in ("csv", "tsv", "parquet")]
    assert by_path == [table] * 3
    others = [
        ClassEmbeddings.from_frame(frame, name="att"),
        ClassEmbeddings.from_frame(frame.rename_axis("class").reset_index(), name="att"),
        ClassEmbeddings.from_dict({n: dict(frame.loc[n]) for n in NAMES}, name="att"),
        ClassEmbeddings.read(tmp_path / "flat.parquet", name="att"),
    ]
    assert others == [table] * 4
    for source in (frame, str(tmp_path / "att.csv"), tmp_path / "att.csv", table):
        assert as_class_embeddings(source).to_frame().equals(table.to_frame())
    for source in ((NAMES, VECTORS), dict(zip(NAMES, VECTORS, strict=True))):
        np.testing.assert_array_equal(as_class_embeddings(source).vectors, VECTORS)


def test_semicolons_bom_and_quotes_of_spreadsheets(tmp_path):
    path = tmp_path / "traits.csv"
    path.write_bytes('\ufeffspecies;"wing; span"\n"Tit, great";1\nNA;2\n'.encode())
    table = ClassEmbeddings.read(path)
    assert table.names.tolist() == ["Tit, great", "NA"]
    assert table.columns == ("wing; span",)


def test_delimiters_inside_names(tmp_path):
    table = ClassEmbeddings(["a;b", "c,d"], np.eye(2), columns=["x;1;2;3", "10"])
    table.to_frame().to_csv(tmp_path / "t.csv")
    assert ClassEmbeddings.read(tmp_path / "t.csv").to_frame().equals(table.to_frame())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class,a\nx,1_0\n", r"line 2 .class 'x'.: a number must not hold an underscore"),
        ("class,a\nx,1\nx,2\n", "'x' is listed twice, as number 1 and as number 2"),
        ("class,a,b\nx,1,2\ny,1\n", r"line 3 \(class 'y'\): 2 cells, but the header has 3"),
        ("class,a,b\nx,1,2\ny,1,2,3\n", r"line 3 \(class 'y'\): 4 cells, but the header has 3"),
        ("class,a,b\nx,1,2\ny,1,\n", "class 'y', column 'b' holds ''"),
        ("class,a,b\nx,1,nan\n", "finite number for class 'x', column 'b', but holds nan"),
        ("class,a,b\nx,1,-inf\n", "finite number for class 'x', column 'b', but holds -inf"),
        ("class,a,b\nx,1,two\n", "class 'x', column 'b' holds 'two'"),
        ("class,a,a\nx,1,2\n", "columns twice: 'a'"),
        ("class,a\n,1\n", "The class number 1 of the table has no name"),
        ("ant,6.0,0.5\nbee,6.0,1.0\n", "seems to have no header"),
        ("id,Class,a\n1,x,2\n2,y,3\n", "but 'id' holds numbers, .* Put 'Class' first"),
        ("site,class,a\nhere,x,2\nhere,y,3\n", "but 'site' holds numbers, or the same more than"),
        ("class,a\n", "holds no classes"),
        ("", "holds no classes"),
        ("class\nx\n", "at least one of numbers"),
        ('class,a\n"x,1\n', "unexpected end of data"),
    ],
)
def test_bad_files_are_refused_with_place_and_reason(tmp_path, text, message):
    path = tmp_path / "att.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        ClassEmbeddings.read(path)
    assert "att.csv" in str(error.value)


def test_files_of_other_kinds(tmp_path):
    (tmp_path / "att.xyz").write_text("class,a\nx,1\n")
    (tmp_path / "att.csv").write_bytes(b"class,a\n\xff\xfe,1\n")
    with pytest.raises(ValueError, match="is one of .csv, .tsv"):
        ClassEmbeddings.read(tmp_path / "att.xyz")
    with pytest.raises(ValueError, match="not UTF-8"):
        ClassEmbeddings.read(tmp_path / "att.csv")
    with pytest.raises(FileNotFoundError, match="no class table"):
        ClassEmbeddings.read(tmp_path / "none.csv")
    with pytest.raises(TypeError, match="not list"):
        as_class_embeddings([1, 2])


@pytest.mark.parametrize(
    ("names", "vectors", "message"),
    [
        (["a", "b"], [[1, 2], [3]], "'b' has 1 values, but 'a' has 2"),
        (["a", "b"], [[1, 2]], "2 class names but 1 class vectors"),
        (["a"], [[1, "x"]], "class 'a', column 1 holds 'x'"),
        (["a"], [[1, None]], "class 'a', column 1"),
        (["a"], [[np.nan, 1]], r"class 'a', column 0, but holds nan"),
        (["a", "b"], np.array([[np.inf, 1], [np.nan, 2]]), r"holds inf \(and 1 more cells\)"),
        (["a"], np.ones(3), "not an array of shape"),
        (["a"], np.ones((1, 0)), "at least one dimension"),
        ([], np.ones((0, 1)), "at least one class"),
        ([1, 1], np.ones((2, 1)), "Class 1 is listed twice"),
    ],
)
def test_bad_tables(names, vectors, message):
    with pytest.raises(ValueError, match=message):
        ClassEmbeddings(names, vectors)


def test_frames_and_masked_arrays_as_vectors():
    frame = pd.DataFrame([[5, 1], [7, 2]])
    assert ClassEmbeddings(["a", "b"], frame).vectors.tolist() == [[5, 1], [7, 2]]
    assert as_class_embeddings((["a", "b"], frame))["b"].tolist() == [7, 2]
    with pytest.raises(ValueError, match="must not be masked"):
        ClassEmbeddings(["a"], np.ma.masked_array([[1, 2]], mask=[[0, 1]]))


def test_names_of_mixed_or_strange_type():
    with pytest.raises(TypeError, match="'a' is str and 1 is int"):
        ClassEmbeddings(["a", 1], [[1], [2]])
    with pytest.raises(TypeError, match="all be str or all be numbers"):
        ClassEmbeddings([("a",), ("b",)], [[1], [2]])


@pytest.mark.parametrize("gap", [None, float("nan"), np.nan, pd.NA, pd.NaT, ""])
def test_a_gap_among_names(gap):
    with pytest.raises(ValueError, match="The class number 2 of the table has no name"):
        ClassEmbeddings(["ant", gap, "bee"], np.ones((3, 2)))


def test_an_array_in_a_cell_is_no_number():
    cells = pd.DataFrame({"legs": [np.array([6]), np.array([6])]}, index=["ant", "bee"])
    with pytest.raises(ValueError, match=r"class 'ant', column 'legs' holds array\(\[6\]\)"):
        ClassEmbeddings.from_frame(cells)


def test_select_keeps_order_and_suggests(table):
    assert table.select(["okapi", "zebra"]).names.tolist() == ["okapi", "zebra"]
    with pytest.raises(ValueError, match="'att' has no rows for 'zebar'; did you mean 'zebra'?"):
        table.select(["zebar"])
    with pytest.raises(ValueError, match="names are of type str .such as 'zebra'., not int"):
        table.select([3])
    with pytest.raises(ValueError, match="is listed twice"):
        table.select(["zebra", "zebra"])


def test_l2_and_zero_vectors(table):
    np.testing.assert_allclose(np.linalg.norm(table.l2().vectors, axis=1), 1)
    with pytest.raises(ValueError, match="vectors of 'b' are all zero"):
        ClassEmbeddings(["a", "b"], [[1, 0], [0, 0]]).l2()
    tiny = ClassEmbeddings(["a", "b"], [[1e-300, 1e-300], [1e300, 1e300]]).l2()
    np.testing.assert_allclose(tiny.vectors, np.sqrt(0.5))


def test_concat_is_early_fusion(table):
    other = ClassEmbeddings(NAMES[::-1], [[3.0], [4.0], [5.0]], name="glo")
    joined = table.concat(other)
    assert joined.name == "att+glo"
    assert joined.columns == ("att:striped", "att:hoofed", "glo:glo_000")
    expected = np.hstack([table.l2().vectors, np.ones((3, 1))]) / np.sqrt(2)
    np.testing.assert_allclose(joined.vectors, expected)
    with pytest.raises(ValueError, match="only one of them has 'okapi'"):
        table.concat(other.select(["zebra", "horse"]))


def test_concat_of_three_weighs_all_alike(table):
    glo = ClassEmbeddings(NAMES[::-1], [[3.0, 1.0], [4.0, 0.0], [5.0, 2.0]], name="glo")
    hie = ClassEmbeddings(NAMES, [[7.0], [8.0], [9.0]])
    joined = table.concat(glo, hie)
    assert joined.name == "att+glo+part3"
    assert joined.columns is not None
    assert joined.columns[2:] == ("glo:glo_000", "glo:glo_001", "part3:dim_000")
    np.testing.assert_allclose(np.linalg.norm(joined.vectors, axis=1), 1)
    for columns in (slice(0, 2), slice(2, 4), slice(4, 5)):
        lengths = np.linalg.norm(joined.vectors[:, columns], axis=1)
        np.testing.assert_allclose(lengths, np.sqrt(1 / 3))
    in_pairs = table.concat(glo).concat(hie)  # two parts, the first of which is joined itself
    np.testing.assert_allclose(np.abs(in_pairs.vectors[:, 4]), np.sqrt(1 / 2))
    with pytest.raises(ValueError, match="Tables 'att' and '' .* only one of them has 'okapi'"):
        table.concat(glo, hie.select(["zebra", "horse"]))


def test_match_columns(table):
    swapped = ClassEmbeddings(["tapir"], [[0, 9]], columns=["hoofed", "striped"])
    assert table.match_columns(swapped)["tapir"].tolist() == [9, 0]
    with pytest.raises(ValueError, match="lacks 'striped'; it also has 'wings'"):
        table.match_columns(ClassEmbeddings(["x"], [[1, 2]], columns=["hoofed", "wings"]))
    with pytest.raises(ValueError, match="has 3 columns, but the model was trained with 2"):
        table.match_columns(ClassEmbeddings(["x"], [[1, 2, 3]]))


def test_unchangeable_and_shared_by_copies(table):
    assert copy.deepcopy(table) is table
    again = pickle.loads(pickle.dumps(table))
    assert again == table
    for one in (table, again):
        with pytest.raises(ValueError, match="read-only"):
            one.vectors[0, 0] = 2
    frame = table.to_frame()
    frame.iloc[0, 0] = 9
    assert table["zebra"][0] == 1


def test_source_arrays_are_not_shared():
    vectors = np.ones((2, 2))
    table = ClassEmbeddings(["a", "b"], vectors)
    vectors[0, 0] = 5
    assert table["a"][0] == 1


names = st.lists(st.text(min_size=1, max_size=8).map(lambda s: "c" + s), min_size=1, unique=True)


@given(names, st.data())
def test_frame_round_trip(names, data):
    names = [name.replace("\x00", "") for name in names]
    names = list(dict.fromkeys(names))
    shape = (len(names), data.draw(st.integers(1, 4)))
    floats = st.floats(allow_nan=False, allow_infinity=False)
    table = ClassEmbeddings(names, data.draw(hnp.arrays(float, shape, elements=floats)))
    again = ClassEmbeddings.from_frame(table.to_frame())
    assert again.names.tolist() == names
    np.testing.assert_array_equal(again.vectors, table.vectors)
