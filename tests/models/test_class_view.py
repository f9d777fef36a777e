"""What a class looks like to a model: the definition, what is kept, and what is refused."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_suite import EVERY, make

from latem import ESZSL, ClassEmbeddings, LatEm, make_latent_world
from latem.models.class_view import ClassView, is_class_table, meant_names

NAMES = ["ant", "bee", "cat", "dog", "eel"]


def table_of(seed=0, width=4):
    vectors = np.random.default_rng(seed).normal(size=(5, width))
    return ClassEmbeddings(NAMES, vectors, columns=[f"trait {i}" for i in range(width)])


def view_of(**how):
    return ClassView(table_of(), np.array(["bee", "dog", "ant"]), **how)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 999), st.booleans(), st.booleans(), st.booleans(), st.sampled_from("fd"))
def test_vectors_are_their_definition(seed, normalise, centre, balance, kind):
    table, seen = table_of(seed), np.array(["bee", "dog", "ant"])
    dtype = {"f": "float32", "d": "float64"}[kind]
    root = np.random.default_rng(seed + 1).normal(size=(6, 4))
    M = root.T @ root
    view = ClassView(table, seen, normalise=normalise, dtype=dtype)
    view = view.centred() if centre else view
    view = view.balanced(M) if balance else view
    expected = table.vectors.copy()
    if centre:
        expected -= table.select(seen).vectors.mean(axis=0)
    if normalise:
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    rows = [NAMES.index(name) for name in seen]
    np.testing.assert_allclose(view.training(), expected[rows], rtol=1e-5, atol=1e-6)
    assert view.training().dtype == dtype
    if balance:
        expected /= np.sqrt(np.einsum("ij,jk,ik->i", expected, M, expected))[:, None]
    found = view.candidates("all")
    np.testing.assert_allclose(found.vectors, expected, rtol=1e-4, atol=1e-5)
    assert found.names.tolist() == NAMES


def test_the_vocabulary():
    view = view_of()
    for classes, names in (
        (None, ["bee", "dog", "ant"]),
        ("seen", ["bee", "dog", "ant"]),
        ("unseen", ["cat", "eel"]),
        ("all", NAMES),
        (["eel", "ant"], ["eel", "ant"]),
        (("eel", "ant"), ["eel", "ant"]),
        (np.array(["eel", "ant"]), ["eel", "ant"]),
        (iter(["eel", "ant"]), ["eel", "ant"]),
        (pd.DataFrame(np.ones((1, 4)), ["fly"], [f"trait {i}" for i in range(4)]), ["fly"]),
        ({"fly": [1, 2, 3, 4]}, ["fly"]),
        ((["fly"], np.ones((1, 4))), ["fly"]),
    ):
        assert view.candidates(classes).names.tolist() == names


def test_candidates_know_how_they_were_described():
    table = ClassEmbeddings(["a", "b", "c"], [[1.0, 0], [0, 2.0], [3.0, 4.0]], columns=["x", "y"])
    view = ClassView(table, np.array(["a", "b"])).centred()
    chosen = view.candidates(["c", "a"])
    assert chosen.table.names.tolist() == ["c", "a"]
    np.testing.assert_array_equal(chosen.table.vectors, [[3, 4], [1, 0]])
    assert view.candidates().table.names.tolist() == ["a", "b"]
    turned = ClassEmbeddings(["new"], [[7.0, 5.0]], columns=["y", "x"])
    np.testing.assert_array_equal(view.candidates(turned).table.vectors, [[5, 7]])
    again = view.candidates(chosen.table)
    np.testing.assert_array_equal(again.vectors, chosen.vectors)


def test_candidates_are_kept_for_the_next_call():
    view = view_of()
    new = table_of(3)
    for classes in (None, "unseen", "all", ["ant", "eel"], np.array(["cat", "bee"]), new):
        first = view.candidates(classes)
        again = list(classes) if isinstance(classes, list) else classes
        assert view.candidates(again) is first
    assert view.candidates(["ant", "eel"]) is not view.candidates(["eel", "ant"])


def test_what_may_have_changed_is_read_again(tmp_path):
    view = view_of()
    frame = pd.DataFrame(np.ones((1, 4)), ["fly"], [f"trait {i}" for i in range(4)])
    before = view.candidates(frame).vectors
    frame.iloc[0, 0] = 9
    assert not np.array_equal(view.candidates(frame).vectors, before)
    names = ["ant", "eel"]
    first = view.candidates(names)
    names.reverse()
    assert view.candidates(names).names.tolist() == ["eel", "ant"]
    assert first.names.tolist() == ["ant", "eel"]
    path = tmp_path / "new.csv"
    table_of(1).select(["ant"]).to_frame().to_csv(path)
    before = view.candidates(path).vectors
    table_of(2).select(["ant"]).to_frame().to_csv(path)
    assert not np.array_equal(view.candidates(path).vectors, before)


def test_only_a_few_are_kept_and_none_is_pickled():
    view = view_of()
    first = view.candidates(["ant"])
    for name in NAMES[1:]:
        view.candidates([name])
    assert view.candidates(["ant"]) is not first
    again = pickle.loads(pickle.dumps(view))
    assert len(pickle.dumps(view)) == len(pickle.dumps(again))
    np.testing.assert_array_equal(again.candidates("all").vectors, view.candidates("all").vectors)


def test_a_trained_model_answers_by_what_it_has_learned_last():
    """Scorers are kept between calls, but never beyond a training."""
    world = make_latent_world(n_poses=1, n_images=6, random_state=0)
    X, y = world.training()
    model = LatEm(world.embeddings["att"], n_epochs=2, warm_start=True, random_state=0).fit(X, y)
    model.decision_function(X, "unseen")
    model.fit(X, y)
    fresh = pickle.loads(pickle.dumps(model)).decision_function(X, "unseen")
    np.testing.assert_array_equal(model.decision_function(X, "unseen"), fresh)
    model.partial_fit(X[:9], y[:9])
    fresh = pickle.loads(pickle.dumps(model)).decision_function(X, "unseen")
    np.testing.assert_array_equal(model.decision_function(X, "unseen"), fresh)
    with pytest.raises(ValueError, match="read-only"):
        model.maps_ *= 2


def test_a_fitted_model_keeps_nothing_that_only_its_training_needed():
    world = make_latent_world(n_poses=1, n_images=6, random_state=0)
    X, y = world.training()
    wide = np.concatenate([X, np.random.default_rng(0).normal(size=(len(X), 400))], axis=1)
    model = LatEm(
        world.embeddings["att"], n_maps=1, n_epochs=1, start="eszsl", balance_classes=True,
        average=True, n_rivals=5, random_state=0,
    ).fit(wide, y)  # fmt: skip
    assert len(pickle.dumps(model)) < 0.2 * 8 * wide.shape[1] ** 2
    assert [name for name in vars(model) if name.startswith("_")] == []


@pytest.mark.parametrize(
    ("classes", "error", "message"),
    [
        ("ant", ValueError, r"for a single class write \['ant'\]"),
        ([], ValueError, "classes is empty"),
        (["ant", "ant"], ValueError, "'ant' more than once"),
        (["owl"], ValueError, "no rows for 'owl'"),
        (3, TypeError, "not 3"),
    ],
)
def test_bad_candidates(classes, error, message):
    with pytest.raises(error, match=message):
        view_of().candidates(classes)


def test_names_without_a_table():
    assert meant_names("unseen", ["a"], ["a", "b"]) == ["b"]
    with pytest.raises(ValueError, match="There are no unseen classes"):
        meant_names("unseen", ["a"], ["a"])
    assert is_class_table("new.CSV")
    assert not is_class_table(("a", "b"))


def flies(*names, seed=5):
    vectors = np.random.default_rng(seed).normal(size=(len(names), 4))
    return ClassEmbeddings(names, vectors, columns=[f"trait {i}" for i in range(4)])


def test_a_list_may_mix_groups_names_and_tables(tmp_path):
    view, new = view_of(dtype="float64"), flies("fly", "gnat")
    path = tmp_path / "new.csv"
    new.to_frame().to_csv(path)
    both = ["cat", "eel", "fly", "gnat"]
    frame = new.to_frame()
    for classes, names in (
        (["unseen", "ant"], ["cat", "eel", "ant"]),
        (["ant", "unseen"], ["ant", "cat", "eel"]),
        (["unseen", "eel"], ["cat", "eel"]),
        (["seen", "unseen"], ["bee", "dog", "ant", "cat", "eel"]),
        (["all", "seen"], NAMES),
        (np.array(["unseen", "ant"]), ["cat", "eel", "ant"]),
        (("unseen", new), both),
        (["unseen", new], both),
        (iter(["unseen", new]), both),
        (("unseen", frame), both),
        (("unseen", path), both),
        (["unseen", str(path)], both),
        ([path, "unseen"], ["fly", "gnat", "cat", "eel"]),
        (["ant", dict(zip(new.names.tolist(), new.vectors, strict=True))], ["ant", "fly", "gnat"]),
        ([(["fly", "gnat"], new.vectors), "eel"], ["fly", "gnat", "eel"]),
        ((frame, flies("moth")), ["fly", "gnat", "moth"]),
        ([new], ["fly", "gnat"]),
        ([new, "eel", frame, path, new.select(["gnat"])], ["fly", "gnat", "eel"]),
        ([table_of().select(["ant", "cat"]), "unseen"], ["ant", "cat", "eel"]),
    ):
        found = view.candidates(classes)
        assert found.names.tolist() == names
        for name, vector in zip(names, found.vectors, strict=True):
            alone = view.candidates([name] if name in NAMES else new if name != "moth" else
                                    flies("moth"))  # fmt: skip
            expected = alone.vectors[alone.names.tolist().index(name)]
            np.testing.assert_allclose(vector, expected, rtol=1e-12)


def test_names_of_the_table_win():
    names = ["unseen", "new.csv", "cat"]
    table = ClassEmbeddings(names, np.eye(3))
    view = ClassView(table, np.array(["cat"]))
    assert view.candidates(["unseen", "cat"]).names.tolist() == ["unseen", "cat"]
    assert view.candidates(["new.csv", "seen"]).names.tolist() == ["new.csv", "cat"]
    assert view.candidates("unseen").names.tolist() == ["unseen", "new.csv"]
    assert view.candidates(["new.csv", {"dog": [1, 2, 3]}]).names.tolist() == ["new.csv", "dog"]


@pytest.mark.parametrize(
    ("classes", "error", "message"),
    [
        (["unseen", flies("ant")], ValueError, "describes 'ant' otherwise than the model does"),
        ([flies("fly"), flies("fly", seed=6)], ValueError, "'fly' otherwise than another one"),
        (["cat", "cat", flies("fly")], ValueError, "'cat' more than once"),
        (["owl", flies("fly")], ValueError, "no rows for 'owl'"),
        (["unseen", "owl"], ValueError, "no rows for 'owl'"),
        (["unseen", "no such.csv"], FileNotFoundError, "no class table 'no such.csv'"),
        (["unseen", ["ant"]], TypeError, "not a list"),
        (["unseen", np.array(["ant"])], TypeError, "not a ndarray"),
        (["unseen", {"fly": [1, 2]}], ValueError, "2 columns"),
    ],
)
def test_bad_mixtures(classes, error, message):
    with pytest.raises(error, match=message):
        view_of().candidates(classes)


def test_mixtures_are_kept_unless_a_part_may_change(tmp_path):
    view, new = view_of(), flies("fly")
    first = view.candidates(["unseen", new])
    assert view.candidates(["unseen", new]) is first
    assert view.candidates(("unseen", new)) is first
    assert view.candidates(["unseen", "ant"]) is view.candidates(["unseen", "ant"])
    assert view.candidates(["unseen", flies("fly", seed=6)]) is not first
    frame = new.to_frame()
    before = view.candidates(["unseen", frame]).vectors
    assert np.array_equal(view.candidates(["unseen", frame]).vectors, before)
    frame.iloc[0, 0] += 9
    assert not np.array_equal(view.candidates(["unseen", frame]).vectors, before)
    path = tmp_path / "new.csv"
    new.to_frame().to_csv(path)
    for part in (path, str(path)):
        before = view.candidates(["unseen", part]).vectors
        flies("fly", seed=7).to_frame().to_csv(path)
        assert not np.array_equal(view.candidates(["unseen", part]).vectors, before)
        new.to_frame().to_csv(path)


@pytest.mark.parametrize("name", EVERY)
def test_every_model_takes_mixtures(name):
    world = make_latent_world(n_poses=1, n_seen=12, n_images=6, random_state=0)
    table = world.embeddings["att"]
    table = ClassEmbeddings(table.names, table.vectors - table.vectors.min())  # traits
    unseen, seen = world.split().test, world.split().train[0]
    X_new = world.testing()[0]
    model = make(name, table).fit(*world.training())
    expected = model.decision_function(X_new, [*unseen, seen])
    found = model.decision_function(X_new, ["unseen", seen, unseen[1]])
    np.testing.assert_array_equal(found, expected)
    new = ClassEmbeddings(["new"], table[unseen[0]][None])
    if name == "LateFusion":
        for classes in (new, ["unseen", new], ("unseen", new.to_frame()), iter([new])):
            with pytest.raises(TypeError, match="fuse those with LateFusion"):
                model.predict(X_new, classes)
        return
    mixed = model.decision_function(X_new, [unseen[1], new, "seen"])
    names = model.candidate_names([unseen[1], new, "seen"]).tolist()
    assert names == [unseen[1], "new", *model.classes_.tolist()]
    same = model.decision_function(X_new, [unseen[1], unseen[0], *model.classes_.tolist()])
    np.testing.assert_array_equal(mixed, same)


@pytest.mark.parametrize("size", [1e60, 1e150])
def test_vectors_that_no_number_can_hold_are_refused(size):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 4)), np.arange(20) % 4
    table = (range(4), size * rng.normal(size=(4, 3)))
    with pytest.raises(ValueError, match=r"too large for float32.*normalize_classes=True"):
        ESZSL(table, normalize_classes=False).fit(X, y)
    ESZSL(table, normalize_classes=True).fit(X, y).predict(X)
