"""The demo's page: stands alone, safe with any name, says what is not certain as such."""

import re

import pytest
from page_reader import TAGS, Reader

from latem.report.demo_page import write_demo

HOSTILE = "<img src=x onerror=alert(1)>"


def answer(true, named, **more):
    return {
        "true": {"name": true, "emoji": "🍀"},
        "named": {"name": named, "emoji": "🥛"},
        "against": {"name": "okapi", "emoji": ""},
        "source": "noto",
        "probability": 0.99999,
        "probability_of_true": 0.00001,
        "rank": 4,
        "rivals": [{"name": "tapir", "emoji": "🐖", "share": 0.25}],
        "lead": 0.5,
        "reasons": [
            {"name": "shamrock", "emoji": "☘️", "adds": 1.5, "unlike": False},
            {"name": "banana", "emoji": "", "adds": -0.75, "unlike": True},
        ],
        "other_seen": -0.3,
        "by_numbers": 0.05,
        **more,
    }


@pytest.fixture
def summary():
    return {
        "title": "Named",
        "subtitle": "two things",
        "notes": ["No drawing is shipped.", ""],
        "figures": [
            {"name": "right", "share": 0.5, "chance": 0.25},
            {"name": "error", "share": 0.125, "note": "on average"},
        ],
        "scores": {"chance": [0.25, 0.75], "committee": [0.5, 1.0]},
        "right": [answer("clover", "clover")],
        "wrong": [answer("clover", "milk")],
        "by_probability": [
            {"least": 0.5, "n": 3, "said": 0.75, "right": 2 / 3},
            {"least": 0.0, "n": 0, "said": None, "right": None},
        ],
        "classes": [
            {
                "name": "clover",
                "emoji": "🍀",
                "keywords": ["leaf", "plant"],
                "n_right": 1,
                "answers": [
                    {"name": "clover", "emoji": "🍀", "source": "noto", "right": True},
                    {"name": "milk", "emoji": "", "source": "twemoji", "right": False},
                ],
            }
        ],
        "confusions": {"classes": ["clover", "milk"], "matrix": [[1, 1], [0, 0]]},
        "settings": {"seed": 0},
    }


@pytest.fixture
def page(tmp_path):
    def write(summary):
        write_demo(summary, tmp_path / "page.html")
        return (tmp_path / "page.html").read_text(encoding="utf-8")

    return write


def words(text):
    return Reader(text).text.replace("\N{NO-BREAK SPACE}", " ")


def test_what_is_said(page, summary):
    text = page(summary)
    said = words(text)
    for expected in (
        "right 50.0 % guessing: 25.0 %",
        "error 12.5 % on average",
        "committee 50.0 % 100.0 %",
        "🍀 clover drawn by noto ✓ named right , over 99.9 % Next: 🐖 tapir 25.0 %.",
        "Ahead of okapi by 0.50, of which like ☘️ shamrock +1.50 unlike banana −0.75 "
        "all other seen things −0.30 class vector +0.05",
        "✗ named 🥛 milk , over 99.9 % The truth is number 4 of its guesses, under 0.1 %.",
        "Ahead of the truth by 0.50",
        "50–100 % 3 75.0 % 66.7 %",
        "0–50 % 0 – –",
        "🍀 clover 1 of 2 right leaf, plant 🍀 ✓ noto milk ✗ twemoji",
    ):
        assert expected in said
    assert text.count('<li class="hit"') == 1


def test_it_stands_alone_and_comes_out_the_same(page, summary):
    text = page(summary)
    assert page(summary) == text
    reader = Reader(text)
    assert not set(reader.tags) - TAGS
    assert {address[1:] for address in reader.addresses} == set(reader.ids) - {
        "confusion-all-answers"
    }
    assert not re.search(r"https?://|<script|url\(", text)
    assert "prefers-color-scheme: dark" in text


def test_names_are_no_markup(page, summary):
    def spoiled(value):
        if isinstance(value, dict):
            return {key: spoiled(one) for key, one in value.items()}
        if isinstance(value, list):
            return [spoiled(one) for one in value]
        return f"{value}{HOSTILE}" if isinstance(value, str) else value

    text = page({**spoiled(summary), "scores": {HOSTILE: [0.5, 1]}, "settings": {HOSTILE: HOSTILE}})
    assert "<img" not in text
    assert words(text).count(HOSTILE) > 30


def test_only_what_there_is(page, summary):
    said = words(page({"title": "Named", "scores": summary["scores"]}))
    assert "Models side by side" in said
    for absent in ("and why", "How sure", "class by class", "Settings", "Contents"):
        assert absent not in said
    with pytest.raises(ValueError, match="unknown parts 'advice'; it may have title, subtitle"):
        page({"title": "Named", "advice": []})
    with pytest.raises(ValueError, match="without 'title'"):
        page({})
    broken = answer("clover", "clover")
    del broken["lead"]
    with pytest.raises(ValueError, match="an answer without 'lead'"):
        page({"title": "Named", "right": [broken]})
