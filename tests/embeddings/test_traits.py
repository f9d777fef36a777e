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
    with pytest.raises(ValueError, match="'weight' needs a number, but a class has 'heavy'"):
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
    with pytest.raises(ValueError, match=r"needs a number \(g\), but a class has '12 kg'"):
        encoding.transform(pd.DataFrame({"weight": ["12 kg"]}, index=["x"]))


def test_a_slip_among_numbers_is_an_error():
    frame = pd.DataFrame({"weight": ["1", "2", "3", "4", "5", "l0"]})
    with pytest.raises(ValueError, match="'weight' holds numbers, but also 'l0'"):
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
