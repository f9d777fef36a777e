"""Files and folders appear as a whole or not at all, and what cannot be written is told."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from latem.core import alone, atomic
from latem.core.run_folder import RunFolder


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        for write in (atomic.check_target, lambda path: atomic.write_text(path, "text")):
            with pytest.raises(OSError, match="is a device, a pipe or the like"):
                write(tmp_path / name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "pipe"]
    assert (tmp_path / "pipe").is_fifo()


def test_a_link_to_a_file_is_replaced_by_a_file(tmp_path):
    (tmp_path / "old").write_text("old")
    (tmp_path / "link").symlink_to("old")
    atomic.write_text(tmp_path / "link", "new")
    assert (tmp_path / "old").read_text() == "old"
    assert (tmp_path / "link").read_text() == "new"


KILLED = """
import sys, time
from latem.core.atomic import atomic_path
with atomic_path(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print("writing", flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(os.name != "posix", reason="temporary files are locked on POSIX only")
def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    target = tmp_path / "file [1]"
    writer = subprocess.Popen([sys.executable, "-c", KILLED, target], stdout=subprocess.PIPE)
    try:
        assert writer.stdout.readline() == b"writing\n"
        atomic.write_text(target, "whole")
        assert len(list(tmp_path.iterdir())) == 2  # the writer is alive
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
    (tmp_path / ".file [1].keep.tmp").touch()  # not a name that is given to temporary files
    (tmp_path / ".other.abcd1234.tmp").touch()
    atomic.write_text(target, "again")
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        ".file [1].keep.tmp",
        ".other.abcd1234.tmp",
        target.name,
    ]
    assert target.read_text() == "again"


def test_without_locks_only_old_left_overs_are_removed(tmp_path, monkeypatch):
    young, old = tmp_path / ".file.abcd1234.tmp", tmp_path / ".file.abcd5678.tmp"
    young.touch()
    old.touch()
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(old, (two_days_ago, two_days_ago))

    def fail(*_):
        raise OSError("no locks available")

    if os.name == "posix":
        monkeypatch.setattr("fcntl.flock", fail)
    atomic.write_text(tmp_path / "file", "text")
    assert sorted(p.name for p in tmp_path.iterdir()) == [young.name, "file"]


def test_places_can_be_checked_before_long_work(tmp_path):
    atomic.check_target(tmp_path / "new")
    with pytest.raises(IsADirectoryError, match="name a file"):
        atomic.check_target(tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder"):
        atomic.check_target(tmp_path / "no" / "file")
    assert not any(tmp_path.iterdir())


def test_names_as_long_as_a_file_can_have(tmp_path):
    atomic.write_text(tmp_path / ("x" * 250), "text")
    assert (tmp_path / ("x" * 250)).read_text() == "text"


def test_a_folder_appears_as_a_whole(tmp_path):
    with atomic.atomic_folder(tmp_path / "new" / "set") as made:
        (made / "a").write_text("a")
        assert not (tmp_path / "new" / "set").exists()
    assert (tmp_path / "new" / "set" / "a").read_text() == "a"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["set"]
    if os.name == "posix":
        assert (tmp_path / "new" / "set").stat().st_mode & 0o777 == 0o777 & ~atomic.UMASK


def test_a_folder_that_fails_does_not_appear(tmp_path):
    def fail():
        with atomic.atomic_folder(tmp_path / "set") as made:
            (made / "a").write_text("a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not any(tmp_path.iterdir())


def test_a_folder_that_exists_is_left_alone(tmp_path):
    folder = tmp_path / "set"

    def too_late():
        with atomic.atomic_folder(folder):
            folder.mkdir()
            (folder / "theirs").touch()

    for _ in range(2):  # the second time it is there from the beginning
        with pytest.raises(FileExistsError, match="set exists already; name a new folder"):
            too_late()
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["set", "theirs"]


@pytest.mark.skipif(os.name != "posix", reason="folders are locked on POSIX only")
def test_folders_of_killed_writers_are_removed_and_those_of_others_stay(tmp_path):
    (tmp_path / ".set.abcd1234.tmp" / "embeddings").mkdir(parents=True)

    def two_at_once():
        with atomic.atomic_folder(tmp_path / "set") as first:
            assert [path.name for path in tmp_path.iterdir()] == [first.name]
            with atomic.atomic_folder(tmp_path / "set") as second:
                assert first.is_dir()
                (second / "a").touch()

    with pytest.raises(FileExistsError, match="set exists already"):
        two_at_once()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "set"]


def test_arrays(tmp_path):
    for array in (np.arange(6.0).reshape(2, 3), np.arange(6).reshape(2, 3).T, np.zeros((0, 4))):
        atomic.write_array(tmp_path / "a.npy", array)
        read = np.load(tmp_path / "a.npy", allow_pickle=False)
        assert read.dtype == array.dtype
        np.testing.assert_array_equal(read, array)
        np.save(tmp_path / "b.npy", array)
        assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here that is always full")
def test_an_array_on_a_full_disk_names_the_file(tmp_path, monkeypatch):
    def open_full(*_):
        return open("/dev/full", "wb")

    monkeypatch.setattr(atomic, "open", open_full, raising=False)
    with pytest.raises(OSError, match=r"a\.npy cannot be written: No space left on device\.$"):
        atomic.write_array(tmp_path / "a.npy", np.zeros(10_000))
    assert not any(tmp_path.iterdir())


@pytest.fixture
def read_only(tmp_path, monkeypatch):
    """The working folder, in which nothing can be made by who runs the test, be it root."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").write_text("old")
    tmp_path.chmod(0o555)
    root = os.name == "posix" and os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        if os.access(".", os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            pytest.skip("folders cannot be made read-only here")
        yield tmp_path
    finally:
        if root:
            os.seteuid(0)
        tmp_path.chmod(0o755)


@pytest.mark.parametrize(
    "write",
    [
        lambda path: atomic.write_text(path, "new"),
        lambda path: atomic.check_target(path),
        lambda path: atomic.atomic_folder(path.with_name("new")).__enter__(),
        lambda path: atomic.atomic_folder(path.with_name("new") / "deeper").__enter__(),
        lambda path: alone.only_one(".lock", "busy", target=path).__enter__(),
        lambda path: RunFolder(path.with_name("new")).__enter__(),
    ],
)
def test_a_read_only_folder_is_told_by_the_name_of_the_target(read_only, write):
    with pytest.raises(
        PermissionError, match=r"^(old|new|new/deeper) cannot be written: Permission denied\.$"
    ):
        write(Path("old"))
    assert [path.name for path in Path().iterdir()] == ["old"]
    assert Path("old").read_text() == "old"


def test_a_file_that_cannot_be_read_is_not_said_to_be_written(tmp_path):
    unreadable = PermissionError(13, "Permission denied", str(tmp_path / "input"))
    with pytest.raises(PermissionError) as told, atomic.writing(tmp_path / "output"):
        raise unreadable
    assert told.value is unreadable
