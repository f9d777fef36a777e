"""Sessions: forgotten when idle, bounded in number and memory."""

import numpy as np
import pytest

pytest.importorskip("fastapi")

from latem import ClassEmbeddings
from latem.server.problems import ProblemError
from latem.server.sessions import Album, Invented, Sessions
from latem.server.settings import Limits


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def sessions(**limits):
    clock = Clock()
    return Sessions(Limits(**limits), clock), clock


def invented(width=10):
    table = ClassEmbeddings(["x"], np.ones((1, width)))
    return Invented(table, "like x", table.to_frame(), "m")


def test_names_are_long_and_different():
    known, _ = sessions()
    names = {known.start().name for _ in range(100)}
    assert len(names) == 100
    assert min(map(len, names)) >= 43


def test_idle_ones_are_forgotten():
    known, clock = sessions(session_seconds=10)
    first, second = known.start(), known.start()
    clock.now += 8
    assert known.find(first.name) is first
    clock.now += 8
    assert known.find(second.name) is None
    assert known.find(first.name) is first
    assert known.find("other") is None
    assert known.find(None) is None
    assert len(known) == 1


def test_the_one_that_was_idle_longest_makes_room():
    known, clock = sessions(sessions=3)
    kept = [known.start() for _ in range(3)]
    clock.now += 1
    known.find(kept[0].name)
    known.start()
    assert known.find(kept[1].name) is None
    assert known.find(kept[0].name) is kept[0]
    assert len(known) == 3


def test_memory_of_one_session_is_bounded():
    known, _ = sessions(session_bytes=20_000)
    session = known.start()
    session.classes["a"] = invented()
    session.check_room(1000)
    with pytest.raises(ProblemError, match="keeps as much as it may") as refused:
        session.check_room(30_000)
    assert refused.value.status == 413


def test_memory_of_all_sessions_is_bounded():
    known, _ = sessions(all_session_bytes=100_000)
    old = [known.start() for _ in range(5)]
    for one in old:
        one.albums["a"] = Album("m", ["p"], [""], [np.zeros(10_000, np.float32)])
    last = known.start()
    last.albums["a"] = Album("m", ["p"], [""], [np.zeros(10_000, np.float32)])
    assert known.n_bytes > 100_000
    known.make_room(last)
    assert known.n_bytes <= 100_000
    assert known.find(last.name) is last
    assert known.find(old[0].name) is None


def test_only_so_many_pictures_are_remembered():
    known, _ = sessions()
    session = known.start()
    handles = [session.keep_image(np.full(3, i, np.float32)) for i in range(100)]
    assert session.image(handles[-1]).tolist() == [99] * 3
    with pytest.raises(ProblemError, match="send it again"):
        session.image(handles[0])
    assert len(session.images) == 64


def test_albums_by_name():
    session = sessions()[0].start()
    with pytest.raises(ProblemError, match="no such album"):
        session.album("x")


def test_invented_classes_have_numbers_of_their_own():
    assert invented().number != invented().number
