"""Run folders: whose they are, and when they are complete."""

import json

import pytest

from latem.core.run_folder import RunFolder, check_run_folder


def test_a_complete_run_is_replaced(tmp_path):
    run = RunFolder(tmp_path / "run")
    run.write_table("a.csv", ["x"], [[1]])
    assert not run.file("run.json").exists()
    run.finish({"command": "test"})
    assert json.loads(run.file("run.json").read_text())["command"] == "test"
    RunFolder(tmp_path / "run")
    assert not run.file("run.json").exists()


def test_a_run_without_its_mark_is_known_by_its_content(tmp_path):
    run = RunFolder(tmp_path / "run")
    run.finish({})
    run.file(".latem-run").unlink()
    check_run_folder(run.path)


@pytest.mark.parametrize(
    "content",
    ["{}", "[]", "", "not JSON", '{"versions": {"node": "22"}}', '{"versions": 3}', "[" * 100_000],
)
def test_a_stranger_s_run_json_is_left_alone(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(FileExistsError, match=r"run\.json was not written by latem"):
        RunFolder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    assert (tmp_path / "run.json").read_text() == content


def test_other_folders_are_refused(tmp_path):
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(FileExistsError, match="holds no earlier run"):
        RunFolder(tmp_path)
    with pytest.raises(NotADirectoryError, match="is a file"):
        RunFolder(tmp_path / "thesis.txt")
