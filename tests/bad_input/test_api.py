"""Bad input to the library in Python: a sentence, the right exception, and nothing left behind."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from bad_input.cases import check_message, every, untouched
from bad_input.workspace import CLASSES, fitted, table, zoo
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import latem


def table_of(columns):
    """A class table of one class with these columns."""
    return latem.ClassEmbeddings(["newt"], np.ones((1, len(columns))), columns=columns)


@pytest.fixture(scope="module")
def names():
    """What a call may use: all public names of latem, and some things to give to them."""
    world = zoo()
    X, y = world.training()
    return {
        **{name: getattr(latem, name) for name in latem.__all__},
        "np": np,
        "scipy": scipy,
        "replace": replace,
        "world": world,  # the dataset, with its training images
        "X": X,
        "y": y,
        "table": table(),
        "classes": np.array(CLASSES),
        "model": fitted(),  # with a closed form
        "maps": fitted("maps"),  # with two maps
        "fusion": fitted("fusion"),  # of two class tables
        "pipeline": make_pipeline(StandardScaler(), latem.ESZSL(table())),
        "table_of": table_of,
    }


@every("api")
def test_refused(case, folder, names):
    with untouched(folder), pytest.raises(Exception) as refusal:  # noqa: PT011
        eval(case["call"], dict(names))
    assert type(refusal.value).__name__ == case["raises"], repr(refusal.value)
    check_message(case, str(refusal.value))
