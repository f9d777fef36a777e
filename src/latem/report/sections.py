"""The parts of a summary, checked and made ready for the templates.

Every function takes one part as plain data and returns what a template places: texts, widths of
bars, plots.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from latem.core.messages import first_few
from latem.metrics import top_confusions
from latem.report.comparison import STATUSES, Table, compare
from latem.report.names import fixed, label, labels, number, percent, pictograph, score_text
from latem.report.pictures import thumbnail

N_CONFUSIONS = 10
MAX_MATRIX = 60  # classes; a larger matrix of confusions cannot be read
_LEVELS = 8  # tints of a matrix of confusions

Item = Mapping[str, Any]
Part = dict[str, Any]  # always with `anchor` and `title`


class Page:
    """What the parts of one page share: names of places, and pictures read so far."""

    def __init__(self, *taken: str):
        self._taken = set(taken)
        self.picture = lru_cache(maxsize=None)(thumbnail)  # an image may be shown by several maps

    def anchor(self, name: Any) -> str:
        """A name for a place in the page that no other place has."""
        base = re.sub(r"[^a-z0-9]+", "-", str(name).lower()).strip("-") or "part"
        anchor, n = base, 1
        while anchor in self._taken:
            n += 1
            anchor = f"{base}-{n}"
        self._taken.add(anchor)
        return anchor


def check(what: str, item: Item, *names: str) -> None:
    """Refuse a part that lacks something."""
    missing = [name for name in names if name not in item]
    if missing:
        raise ValueError(
            f"latem.report got {what} without {first_few(missing)}; add what is missing."
        )


def check_summary(user: str, summary: Item, keys: Sequence[str]) -> None:
    """Refuse a summary without a title, or with parts that its page does not have."""
    check("a summary", summary, "title")
    unknown = sorted(set(summary) - set(keys))
    if unknown:
        raise ValueError(
            f"{user} got a summary with unknown parts {first_few(unknown)}; "
            f"it may have {', '.join(keys)}."
        )


def table_part(table: Item, page: Page) -> Part:
    """A table beside the paper's, and plots of both; datasets that are absent are left out."""
    check("a table", table, "id", "title", "rows", "columns", "cells")
    name, unit, digits = table["title"], str(table.get("unit", "")), int(table.get("digits", 1))
    rows = [str(row) for row in table["rows"]]
    columns = [(str(group), str(column)) for group, column in table["columns"]]
    shape = [len(row) for row in table["cells"]]
    if shape != [len(columns)] * len(rows):
        raise ValueError(
            f"latem.report got {name!r} with {len(rows)} rows and {len(columns)} columns, but "
            f"with rows of {shape} cells; give every row one cell per column."
        )
    absent, apart = set(table.get("absent") or ()), tuple(table.get("apart") or ())
    shown = [i for i, row in enumerate(rows) if row not in absent]
    places = [i for i, (group, _) in enumerate(columns) if group not in absent]
    cells = [
        [
            compare(table["cells"][i][j], unit, digits, judged=columns[j][0] not in apart)
            for j in places
        ]
        for i in shown
    ]
    strange = sorted({cell.status for row in cells for cell in row} - set(STATUSES))
    if strange:
        raise ValueError(
            f"latem.report got {name!r} with cells of status {first_few(strange)}; "
            f"use one of {', '.join(STATUSES)}."
        )
    compared = Table(
        caption=str(table.get("caption") or ""),
        unit=unit,
        row_title=str(table.get("row_title") or ""),
        rows=[rows[i] for i in shown],
        columns=[columns[j] for j in places],
        cells=cells,
        apart=apart,
    )
    anchor, title = page.anchor(table["id"]), str(name)
    return {
        "anchor": anchor,
        "title": title,
        "table": compared,
        "plots": _table_plots(compared, anchor, title),
    }


def _table_plots(table: Table, anchor: str, title: str) -> list[tuple[str, Markup]]:
    """A plot per group of columns; none where differences are not judged."""
    if table.unit != "%" or not table.compared:
        return []
    from latem.report import plots

    limits = plots.axis_limits(table.compared)
    return [
        (group, plots.comparison_plot(lines, limits, "%", f"{anchor}-{i}", f"{title}, {group}"))
        for i, (group, lines) in enumerate(table.lines())
    ]


