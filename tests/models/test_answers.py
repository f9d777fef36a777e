"""Answers about pictures: what they say, and how they become tables and JSON."""

import json

import numpy as np
import pytest

from latem.models.answers import COLUMNS, Answer, Answers

FOUND = Answer("a.jpg", ["okapi", "tapir"], [2.0, 1.5], [0.75, 0.25], "named", 0.01)
DOUBTFUL = Answer("b.jpg", ["tapir", "okapi"], [1.0, 0.5], [0.6, 0.4], "doubtful", 0.2)
NONE = Answer("c.jpg", ["tapir"], [0.25], [0.5], "none of these", 1.0)
BROKEN = Answer("d.jpg", [], [], error="it is damaged")
PLAIN = Answer("e.jpg", ["okapi"], [2.0])
ALL = Answers([FOUND, DOUBTFUL, NONE, BROKEN, PLAIN])


def test_names():
    assert ALL.names.tolist() == ["okapi", "tapir", None, None, "okapi"]
    assert [answer.none_of_these for answer in ALL] == [False, False, True, False, False]
    assert ALL.count("doubtful") == 1
    assert ALL.errors == [BROKEN]


def test_in_words():
    assert str(FOUND) == "a.jpg: okapi (75%)"
    assert str(DOUBTFUL) == "b.jpg: tapir (60%), doubtful"
    assert str(NONE) == "c.jpg: none of these; most like tapir (50%)"
    assert str(BROKEN) == "d.jpg: it is damaged"
    assert str(PLAIN) == "e.jpg: okapi"
    assert "and 40 more" in repr(Answers([FOUND] * 50))


def test_as_a_table():
    frame = ALL.to_frame()
    assert tuple(frame.columns) == COLUMNS
    assert frame["place"].tolist()[:3] == [1, 2, 1]
    assert frame["picture"].value_counts()["a.jpg"] == 2
    lost = frame[frame["picture"] == "d.jpg"].iloc[0]
    assert lost["error"] == "it is damaged"
    assert lost.drop(["picture", "error"]).isna().all()
    empty = Answers([]).to_frame()
    assert (len(empty), tuple(empty.columns)) == (0, COLUMNS)


def test_as_plain_data():
    told = json.loads(json.dumps(ALL.to_dicts(), allow_nan=False))
    assert told[0]["answer"] == "okapi"
    assert told[0]["classes"][1] == {"class": "tapir", "probability": 0.25, "score": 1.5}
    assert told[2]["answer"] is None
    assert told[3] == {"picture": "d.jpg", "error": "it is damaged"}
    assert told[4]["classes"][0]["probability"] is None
    assert Answer("f", [np.int64(3)], [1.0]).to_dict()["answer"] == 3


def test_a_sequence():
    assert len(ALL) == 5
    assert isinstance(ALL[1:3], Answers)
    assert ALL[1:3].names.tolist() == ["tapir", None]
    assert list(ALL)[-1] is PLAIN
    with pytest.raises(IndexError):
        ALL[5]
