"""`docs/paper.md` from the kept figures of `benchmarks/reproduce.py` and `benchmarks/fusion.py`.

    python benchmarks/paper_page.py            # writes the page
    python benchmarks/paper_page.py --check    # exit code 1 if the page is not what it would write

Every number on the page is read from `results/`; the words around them are `paper_page.md.j2`.
"""

import argparse
import json
import sys
from itertools import groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from machine import RESULTS

from latem.core.atomic import write_text
from latem.report.names import fixed, signed

TEMPLATE = Path(__file__).with_name("paper_page.md.j2")
PAGE = Path(__file__).parents[1] / "docs" / "paper.md"
SETS = {"cub": "CUB", "awa_handcrafted": "AWA", "dogs": "Dogs"}  # folder: the paper's key
WAYS = {
    "with attributes": ("att", "w2v", "glo", "hie"),
    "without attributes": ("w2v", "glo", "hie"),
}
OURS = {"tuned": "`LatEmCV`", "committee": "`CommitteeCV`"}


class Record:
    """The kept figures, asked for by place."""

    def __init__(self, summary):
        self.summary = summary
        self.tables = {table["id"]: table for table in summary["tables"]}
        self.here = [dataset["key"] for dataset in summary["datasets"]]

    def cell(self, table, row, group, column):
        """A cell of a table."""
        of = self.tables[table]
        return of["cells"][of["rows"].index(row)][of["columns"].index([group, column])]

    def pair(self, table, row, group, column):
        """Our number and the paper's, such as "46.5 (45.5)"."""
        cell = self.cell(table, row, group, column)
        return f"{fixed(cell['ours'], 1)} ({fixed(cell['paper'], 1)})"

    def pairs(self, table, row, group):
        """The same for all columns of a group, by name."""
        names = [name for of, name in self.tables[table]["columns"] if of == group]
        cells = {name: self.cell(table, row, group, name) for name in names}
        known = {n: c for n, c in cells.items() if None not in (c["ours"], c["paper"])}
        return ", ".join(f"{name} {self.pair(table, row, group, name)}" for name in known)

    def ours(self, table, row, group):
        """Our numbers of all columns of a group, by name."""
        names = [name for of, name in self.tables[table]["columns"] if of == group]
        cells = {name: self.cell(table, row, group, name) for name in names}
        known = {n: c["ours"] for n, c in cells.items() if c["ours"] is not None}
        return ", ".join(f"{name} {fixed(ours, 1)}" for name, ours in known.items())

    def gain(self, name):
        """What the last number of maps in Figure 3 gains over the first, in points."""
        series = {one["name"]: one["mean"] for one in self.summary["curves"][0]["series"]}
        return signed(series[name][-1] - series[name][0], 1)

    def combined(self, group):
        """Table 3's figures of one dataset, by way and model, each with those of its members."""
        found = {}
        for way, embeddings in WAYS.items():
            for model in ("SJE", "LatEm"):
                if group not in self.here:
                    continue
                chosen = self.cell("table3", f"{way}, chosen weights", group, model)
                if chosen["ours"] is None:
                    continue
                pairs = chosen["note"].removeprefix("weights ").split(", ")
                shares = (pair.rsplit(" ", 1) for pair in pairs)
                found[way, model] = {
                    "members": {
                        name: self.cell("table2", name, group, model)["ours"] for name in embeddings
                    },
                    "mean": self.cell("table3", f"{way}, plain mean", group, model)["ours"],
                    "chosen": chosen["ours"],
                    "weights": {name: float(share) for name, share in shares},
                }
        return found

    def mean_difference(self, table, group, rows):
        """Mean of ours minus the paper's over some rows of a group."""
        of = self.tables[table]
        differences = [
            cell["ours"] - cell["paper"]
            for row, line in zip(of["rows"], of["cells"], strict=True)
            for (name, _), cell in zip(of["columns"], line, strict=True)
            if name == group and row in rows and None not in (cell["ours"], cell["paper"])
        ]
        return signed(sum(differences) / len(differences), 1)


def markdown(header, rows):
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def text_of(cell, digits):
    """A cell in words."""
    if cell["status"] == "none":
        return "–"
    error = "" if cell["error"] is None else f" ± {fixed(cell['error'], 1)}"
    paper = "" if cell["paper"] is None else f" ({fixed(cell['paper'], digits)})"
    return (
        f"not run{paper}" if cell["ours"] is None else fixed(cell["ours"], digits) + error + paper
    )


