"""Run folders: whose they are, and when they are complete."""

import json

import pytest

from latem.core.run_folder import RunFolder, check_run_folder


def content(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def complete(path, number):
    with RunFolder(path) as run:
        run.write_table("a.csv", ["x"], [[number]])
        run.write_text("b.txt", f"{number}\n")
        run.finish({"command": "test", "number": number})


def test_files_get_their_names_together(tmp_path):
    with RunFolder(tmp_path / "run") as run:
        run.write_table("a.csv", ["x"], [[1]])
        assert not (run.path / "a.csv").exists()
        run.finish({"command": "test"})
        assert (run.path / "a.csv").read_text() == "x\n1\n"
    assert json.loads((run.path / "run.json").read_text())["command"] == "test"
    assert sorted(content(run.path)) == [".latem-run", "a.csv", "run.json"]
    assert run.store("cells") == run.path / "cells"


def test_an_earlier_run_stays_until_the_next_is_complete(tmp_path):
    complete(tmp_path / "run", 1)
    before = content(tmp_path / "run")

    def fail():
        with RunFolder(tmp_path / "run") as run:
            run.write_text("b.txt", "2\n")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert content(tmp_path / "run") == before
    complete(tmp_path / "run", 3)
    assert (tmp_path / "run" / "b.txt").read_text() == "3\n"
    assert json.loads((tmp_path / "run" / "run.json").read_text())["number"] == 3


def test_what_a_killed_run_left_is_removed(tmp_path):
    complete(tmp_path / "run", 1)
    (tmp_path / "run" / ".latem-new").mkdir()
    (tmp_path / "run" / ".latem-new" / "half.csv").touch()
    complete(tmp_path / "run", 2)
    assert sorted(content(tmp_path / "run")) == [".latem-run", "a.csv", "b.txt", "run.json"]


def test_a_second_writer_is_refused(tmp_path):
    with RunFolder(tmp_path / "run") as run:
        run.write_text("b.txt", "1\n")
        with pytest.raises(BlockingIOError, match="Another run is writing to"):
            RunFolder(tmp_path / "run").__enter__()
        run.finish({})
    assert (tmp_path / "run" / "b.txt").read_text() == "1\n"
    complete(tmp_path / "run", 2)


def test_a_run_without_its_mark_is_known_by_its_content(tmp_path):
    complete(tmp_path / "run", 1)
    (tmp_path / "run" / ".latem-run").unlink()
    check_run_folder(tmp_path / "run")


@pytest.mark.parametrize(
    "content",
    ["{}", "[]", "", "not JSON", '{"versions": {"node": "22"}}', '{"versions": 3}', "[" * 100_000],
)
def test_a_stranger_s_run_json_is_left_alone(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(FileExistsError, match=r"run\.json was not written by latem"):
        RunFolder(tmp_path).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    assert (tmp_path / "run.json").read_text() == content


def test_other_folders_are_refused(tmp_path):
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(FileExistsError, match="holds no earlier run"):
        RunFolder(tmp_path).__enter__()
    with pytest.raises(NotADirectoryError, match="is a file"):
        RunFolder(tmp_path / "thesis.txt").__enter__()
