"""The report on a model of one's own: what an evaluation found → one HTML page.

The page shows numbers, classes, confusions, curves, pictures and advice, in the order in which
people ask. Like every page of the library it is one file without scripts.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

from latem.report import sections
from latem.report.names import number, percent
from latem.report.page import write_parts
from latem.report.sections import Item, Page, Part

_SECTIONS = {
    "figures": "At a glance",
    "classes": "Class by class",
    "confusions": "What is taken for what",
    "together": "Seen and unseen classes together",
    "sureness": "How sure it is",
    "best": "Best pictures of each class",
    "training": "Training",
    "advice": "What to do next",
    "settings": "Settings",
}
_KEYS = ("title", "subtitle", "notes", *_SECTIONS)


def write_evaluation(summary: Item, path: str | PathLike[str]) -> None:
    """Write a report on an evaluation as one HTML file.

    Parameters
    ----------
    summary : mapping
        `title`, and any of these; what is missing or empty is left out:

        - `subtitle`, `notes`;
        - `figures`: a list of mappings with `name`, `share` or `number`, and `note`;
        - `classes`: `accuracies` by class, as of `write_report`, and perhaps a `gallery`;
        - `confusions`: `classes` and `matrix`, as of `write_report`, and perhaps a `gallery`;
        - `together`, `sureness`, `training`: `plots`, a list of mappings with `title`, `caption`
          and `display` (an object with `plot(ax=...)`), perhaps a `table` of shares by row with
          its `columns`, or `missing`, why there are none;
        - `best`: a gallery, as of `write_gallery`;
        - `advice`: a list of sentences;
        - `settings`: a mapping of names to values.
    path : path of the file
        Written atomically; an existing file is replaced.
    """
    sections.check_summary("write_evaluation", summary, _KEYS)
    page = Page(*_SECTIONS)
    build = {
        "figures": lambda items: [_figure(item) for item in items],
        "classes": lambda item: _classes(item, page),
        "confusions": lambda item: _confusions(item, page),
        "together": lambda item: _plots(item, page),
        "sureness": lambda item: _plots(item, page),
        "best": lambda item: sections.gallery_part(item, page),
        "training": lambda item: _plots(item, page),
        "advice": lambda items: [str(item) for item in items],
        "settings": lambda items: {str(key): str(value) for key, value in items.items()},
    }
    write_parts("evaluation.html.j2", path, summary, _SECTIONS, build)


def _figure(item: Item) -> dict[str, str]:
    """A number with a name."""
    sections.check("a figure", item, "name")
    if "share" in item:
        value = percent(number(item["share"]))
    else:
        sections.check(f"the figure {item['name']!r}", item, "number")
        value = f"{item['number']:.3g}"
    return {"name": str(item["name"]), "value": value, "note": str(item.get("note") or "")}


def _classes(item: Item, page: Page) -> dict[str, Any]:
    bars = sections.per_class_part({"title": "Accuracy per class", **item}, page)
    return {"bars": bars, "gallery": _gallery(item, page)}


def _confusions(item: Item, page: Page) -> dict[str, Any]:
    matrix = sections.confusion_part({"title": "All answers", **item}, page)
    return {"matrix": matrix, "gallery": _gallery(item, page)}


def _gallery(item: Item, page: Page) -> Part | None:
    gallery = item.get("gallery")
    return sections.gallery_part(gallery, page) if gallery else None


def _plots(item: Item, page: Page) -> dict[str, Any]:
    """Plots in the colours of the page, or why there are none."""
    from latem.report.plots import display_plot

    drawn = []
    for plot in item.get("plots") or ():
        sections.check("a plot", plot, "title", "display")
        name, title = page.anchor(f"plot {plot['title']}"), str(plot["title"])
        caption = str(plot.get("caption") or "")
        words = f"{title}. {caption}".strip()
        drawn.append(
            {
                "title": title,
                "caption": caption,
                "plot": display_plot(plot["display"], name, words),
            }
        )
    facts = [
        {"name": str(name), "values": [percent(number(value)) for value in values]}
        for name, values in (item.get("table") or {}).items()
    ]
    return {
        "plots": drawn,
        "missing": str(item.get("missing") or ""),
        "columns": [str(column) for column in item.get("columns") or ()],
        "table": facts,
    }
