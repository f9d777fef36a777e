"""Reports: complete, self-contained, the same bytes each time, safe with any name."""

import base64
import copy
import io
import re
import sys

import matplotlib
import numpy as np
import pytest
from page_reader import TAGS, Reader
from PIL import Image

from latem.report import pictures
from latem.report.comparison import compare
from latem.report.page import write_gallery, write_report
from latem.report.pictures import SIDE, missing_pillow, thumbnail

HOSTILE = "<img src=x onerror=alert(1)>"


def cell(ours, paper, error=None, status="ok", note=""):
    return {"ours": ours, "paper": paper, "error": error, "status": status, "note": note}


def image(name, true, named, path=None):
    return {"name": name, "class": true, "named": named, "score": 3.14159, "path": path}


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "wide.png"
    Image.new("RGB", (400, 200), (20, 120, 200)).save(path)
    return str(path)


@pytest.fixture
def summary(picture):
    return {
        "title": "A reproduction",
        "subtitle": "Two tables & a figure",
        "version": "9.8.7",
        "notes": ["AWA: older features."],
        "settings": {"seeds": "0, 1, 2", "epochs": "150"},
        "datasets": [
            {
                "key": "CUB",
                "name": "Birds",
                "features": "GoogLeNet",
                "notes": "a note on birds",
                "licence": "research only",
                "n_images": 11788,
                "n_classes": 200,
                "embeddings": {"att": 312},
            }
        ],
        "tables": [
            {
                "id": "table2",
                "title": "Table 2",
                "caption": "SJE against LatEm.",
                "unit": "%",
                "digits": 1,
                "row_title": "embedding",
                "rows": ["att", "w2v"],
                "columns": [["CUB", "SJE"], ["CUB", "LatEm"], ["Dogs", "SJE"], ["Dogs", "LatEm"]],
                "cells": [
                    [
                        cell(50.34, 50.1, 0.61),
                        cell(47.96, 45.5, 0.42, note="K = 4"),
                        cell(None, None, status="none"),
                        cell(None, None, status="none"),
                    ],
                    [
                        cell(None, 28.4, status="skipped", note="skipped: no w2v in CUB"),
                        cell(None, 31.8, status="skipped"),
                        cell(12.61, 19.6, 0.2),
                        cell(33.3, None),
                    ],
                ],
            },
            {
                "id": "table4",
                "title": "Table 4",
                "caption": "",
                "unit": "",
                "digits": 0,
                "row_title": "",
                "rows": ["att"],
                "columns": [["PR", ""], ["CV", ""]],
                "cells": [[cell(7, 4), cell(6, 6)]],
            },
        ],
        "curves": [
            {
                "id": "figure3",
                "title": "Figure 3",
                "caption": "Five seeds.",
                "x_title": "number of maps K",
                "y_title": "accuracy (%)",
                "x": [1, 2, 4],
                "series": [
                    {"name": "glo", "mean": [28.14, 30.25, 31.36], "error": [0.51, 0.62, 0.73]},
                    {"name": "hie", "mean": [21.0, None, 24.0], "error": [None, None, 0.4]},
                ],
                "skipped": ["w2v: no such table"],
            }
        ],
        "usage": [
            {
                "title": "CUB, pruned",
                "n_maps": [3, 2, 2, 2],
                "map_usage": [[0.5, 0.45, 0.05], [0.5, 0.49, 0.01], [0.6, 0.4], [0.625, 0.375]],
            },
            {"title": "CUB, K = 2", "n_maps": [2, 2], "map_usage": [[0.5, 0.5], [0.25, 0.75]]},
        ],
        "per_class": [
            {"title": "CUB, LatEm", "accuracies": {"001.Sooty_Owl": 0.431, "002.Okapi": 0.876}}
        ],
        "confusion": [
            {
                "title": "CUB, confused",
                "classes": ["001.Sooty_Owl", "002.Okapi"],
                "matrix": [[41, 17], [3, 39]],
            }
        ],
        "galleries": [
            {
                "id": "figure2",
                "title": "CUB, glo",
                "caption": "Best images.",
                "maps": [
                    {
                        "number": 0,
                        "share": 0.314,
                        "images": [
                            image("owl.png", "001.Sooty_Owl", "001.Sooty_Owl", picture),
                            image("gone.png", "002.Okapi", "001.Sooty_Owl", "/nowhere.png"),
                        ],
                    },
                    {"number": 1, "share": 0.1, "images": []},
                ],
            }
        ],
    }


