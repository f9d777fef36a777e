"""One at a time: who holds a lock, and what becomes of folders for work in progress."""

import os
import signal
import subprocess
import sys

import pytest

from latem.core.alone import only_one, work_folder

BUSY = "Somebody is here."
HOLDER = """
import sys, time
from pathlib import Path
from latem.core.alone import work_folder
with work_folder(Path(sys.argv[1]), "busy"):
    (Path(sys.argv[1]) / "piece").write_text("done so far")
    print("working", flush=True)
    time.sleep(600)
"""


def test_a_lock_has_one_holder(tmp_path):
    lock = tmp_path / "lock"
    with only_one(lock, BUSY):
        with pytest.raises(BlockingIOError, match=BUSY), only_one(lock, BUSY):
            pass
        assert lock.exists()
    with only_one(lock, BUSY):
        assert lock.exists()
    assert lock.exists()


def test_a_lock_file_can_be_removed_afterwards(tmp_path):
    lock = tmp_path / "lock"
    with pytest.raises(ZeroDivisionError), only_one(lock, BUSY, remove=True):
        1 / 0  # noqa: B018
    assert not lock.exists()


@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be removed here")
def test_a_lock_that_was_removed_is_nobody_s(tmp_path, monkeypatch):
    """The holder ends between another's opening the file and locking it."""
    from latem.core import alone

    def lock_late(descriptor):
        (tmp_path / "lock").unlink()

    monkeypatch.setattr(alone, "lock", lock_late)
    with pytest.raises(BlockingIOError, match=BUSY), only_one(tmp_path / "lock", BUSY):
        pass


def test_where_nothing_can_be_locked_a_warning_says_so(tmp_path, monkeypatch):
    from latem.core import alone

    def fail(descriptor):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(alone, "lock", fail)
    with (
        pytest.warns(UserWarning, match=r"lock cannot be locked \(Function not implemented\)"),
        only_one(tmp_path / "lock", BUSY),
    ):
        assert (tmp_path / "lock").exists()


def test_the_folder_of_a_lock_may_just_have_been_removed(tmp_path):
    with pytest.raises(BlockingIOError, match=BUSY), only_one(tmp_path / "gone" / "lock", BUSY):
        pass


def test_a_work_folder_is_removed_when_all_went_well(tmp_path):
    work = tmp_path / "deep" / ".work"
    with work_folder(work, BUSY):
        (work / "piece").touch()
        (work / "pieces").mkdir()
        (work / "pieces" / "one").touch()
        with pytest.raises(BlockingIOError, match=BUSY), work_folder(work, BUSY):
            pass
        assert (work / "pieces" / "one").exists()
    assert not work.exists()


def test_a_work_folder_is_removed_after_an_error_that_makes_it_useless(tmp_path):
    piece = tmp_path / "work" / "piece"

    def fail(useless):
        with work_folder(tmp_path / "work", BUSY, useless=useless):
            piece.write_text("done so far")
            raise ZeroDivisionError

    for useless, stays in (((ZeroDivisionError,), False), ((KeyError,), True)):
        with pytest.raises(ZeroDivisionError):
            fail(useless)
        assert piece.exists() == stays


def test_a_work_folder_stays_after_an_error(tmp_path):
    work = tmp_path / ".work"

    def fail():
        with work_folder(work, BUSY):
            (work / "piece").write_text("done so far")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with work_folder(work, BUSY):
        assert (work / "piece").read_text() == "done so far"
    assert not work.exists()


def test_a_lock_ends_with_its_process(tmp_path):
    work = tmp_path / ".work"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, work], stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"working\n"
        with pytest.raises(BlockingIOError, match=BUSY), work_folder(work, BUSY):
            pass
    finally:
        holder.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        holder.communicate()
    with work_folder(work, BUSY):
        assert (work / "piece").read_text() == "done so far"
    assert not work.exists()
