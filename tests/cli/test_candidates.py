"""What --classes and --like mean."""

import numpy as np
import pandas as pd
import pytest
import typer

from latem import ESZSL, ClassEmbeddings, LateFusion
from latem.cli.candidates import Likeness, candidates, table_of


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    names = ["blue jay", "cardinal", "wren", "owl, barn"]
    table = ClassEmbeddings(names, rng.random((4, 3)), columns=["blue", "red", "beak"])
    return ESZSL(table).fit(rng.normal(size=(20, 5)), np.array(["blue jay", "cardinal"] * 10))


@pytest.fixture
def new_csv(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    new = pd.DataFrame([[1, 2, 3]], ["new"], ["blue", "red", "beak"])
    for name in ("new.csv", "more, and more.csv"):
        new.to_csv(name, index_label="class")


@pytest.mark.parametrize(
    ("classes", "names"),
    [
        ("unseen", ["wren", "owl, barn"]),
        ("seen", ["blue jay", "cardinal"]),
        ("all", ["blue jay", "cardinal", "wren", "owl, barn"]),
        ("wren, blue jay,", ["wren", "blue jay"]),
        ("new.csv", ["new"]),
        ("more, and more.csv", ["new"]),
        ("unseen,new.csv", ["wren", "owl, barn", "new"]),
        ("blue jay,new.csv", ["blue jay", "new"]),
        ("new.csv, seen", ["new", "blue jay", "cardinal"]),
        ("unseen,wren", ["wren", "owl, barn"]),
    ],
)
def test_one_vocabulary(model, new_csv, classes, names):
    assert model.candidate_names(candidates(classes)).tolist() == names


@pytest.mark.parametrize(
    ("classes", "error", "message"),
    [
        (" , ", ValueError, "--classes names no class"),
        ("nowhere.csv", FileNotFoundError, "no class table 'nowhere.csv'"),
        ("unseen,nowhere.xlsx", FileNotFoundError, "no class table 'nowhere.xlsx'"),
        ("unseen,robin", ValueError, "no rows for 'robin'"),
    ],
)
def test_what_cannot_be_meant(model, classes, error, message):
    with pytest.raises(error, match=message):
        model.candidate_names(candidates(classes))


def test_a_class_like_another_is_added(model):
    table = model.class_table_
    likeness = Likeness("blue jay", ["beak=9"], ["red"], ["blue"], None)
    found = candidates("unseen", model, likeness)
    assert model.candidate_names(found).tolist() == ["wren", "owl, barn", "like blue jay"]
    expected = [table.vectors[:, 0].min(), table.vectors[:, 1].max(), 9]
    assert found[-1]["like blue jay"].tolist() == expected
    found = candidates("wren", model, Likeness("cardinal", called="ruby"))
    assert model.candidate_names(found).tolist() == ["wren", "ruby"]
    assert candidates("all", model, Likeness()) == "all"
    with pytest.raises(ValueError, match="'wren' otherwise than the model does"):
        model.candidate_names(candidates("all", model, Likeness("cardinal", called="wren")))


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"changes": ["a=1"]}, "--set"),
        ({"most": ["a"]}, "--most"),
        ({"least": ["a"]}, "--least"),
        ({"called": "x"}, "--as"),
    ],
)
def test_changes_need_a_class_to_change(options, name):
    with pytest.raises(typer.BadParameter, match=f"{name} changes a class .* --like"):
        Likeness(**options)


def test_fusions_have_no_table_to_describe_by(model):
    fusion = LateFusion([("one", model)], prefit=True)
    with pytest.raises(TypeError, match="one class table, but LateFusion describes"):
        table_of(fusion)


@pytest.mark.parametrize(
    ("given", "group"), [("Unseen", "unseen"), ("unsen", "unseen"), ("Sen", "seen"), ("ALL", "all")]
)
def test_a_group_spelled_otherwise_gets_a_hint(model, given, group):
    with pytest.raises(ValueError, match=f"no class '{given}'; did you mean '{group}'"):
        candidates(given, model)
    assert candidates("unseen", model) == "unseen"
