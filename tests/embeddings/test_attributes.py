"""Attribute tables in the forms people have them."""

import gc

import openpyxl
import pandas as pd
import pytest

from latem.core.memory import TooLargeError
from latem.embeddings.attributes import read_attributes


def write_awa(folder):
    folder.mkdir(exist_ok=True)
    (folder / "classes.txt").write_text("     1\tantelope\n     2\tgrizzly+bear\n")
    (folder / "predicates.txt").write_text("1\tblack\n2\twhite\n3\tblue\n")
    (folder / "predicate-matrix-continuous.txt").write_text(" -1.00   5.20  0\n 39.25   1.39  1\n")
    return folder


def write_cub(folder):
    (folder / "attributes").mkdir(parents=True)
    (folder / "classes.txt").write_text("1 001.Black_footed_Albatross\n2 002.Laysan_Albatross\n")
    matrix = folder / "attributes" / "class_attribute_labels_continuous.txt"
    matrix.write_text("0.5 30.0\n12.25 4e1\n")
    (folder.parent / "attributes.txt").write_text("1 has_bill::curved\n2 has_bill::dagger\n")
    return folder


def test_awa(tmp_path):
    table = read_attributes(write_awa(tmp_path / "awa"))
    assert table.names.tolist() == ["antelope", "grizzly+bear"]
    assert table.columns == ("black", "white", "blue")
    assert table["antelope"].tolist() == [-1, 5.2, 0]


def test_cub(tmp_path):
    table = read_attributes(write_cub(tmp_path / "CUB_200_2011"))
    assert table.names.tolist() == ["001.Black_footed_Albatross", "002.Laysan_Albatross"]
    assert table.columns == ("has_bill::curved", "has_bill::dagger")
    assert table["002.Laysan_Albatross"].tolist() == [12.25, 40]


def test_excel_and_text_files(tmp_path):
    frame = pd.DataFrame({"species": ["ant", "NA"], "legs": [6, 4], "fur": [0.5, 1]})
    frame.to_excel(tmp_path / "traits.xlsx", index=False)
    frame.to_csv(tmp_path / "traits.csv", index=False)
    sheet, text = (read_attributes(tmp_path / f"traits.{end}") for end in ("xlsx", "csv"))
    assert sheet == text
    frame.astype(object).replace(4, "four").to_excel(tmp_path / "bad.xlsx", index=False)
    with pytest.raises(ValueError, match=r"bad.xlsx: .* class 'NA', column 'legs' holds 'four'"):
        read_attributes(tmp_path / "bad.xlsx")
    (tmp_path / "text.xlsx").write_text("hello")
    with pytest.raises(ValueError, match="text.xlsx is not a readable Excel file"):
        read_attributes(tmp_path / "text.xlsx")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("classes.txt", None, "classes.txt is missing"),
        ("classes.txt", "0 antelope\n1 bear\n", r"classes.txt, line 1: expected '1 NAME'"),
        ("predicates.txt", "1 black\n2 white\n", "2 lines of 3 numbers, .* 2 classes and 2 attr"),
        ("predicate-matrix-continuous.txt", "1 2 3\n4 5\n", "line 2: 2 numbers, .* cut short"),
        ("predicate-matrix-continuous.txt", "1 2\n3 4\n5 6\n", "it looks transposed"),
        ("predicate-matrix-continuous.txt", "1 2 x\n", "line 1: could not convert"),
        ("predicate-matrix-continuous.txt", "", "is empty"),
    ],
)
def test_broken_awa(tmp_path, name, text, message):
    folder = write_awa(tmp_path / "awa")
    (folder / name).unlink()
    if text is not None:
        (folder / name).write_text(text)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        read_attributes(folder)


def test_a_folder_of_something_else(tmp_path):
    with pytest.raises(ValueError, match="is not a folder of attributes"):
        read_attributes(tmp_path)


@pytest.mark.parametrize("place", ["XFD20", "B1048576"])
def test_a_sheet_with_a_cell_far_out(tmp_path, place):
    book = openpyxl.Workbook()
    for row in (("class", "legs"), ("ant", 6), ("bee", 6)):
        book.active.append(row)
    book.save(tmp_path / "good.xlsx")
    assert read_attributes(tmp_path / "good.xlsx").names.tolist() == ["ant", "bee"]
    book.active[place] = 1
    book.save(tmp_path / "far.xlsx")
    with pytest.raises(TooLargeError, match="far.xlsx has more than 250,000 cells, empty ones"):
        read_attributes(tmp_path / "far.xlsx")
    gc.collect()  # a file that is left open would be told here, not in another test


@pytest.mark.parametrize("name", ["classes.txt", "predicates.txt"])
def test_names_that_are_no_text(tmp_path, name):
    (write_awa(tmp_path / "awa") / name).write_bytes(b"1\tcaf\xe9\n")
    with pytest.raises(ValueError, match=f"{name} is not UTF-8 text"):
        read_attributes(tmp_path / "awa")
