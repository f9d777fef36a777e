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
from latem.embeddings.describe import join_classes


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
    with pytest.raises(ValueError, match="describes \\['wren'\\] already"):
        join_classes(table, table.select(["wren"]))
    with pytest.raises(ValueError, match="column"):
        join_classes(table, ClassEmbeddings(["new"], [[1, 2]], columns=["red", "blue"]))