@pytest.fixture
def page(tmp_path):
    def write(summary):
        path = tmp_path / "report.html"
        write_report(summary, path)
        return path.read_text(encoding="utf-8")

    return write


def test_page_stands_alone(summary, page):
    text = page(summary)
    reader = Reader(text)
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert '<meta name="viewport" content="width=device-width' in text
    assert "script" not in reader.tags
    assert "<script" not in text
    assert not re.search(r"https?://|@import", text)
    assert set(re.findall(r"url\((.)", text)) <= {"#"}
    assert all(a.startswith(("#", "data:image/jpeg;base64,")) for a in reader.addresses)


def test_places_are_found_once(summary, page):
    summary["tables"].append({**summary["tables"][0], "title": "Table 2 again"})
    reader = Reader(page(summary))
    assert len(reader.ids) == len(set(reader.ids))
    assert {a[1:] for a in reader.addresses if a.startswith("#")} <= set(reader.ids)
    assert {"table2", "table2-2", "figure3", "figure2", "settings"} <= set(reader.ids)


def test_same_bytes_whatever_the_settings(summary, page):
    first = page(copy.deepcopy(summary))
    assert page(summary) == first
    with matplotlib.rc_context({"font.size": 20, "svg.fonttype": "path", "axes.grid": False}):
        assert page(summary) == first
        assert matplotlib.rcParams["font.size"] == 20
    assert matplotlib.rcParams["svg.hashsalt"] is None


def test_every_number_is_there(summary, page):
    text = Reader(page(summary)).text
    for words in (
        "A reproduction Two tables & a figure AWA: older features.",
        "50.3 ± 0.6 paper 50.1 ≈ +0.2",
        "48.0 ± 0.4 paper 45.5 ▲ +2.5 K = 4",
        "not run paper 28.4 skipped: no w2v in CUB",
        "12.6 ± 0.2 paper 19.6 ▼ −7.0",
        "33.3",
        "7 paper 4 +3",
        "6 paper 6 0",
        "28.1 ± 0.5 30.2 ± 0.6 31.4 ± 0.7",
        "21.0 – 24.0 ± 0.4",
        "Not run: w2v: no such table.",
        "From 3 to 2 maps in 4 epochs.",
        "2 maps throughout 2 epochs.",
        "from epoch 3 on",
        "map 0 62.5 % map 1 37.5 %",
        "Mean 65.3 %",
        "Okapi 87.6 % Sooty Owl 43.1 %",
        "Sooty Owl 41 17",
        "20 of 100 images were given a wrong name.",
        "Sooty Owl was named Okapi 17 times of 58 (29.3 %).",
        "Map 0 · 31.4 % of the images",
        "score 3.14",
        "images 11,788 classes 200 embeddings att (312 dimensions)",
        "seeds 0, 1, 2",
        "Written by latem 9.8.7.",
    ):
        assert words in text.replace("\N{NO-BREAK SPACE}", " "), words
    overview = text[text.index("mean difference") :]
    assert "Table 2 3 1 1 1 −1.4 2" in overview
    assert "Table 4 2 1 1 0 – 0" in overview


def test_datasets_that_are_absent_are_left_out(summary, page):
    summary["tables"][0]["absent"] = ["Dogs"]
    text = Reader(page(summary)).text
    assert "12.6 ± 0.2" not in text
    assert "CUB SJE LatEm att" in text
    assert "Table 2 2 1 1 0 +1.4 2" in text
    counted = {**summary["tables"][1], "rows": ["CUB", "AWA"], "columns": [["in all", "images"]]}
    cells = [[cell(7, 8)], [cell(None, 9, status="skipped", note="no AWA")]]
    summary["tables"] = [{**counted, "cells": cells, "absent": ["AWA"]}]
    text = Reader(page(summary)).text
    assert "paper 8" in text
    assert "paper 9" not in text
    assert "no AWA" not in text


def test_other_features_are_neither_judged_nor_counted(summary, page):
    before = Reader(page(summary)).text
    assert "other features" not in before
    summary["tables"][0]["apart"] = ["Dogs"]
    raw = page(summary)
    text = Reader(raw).text
    assert "Dogs with other features" in text
    assert "12.6 ± 0.2 paper 19.6 −7.0" in text  # beside the paper's, without a verdict
    assert "below-3" not in re.findall(r'<td class="([^"]+)"', raw)
    assert "Table 2 2 1 1 0 +1.4 1 2" in text
    assert "Table 4 2 1 1 0 – 0 0" in text


