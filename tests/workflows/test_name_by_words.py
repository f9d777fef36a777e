"""Naming pictures from words alone: the shipped model, the functions, the command."""

import csv
import importlib.util
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from helpers import PHOTOS, REPOSITORY
from typer.testing import CliRunner

import latem
from latem.cli.name import name
from latem.workflows.name_by_words import (
    BASE_MODEL,
    load_base_model,
    name_pictures_by_words,
    name_table,
    understand,
)

CHINA, FLOWER = PHOTOS / "china.jpg", PHOTOS / "flower.jpg"
NAMES = "daisy, temple, car, dog"
TOOL = REPOSITORY / "tools" / "build_base_model.py"

app = typer.Typer()
app.command()(name)


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def flat(result):
    return result.output.replace("\n", " ")


def test_real_photos_get_the_right_names():
    named = name_pictures_by_words([CHINA, FLOWER], ["daisy", "temple", "car", "dog"], top=2)
    assert [one.names[0] for one in named] == ["temple", "daisy"]
    assert all(len(one.names) == 2 and one.scores[0] > one.scores[1] for one in named)


def test_names_that_are_no_imagenet_classes():
    seen = set(load_base_model().classes_.tolist())
    names = ["dahlia", "pagoda", "okapi", "submarine sandwich", "violin"]
    assert understand("dahlia").synset.id not in seen
    named = name_pictures_by_words([CHINA, FLOWER], names)
    assert [one.names[0] for one in named] == ["pagoda", "dahlia"]


def test_the_shipped_file():
    assert BASE_MODEL.stat().st_size < 6.5e6
    model = latem.load(BASE_MODEL)
    assert isinstance(model, latem.ESZSL)
    assert model.n_features_in_ == 1280
    assert len(model.classes_) == 1000
    assert model.encoder_["name"] == "efficientnet-lite0"
    assert model.class_table_.columns == tuple(model.classes_.tolist())
    assert name_table(["okapi", "tapir"]).columns == model.class_table_.columns


def test_the_script_builds_the_shipped_file(tmp_path):
    spec = importlib.util.spec_from_file_location("build_base_model", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tool.build(tmp_path / "again.safetensors")
    again, shipped = latem.load(tmp_path / "again.safetensors"), load_base_model()
    assert again.get_params(deep=False).keys() == shipped.get_params(deep=False).keys()
    assert (again.gamma, again.lam, again.encoder_) == (
        shipped.gamma, shipped.lam, shipped.encoder_,
    )  # fmt: skip
    rows = tool.prototypes()[0]
    scores = shipped.decision_function(rows)
    difference = np.abs(again.decision_function(rows) - scores).max()
    assert difference < 0.01 * scores.std()


def test_rows_are_named_after_their_own_classes():
    from latem.features.efficientnet import classifier

    model = load_base_model()
    weights, _, ids = classifier()
    assert model.score(weights, np.array(ids)) > 0.99  # chance: 0.001


@pytest.mark.parametrize(
    ("word", "synset"),
    [
        ("dalmatian", "dalmatian.n.02"),
        ("crane", "crane.n.04"),
        ("crane.n.05", "crane.n.05"),
        ("n02391049", "zebra.n.01"),
        ("zebras", "zebra.n.01"),
        ("man", "man.n.01"),
        ("snow", "snow.n.01"),
        ("church", "church.n.02"),
        ("otter", "otter.n.02"),
        ("African elephant", "african_elephant.n.01"),
    ],
)
def test_senses(word, synset):
    assert understand(word).synset.name == synset


def test_hints_come_first():
    assert understand("cardinal").synset.lexname == "noun.person"
    assert understand("cardinal", hint="animal").synset.lexname == "noun.animal"
    assert understand("temple", hint="animal").synset == understand("temple").synset


def test_names_that_mean_the_same_are_told():
    with pytest.warns(UserWarning, match="cannot tell them apart: 'car', 'automobile'"):
        table = name_table(["car", "automobile", "dog"])
    np.testing.assert_array_equal(table["car"], table["automobile"])
    with pytest.warns(UserWarning, match="apart: 'dahlia', 'sunflower'. Keep"):
        name_table(["dahlia", "sunflower", "daisy"])


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ([], ValueError, "at least two names .* none is given"),
        (["okapi"], ValueError, "only 'okapi' is given"),
        ("okapi, tapir", TypeError, "needs a list of names"),
        (["okapi", 3], TypeError, "not 3"),
        (["okapi", " "], TypeError, "names that are words"),
        (["okapi", "okapi"], ValueError, "given twice: 'okapi'"),
        (["okapi", "zebrra"], ValueError, "'zebrra' \\(near: .*zebra"),
        (["dog", "crane.n.99"], ValueError, "no synset 'crane.n.99'; it has"),
    ],
)
def test_names_that_will_not_do(names, error, message):
    with pytest.raises(error, match=message):
        name_table(names)


