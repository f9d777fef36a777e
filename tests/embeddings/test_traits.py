"""Trait tables as people have them become numbers, and later classes alike."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers import SHARED
from hypothesis import given, settings
from hypothesis import strategies as st

from latem import ClassEmbeddings
from latem.embeddings.traits import TraitEncoding

BIRDS = pd.DataFrame(
    {
        "weight": ["12", "350", "", "900", "22", "41"],
        "wing": ["12,5", "30", "4,25", "90", "7", "8,5"],
        "diet": ["seeds; insects", "fish", "insects", "seeds", "fish;insects", ""],
        "size": ["small", "large", "medium", "large", "small", "small"],
        "nocturnal": ["yes", "no", "no", "", "no", "yes"],
        "habitat": ["forest", "sea", "forest", "sea", "forest", "forest"],
        "latin": ["a b", "c d", "e f", "g h", "i j", "k l"],
    },
    index=["ant", "bee", "cat", "dog", "eel", "fly"],
)


@pytest.fixture(scope="module")
def encoding():
    return TraitEncoding.learn(BIRDS)


def test_columns_of_every_kind(encoding):
    assert encoding.columns == [
        *("weight", "wing", "diet::fish", "diet::insects", "diet::seeds", "size", "nocturnal"),
        *("habitat::forest", "habitat::sea"),
    ]
    assert encoding.raw_columns == [name for name in BIRDS if name != "latin"]


def test_every_trait_has_the_same_spread(encoding):
    numbers = encoding.transform(BIRDS)
    families = [column.split("::")[0] for column in encoding.columns]
    for name in set(families):
        part = numbers[:, [family == name for family in families]]
        known = part[BIRDS[name].to_numpy() != ""]
        assert np.sqrt(known.var(axis=0).sum()) == pytest.approx(1)
        np.testing.assert_allclose(known.mean(axis=0), 0, atol=1e-12)


def test_words_that_are_taken_for_gaps_are_told():
    frame = pd.DataFrame(
        {
            "head": ["crest", "none", "cap", "-", "cap", "crest", "", "cap"],
            "legs": [1, 2, 3, 4, 5, 6, 7, "?"],
            "red": [1, 2, 3, 4, 5, 6, 7, None],
        },
        index=list("abcdefgh"),
    )
    notes = ClassEmbeddings.from_traits(frame).encoding.notes
    assert (
        "'head' has 3 gaps ('-', 'none'), filled with the mean; if they mean that a class lacks "
        "it, write 'absent'."
    ) in notes
    assert "'legs' has 1 gap ('?'), filled with the mean." in notes
    assert "'red' has 1 gap, filled with the mean." in notes


def test_gaps_say_nothing(encoding):
    numbers = pd.DataFrame(encoding.transform(BIRDS), BIRDS.index, encoding.columns)
    assert numbers.loc["cat", "weight"] == pytest.approx(0)
    assert numbers.loc["dog", "nocturnal"] == pytest.approx(0)
    np.testing.assert_allclose(
        numbers.loc["fly", numbers.columns.str.startswith("diet")], 0, atol=1e-9
    )


def test_order_and_words_are_kept(encoding):
    numbers = pd.DataFrame(encoding.transform(BIRDS), BIRDS.index, encoding.columns)
    assert numbers.loc["ant", "size"] < numbers.loc["cat", "size"] < numbers.loc["bee", "size"]
    assert numbers.loc["ant", "nocturnal"] > numbers.loc["bee", "nocturnal"]
    assert numbers.loc["ant", "wing"] > numbers.loc["cat", "wing"]
    assert numbers.loc["ant", "diet::insects"] == numbers.loc["cat", "diet::insects"]


def test_everything_done_is_said(encoding):
    told = " ".join(encoding.notes)
    for part in (
        "'weight' is standardised", "'weight' has 1 gap", "'wing' is read with decimal commas",
        "'diet' has several values in a cell", "small < medium < large", "'nocturnal' is yes or no",
        "'habitat' has the categories 'forest', 'sea'", "'latin' is left out",
    ):  # fmt: skip
        assert part in told


def test_it_travels_as_plain_data(encoding):
    again = TraitEncoding.from_dict(json.loads(json.dumps(encoding.to_dict())))
    assert again == encoding
    np.testing.assert_array_equal(again.transform(BIRDS), encoding.transform(BIRDS))


def test_a_later_class_is_treated_alike(encoding):
    new = BIRDS.iloc[[1]].set_axis(["gnu"])
    np.testing.assert_array_equal(encoding.transform(new), encoding.transform(BIRDS)[[1]])
    with pytest.warns(UserWarning, match="'habitat' has the new values 'desert', taken as unknown"):
        strange = encoding.transform(new.assign(habitat="desert"))
    habitat = [column.startswith("habitat") for column in encoding.columns]
    np.testing.assert_allclose(strange[:, habitat], 0, atol=1e-12)
    with pytest.raises(ValueError, match="lacks the traits 'diet'"):
        encoding.transform(new.drop(columns="diet"))
    with pytest.raises(ValueError, match="'weight' needs a number, not 'heavy'"):
        encoding.transform(new.assign(weight="heavy"))
    assert encoding.transform(new.drop(columns="latin")).shape == (1, 9)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 999), st.sampled_from([1.0, 100.0, 1e-3]))
def test_tables_on_one_scale_are_left_alone(seed, scale):
    numbers = scale * np.random.default_rng(seed).random((12, 20))
    assert TraitEncoding.learn(pd.DataFrame(numbers)) is None


def test_one_column_in_grams_does_not_drown_percentages():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(100 * rng.random((30, 40)), columns=[f"trait {i}" for i in range(40)])
    frame["grams"] = rng.uniform(8, 90_000, 30)
    encoding = TraitEncoding.learn(frame)
    assert encoding.notes == ("'grams' is standardised: its numbers are on another scale.",)
    numbers = encoding.transform(frame)
    np.testing.assert_array_equal(numbers[:, :-1], frame.to_numpy()[:, :-1])  # percentages stay
    assert numbers[:, -1].std() == pytest.approx(np.median(numbers[:, :-1].std(axis=0)))


def test_given_order_and_ordered_categories():
    frame = pd.DataFrame({"rank": ["b", "a", "c"], "x": [1.0, 2.0, 4.0]}, index=list("pqr"))
    given_order = TraitEncoding.learn(frame, ordered={"rank": ["c", "b", "a"]})
    ranks = given_order.transform(frame)[:, 0]
    assert ranks[1] > ranks[0] > ranks[2]
    frame["rank"] = pd.Categorical(frame["rank"], ["c", "b", "a"], ordered=True)
    np.testing.assert_array_equal(TraitEncoding.learn(frame).transform(frame)[:, 0], ranks)
    with pytest.raises(ValueError, match="holds 'a', not among the ordered values"):
        TraitEncoding.learn(frame, ordered={"rank": ["c", "b"]})
    with pytest.raises(ValueError, match="'size', which are not columns"):
        TraitEncoding.learn(frame, ordered={"size": ["c", "b"]})


def test_units_in_cells():
    frame = pd.DataFrame({"weight": ["12 g", "350 g", "7.5 g"]}, index=list("abc"))
    encoding = TraitEncoding.learn(frame)
    assert "'weight' is in 'g'" in encoding.notes[0]
    later = pd.DataFrame({"weight": ["12 g", "12"]}, index=list("xy"))
    assert len(set(encoding.transform(later).ravel())) == 1
    with pytest.raises(ValueError, match=r"needs a number \(g\), not '12 kg'"):
        encoding.transform(pd.DataFrame({"weight": ["12 kg"]}, index=["x"]))


def test_a_slip_among_numbers_is_an_error():
    frame = pd.DataFrame({"weight": ["1", "2", "3", "4", "5", "l0"]})
    with pytest.raises(
        ValueError, match="numbers in column 'weight', but class 5, column 'weight' holds 'l0'"
    ):
        TraitEncoding.learn(frame)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["traits"][0].update(mean=[1.0, 2.0]),
        lambda d: d["traits"][0].update(scale=[float("nan")]),
        lambda d: d["traits"][0].pop("kind"),
        lambda d: d.pop("traits"),
        lambda d: d.update(traits=3),
    ],
)
def test_damaged_data_is_refused(encoding, change):
    content = encoding.to_dict()
    change(content)
    with pytest.raises((KeyError, TypeError, ValueError)):
        TraitEncoding.from_dict(content)


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"real tables are not in {SHARED}")
def test_real_tables_are_what_models_want():
    for path in sorted(SHARED.glob("*/embeddings/*.csv")):
        assert TraitEncoding.learn(ClassEmbeddings.read(path).to_frame()) is None, path


# -- through the product ------------------------------------------------------------------------


def test_a_raw_table_travels_with_the_model(tmp_path):
    """Fitted, saved, loaded, cloned: a new class is described in raw traits."""
    from sklearn.base import clone

    import latem

    table = ClassEmbeddings.from_traits(BIRDS, name="att")
    rng = np.random.default_rng(0)
    seen = ["ant", "bee", "cat", "dog"]
    X, y = rng.normal(size=(40, 5)), np.array(seen * 10)
    model = latem.ESZSL(table).fit(X, y)
    model.save(tmp_path / "m")
    new = BIRDS.iloc[[4, 5]].set_axis(["gnu", "hen"])
    expected = model.decision_function(X, ["eel", "fly"])
    new.to_csv(tmp_path / "new.csv", index_label="class")
    new.reset_index(names="species").to_excel(tmp_path / "new.xlsx", index=False)
    for one in (model, latem.load(tmp_path / "m"), clone(model).fit(X, y)):
        for classes in (new, tmp_path / "new.csv", str(tmp_path / "new.csv"), tmp_path / "new.xlsx",
                        new.T.to_dict()):  # fmt: skip
            np.testing.assert_array_equal(one.decision_function(X, classes), expected)
            assert one.candidate_names(classes).tolist() == ["gnu", "hen"]
        with_new = one.with_classes(new)
        np.testing.assert_array_equal(with_new.decision_function(X, ["gnu", "hen"]), expected)
        assert with_new.class_table_.encoding == table.encoding
    encoded = table.select(["eel", "fly"])
    named = ClassEmbeddings(["gnu", "hen"], encoded.vectors, columns=encoded.columns)
    np.testing.assert_array_equal(model.decision_function(X, named), expected)
    with pytest.raises(ValueError, match="lacks the traits 'diet'"):
        model.decision_function(X, new.drop(columns="diet"))


def test_raw_numbers_are_encoded_also_when_the_columns_keep_their_names(tmp_path):
    raw = pd.DataFrame(
        {"grams": [12.0, 350.0, 9000.0, 40.0], "metres": [0.1, 0.4, 1.5, 0.2]},
        index=["wren", "gull", "swan", "lark"],
    )
    table = ClassEmbeddings.from_traits(raw)
    assert list(table.columns) == table.encoding.raw_columns
    raw.to_csv(tmp_path / "raw.csv", index_label="class")
    for given_as in (raw, raw.T.to_dict(), tmp_path / "raw.csv", str(tmp_path / "raw.csv")):
        np.testing.assert_allclose(table.matching(given_as).vectors, table.vectors, rtol=1e-12)
    np.testing.assert_array_equal(table.matching(table).vectors, table.vectors)


def test_the_table_of_a_dataset_folder_is_not_encoded_twice(tmp_path):
    from latem import ZeroShotDataset, write_folder

    raw = pd.DataFrame({"grams": [12.0, 350.0, 9000.0], "metres": [0.1, 0.4, 1.5]}, list("abc"))
    table = ClassEmbeddings.from_traits(raw, name="att")
    dataset = ZeroShotDataset(
        np.eye(3, dtype=np.float32), np.array(list("abc")), {"att": table}, {}
    )
    path = write_folder(dataset, tmp_path / "d") / "embeddings" / "att.csv"
    np.testing.assert_allclose(table.matching(path).vectors, table.vectors, rtol=1e-12)


def test_a_raw_table_travels_with_the_dataset(tmp_path):
    from latem import ZeroShotDataset, read_folder, write_folder
    from latem.datasets import check_folder

    table = ClassEmbeddings.from_traits(BIRDS, name="att")
    dataset = ZeroShotDataset(
        np.eye(6, dtype=np.float32), BIRDS.index.to_numpy(str), {"att": table}, {}
    )
    folder = write_folder(dataset, tmp_path / "d")
    again = read_folder(folder)
    assert again.embeddings["att"].encoding == table.encoding
    np.testing.assert_allclose(again.embeddings["att"].vectors, table.vectors, rtol=1e-12)
    (folder / "embeddings" / "att.traits.json").write_text("{")
    with pytest.raises(ValueError, match=r"att.traits.json is damaged"):
        read_folder(folder)
    assert any("att.traits.json is damaged" in problem for problem in check_folder(folder))


def test_tables_that_are_numbers_give_the_same_bytes(tmp_path):
    numbers = pd.DataFrame(100 * np.random.default_rng(0).random((12, 20)))
    numbers.index = [f"class {i}" for i in range(12)]
    numbers.columns = [f"trait {i}" for i in range(20)]
    numbers.to_csv(tmp_path / "t.csv", index_label="class")
    for source in (tmp_path / "t.csv", numbers):
        table = ClassEmbeddings.from_traits(source, name="t")
        assert table.encoding is None
        assert table == ClassEmbeddings.read(tmp_path / "t.csv")


def test_on_the_command_line(tmp_path):
    from typer.testing import CliRunner

    from latem import read_folder
    from latem.cli import app

    BIRDS.to_csv(tmp_path / "traits.csv", index_label="species")
    np.savez(tmp_path / "f.npz", features=np.eye(6), labels=BIRDS.index.to_numpy(str))
    arguments = ["data", "convert", "npz", str(tmp_path / "f.npz"), "--out", str(tmp_path / "d")]
    table = ["--table", f"att={tmp_path / 'traits.csv'}"]
    run = CliRunner().invoke(app, [*arguments, *table, "--order", "size=large<medium<small"])
    assert run.exit_code == 0, run.output
    assert "'weight' is standardised" in run.output
    sizes = read_folder(tmp_path / "d").embeddings["att"].to_frame()["size"]
    assert sizes["ant"] > sizes["cat"] > sizes["bee"]
    for order, message in (
        ("size", "--order takes COLUMN"),
        ("colour=a<b", "'colour', which are not"),
    ):
        run = CliRunner().invoke(
            app, [*arguments[:-1], str(tmp_path / "x"), *table, "--order", order]
        )
        assert run.exit_code == 1
        assert message in run.output.replace("\n", " ")
        assert not (tmp_path / "x").exists()


def test_a_mixture_says_which_cell_is_wrong(tmp_path):
    (tmp_path / "t.csv").write_text("class,w\na,1\nb,2\nc,3\nd,4\ne,5\nf,o\n")
    with pytest.raises(ValueError, match=r"t.csv: .* class 'f', column 'w' holds 'o'"):
        ClassEmbeddings.from_traits(tmp_path / "t.csv")


def test_a_title_that_is_there_twice_is_refused():
    twice = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], index=["a", "b"], columns=["blue", "blue"])
    with pytest.raises(ValueError, match="two columns called 'blue'"):
        ClassEmbeddings.from_traits(twice)
    table = ClassEmbeddings.from_traits(BIRDS)
    more = pd.concat([BIRDS, BIRDS.iloc[:, :1]], axis=1)
    with pytest.raises(ValueError, match="two columns called"):
        table.matching(more)


def test_thousands_or_decimals_must_be_told():
    raw = pd.DataFrame({"mass": ["350", "1,200", "40"], "x": ["a", "b", "a"]}, index=list("abc"))
    with pytest.raises(ValueError, match=r"'1,200', which may be .* write 1200 or 1.200"):
        ClassEmbeddings.from_traits(raw)
    raw["mass"] = ["350", "1,25", "40"]
    assert "'mass' is read with decimal commas." in ClassEmbeddings.from_traits(raw).encoding.notes


def test_words_that_begin_with_numbers_are_told():
    raw = pd.DataFrame({"mass": ["29 g", "5.5 kg", "29 g", "30 g"]}, index=list("abcd"))
    notes = ClassEmbeddings.from_traits(raw).encoding.notes
    assert any("most begin with a number" in note for note in notes)


def test_the_unit_in_a_title_may_be_written_in_cells():
    raw = pd.DataFrame(
        {"mass (g)": [12.0, 350.0, 9000.0], "diet": ["fish", "seeds", "fish"]}, index=list("abc")
    )
    table = ClassEmbeddings.from_traits(raw)
    new = pd.DataFrame({"mass (g)": ["350 g"], "diet": ["seeds"]}, index=["d"])
    np.testing.assert_allclose(table.matching(new).vectors[0], table["b"])
    with pytest.raises(ValueError, match=r"needs a number, not '350 kg'"):
        table.matching(new.assign(**{"mass (g)": "350 kg"}))


def test_a_class_without_any_trait_is_refused():
    table = ClassEmbeddings.from_traits(BIRDS)
    empty = pd.DataFrame([[None] * BIRDS.shape[1]], index=["ghost"], columns=BIRDS.columns)
    with pytest.raises(ValueError, match="says nothing about 'ghost'"):
        table.matching(empty)