def test_confusions_come_before_the_use_of_maps(summary, page):
    reader = Reader(page(summary))
    order = [name for name in reader.ids if name in ("per_class", "confusion", "usage")]
    assert order == ["per_class", "confusion", "usage"]


def test_empty_sections_are_left_out(page):
    text = page({"title": "Nothing yet", "tables": [], "settings": {}, "galleries": []})
    reader = Reader(text)
    assert reader.ids == []
    assert not {"section", "nav", "aside", "h2", "table", "svg"} & set(reader.tags)


def test_parts_without_content(page):
    text = page(
        {
            "title": "Thin",
            "tables": [
                {"id": "t", "title": "T", "unit": "%", "rows": [], "columns": [], "cells": []}
            ],
            "curves": [{"id": "c", "title": "C", "x": [], "series": []}],
            "usage": [{"title": "U", "n_maps": [], "map_usage": []}],
            "per_class": [{"title": "P", "accuracies": {}}],
            "confusion": [{"title": "M", "classes": [], "matrix": []}],
            "galleries": [{"id": "g", "title": "G", "maps": []}],
            "datasets": [{"key": "D", "name": "D"}],
        }
    )
    assert "svg" not in Reader(text).tags


def everywhere(value, name):
    """The same data with every text, key and class called `name`."""
    if isinstance(value, dict):
        return {key: everywhere(entry, name) for key, entry in value.items()}
    if isinstance(value, list):
        return [everywhere(entry, name) for entry in value]
    return name if isinstance(value, str) and value not in ("ok", "skipped", "none", "%") else value


@pytest.mark.parametrize(
    "name",
    [
        HOSTILE,
        '"><script>alert(1)</script>',
        "--><script>",
        "' onload='x",
        "$x$ & \\frac{1}{2} {{ title }} {% raw %}",
        "日本語 – العربية – 👩‍🚀 – é",
        "a\nb\tc\x00d",
        "not Unicode \udce9",
        "#010101 xlink:href id=\"x\" 'DejaVu Sans'",
    ],
)
def test_names_are_only_names(summary, page, name):
    changed = everywhere(summary, name)
    changed["per_class"][0]["accuracies"] = {name: 0.5, name + "2": 0.25}
    changed["settings"] = {name: name}
    changed["datasets"][0]["embeddings"] = {name: 3}
    hostile = Reader(page(changed))
    assert not set(hostile.tags) - TAGS
    assert hostile.tags.count("img") <= 1
    if "\n" not in name and "\udce9" not in name:
        assert hostile.text.count(name) > 40


def test_text_in_plots_is_text(summary, page):
    summary["curves"][0]["series"][0]["name"] = "<b>日本"
    text = page(summary)
    svgs = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(svgs) == 2 + 1 + 3
    assert any("&lt;b&gt;日本</text>" in svg for svg in svgs)
    assert not re.search(r"#0101[01]\w", text)


def test_long_labels_in_plots_go_on_in_a_second_line(summary, page):
    table = summary["tables"][0]
    table["rows"] = ["with attributes, chosen weights", "w2v"]
    svg = next(svg for svg in re.findall(r"<svg.*?</svg>", page(summary), re.DOTALL))
    shown = [text.strip() for text in re.findall(r"<(?:text|tspan)[^>]*>([^<]+)<", svg)]
    assert {"with attributes,", "chosen weights, SJE", "chosen weights, LatEm"} <= set(shown)
    assert "…" not in svg


def test_lines_of_notes_do_not_end_before_a_number():
    noted = compare({"ours": 1.0, "note": "weights att 0.7, w2v 0.3"}, "%", 1)
    assert noted.note_text == "weights att\u00a00.7, w2v\u00a00.3"
    assert noted.note == "weights att 0.7, w2v 0.3"


def test_differences():
    def look(ours, paper, unit="%"):
        compared = compare({"ours": ours, "paper": paper}, unit, 1)
        return compared.verdict, compared.level, compared.difference_text

    assert look(46.5, 45.5) == ("same", 0, "≈ +1.0")
    assert look(44.46, 45.5) == ("same", 0, "≈ −1.0")
    assert look(46.6, 45.5) == ("above", 1, "▲ +1.1")
    assert look(42.9, 45.5) == ("below", 2, "▼ −2.6")
    assert look(60.0, 45.5) == ("above", 3, "▲ +14.5")
    assert look(45.5, 45.5) == ("same", 0, "≈ 0.0")
    assert look(9, 4, "") == ("plain", 0, "+5.0")
    assert look(float("nan"), 45.5) == ("", 0, "–")
    assert look(np.float32(45.5), None) == ("", 0, "–")


