"""The page about the paper says what the kept figures say."""

import copy
import importlib
import json
import re
import subprocess
import sys

import pytest
from helpers import REPOSITORY

FOLDER = REPOSITORY / "benchmarks"
RECORD = json.loads((FOLDER / "results" / "reproduce.json").read_text(encoding="utf-8"))


@pytest.fixture
def scripts(monkeypatch):
    """The benchmarks' modules by name, forgotten afterwards: their names are everybody's."""
    names = ("machine", "paper_page", "reproduce")
    monkeypatch.syspath_prepend(FOLDER)
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield {name: importlib.import_module(name) for name in names}
    for name in names:
        sys.modules.pop(name, None)


def table_of(record, name):
    return next(table for table in record["tables"] if table["id"] == name)


def cell_of(record, name, row, group, column):
    table = table_of(record, name)
    line = table["cells"][table["rows"].index(row)]
    return line[table["columns"].index([group, column])]


def test_the_page_agrees_with_the_kept_figures():
    run = subprocess.run(
        [sys.executable, FOLDER / "paper_page.py", "--check"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_other_figures_give_another_page(scripts):
    fusion = json.loads((FOLDER / "results" / "fusion.json").read_text(encoding="utf-8"))["cells"]
    before = scripts["paper_page"].page(RECORD, fusion)
    changed = copy.deepcopy(RECORD)
    cell_of(changed, "table2", "att", "CUB", "LatEm")["ours"] = 99.94
    after = scripts["paper_page"].page(changed, fusion)
    assert "99.9 (45.5)" not in before
    assert after.count("99.9 (45.5)") == 2  # in the table, and in the words about it
    as_good = [int(re.search(r"the best member in\n(\d+) of", text)[1]) for text in (before, after)]
    assert as_good[0] == as_good[1] + 1  # with attributes, LatEm's combination is behind them now


def test_what_was_not_run_is_said(scripts):
    changed = copy.deepcopy(RECORD)
    for table in changed["tables"]:
        table["absent"] = [
            key for key in ("AWA", "Dogs") if key != "AWA" or table["id"] == "table4"
        ]
    changed["datasets"] = [{**changed["datasets"][0], "key": key} for key in ("CUB", "AWA")]
    for column, ours in (("SJE", 12.34), ("LatEm", 23.45)):
        cell_of(changed, "table2", "att", "AWA", column).update(ours=ours, status="ok")
    text = scripts["paper_page"].page(changed, {})
    assert "Not in the tables below: Dogs. `python benchmarks/reproduce.py --sets Dogs`" in text
    assert text.count("Not run here: AWA.") == 1
    assert "with attributes\nSJE 12.3 (66.7), LatEm 23.4 (71.9)." in text
    assert "**Dogs.**" not in text
    assert "Combining beyond the paper" not in text


def test_no_cell_of_cub_is_lacking():
    for name in ("table2", "table3", "table4", "table5_left", "table5_right", "appendix_a"):
        table = table_of(RECORD, name)
        for line in table["cells"]:
            for (group, _), cell in zip(table["columns"], line, strict=True):
                assert group != "CUB" or cell["ours"] is not None
    (curve,) = RECORD["curves"]
    assert [series["name"] for series in curve["series"]] == ["w2v", "glo", "hie"]


@pytest.mark.parametrize("model", ["SJE", "LatEm"])
@pytest.mark.parametrize(
    ("way", "members"),
    [
        ("with attributes", ("att", "w2v", "glo", "hie")),
        ("without attributes", ("w2v", "glo", "hie")),
    ],
)
def test_chosen_weights_are_at_least_as_good_as_the_best_member(model, way, members):
    best = max(cell_of(RECORD, "table2", name, "CUB", model)["ours"] for name in members)
    assert cell_of(RECORD, "table3", f"{way}, chosen weights", "CUB", model)["ours"] >= best


def summary(group, ours, *, other):
    """A run on one of two sets."""
    columns = [["CUB", "SJE"], ["AWA", "SJE"]]
    here = {"ours": ours, "paper": 50.0, "error": None, "status": "ok", "note": ""}
    lacks = {
        **here,
        "ours": None,
        "status": "skipped",
        "note": f"skipped: no {other} in /some/where",
    }
    cells = [[here if of == group else lacks for of, _ in columns]]
    table = {
        "id": "table2", "rows": ["att"], "columns": columns, "cells": cells, "absent": [other],
        "apart": ["AWA"] if group == "AWA" else [],
    }  # fmt: skip
    return {
        "title": "T", "version": "1", "settings": {"LatEm's step": f"{group} {ours / 100}"},
        "datasets": [{"key": group}], "tables": [table], "curves": [],
    }  # fmt: skip


def test_runs_on_several_sets_are_kept_together(scripts):
    script = scripts["reproduce"]
    first = script.merged({}, script.without_places(summary("CUB", 40.0, other="AWA")))
    assert first["tables"][0]["cells"][0][1]["note"] == "skipped: no AWA"
    both = script.merged(first, script.without_places(summary("AWA", 30.123456, other="CUB")))
    (table,) = both["tables"]
    assert [cell["ours"] for cell in table["cells"][0]] == [40.0, 30.1235]
    assert (table["absent"], table["apart"]) == ([], ["AWA"])
    assert both["settings"]["LatEm's step"] == "AWA 0.30123456, CUB 0.4"
    again = script.merged(both, script.without_places(summary("CUB", 41.0, other="AWA")))
    assert [cell["ours"] for cell in again["tables"][0]["cells"][0]] == [41.0, 30.1235]
    assert again["tables"][0]["apart"] == ["AWA"]
    assert [dataset["key"] for dataset in again["datasets"]] == ["AWA", "CUB"]
    assert json.loads(script.compact(again)) == again