def test_names_that_are_like_nothing_learned():
    with pytest.warns(UserWarning, match="nothing that is much like 'democracy'"):
        name_table(["dog", "democracy"])
    with pytest.raises(ValueError, match="is related to 'entity'"):
        name_table(["dog", "entity"])


def test_the_command_in_every_format():
    result = run(CHINA, FLOWER, "--names", NAMES)
    assert result.exit_code == 0, result.output
    assert "temple" in result.stdout
    result = run(CHINA, FLOWER, "--names", NAMES, "--format", "json", "--top", 2)
    assert result.exit_code == 0, result.output
    answers = json.loads(result.stdout)
    assert [one["classes"][0]["class"] for one in answers] == ["temple", "daisy"]
    assert [len(one["classes"]) for one in answers] == [2, 2]
    result = run(PHOTOS, "--names", NAMES, "--format", "csv", "--top", 99)
    assert result.exit_code == 0, result.output
    lines = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(lines) == 8
    assert {line["class"] for line in lines if line["place"] == "1"} == {"temple", "daisy"}


def test_names_from_a_file(tmp_path):
    file = tmp_path / "names.txt"
    file.write_text(NAMES.replace(", ", "\n") + "\n\n", encoding="utf-8")
    result = run(FLOWER, "--names-file", file, "--format", "json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)[0]["classes"][0]["class"] == "daisy"


def test_names_known_by_a_part_only_are_told():
    result = run(FLOWER, "--names", "Crimson daisy, car, automobile", "--format", "json")
    assert result.exit_code == 0, result.output
    assert "'Crimson daisy' is taken as 'daisy'" in result.stderr
    assert "cannot tell them apart" in result.stderr
    assert json.loads(result.stdout)[0]["classes"][0]["class"] == "Crimson daisy"


def test_unreadable_pictures_are_listed(tmp_path):
    (tmp_path / "broken.jpg").write_text("no picture")
    result = run(FLOWER, tmp_path / "broken.jpg", "--names", NAMES, "--format", "json")
    assert result.exit_code == 3
    assert "broken.jpg: it is not a picture" in result.stderr
    named, lost = json.loads(result.stdout)
    assert Path(named["picture"]).name == "flower.jpg"
    assert lost["error"] == "it is not a picture of a known format"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((FLOWER,), 2, "--names"),
        ((FLOWER, "--names", "a", "--names-file", "b"), 2, "--names"),
        ((FLOWER, "--names", NAMES, "--format", "xml"), 2, "table, json or csv"),
        ((FLOWER, "--names", " , "), 1, "none is given"),
        ((FLOWER, "--names", "dog"), 1, "only 'dog' is given"),
        ((FLOWER, "--names", "dog, zebrra"), 1, "zebra"),
        ((FLOWER, "--names", NAMES, "--hint", "beast"), 1, "no kind 'beast'"),
        ((FLOWER, "--names-file", "none.txt"), 1, "no file of names 'none.txt'"),
        (("none.jpg", "--names", NAMES), 1, "none.jpg: there is no such file"),
    ],
)
def test_misuse(arguments, code, message):
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert message in flat(result)


def test_a_missing_extra_names_its_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    result = run(FLOWER, "--names", NAMES)
    assert result.exit_code == 1
    assert "pip install 'latem[images]'" in flat(result)
