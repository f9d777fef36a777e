"""The figures of the README are those that are kept, and it stays short."""

import json
import re
import statistics

from helpers import REPOSITORY

import latem
from latem.datasets.folder import tomllib

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
RESULTS = REPOSITORY / "benchmarks" / "results"
RUNS = {"LatEm": "paper", "`LatEmCV`": "tuned", "`CommitteeCV`": "committee"}  # others as they are


def table(first):
    """Rows of the README's table whose head begins so, by their first cells."""
    lines = README[README.index(first) :].partition("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in rows}


def measured():
    """Accuracies on test classes, means over seeds: {(set, table): {run: accuracy}}."""
    cells = json.loads((RESULTS / "accuracy.json").read_text(encoding="utf-8"))["cells"]
    seeds = {}
    for key, (_, accuracy) in cells.items():
        dataset, embedding, run, _ = key.split("/")
        seeds.setdefault((dataset, embedding), {}).setdefault(run, []).append(accuracy)
    return {
        problem: {run: statistics.mean(values) for run, values in runs.items()}
        for problem, runs in seeds.items()
    }


def test_the_table_has_the_figures_that_are_kept():
    shown, found = table("| | LatEm |"), measured()
    head = shown[""]
    assert len(head) == 11
    for column, name in enumerate(head):
        run = RUNS.get(name, name)
        assert shown["CUB, here"][column] == f"{found['cub', 'att'][run]:.1f}", name
        mean = statistics.mean(runs[run] for runs in found.values())
        assert shown[f"mean of {len(found)} problems, here"][column] == f"{mean:.1f}", name


def test_the_paper_s_figures_are_the_published_ones():
    published = {}
    for file in ("table2", "appendix_a"):
        path = REPOSITORY / "src" / "latem" / "experiments" / "tables" / f"{file}.toml"
        for column in tomllib.loads(path.read_text(encoding="utf-8"))["column"]:
            if column["dataset"] == "CUB":
                published[column["name"]] = column["published"]["att"]
    shown = table("| | LatEm |")
    row = dict(zip(shown[""], shown["CUB, the paper's figures"], strict=True))
    assert {name: value for name, value in row.items() if value != "–"} == {
        "LatEm": str(published["LatEm"]),
        "SJE": str(published["SJE"]),
        "ESZSL": str(published["ESZSL*"]),
    }
    assert f"{published['ESZSL']} with labels" in README


def test_the_picture_s_figures_are_those_it_was_made_with():
    path = REPOSITORY / "docs" / "static" / "unseen.json"
    shown = json.loads(path.read_text(encoding="utf-8"))
    assert len(shown["drawings"]) == 12
    assert README.count(f"{shown['n_classes']} things that the model has never seen") == 1
    assert f"right in {shown['accuracy']:.1%}".replace("%", " %") in README
    assert f"guessing is right in {1 / shown['n_classes']:.1%}".replace("%", " %") in README


def test_limits_say_what_was_measured():
    found = measured()
    assert f"{found['cub', 'att']['committee']:.0f} % are named right" in README
    glove = f"{found['cub', 'glo']['committee']:.0f} %"
    assert f"GloVe vectors of the names instead of attributes it is {glove}" in README


def test_every_model_is_named():
    from latem.models.registry import MODELS

    names = {row.name for row in MODELS} - {"ESZSLCV", "Committee", "LateFusion"}
    assert {name for name in names if f"`{name}`" not in README} == set()


def test_it_is_short():
    seen = re.sub(r"<!--.*?-->\n?", "", README, flags=re.S)
    assert len(seen.splitlines()) <= 120


def test_versions_agree():
    version = latem.__version__
    citation = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version}\n" in citation
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f'name: "{project["authors"][0]["name"]}"' in citation
    assert project["version"] == version


def test_the_changelog_keeps_its_form():
    changes = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (.*)$", changes, re.M)
    assert versions[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", line) for line in versions[1:])
    sorts = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)$", changes, re.M)) <= sorts
