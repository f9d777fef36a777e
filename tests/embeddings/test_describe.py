"""Classes described by existing ones, and models that learn of new classes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from latem import (
    ClassEmbeddings,
    Description,
    HeldOutSearch,
    LatEm,
    LatEmCV,
    make_latent_world,
)
from latem.embeddings.describe import described, join_classes, split_change


@pytest.fixture
def traits():
    return pd.DataFrame(
        {"blue": [90.0, 5, 30], "red": [0, 70, 10], "long beak": [20, 40, 0]},
        index=["blue jay", "cardinal", "wren"],
    )


def test_changes_add_up_and_leave_the_original_alone(traits):
    jay = Description(traits, "blue jay")
    other = jay.least("blue").most("red", "long beak").set({"red": 60})
    assert other.named("x").vectors.tolist() == [[5, 60, 40]]
    assert jay.named("y").vectors.tolist() == [[90, 0, 20]]
    table = other.named("ruby jay")
    assert table.names.tolist() == ["ruby jay"]
    assert list(table.columns) == ["blue", "red", "long beak"]


def test_unknown_columns_classes_and_values(traits):
    jay = Description(traits, "blue jay")
    with pytest.raises(ValueError, match=r"no column 'long beek'; did you mean 'long beak'\?"):
        jay.set({"long beek": 1})
    with pytest.raises(ValueError, match="no column 'BEAK'; did you mean 'long beak'"):
        jay.most("BEAK")
    with pytest.raises(ValueError, match="no column 'xyz'; there are 'blue'"):
        jay.least("xyz")
    with pytest.raises(ValueError, match="finite"):
        jay.set({"red": float("nan")})
    with pytest.raises((KeyError, ValueError), match="blue tit"):
        Description(traits, "blue tit")
    with pytest.raises(ValueError, match="no names of columns"):
        Description((["a", "b"], np.eye(2)), "a")


def test_a_description_says_what_it_changes(traits):
    jay = Description(traits, "blue jay")
    assert repr(jay) == "like 'blue jay'"
    other = jay.least("blue").most("red")
    assert repr(other) == "like 'blue jay', but blue 90 → 5, red 0 → 70"
    assert repr(other.set({"blue": 90})) == "like 'blue jay', but red 0 → 70"
    wide = pd.DataFrame(np.zeros((1, 12)), ["x"], [f"t{i}" for i in range(12)])
    many = Description(wide, "x").set({f"t{i}": 1 for i in range(12)})
    assert repr(many).endswith("t7 0 → 1, and 4 more changes")


@pytest.fixture
def raw():
    return pd.DataFrame(
        {
            "mass": ["12 g", "350 g", "9000 g", "40 g"],
            "diet": ["seeds", "fish", "fish; seeds", ""],
            "size": ["small", "medium", "large", "small"],
            "coast": ["yes", "yes", "no", "no"],
        },
        index=["wren", "gull", "swan", "lark"],
    )


def test_raw_traits_are_changed_as_they_are_written(raw):
    table = ClassEmbeddings.from_traits(raw)
    changes = {"mass": "40 g", "diet": "seeds; fish", "size": "large", "coast": False}
    gull = Description(table, "gull").set(changes)
    assert repr(gull) == (
        "like 'gull', but mass 350 g → 40 g, diet fish → fish; seeds, size medium → large, "
        "coast yes → no"
    )
    row = pd.DataFrame([{**changes, "coast": "no"}], index=["new"])
    np.testing.assert_allclose(gull.named("new").vectors, table.matching(row).vectors)
    assert gull.named("new").encoding == table.encoding
    assert repr(Description(table, "lark").set({"diet": "fish"})) == (
        "like 'lark', but diet unknown → fish"
    )
    unknown = Description(table, "gull").set({"diet": ""})
    np.testing.assert_allclose(unknown.named("x").to_frame().filter(like="diet"), 0, atol=1e-12)
    heavy = Description(table, "wren").most("mass").least("size")
    assert repr(heavy) == "like 'wren', but mass 12 g → 9000 g"
    one = Description(table, "wren").set({"diet::fish": 1})
    assert repr(one) == "like 'wren', but diet seeds → fish; seeds"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"diet": "pizza"}, "'diet' cannot be 'pizza': known are 'fish', 'seeds'"),
        ({"size": "gigantic"}, "'size' cannot be 'gigantic': known are 'small'"),
        ({"mass": "40 kg"}, r"'mass' needs a number \(g\), not '40 kg'"),
        ({"mas": "4 g"}, "no column 'mas'; did you mean 'mass'"),
        ({"diet::fish": "much"}, "'diet::fish' cannot be 'much': give a finite number"),
    ],
)
def test_raw_traits_that_cannot_be(raw, change, message):
    with pytest.raises(ValueError, match=message):
        Description(ClassEmbeddings.from_traits(raw), "gull").set(change)


def test_a_trait_of_several_columns_has_no_most(raw):
    with pytest.raises(ValueError, match=r"'diet' takes several columns; name one of 'diet::fish'"):
        Description(ClassEmbeddings.from_traits(raw), "gull").most("diet")


def test_the_row_for_a_spreadsheet_is_read_again(raw, tmp_path):
    """Raw traits where the class can be written so, numbers where it cannot, and exact in both."""
    table = ClassEmbeddings.from_traits(raw)
    numbers_only = ClassEmbeddings.from_traits(raw[["mass", "size", "coast"]])
    plain = Description(table, "gull").set({"mass": "40 g", "size": "large"})
    odd = Description(table, "gull").set({"diet::fish": 0.5})
    for source, description, is_raw in (
        (table, plain, True),
        (table, odd, False),
        (numbers_only, Description(numbers_only, "lark").set({"mass": "70.5 g"}), True),
        (table.l2(), Description(table.l2(), "gull"), False),
    ):
        frame = description.to_frame("new")
        assert ("mass" in frame and isinstance(frame["mass"].iloc[0], str)) == is_raw
        frame.to_csv(tmp_path / "new.csv")
        again = source.matching(tmp_path / "new.csv")
        np.testing.assert_allclose(again.vectors, description.named("new").vectors, rtol=1e-9)
        assert again.names.tolist() == ["new"]


def test_descriptions_as_people_type_them(traits):
    jay = described(
        traits, "blue jay", changes=["long beak = 95", "red=4"], most=["red"], least=["blue"]
    )
    assert repr(jay) == "like 'blue jay', but blue 90 → 5, red 0 → 4, long beak 20 → 95"
    numbered = ClassEmbeddings([1, 2], [[1, 2], [3, 4]], columns=["a", "b=c"])
    assert repr(described(numbered, "2", changes=["b=c=9"])) == "like 2, but b=c 4 → 9"
    with pytest.raises(ValueError, match="no rows for 'blue tit'"):
        described(traits, "blue tit")
    with pytest.raises(ValueError, match="'red' cannot be 'much': give a finite number"):
        described(traits, "wren", changes=["red=much"])


def test_columns_may_hold_the_mark_themselves():
    assert split_change("a=b", ()) == ("a", "b")
    assert split_change("a=b=c", ()) == ("a", "b=c")
    assert split_change("a=b=c", {"a=b"}) == ("a=b", "c")
    assert split_change("a=b=c", {"a", "a=b"}) == ("a=b", "c")
    for text in ("a", "=b", " =b"):
        with pytest.raises(ValueError, match="COLUMN=VALUE"):
            split_change(text, ())


def test_new_classes_by_description_are_named():
    world = make_latent_world(random_state=0)
    table = world.embeddings["att"]
    table = ClassEmbeddings(table.names, table.vectors, columns=[f"t{i}" for i in range(8)])
    X, y = world.training()
    model = LatEm(table, n_maps=2, random_state=0).fit(X, y)
    unseen = world.split().test[0]
    same = Description(table, unseen).named("a new name")
    more = model.with_classes(same)
    X_new = world.testing()[0]
    np.testing.assert_array_equal(
        more.decision_function(X_new, ["a new name"]), model.decision_function(X_new, [unseen])
    )
    assert len(more.decision_function(X_new, "unseen")[0]) == len(world.split().test) + 1
    assert "a new name" not in model.class_table_
    assert len(more.class_table_) == len(table) + 1
    assert more.maps_ is model.maps_
    assert "a new name" in clone(more).fit(X, y).class_table_
    search = HeldOutSearch(LatEm(table, n_epochs=2, random_state=0), {"n_maps": [1]}, cv=2)
    search.fit(X, y)
    more = search.with_classes(same)
    for kind in (more, LatEmCV(table, preset="tuned", cv=2).fit(X, y).with_classes(same)):
        assert "a new name" in clone(kind).fit(X, y).class_table_
    named = more.predict(X_new, ["a new name", unseen])
    assert set(named) == {"a new name"}  # the first of equals
    assert "a new name" not in search.class_table_


def test_joining_needs_new_names_and_the_same_columns(traits):
    table = ClassEmbeddings.from_frame(traits)
    turned = ClassEmbeddings(["new"], [[1, 2, 3]], columns=["red", "long beak", "blue"])
    assert join_classes(table, turned)["new"].tolist() == [3, 1, 2]
    with pytest.raises(ValueError, match="describes 'wren' already"):
        join_classes(table, table.select(["wren"]))
    with pytest.raises(ValueError, match="column"):
        join_classes(table, ClassEmbeddings(["new"], [[1, 2]], columns=["red", "blue"]))
