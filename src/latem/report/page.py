"""A summary → an HTML page: reports on a reproduction, and galleries.

The page is one file without scripts and without anything to be fetched: it can be mailed, printed
and opened in ten years. Numbers are made into words here; templates only place them. A section
without content is left out. The same summary gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from latem.core.atomic import write_text
from latem.core.version import __version__
from latem.report import sections
from latem.report.names import label
from latem.report.pictures import missing_pillow
from latem.report.sections import Item, Page, Part

_PARTS: dict[str, tuple[str, Callable[[Item, Page], Part]]] = {
    "tables": ("Tables", sections.table_part),
    "curves": ("Curves", sections.curve_part),
    "galleries": ("Images per map", sections.gallery_part),
    "per_class": ("Accuracy per class", sections.per_class_part),
    "confusion": ("Confusions", sections.confusion_part),
    "usage": ("Use of the maps", sections.usage_part),
    "datasets": ("Datasets", sections.dataset_part),
}
_KEYS = ("title", "subtitle", "version", "notes", *_PARTS, "settings")


def write_report(summary: Item, path: str | PathLike[str]) -> None:
    """Write a comparison with the paper as one HTML file.

    Parameters
    ----------
    summary : mapping
        `title`, and any of `subtitle`, `version`, `notes`, `settings`, `datasets`, `tables`,
        `curves`, `usage`, `per_class`, `confusion` and `galleries`. Numbers in tables and curves
        are in the unit they are shown in (percent, not shares); accuracies per class and shares
        of maps are between 0 and 1. Of a table, groups of columns (or rows) in `absent` are left
        out, and groups in `apart` are compared without being judged or counted.
    path : path of the file
        Written atomically; an existing file is replaced.
    """
    sections.check_summary("write_report", summary, _KEYS)
    page = Page("overview", "settings", *_PARTS)
    parts = {
        key: [build(item, page) for item in summary.get(key) or ()]
        for key, (_, build) in _PARTS.items()
    }
    settings = dict(summary.get("settings") or {})
    contents: list[tuple[str, str, list[Part]]] = []
    contents += [("overview", "At a glance", [])] if parts["tables"] else []
    contents += [(key, title, parts[key]) for key, (title, _) in _PARTS.items() if parts[key]]
    contents += [("settings", "Settings", [])] if settings else []
    text = render(
        "report.html.j2",
        title=summary["title"],
        subtitle=summary.get("subtitle") or "",
        version=summary.get("version") or __version__,
        notes=list(summary.get("notes") or ()),
        contents=contents,
        settings=settings,
        tables=parts["tables"],
    )
    write_text(path, text)


def write_gallery(
    galleries: Sequence[Item],
    path: str | PathLike[str],
    *,
    title: str,
    notes: Sequence[str] = (),
) -> None:
    """Write galleries of images as one HTML file.

    Parameters
    ----------
    galleries : sequence of mapping
        Each with `id`, `title`, `caption` and `groups`; a group has a `title`, or the `number` of
        a map and its `share`, then `images` and perhaps `notes`, lines about it; an image has
        `name`, `class` and perhaps `named`, `score`, `note` and `path`. `maps` may stand for
        `groups`; with `narrow` groups of few images stand side by side.
    path : path of the file
        Written atomically; an existing file is replaced.
    title : str
        Title of the page.
    notes : sequence of str
        Remarks for its top.
    """
    page = Page()
    shown = [sections.gallery_part(gallery, page) for gallery in galleries]
    text = render(
        "gallery.html.j2",
        title=title,
        subtitle="",
        version=__version__,
        notes=list(notes),
        contents=[(item["anchor"], item["title"], []) for item in shown],
        galleries=shown,
    )
    write_text(path, text)


def write_parts(
    template: str,
    path: str | PathLike[str],
    summary: Item,
    titles: Mapping[str, str],
    build: Mapping[str, Callable[[Any], Any]],
) -> None:
    """Write those parts of a page that its summary has, as one HTML file.

    Parameters
    ----------
    template : str
        Places `parts`, and `contents`, their anchors and titles.
    path : path of the file
        Written atomically; an existing file is replaced.
    summary : mapping
        `title`, perhaps `subtitle` and `notes`, and parts.
    titles : mapping
        Titles of the parts, in the order of the page.
    build : mapping
        What makes each part ready for the template.
    """
    parts = {key: build[key](summary[key]) for key in titles if summary.get(key)}
    text = render(
        template,
        title=str(summary["title"]),
        subtitle=str(summary.get("subtitle") or ""),
        version=__version__,
        notes=[str(note) for note in summary.get("notes") or () if note],
        contents=[(key, title, ()) for key, title in titles.items() if key in parts],
        parts=parts,
    )
    write_text(path, text)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["class_label"] = label
    return environment


def render(template: str, **context: Any) -> str:
    """A template with what it places, as the text of a page."""
    text = _environment().get_template(template).render(pillow=missing_pillow(), **context)
    return text.encode("utf-8", "replace").decode("utf-8")  # names of files may not be Unicode
