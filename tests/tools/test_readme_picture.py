"""The README's picture shows what a model answers."""

import importlib.util
import json

import numpy as np
import pytest
from helpers import REPOSITORY
from visits import chromium

import latem


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("t", REPOSITORY / "tools" / "readme_picture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def shown(tool):
    emoji = latem.load_emoji()
    model = latem.ESZSL(emoji.embeddings["text"], gamma=10, lam=1).fit(*emoji.training())
    model.calibrate(*emoji.testing(), classes="unseen")
    return emoji, model, tool.answers(emoji, model)


def test_answers_are_the_model_s(shown):
    emoji, model, answers = shown
    X, y = emoji.testing()
    images = emoji.images[emoji.rows(emoji.split("standard").test)]
    named = model.predict(X, classes="unseen")
    assert answers["accuracy"] == pytest.approx(model.score(X, y, classes="unseen"), abs=1e-4)
    assert len(answers["drawings"]) == 12
    for drawing in answers["drawings"]:
        (place,) = np.flatnonzero(images == f"{drawing['character']} noto")
        assert (drawing["class"], drawing["named"]) == (y[place], named[place])
        assert 0 < drawing["probability"] <= 1


def test_right_and_wrong_are_told_apart(tool, shown):
    answers = shown[2]
    page = tool.page(answers)
    right = sum(drawing["class"] == drawing["named"] for drawing in answers["drawings"])
    assert 0 < right < 12
    assert page.count('<figure class="right">') == right
    assert page.count('<figure class="wrong">') == page.count("it is: ") == 12 - right
    strange = {"character": "&", "class": "<b>", "named": "a", "probability": 0.123}
    assert "it is: &lt;b&gt;" in tool.page({"drawings": [strange]})
    assert "12 %" in tool.page({"drawings": [strange]})


def test_the_kept_picture_and_what_it_shows_belong_together(shown):
    kept = json.loads((REPOSITORY / "docs/static/unseen.json").read_text(encoding="utf-8"))
    chosen = [drawing["class"] for drawing in shown[2]["drawings"]]
    assert [drawing["class"] for drawing in kept["drawings"]] == chosen


@pytest.mark.slow
def test_chromium_draws_it(tool, shown, tmp_path):
    with chromium():  # skipped where there is none
        pass
    from PIL import Image

    tool.draw(tool.page(shown[2]), tmp_path / "picture.png")
    picture = Image.open(tmp_path / "picture.png")
    assert picture.width == tool.WIDTH * tool.SCALE
    assert picture.height > 400
    assert len(picture.convert("RGB").getcolors(1000)) > 50
