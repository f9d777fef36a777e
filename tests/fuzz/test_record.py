"""Runs of a reader add up in the file of results; the rest is of the last run."""

import json

from fuzz import record


def figures(runs, seconds, **others):
    rate = round(runs / seconds)
    return {"runs": runs, "seconds": seconds, "runs_a_second": rate, "findings": [], **others}


def test_runs_and_seconds_add_up_and_the_rest_is_of_the_last_run(tmp_path):
    path = tmp_path / "deep" / "fuzz.json"
    first = figures(1000, 10.0, branches=7) | {"findings": ["IndexError at file.py:read (ab)"]}
    record.add(path, "zip", "atheris", first)
    record.add(path, "npz", "atheris", figures(5, 1.0))
    record.add(path, "zip", "atheris", figures(500, 2.5, branches=9))
    assert json.loads(path.read_text())["zip"] == {
        "tool": "atheris",
        "runs": 1500,
        "seconds": 12.5,
        "last": {"runs": 500, "seconds": 2.5, "runs_a_second": 200},
        "findings": [],
        "branches": 9,
    }
    assert record.recorded_runs(path, "zip", "atheris") == 1500
    assert record.recorded_runs(path, "npz", "atheris") == 5
    assert [file.name for file in path.parent.iterdir()] == ["fuzz.json"]


def test_runs_of_another_tool_are_not_counted(tmp_path):
    path = tmp_path / "fuzz.json"
    record.add(path, "zip", "hypothesis", figures(1000, 10.0))
    assert record.recorded_runs(path, "zip", "atheris") == 0
    record.add(path, "zip", "atheris", figures(7, 1.0))
    assert record.recorded_runs(path, "zip", "atheris") == 7


def test_what_was_never_run_counts_nothing(tmp_path):
    assert record.recorded_runs(tmp_path / "fuzz.json", "zip", "atheris") == 0
    record.add(tmp_path / "fuzz.json", "zip", "atheris", figures(1, 1.0))
    assert record.recorded_runs(tmp_path / "fuzz.json", "npz", "atheris") == 0
