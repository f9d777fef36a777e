"""Cells of a raw trait become numbers, and numbers cells again."""

import numpy as np
import pandas as pd
import pytest

from latem.embeddings.trait import Trait
from latem.embeddings.traits import TraitEncoding

RAW = pd.DataFrame(
    {
        "weight": ["12", "350", "", "900", "22", "41"],
        "span": ["3 cm", "40 cm", "55.5 cm", "?", "7 cm", "8 cm"],
        "wing": ["12,5", "30", "4,25", "90", "7", "8,5"],
        "diet": ["seeds; insects", "fish", "insects", "seeds", "fish;insects", ""],
        "size": ["small", "large", "medium", "large", "", "large"],
        "nocturnal": ["yes", "no", "no", "", "no", "yes"],
        "habitat": ["forest", "sea", "forest", "sea", "", "forest"],
        "latin": ["a b", "c d", "e f", "g h", "i j", "k l"],
    },
    index=["ant", "bee", "cat", "dog", "eel", "fly"],
)


@pytest.fixture(scope="module")
def encoding():
    return TraitEncoding.learn(RAW)


def trait_of(encoding, name) -> Trait:
    return next(trait for trait in encoding.traits if trait.name == name)


def test_every_row_comes_back(encoding):
    numbers = encoding.transform(RAW)
    for row, vector in enumerate(numbers):
        cells = encoding.decode(vector)
        assert list(cells) == encoding.raw_columns
        again = encoding.transform(pd.DataFrame([cells]))
        np.testing.assert_allclose(again[0], vector, rtol=1e-9, atol=1e-12)
        for name in ("size", "nocturnal", "habitat", "span"):
            if RAW[name].iloc[row] not in ("", "?") and name in cells:
                assert cells[name] == RAW[name].iloc[row]


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("diet", "fish"), ("diet", "fish; seeds"), ("diet", ""), ("size", "medium"), ("size", ""),
        ("habitat", "sea"), ("habitat", ""), ("nocturnal", "yes"), ("nocturnal", "no"),
        ("span", "41 cm"), ("weight", "77"), ("wing", "0.25"),
    ],
)  # fmt: skip
def test_one_cell_is_encoded_like_a_column_and_comes_back(encoding, name, cell):
    trait = trait_of(encoding, name)
    numbers = trait.encode_cell(cell)
    np.testing.assert_array_equal(numbers, trait.encode(pd.Series([cell]))[0])
    assert trait.decode(numbers) == cell


@pytest.mark.parametrize("name", ["diet", "size", "habitat"])
def test_what_no_cell_becomes(encoding, name):
    trait = trait_of(encoding, name)
    assert trait.decode(np.full(len(trait.columns), 123.45)) is None
    width = len(encoding.columns)
    assert encoding.decode(np.full(width, 123.45)) is None


def test_a_category_is_one_value(encoding):
    trait = trait_of(encoding, "habitat")
    both = (np.ones(2) - trait.mean) * trait.scale
    assert trait.decode(both) is None


@pytest.mark.parametrize(
    ("name", "cell", "message"),
    [
        ("diet", "fish; pizza", "'diet' cannot be 'pizza': known are 'fish', 'insects', 'seeds'"),
        ("size", "flat", "'size' cannot be 'flat'"),
        ("habitat", "Sea", "'habitat' cannot be 'Sea': known are 'forest', 'sea'"),
        ("nocturnal", "perhaps", "needs yes or no"),
        ("weight", "heavy", "needs a number"),
    ],
)
def test_one_cell_is_refused_where_a_column_only_warns(encoding, name, cell, message):
    with pytest.raises(ValueError, match=message):
        trait_of(encoding, name).encode_cell(cell)
    if "cannot" in message:
        with pytest.warns(UserWarning, match="taken as unknown"):
            trait_of(encoding, name).encode(pd.Series([cell]))
