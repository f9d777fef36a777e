"""The demo's answers → one HTML page: what was named right and wrong, how surely, and why.

Like every page of the library it is one file without scripts. Pictures are characters: the demo's
classes are emoji, and no drawing of them is shipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

from latem.report import sections
from latem.report.names import fixed, label, number, percent, signed
from latem.report.page import write_parts
from latem.report.sections import Item, Page

_SECTIONS = {
    "figures": "At a glance",
    "scores": "Models side by side",
    "right": "Named right, and why",
    "wrong": "Named wrong, and why",
    "by_probability": "How sure it is",
    "classes": "Every answer, class by class",
    "confusions": "What is taken for what",
    "settings": "Settings",
}
_KEYS = ("title", "subtitle", "notes", *_SECTIONS)


def write_demo(summary: Item, path: str | PathLike[str]) -> None:
    """Write the answers of the demo as one HTML file.

    Parameters
    ----------
    summary : mapping
        `title`, and any of these; what is missing or empty is left out. A class is a mapping with
        its `name` and its character as `emoji`, which may be empty.

        - `subtitle`, `notes`;
        - `figures`: a list of mappings with `name`, `share`, and `chance` or a `note`;
        - `scores`: shares top-1 and top-5 by name of the model, the one that is shown last;
        - `right`, `wrong`: a list of answers, mappings with the classes `true`, `named` and
          `against`, the `source` of the drawing, `probability`, `probability_of_true` and `rank`,
          `rivals` (classes with a `share`), `lead`, `reasons` (classes with what each `adds`),
          `other_seen` and `by_numbers`, what is left of the lead;
        - `by_probability`: a list of mappings with `least`, the number `n` of answers, the mean
          probability `said` and the share `right` of them;
        - `classes`: a list of classes with `keywords`, `n_right` and `answers`, each the class
          named with its `source` and whether it is `right`;
        - `confusions`: `classes` and `matrix`, as of `write_report`;
        - `settings`: a mapping of names to values.
    path : path of the file
        Written atomically; an existing file is replaced.
    """
    sections.check_summary("write_demo", summary, _KEYS)
    page = Page(*_SECTIONS)
    build: dict[str, Callable[[Any], Any]] = {
        "figures": lambda items: [_figure(item) for item in items],
        "scores": _scores,
        "right": lambda items: [_answer(item) for item in items],
        "wrong": lambda items: [_answer(item) for item in items],
        "by_probability": _sure_rows,
        "classes": lambda items: [_class(item) for item in items],
        "confusions": lambda item: sections.confusion_part({"title": "All answers", **item}, page),
        "settings": lambda items: {str(key): str(value) for key, value in items.items()},
    }
    write_parts("demo.html.j2", path, summary, _SECTIONS, build)


def _figure(item: Item) -> dict[str, str]:
    """A share with a name, beside what guessing gives or a note."""
    sections.check("a figure", item, "name", "share")
    note = f"guessing: {percent(item['chance'])}" if "chance" in item else item.get("note")
    return {
        "name": str(item["name"]),
        "value": percent(number(item["share"])),
        "note": str(note or ""),
    }


def _scores(scores: Item) -> dict[str, Any]:
    """The table of models."""
    rows = [
        {"name": str(name), "values": [percent(number(share)) for share in shares]}
        for name, shares in scores.items()
    ]
    return {"rows": rows, "shown": rows[-1]["name"]}


def _named(item: Item) -> dict[str, str]:
    """A class as people would write it, with its character."""
    sections.check("a class", item, "name")
    return {"label": label(item["name"]), "emoji": str(item.get("emoji") or "")}


def _answer(item: Item) -> dict[str, Any]:
    """One drawing: what it was called, what else it might be, and why."""
    sections.check(
        *("an answer", item, "true", "named", "against", "source", "probability", "rank"),
        *("probability_of_true", "rivals", "lead", "reasons", "other_seen", "by_numbers"),
    )
    return {
        "true": _named(item["true"]),
        "named": _named(item["named"]),
        "against": _named(item["against"]),
        "right": item["true"]["name"] == item["named"]["name"],
        "source": str(item["source"]),
        "probability": _probability(item["probability"]),
        "of_true": _probability(item["probability_of_true"]),
        "rank": int(item["rank"]),
        "rivals": [{**_named(one), "share": _probability(one["share"])} for one in item["rivals"]],
        "lead": fixed(item["lead"], 2),
        "reasons": [
            {
                **_named(one),
                "adds": signed(one["adds"], 2),
                "speaks_for": one["adds"] >= 0,
                "unlike": one["unlike"],
            }
            for one in item["reasons"]
        ],
        "other_seen": signed(item["other_seen"], 2),
        "by_numbers": signed(item["by_numbers"], 2),
    }


def _probability(share: float) -> str:
    """A probability in percent, never as none or all."""
    if share >= 0.9995:
        return f"over {percent(0.999)}"
    return percent(share) if share >= 0.0005 else f"under {percent(0.001)}"


def _sure_rows(items: Sequence[Item]) -> list[dict[str, Any]]:
    """How often answers of about one probability are right."""
    rows, above = [], 100.0
    for item in items:
        sections.check("a range of probabilities", item, "least", "n", "said", "right")
        least = 100 * item["least"]
        name = f"{least:.0f}\N{EN DASH}{above:.0f}\N{NO-BREAK SPACE}%"
        values = [str(item["n"]), percent(number(item["said"])), percent(number(item["right"]))]
        rows.append({"name": name, "values": values})
        above = least
    return rows


def _class(item: Item) -> dict[str, Any]:
    """All answers about the drawings of one class."""
    sections.check("a class", item, "name", "answers", "n_right")
    return {
        **_named(item),
        "keywords": ", ".join(str(word) for word in item.get("keywords") or ()),
        "count": f"{item['n_right']} of {len(item['answers'])}",
        "answers": [
            {**_named(one), "source": str(one["source"]), "right": bool(one["right"])}
            for one in item["answers"]
        ],
    }