def test_large_matrix_is_told_in_words(page):
    n = 70
    matrix = np.eye(n, dtype=int)
    matrix[3, 5] = 2
    item = {"title": "Many", "classes": [f"c{i}" for i in range(n)], "matrix": matrix.tolist()}
    text = Reader(page({"title": "T", "confusion": [item]})).text
    assert "The matrix of 70 classes is too large to be drawn." in text
    assert "c3 was named c5 2 times of 3" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("title"), "latem.report got a summary without 'title'"),
        (lambda s: s.update(curve=[]), "unknown parts 'curve'; it may have title, subtitle"),
        (lambda s: s["tables"][0].pop("rows"), "a table without 'rows'"),
        (lambda s: s["tables"][0]["cells"].pop(), r"2 rows and 4 columns, but with rows of \[4\]"),
        (lambda s: s["tables"][0]["cells"][0][0].update(status="bad"), "status 'bad'; use one of"),
        (lambda s: s["curves"][0]["x"].pop(), "2 positions, but 3 values in 'mean' of 'glo'"),
        (lambda s: s["confusion"][0]["matrix"].pop(), "matrix is not 2 × 2"),
        (lambda s: s["confusion"][0]["matrix"][0].pop(), "matrix is not 2 × 2"),
        (lambda s: s["galleries"][0]["maps"][0].pop("images"), "a map of 'CUB, glo' without"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(summary, tmp_path, change, message):
    change(summary)
    with pytest.raises(ValueError, match=message):
        write_report(summary, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def opened(address):
    kind, content = address.split(",")
    assert kind == "data:image/jpeg;base64"
    return Image.open(io.BytesIO(base64.b64decode(content)))


def test_thumbnails(picture, tmp_path):
    small = opened(thumbnail(picture))
    assert (small.format, small.mode, small.size) == ("JPEG", "RGB", (SIDE, SIDE // 2))
    exif = Image.Exif()
    exif[0x0112] = 6  # lying on its side
    Image.new("RGB", (40, 20)).save(tmp_path / "side.jpg", exif=exif)
    assert opened(thumbnail(tmp_path / "side.jpg")).size == (20, 40)
    (tmp_path / "text.jpg").write_text("not a picture")
    for path in (None, tmp_path / "text.jpg", tmp_path / "gone.jpg", tmp_path, "a\0b"):
        assert thumbnail(path) is None


def test_gallery_page(picture, tmp_path):
    images = [
        image("owl.png", "001.Sooty_Owl", "001.Sooty_Owl", picture),
        image("owl2.png", HOSTILE, "002.Okapi"),
        image("d", "🦉", "🦉"),
        image("🌁 openmoji", "foggy", None),
    ]
    galleries = [
        {"id": "g", "title": "Maps", "maps": [{"number": 5, "share": None, "images": images}]}
    ]
    for name in ("a.html", "b.html"):
        write_gallery(galleries, tmp_path / name, title="A & B", notes=["Look."])
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert (tmp_path / "b.html").read_text(encoding="utf-8") == text
    reader = Reader(text)
    assert "A & B Look. Maps Map 5 Sooty Owl ✓ right score 3.14" in reader.text
    assert f"{HOSTILE} {HOSTILE} ✗ named Okapi" in reader.text  # placeholder and caption
    assert reader.tags.count("img") == 1
    assert re.findall(r'<div class="frame emoji"[^>]*>(.)<', text) == ["🦉", "🌁"]
    assert 'title="001.Sooty_Owl">Sooty Owl<' in text
    assert "Pillow" not in text


def test_a_gallery_without_pillow(summary, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert "pip install 'latem[images]'" in missing_pillow()
    write_gallery(summary["galleries"], tmp_path / "a.html", title="Maps")
    reader = Reader((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert "img" not in reader.tags
    assert "reading them needs Pillow" in reader.text


def test_a_report_without_pillow(summary, page, monkeypatch):
    # matplotlib draws the plots and imports Pillow itself, so only latem is told that it is missing
    monkeypatch.setattr(pictures, "find_spec", lambda name: None)
    assert "pip install 'latem[images]'" in missing_pillow()
    reader = Reader(page(summary))
    assert "img" not in reader.tags
    assert "svg" in reader.tags
    assert "reading them needs Pillow" in reader.text
