"""The summary of a reproduction: our numbers beside the paper's, as plain data.

It is what `results.json`, `results.csv` and the report are made from; see `latem.report` for its
form.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from latem.experiments.cells import Cells, Number
from latem.experiments.tables import LATEM, STANDARD, Entry, PaperTable, detail_entries
from latem.inspection.pictures import outside_note, picture_path

_COUNTS = (
    ("images", "in all"), ("classes", "in all"), ("seen_images", "train and val"),
    ("seen_classes", "train and val"), ("unseen_images", "test"), ("unseen_classes", "test"),
)  # fmt: skip


def summarise(
    cells: Cells, tables: Mapping[str, PaperTable], pictures: Mapping[str, Path]
) -> dict[str, Any]:
    """Our numbers beside the paper's, from finished trainings; one that is missing is an error.

    Parameters
    ----------
    cells : Cells
        With all trainings done that `plan` names for these tables.
    tables : dict of str to PaperTable
        The tables to summarise.
    pictures : dict of str to path
        Folders of pictures by dataset, for galleries.
    """
    summary: dict[str, Any] = {
        "datasets": [_dataset(key, data) for key, data in cells.datasets.items()],
        "tables": [],
        "curves": [],
        "usage": [],
        "per_class": [],
        "confusion": [],
        "galleries": [],
    }
    for table in tables.values():
        if table.kind == "statistics":
            summary["tables"].append(_statistics(cells, table))
        elif table.kind in ("accuracy", "maps"):
            summary["tables"].append(_grid(cells, table))
        elif table.kind == "curve":
            if not cells.lacking(table.more["dataset"], ()):
                summary["curves"].append(_curve(cells, table))
        else:
            summary["galleries"] += _galleries(cells, table, pictures)
    for entry in detail_entries(tables):
        _add_details(summary, cells, entry)
    return summary


def _dataset(key: str, data: Any) -> dict[str, Any]:
    info = data.info
    return {
        "key": key,
        "name": data.name or key,
        "features": str(info.get("features", "")),
        "notes": str(info.get("notes", "")).strip(),
        "licence": str(info.get("licence", "")),
        "n_images": len(data.labels),
        "n_classes": len(data.classes),
        "embeddings": {name: table.n_dimensions for name, table in data.embeddings.items()},
    }


def _cell(number: Number, paper: float | None) -> dict[str, Any]:
    status = "skipped" if number.skipped else "ok"
    if paper is None and number.value is None and not number.skipped:
        status = "none"
    return {
        "ours": number.value,
        "paper": None if paper is None else float(paper),
        "error": number.error,
        "status": status,
        "note": "" if status == "none" else number.note,
    }


def _statistics(cells: Cells, table: PaperTable) -> dict[str, Any]:
    published = table.more["published"]
    lines = []
    for key, paper in published.items():
        reason = cells.lacking(key, ())
        counted: dict[str, float] = {}
        if not reason:
            data = cells.datasets[key]
            split = data.split(STANDARD)
            seen, unseen = split.train + split.val, split.test
            counted = {
                "images": len(data.rows(seen + unseen)),
                "classes": len(seen + unseen),
                "seen_images": len(data.rows(seen)),
                "seen_classes": len(seen),
                "unseen_images": len(data.rows(unseen)),
                "unseen_classes": len(unseen),
            }
        lines.append(
            [
                _cell(
                    Number(skipped=True, note=reason) if reason else Number(float(counted[name])),
                    paper[name],
                )
                for name, _ in _COUNTS
            ]
        )
    titles = [[group, name.rsplit("_", 1)[-1]] for name, group in _COUNTS]
    shown = _table(table, "dataset", list(published), titles, lines, unit="", digits=0)
    return {**shown, "absent": [key for key in published if key not in cells.datasets]}


def _grid(cells: Cells, table: PaperTable) -> dict[str, Any]:
    lines = []
    for row in table.rows:
        line = []
        for column in table.columns:
            entry = table.cell(row, column)
            if entry is None:
                line.append(_cell(Number(), None))
                continue
            number = cells.maps(entry) if table.kind == "maps" else cells.accuracy(entry)
            line.append(_cell(number, column.published.get(row.name)))
        lines.append(line)
    titles = [[column.dataset, column.name] for column in table.columns]
    unit, digits = ("", 0) if table.kind == "maps" else ("%", 1)
    names = [row.name for row in table.rows]
    shown = _table(table, "class embedding", names, titles, lines, unit=unit, digits=digits)
    groups = list(dict.fromkeys(column.dataset for column in table.columns))
    return {
        **shown,
        "absent": [key for key in groups if key not in cells.datasets],
        "apart": [key for key in groups if key in cells.datasets and key in cells.other_features],
    }


def _table(
    table: PaperTable,
    row_title: str,
    rows: list[str],
    columns: list[list[str]],
    lines: list[list[dict[str, Any]]],
    *,
    unit: str,
    digits: int,
) -> dict[str, Any]:
    return {
        "id": table.id,
        "title": table.title,
        "caption": table.caption,
        "unit": unit,
        "digits": digits,
        "row_title": row_title,
        "rows": rows,
        "columns": columns,
        "cells": lines,
    }


def _curve(cells: Cells, table: PaperTable) -> dict[str, Any]:
    dataset = table.more["dataset"]
    series, skipped = [], []
    for name in table.more["embeddings"]:
        reason = cells.lacking(dataset, (name,))
        if reason:
            skipped.append(f"{name} {reason}")
            continue
        numbers = [cells.accuracy(table.point(name, n_maps)) for n_maps in table.more["n_maps"]]
        means, errors = [n.value for n in numbers], [n.error for n in numbers]
        series.append({"name": name, "mean": means, "error": errors})
    return {
        "id": table.id,
        "title": f"{table.title}: {dataset}",
        "caption": table.caption,
        "x_title": "number of maps K",
        "y_title": "mean per-class accuracy (%)",
        "x": list(table.more["n_maps"]),
        "series": series,
        "skipped": skipped,
    }


def _galleries(
    cells: Cells, table: PaperTable, pictures: Mapping[str, Path]
) -> list[dict[str, Any]]:
    galleries = []
    dataset = table.more["dataset"]
    for name in table.more["embeddings"]:
        if cells.lacking(dataset, (name,)):
            continue
        for column in table.columns:
            (wanted,) = cells.models(table.gallery(name, column))
            result = cells.final(wanted).result
            usage = result["map_usage"][-1]
            maps, folder = [], pictures.get(dataset)
            names = [image["name"] for images in result["top_images"] for image in images]
            note = outside_note(folder, names)
            for number, images in enumerate(result["top_images"]):
                shown = [{**image, "path": picture_path(folder, image["name"])} for image in images]
                share = usage[number] if len(usage) == len(result["top_images"]) else None
                maps.append({"number": number, "share": share, "images": shown})
            galleries.append(
                {
                    "id": f"{table.id}-{name}-{column.name}",
                    "title": f"{dataset}, {name}, {column.name}",
                    "caption": f"{table.caption} {note}".strip(),
                    "maps": maps,
                }
            )
    return galleries


def _add_details(summary: dict[str, Any], cells: Cells, entry: Entry) -> None:
    """Usage of the maps over time, per-class accuracy and confusions of one model."""
    if cells.lacking(entry.dataset, entry.embeddings):
        return
    (wanted,) = cells.models(entry)
    result = cells.final(wanted).result
    title = f"{entry.dataset}, {entry.embeddings[0]}, {entry.recipe}"
    summary["usage"].append(
        {"title": title, "n_maps": result["maps_by_epoch"], "map_usage": result["map_usage"]}
    )
    if entry.recipe == LATEM:
        summary["per_class"].append({"title": title, "accuracies": result["per_class"]})
        summary["confusion"].append(
            {
                "title": title,
                "classes": list(result["per_class"]),
                "matrix": result["confusion"],
            }
        )


def rows_of(summary: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Header and rows of `results.csv`."""
    header = [
        "table", "row", "group", "column", "ours", "standard_error", "paper", "difference",
        "status", "note",
    ]  # fmt: skip
    rows: list[list[Any]] = []
    for table in summary["tables"]:
        for name, line in zip(table["rows"], table["cells"], strict=True):
            for (group, column), cell in zip(table["columns"], line, strict=True):
                if cell["status"] == "none":
                    continue
                ours, paper = cell["ours"], cell["paper"]
                known = ours is not None and paper is not None
                rows.append(
                    [
                        table["id"], name, group, column, _short(ours), _short(cell["error"]),
                        _short(paper), _short(ours - paper) if known else "", cell["status"],
                        cell["note"],
                    ]
                )  # fmt: skip
    for curve in summary["curves"]:
        for series in curve["series"]:
            for x, mean, error in zip(curve["x"], series["mean"], series["error"], strict=True):
                rows.append(
                    [curve["id"], series["name"], "K", x, _short(mean), _short(error), "", "", "ok",
                     ""]
                )  # fmt: skip
    return header, rows


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}".rstrip("0").rstrip(".")
