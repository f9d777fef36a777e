"""The page about an evaluation: stands alone, safe with any name, headings in order."""

import re
from itertools import pairwise

import numpy as np
import pytest
from page_reader import TAGS, Reader
from PIL import Image

from latem import RiskCoverageDisplay
from latem.report.evaluation_page import write_evaluation

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def summary(tmp_path):
    Image.new("RGB", (40, 20)).save(tmp_path / "a.png")
    images = [
        {"name": "a.png", "class": "okapi", "named": "okapi", "path": str(tmp_path / "a.png")},
        {"name": "b.png", "class": "okapi", "named": "tapir", "path": None},
        {"name": "c.png", "class": "tapir", "fits": False, "score": 0.00421, "note": "a note"},
    ]
    gallery = {"id": "g", "title": "Pictures", "groups": [{"title": "okapi", "images": images}]}
    display = RiskCoverageDisplay.from_predictions(
        ["a", "b", "b"], np.array([[2.0, 0], [1, 0], [0, 3]]), ["a", "b"]
    )
    return {
        "title": "A model",
        "subtitle": "on data",
        "notes": ["One picture is missing.", ""],
        "figures": [
            {"name": "right", "share": 0.819, "note": "guessing: 12.5"},
            {"name": "temperature", "number": 0.30887},
        ],
        "classes": {"accuracies": {"okapi": 0.5, "tapir": 1.0}, "gallery": gallery},
        "confusions": {
            "classes": ["okapi", "tapir"],
            "matrix": [[1, 1], [0, 2]],
            "gallery": {**gallery, "narrow": True},
        },
        "together": {"missing": "The split holds out no images."},
        "sureness": {
            "plots": [{"title": "Risk", "caption": "Wrong answers.", "display": display}],
            "columns": ["seen", "unseen"],
            "table": {"no penalty": [0.5, 0.25]},
        },
        "best": gallery,
        "advice": ["Add a trait."],
        "settings": {"split": "standard"},
    }


@pytest.fixture
def page(tmp_path):
    def write(summary):
        write_evaluation(summary, tmp_path / "page.html")
        return (tmp_path / "page.html").read_text(encoding="utf-8")

    return write


def test_page_stands_alone(summary, page):
    text = page(summary)
    reader = Reader(text)
    assert not set(reader.tags) - TAGS
    assert not re.search(r"https?://|@import|<script", text)
    assert all(a.startswith(("#", "data:image/jpeg;base64,")) for a in reader.addresses)
    assert len(reader.ids) == len(set(reader.ids))
    assert {a[1:] for a in reader.addresses if a.startswith("#")} <= set(reader.ids)
    assert page(summary) == text
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"#0101[01]\w", text)  # plots are in the colours of the page


def test_everything_is_there(summary, page):
    text = Reader(page(summary)).text.replace("\N{NO-BREAK SPACE}", " ")
    for words in (
        "A model on data One picture is missing.",
        "right 81.9 % guessing: 12.5",
        "temperature 0.309",
        "Mean 75.0 %",
        "okapi ✓ right",
        "okapi ✗ named tapir",
        "tapir ✗ of another class score 0.0042 a note",
        "1 of 4 images were given a wrong name.",
        "The split holds out no images.",
        "no penalty 50.0 % 25.0 %",
        "What to do next Add a trait. Settings split standard",
    ):
        assert words in text, words


def test_headings_are_in_order_and_pictures_have_words(summary, page):
    text = page(summary)
    levels = [int(level) for level in re.findall(r"<h([1-6])", text)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert re.findall(r'<img [^>]*alt="([^"]*)"', text) == ["okapi, a.png"] * 3
    assert 'aria-label="Risk. Wrong answers."' in text


def test_what_is_missing_is_left_out(page):
    reader = Reader(page({"title": "Bare", "training": None, "advice": [], "best": None}))
    assert reader.ids == []
    assert not {"section", "nav", "svg", "h2"} & set(reader.tags)


@pytest.mark.parametrize(
    "name", [HOSTILE, '"><script>alert(1)</script>', "' onload='x", "\udce9 {{ title }}"]
)
def test_names_are_only_names(summary, page, name):
    for image in summary["best"]["groups"][0]["images"]:
        image.update({"name": name, "class": name, "named": name, "note": name})
    summary["best"]["groups"][0]["title"] = name
    summary["classes"]["accuracies"] = {name: 0.5}
    summary["confusions"]["classes"] = [name, name + "2"]
    for key in ("title", "subtitle"):
        summary[key] = name
    summary["notes"] = summary["advice"] = [name]
    summary["figures"][0].update(name=name, note=name)
    summary["settings"] = {name: name}
    summary["together"] = {"missing": name}
    reader = Reader(page(summary))
    assert not set(reader.tags) - TAGS
    assert reader.tags.count("img") == 3
    if "\udce9" not in name:
        assert reader.text.count(name) > 15


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("title"), "a summary without 'title'"),
        (lambda s: s.update(plots=[]), "unknown parts 'plots'; it may have title"),
        (lambda s: s["figures"][0].pop("share"), "the figure 'right' without 'number'"),
        (lambda s: s["sureness"]["plots"][0].pop("display"), "a plot without 'display'"),
        (lambda s: s["best"]["groups"][0].pop("title"), "a group of 'Pictures' without 'title'"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(summary, tmp_path, change, message):
    change(summary)
    with pytest.raises(ValueError, match=message):
        write_evaluation(summary, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()
