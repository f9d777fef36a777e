"""The paper's tables and figures on the real sets, kept as the figures of record.

It runs `latem reproduce` with its defaults on the sets under LATEM_DATA and keeps the numbers of
its summary, without pictures, confusions and the use of maps, in `results/reproduce.json`, from
which `benchmarks/paper_page.py` writes `docs/paper.md`. An interrupted run continues, and what
`latem reproduce` has trained in the same run folder is not trained again. Kept numbers of sets and
tables that are not asked for stay. Two cores need one or two hours for everything:

    python benchmarks/reproduce.py
    python benchmarks/reproduce.py --sets CUB --tables table2 table3 --out latem-reproduction
"""

import argparse
import json
from pathlib import Path

from machine import RESULTS, real_dataset
from paper_page import SETS

from latem.core.atomic import write_text
from latem.core.progress import progress_bar
from latem.core.storage import library_versions
from latem.experiments.runner import reproduce

KEPT = ("title", "version", "settings", "datasets", "tables", "curves")
STEP = "LatEm's step"


def rounded(value):
    """The same data with no more decimals than say something."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value


def compact(content):
    """JSON with one line per part, and per item of a part that is a list of tables or the like."""
    lines = []
    for key, value in content.items():
        many = isinstance(value, list) and value and isinstance(value[0], dict)
        items = [json.dumps(item, ensure_ascii=False) for item in (value if many else [value])]
        text = "[\n  " + ",\n  ".join(items) + "\n ]" if many else items[0]
        lines.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def without_places(summary):
    """The parts that are kept, without the folders that sets were looked for in."""
    content = {key: rounded(summary[key]) for key in KEPT}
    for table in content["tables"]:
        for line in table["cells"]:
            for cell in line:
                if cell["note"].startswith("skipped: no ") and " in " in cell["note"]:
                    cell["note"] = cell["note"].split(" in ")[0]
    return content


def merged(old, new):
    """Kept numbers with those of another run in place of, or beside, what they have of its sets."""
    if not old:
        return new
    steps = {}
    for settings in (old["settings"], new["settings"]):
        steps |= {step.split(" ")[0]: step for step in settings[STEP].split(", ")}
    ids = [table["id"] for table in (*old["tables"], *new["tables"])]
    tables = {name: [] for name in ids}
    for table in (*old["tables"], *new["tables"]):
        tables[table["id"]].append(table)
    return {
        **new,
        "settings": {**new["settings"], STEP: ", ".join(steps[key] for key in sorted(steps))},
        "datasets": by_key("key", old["datasets"], new["datasets"]),
        "tables": in_order(merged_table(*of) if len(of) == 2 else of[0] for of in tables.values()),
        "curves": by_key("id", old["curves"], new["curves"]),
    }


def in_order(tables):
    """Tables as the paper has them."""
    order = {"table1": 0, "appendix_a": 8, "appendix_b": 9}
    return sorted(tables, key=lambda table: (order.get(table["id"], 5), table["id"]))


def by_key(name, old, new):
    """Items of both lists, those of the new one in place of old ones with the same name."""
    items = {item[name]: item for item in (*old, *new)}
    return [items[key] for key in sorted(items)]


def merged_table(old, new):
    """A table with the columns, or rows, of the new one for the sets that it has."""

    def is_there(row, group):
        return row not in new["absent"] and group not in new["absent"]

    cells = [
        [
            theirs if is_there(row, group) else ours
            for (group, _), ours, theirs in zip(new["columns"], *lines, strict=True)
        ]
        for row, *lines in zip(new["rows"], old["cells"], new["cells"], strict=True)
    ]
    absent = [key for key in new["absent"] if key in old["absent"]]
    apart = sorted({*old.get("apart", []), *new.get("apart", [])})
    return {**new, "cells": cells, "absent": absent, "apart": apart}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", nargs="+", default=list(SETS.values()))
    parser.add_argument("--tables", nargs="*", default=[])
    parser.add_argument("--out", default="latem-reproduction")
    parser.add_argument("--jobs", type=int)
    arguments = parser.parse_args()
    places = {key: real_dataset(name) for name, key in SETS.items() if key in arguments.sets}
    folders = {key: place for key, place in places.items() if place is not None}
    if not folders:
        return
    with progress_bar(True, "training", unit="models") as show:
        done = reproduce(
            Path(arguments.out) / "no-other-sets",
            arguments.out,
            arguments.tables,
            folders=folders,
            n_jobs=arguments.jobs,
            progress=show,
        )
    path = RESULTS / "reproduce.json"
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    content = merged(old, without_places(done.summary))
    write_text(path, compact({**content, "versions": library_versions()}))
    print(f"{done.n_trained} models trained, {done.n_kept} kept. Figures kept in {path}")


if __name__ == "__main__":
    main()