def curve_part(curve: Item, page: Page) -> Part:
    """A plot, and a table of its numbers."""
    from latem.report import plots

    check("a curve", curve, "id", "title", "x", "series")
    for series in curve["series"]:
        check(f"a series of {curve['title']!r}", series, "name", "mean")
        for name in ("mean", "error"):
            values = series.get(name)
            if values is not None and len(values) != len(curve["x"]):
                raise ValueError(
                    f"latem.report got {curve['title']!r} with {len(curve['x'])} positions, but "
                    f"{len(values)} values in {name!r} of {series['name']!r}; give as many."
                )
    anchor = page.anchor(curve["id"])
    lines = []
    for series in curve["series"]:
        errors = series.get("error") or [None] * len(series["mean"])
        pairs = zip(map(number, series["mean"]), map(number, errors), strict=True)
        lines.append(
            {
                "name": series["name"],
                "values": [
                    (fixed(mean, 1), "" if error is None or mean is None else fixed(error, 1))
                    for mean, error in pairs
                ],
            }
        )
    return {
        "anchor": anchor,
        "title": curve["title"],
        "caption": curve.get("caption") or "",
        "x_title": curve.get("x_title") or "",
        "x": [f"{value:g}" for value in curve["x"]],
        "y_title": curve.get("y_title") or "",
        "lines": lines,
        "skipped": list(curve.get("skipped") or ()),
        "plot": plots.curve_plot(curve, anchor) if lines and curve["x"] else None,
    }


def usage_part(usage: Item, page: Page) -> Part:
    """How many maps there were, and how much those that stayed were used.

    A row of shares belongs to the maps alive at that epoch. Maps are known by their number only,
    and numbers change when one is dropped; so shares are followed back to the last time a map was
    dropped and no further.
    """
    from latem.report import plots

    check("a use of maps", usage, "title", "n_maps", "map_usage")
    n_maps = [int(n) for n in usage["n_maps"]]
    rows = [np.asarray(row, dtype=float) for row in usage["map_usage"]]
    anchor, title = page.anchor(f"usage {usage['title']}"), str(usage["title"])
    last = rows[-1] if rows else np.empty(0)
    n_same = next((i for i, row in enumerate(rows[::-1]) if len(row) != len(last)), len(rows))
    first = len(rows) - n_same + 1
    drawn = []
    if len(set(n_maps)) > 1:
        drawn.append(plots.map_count_plot(n_maps, f"{anchor}-count", f"{title}: number of maps"))
    if n_same > 1 and len(last):
        epochs = range(first, len(rows) + 1)
        stretch = np.array(rows[-n_same:])
        drawn.append(plots.share_plot(epochs, stretch, f"{anchor}-share", f"{title}: shares"))
    return {
        "anchor": anchor,
        "title": title,
        "n_epochs": len(n_maps),
        "n_first": n_maps[0] if n_maps else 0,
        "n_last": n_maps[-1] if n_maps else 0,
        "since": first if 1 < first <= len(rows) else 0,
        "before_dropping": bool(rows) and len(last) != n_maps[-1] if n_maps else False,
        "plots": drawn,
        "bars": [_bar(f"map {k}", f"map {k}", share) for k, share in enumerate(last.tolist())],
    }


def _bar(raw: str, text: str, share: float | None) -> dict[str, Any]:
    width = 0.0 if share is None else min(max(100 * share, 0.0), 100.0)
    return {"raw": raw, "label": text, "width": f"{width:.2f}", "value": percent(share)}


def per_class_part(item: Item, page: Page) -> Part:
    """Bars, the best class first."""
    check("accuracies per class", item, "title", "accuracies")
    names = [str(name) for name in item["accuracies"]]
    values = [number(value) for value in item["accuracies"].values()]
    bars = sorted(
        zip(names, labels(names), values, strict=True),
        key=lambda bar: (bar[2] is None, -(bar[2] or 0.0)),
    )
    known = [value for value in values if value is not None]
    mean = sum(known) / len(known) if known else None
    return {
        "anchor": page.anchor(f"classes {item['title']}"),
        "title": item["title"],
        "n": len(names),
        "mean": percent(mean),
        "mean_width": None if mean is None else f"{100 * min(max(mean, 0.0), 1.0):.2f}",
        "bars": [_bar(*bar) for bar in bars],
    }