def table_text(table, here):
    """A table of the paper: title, caption, numbers, and which weights were chosen."""
    places = [i for i, (group, _) in enumerate(table["columns"]) if group not in table["absent"]]
    apart = table.get("apart", [])
    header = [table["row_title"]]
    for i in places:
        group, name = table["columns"][i]
        header.append(f"{group}{'*' if group in apart else ''} {name}".strip())
    rows, weights = [], []
    for row, line in zip(table["rows"], table["cells"], strict=True):
        if row in table["absent"]:
            continue
        rows.append([row, *(text_of(line[i], table["digits"]) for i in places)])
        for i in places:
            if line[i]["note"].startswith("weights "):
                chosen = line[i]["note"].removeprefix("weights ")
                weights.append((row, f"{' '.join(table['columns'][i])}: {chosen}"))
    parts = [f"## {table['title']}", table["caption"], markdown(header, rows)]
    not_run = [key for key in here if key in table["absent"]]
    if not_run:
        parts.append(f"Not run here: {', '.join(not_run)}.")
    if weights:
        chosen = [
            f"- {row}: " + "; ".join(text for _, text in of)
            for row, of in groupby(weights, key=lambda pair: pair[0])
        ]
        parts.append("Weights that were chosen:\n\n" + "\n".join(chosen))
    return "\n\n".join(parts)


def curve_text(curve):
    """A figure with curves, as numbers."""
    rows = [
        [
            series["name"],
            *(
                f"{fixed(mean, 1)} ± {fixed(error, 1)}"
                for mean, error in zip(series["mean"], series["error"], strict=True)
            ),
        ]
        for series in curve["series"]
    ]
    numbers = markdown([curve["x_title"], *curve["x"]], rows)
    return f"## {curve['title']}\n\n{curve['caption']}\n\n{numbers}"


def sets_text(datasets):
    """What the numbers were made from."""
    rows = [
        [
            dataset["key"],
            f"{dataset['n_images']:,}",
            dataset["n_classes"],
            dataset["features"],
            ", ".join(f"{name} ({size})" for name, size in dataset["embeddings"].items()),
        ]
        for dataset in datasets
    ]
    return markdown(["set", "images", "classes", "features", "class embeddings (dimensions)"], rows)


def combinations(record, fusion):
    """Figures of combined embeddings by set, way and members: Table 3's, and those beyond it."""
    for folder, key in SETS.items():
        published = record.combined(key) if record else {}
        for way in WAYS:
            for model in ("SJE", "LatEm"):
                if (way, model) in published:
                    yield (key, way, model), published[way, model]
            for kind, name in OURS.items():
                if f"{folder}/{way}/{kind}" in fusion:
                    yield (key, way, name), fusion[f"{folder}/{way}/{kind}"]


def beyond(record, fusion):
    """Table 3 and the same with other members."""
    rows = []
    for place, cell in combinations(record, fusion):
        best = max(cell["members"], key=cell["members"].get)
        alone = f"{best} {fixed(cell['members'][best], 1)}"
        weights = ", ".join(
            f"{name} {share:.1f}" for name, share in cell["weights"].items() if share
        )
        rows.append([*place, alone, fixed(cell["mean"], 1), fixed(cell["chosen"], 1), weights])
    header = [
        "set",
        "embeddings",
        "members",
        "best member",
        "plain mean",
        "chosen weights",
        "which",
    ]
    return markdown(header, rows)


def as_good(record, fusion):
    """In how many rows chosen weights do at least as well as the best member, and as the mean."""
    cells = [cell for _, cell in combinations(record, fusion)]
    return {
        "rows": len(cells),
        "members": sum(cell["chosen"] >= max(cell["members"].values()) for cell in cells),
        "mean": sum(cell["chosen"] >= cell["mean"] for cell in cells),
    }


def page(summary, fusion):
    """The whole page."""
    record = Record(summary)
    parts = []
    for table in summary["tables"]:
        parts.append(table_text(table, record.here))
        if table["id"] == "table5_right":
            parts += [curve_text(curve) for curve in summary["curves"]]
    environment = Environment(
        loader=FileSystemLoader(TEMPLATE.parent), undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    tables = record.tables.values()
    return environment.get_template(TEMPLATE.name).render(
        settings=summary["settings"],
        sets=sets_text(summary["datasets"]),
        apart=sorted({key for table in tables for key in table.get("apart", [])}),
        absent=[key for key in SETS.values() if key not in record.here],
        here=record.here,
        parts=parts,
        pair=record.pair,
        pairs=record.pairs,
        ours=record.ours,
        gain=record.gain,
        mean_difference=record.mean_difference,
        beyond=beyond(record, fusion) if fusion else "",
        as_good=as_good(record, fusion),
    )


def kept(name):
    """Kept figures; nothing where there are none."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    text = page(kept("reproduce"), kept("fusion").get("cells", {}))
    if not arguments.check:
        write_text(PAGE, text)
        print(f"Written: {PAGE}")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print(f"{PAGE} is not what its figures give: run python benchmarks/paper_page.py.")
        sys.exit(1)


if __name__ == "__main__":
    main()
