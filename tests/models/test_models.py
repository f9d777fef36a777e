"""The contract that every model keeps, on a synthetic world and on real drawings."""

import numpy as np
import pytest
from model_suite import EVERY, emoji_problem, make, set_threads, with_table, world_problem
from sklearn.base import clone

import latem
from latem import ClassEmbeddings


@pytest.fixture(scope="module", params=["world", "emoji"])
def problem(request):
    return world_problem() if request.param == "world" else emoji_problem()


@pytest.fixture(params=EVERY)
def model(request, problem):
    return make(request.param, problem[2])


def test_order_of_the_classes_does_not_matter(model, problem):
    X, y, table, X_new = problem
    order = np.random.default_rng(1).permutation(len(table.names))
    other = ClassEmbeddings(table.names[order], table.vectors[order], columns=table.columns)
    names = list(table.names)
    expected = clone(model).fit(X, y)
    turned = with_table(model, other).fit(X, y)
    np.testing.assert_array_equal(
        turned.decision_function(X_new, names), expected.decision_function(X_new, names)
    )
    assert (turned.predict(X_new, names) == expected.predict(X_new, names)).all()


def turn_start(monkeypatch, columns):
    """Let random starts follow their columns, so that only the order of columns differs."""
    from latem.models import cmt, ranking, wsabie

    maps = ranking.RankingModel._initial_maps
    monkeypatch.setattr(
        ranking.RankingModel, "_initial_maps",
        lambda self, shape: np.ascontiguousarray(maps(self, shape)[:, :, columns]),
    )  # fmt: skip
    both = wsabie.WSABIE._initial_maps

    def turned(self, *sizes):
        U, V = both(self, *sizes)
        return U, np.ascontiguousarray(V[:, columns])

    monkeypatch.setattr(wsabie.WSABIE, "_initial_maps", turned)
    start = cmt.CMT._start

    def turned_start(self, network, *rest):
        weights = start(self, network, *rest)
        output_map = network.parts(weights)[2]
        output_map[...] = output_map[:, columns]
        return weights

    monkeypatch.setattr(cmt.CMT, "_start", turned_start)


def test_order_of_the_columns_does_not_matter(model, problem, monkeypatch):
    X, y, table, X_new = problem
    columns = np.random.default_rng(1).permutation(table.n_dimensions)
    named = None if table.columns is None else np.asarray(table.columns)[columns].tolist()
    other = ClassEmbeddings(table.names, table.vectors[:, columns], columns=named)
    expected = clone(model).fit(X, y)
    with monkeypatch.context() as patch:
        turn_start(patch, columns)
        turned = with_table(model, other).fit(X, y)
    names = list(table.names)
    np.testing.assert_allclose(
        turned.decision_function(X_new, names), expected.decision_function(X_new, names), atol=1e-4
    )
    assert (turned.predict(X_new, names) == expected.predict(X_new, names)).all()


def test_an_irrelevant_class_changes_no_other_score(model, problem):
    X, y, table, X_new = problem
    more = np.vstack([table.vectors, table.vectors.mean(axis=0) * 1.5 + 0.1])
    names = list(table.names)
    other = ClassEmbeddings([*names, "something else"], more, columns=table.columns)
    expected = clone(model).fit(X, y).decision_function(X_new, names)
    extended = with_table(model, other).fit(X, y)
    np.testing.assert_array_equal(extended.decision_function(X_new, names), expected)
    both = extended.decision_function(X_new, [*names, "something else"])
    np.testing.assert_allclose(both[:, :-1], expected, atol=1e-9)


def test_saving_and_loading_changes_nothing(model, problem, tmp_path):
    X, y, _, X_new = problem
    model = clone(model).fit(X, y)
    model.save(tmp_path / "m.safetensors")
    again = latem.load(tmp_path / "m.safetensors")
    assert type(again) is type(model)
    for classes in ("all", "unseen", "seen", None):
        np.testing.assert_array_equal(
            again.decision_function(X_new, classes), model.decision_function(X_new, classes)
        )
    theirs, ours = again.get_params(), model.get_params()
    for name, value in ours.items():
        if isinstance(value, str | int | float | tuple | list | None) and name != "members":
            assert np.array_equal(theirs[name], value), name


def test_new_classes_by_a_new_table(model, problem):
    X, y, table, X_new = problem
    model = clone(model).fit(X, y)
    unseen = [name for name in table.names if name not in set(y)]
    part = table.select(unseen[:4])
    new = ClassEmbeddings([f"new {name}" for name in part.names], part.vectors, name=table.name,
                          columns=table.columns)  # fmt: skip
    if isinstance(model, latem.LateFusion):  # its members may describe classes differently
        with pytest.raises(TypeError, match="different tables"):
            model.decision_function(X_new, new)
        return
    np.testing.assert_array_equal(
        model.decision_function(X_new, new), model.decision_function(X_new, unseen[:4])
    )
    best = model.top_k(X_new, 2, classes=new)
    assert best.shape == (len(X_new), 2)
    assert all(str(name).startswith("new ") for name in best.ravel())


def test_same_bytes_again_and_with_any_number_of_threads(model, problem):
    X, y, _, X_new = problem
    results = [
        set_threads(clone(model), n).fit(X, y).decision_function(X_new, "all") for n in (1, 3, None)
    ]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_fitting_leaves_parameters_and_data_alone(model, problem):
    X, y, table, _ = problem
    before = X.copy(), y.copy(), table.vectors.copy()
    model = clone(model)
    params = {k: v for k, v in model.get_params().items() if k != "class_embeddings"}
    model.fit(X, y)
    assert {k: v for k, v in model.get_params().items() if k != "class_embeddings"} == params
    for then, now in zip(before, (X, y, table.vectors), strict=True):
        np.testing.assert_array_equal(then, now)