def confusion_part(item: Item, page: Page) -> Part:
    """The matrix with tints, and the most frequent confusions."""
    check("confusions", item, "title", "classes", "matrix")
    raw = [str(name) for name in item["classes"]]
    n = len(raw)
    if [len(row) for row in item["matrix"]] != [n] * n:
        raise ValueError(
            f"latem.report got confusions {item['title']!r} of {n} classes whose matrix is not "
            f"{n} × {n}; give one row and one column per class."
        )
    matrix = np.asarray(item["matrix"], dtype=np.int64).reshape(n, n)
    shown = labels(raw)
    sums = matrix.sum(axis=1)
    shares = matrix / np.maximum(sums, 1)[:, None]
    levels = np.ceil(_LEVELS * np.sqrt(shares))  # the root lets rare confusions be seen
    wrong = top_confusions(pd.DataFrame(matrix), N_CONFUSIONS)
    rows = [
        {
            "raw": raw[i],
            "label": shown[i],
            "cells": [
                {
                    "count": int(matrix[i, j]),
                    "kind": "r" if i == j else "w",
                    "level": int(levels[i, j]),
                    "words": f"{shown[i]} named {shown[j]}: {matrix[i, j]} of {sums[i]}",
                }
                for j in range(n)
            ],
        }
        for i in range(n if n <= MAX_MATRIX else 0)
    ]
    return {
        "anchor": page.anchor(f"confusion {item['title']}"),
        "title": item["title"],
        "n": n,
        "columns": list(zip(raw, shown, strict=True)),
        "rows": rows,
        "n_images": int(sums.sum()),
        "n_wrong": int(matrix.sum() - np.trace(matrix)),
        "worst": [
            {
                "true": (raw[i], shown[i]),
                "named": (raw[j], shown[j]),
                "count": count,
                "of": of,
                "share": percent(count / of),
            }
            for i, j, count, of in wrong[["true", "named", "count", "of"]].to_numpy().tolist()
        ],
    }


def dataset_part(item: Item, page: Page) -> Part:
    """What is known about a dataset."""
    check("a dataset", item, "key", "name")
    n_images, n_classes = item.get("n_images"), item.get("n_classes")
    facts = {
        "features": item.get("features") or "",
        "images": "" if n_images is None else f"{n_images:,}",
        "classes": "" if n_classes is None else f"{n_classes:,}",
        "embeddings": ", ".join(
            f"{name} ({size} dimensions)" for name, size in (item.get("embeddings") or {}).items()
        ),
        "licence": item.get("licence") or "",
        "notes": item.get("notes") or "",
    }
    named = {key: value for key, value in facts.items() if value}
    title = f"{item['key']}: {item['name']}" if item["name"] != item["key"] else item["name"]
    return {"anchor": page.anchor(f"dataset {item['key']}"), "title": title, "facts": named}


def gallery_part(gallery: Item, page: Page) -> Part:
    """Groups of images as thumbnails: `maps` with numbers, or `groups` with titles.

    With `narrow` groups of few images stand side by side.
    """
    kind = "maps" if "maps" in gallery else "groups"
    check("a gallery", gallery, "id", "title", kind)
    groups = []
    for item in gallery[kind]:
        numbered = "number" in item or (kind == "maps" and "title" not in item)
        name = "number" if numbered else "title"
        check(f"a {kind[:-1]} of {gallery['title']!r}", item, name, "images")
        share = number(item.get("share"))
        raw = str(item["title"]) if name == "title" else f"Map {item['number']}"
        groups.append(
            {
                "raw": raw,
                "title": label(raw),
                "share": "" if share is None else percent(share),
                "notes": [str(note) for note in item.get("notes") or () if note],
                "images": [image_part(image, page) for image in item["images"]],
            }
        )
    return {
        "anchor": page.anchor(gallery["id"]),
        "title": gallery["title"],
        "caption": gallery.get("caption") or "",
        "narrow": bool(gallery.get("narrow")),
        "groups": groups,
    }


def image_part(image: Item, page: Page) -> dict[str, Any]:
    """One image with its class, a verdict, its score and a note.

    The verdict is whether it was `named` right, or, where `fits` says so, whether it is of the
    class that the gallery shows.
    """
    check("an image", image, "name", "class")
    true, named, score = str(image["class"]), image.get("named"), number(image.get("score"))
    right, verdict = named is not None and str(named) == true, ""
    if "fits" in image:
        right = bool(image["fits"])
        verdict = "of this class" if right else "of another class"
    elif named is not None:
        verdict = "right" if right else f"named {label(named)}"
    return {
        "name": str(image["name"]),
        "class": true,
        "named": "" if named is None else str(named),
        "right": right,
        "verdict": verdict,
        "score": "" if score is None else score_text(score),
        "note": str(image.get("note") or ""),
        "picture": page.picture(image.get("path")),
        "emoji": pictograph(true, image["name"]),
    }
