"""Broken files: their readers say what is wrong, and leave nothing behind."""

from pathlib import Path

import pytest
from bad_input.cases import check_message, every, given, untouched
from bad_input.readers import READERS
from bad_input.recipes import RECIPES


@every("files")
def test_refused(case, folder):
    read = READERS[case["reader"]]
    with (
        given(case, folder, RECIPES),
        untouched(folder),
        pytest.raises((ValueError, TypeError, OSError, ImportError)) as refusal,
    ):
        read(Path(case["path"]))
    assert type(refusal.value).__name__ == case["raises"]
    check_message(case, str(refusal.value))
