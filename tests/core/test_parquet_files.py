"""What a Parquet file promises is looked at before it is read."""

import numpy as np
import pandas as pd
import pytest
from fuzz.findings import FORMER

from latem.core.memory import TooLargeError
from latem.core.parquet_files import check_parquet
from latem.datasets.feature_files import open_features

pytest.importorskip("pyarrow")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "table.parquet"
    frame = pd.DataFrame({"class": ["ant", "bee", "cat"], "legs": [6, 6, 4]})
    frame.to_parquet(path, row_group_size=2)
    return path


def test_a_sound_file_is_let_through(path):
    check_parquet(path)


def test_a_column_of_lists_may_have_more_values_than_rows(tmp_path):
    path = tmp_path / "lists.parquet"
    pd.DataFrame({"class": ["ant", "bee"], "x": [[1.0, 2.0, 3.0]] * 2}).to_parquet(path)
    check_parquet(path)


def test_groups_that_contradict_the_table(path):
    data = path.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little")
    refused = 0
    for place in range(len(data) - 8 - footer, len(data) - 8):
        changed = bytearray(data)
        changed[place] ^= 8  # one of these bytes is a group's number of rows
        path.write_bytes(changed)
        try:
            check_parquet(path)
        except (ValueError, OSError, NotImplementedError) as error:  # pyarrow has all of them
            refused += "groups of rows have" in str(error)
    assert refused


def test_a_table_far_larger_than_its_file(tmp_path):
    path = tmp_path / "zeros.parquet"
    pd.DataFrame({"x": np.zeros(10**7)}).to_parquet(path)
    with pytest.raises(TooLargeError, match=r"would unpack to 80 MB"):
        check_parquet(path)


def test_features_are_not_read_from_groups_that_contradict_the_table(tmp_path):
    path = tmp_path / "features.parquet"
    path.write_bytes((FORMER / "table-parquet" / "a0eabf98d70f").read_bytes())
    with pytest.raises(ValueError, match="is damaged, or no Parquet file"):
        open_features([path], id_column="class")
