"""Explanations add up to what they explain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latem import (
    ALE,
    ESZSL,
    SJE,
    WSABIE,
    ClassEmbeddings,
    ConSE,
    HeldOutSearch,
    LateFusion,
    LatEm,
    explain_predictions,
    make_latent_world,
)

MODELS = {
    "LatEm": lambda t: LatEm(t, n_maps=3, n_epochs=5, random_state=0, dtype="float64"),
    "SJE of 2015": lambda t: SJE(
        t, n_maps=2, n_epochs=5, normalize_projection=True, random_state=0, dtype="float64"
    ),
    "ALE": lambda t: ALE(t, n_epochs=5, random_state=0, dtype="float64"),
    "WSABIE": lambda t: WSABIE(t, rank=3, n_epochs=5, random_state=0, dtype="float64"),
    "ESZSL": lambda t: ESZSL(t, dtype="float64"),
    "search": lambda t: HeldOutSearch(ESZSL(t, dtype="float64"), {"gamma": [1.0]}, cv=3),
}


@pytest.fixture(scope="module")
def world():
    world = make_latent_world(n_seen=20, n_images=6, random_state=0)
    table = world.embeddings["att"]
    columns = [f"trait {i}" for i in range(8)]
    return world, ClassEmbeddings(table.names, table.vectors, columns=columns)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_contributions_add_up_to_the_lead(world, name):
    dataset, table = world
    model = MODELS[name](table).fit(*dataset.training())
    X = dataset.testing()[0][:20]
    scores = model.decision_function(X, "unseen")
    best = model.top_k(X, 2, classes="unseen")
    for why, row, names in zip(explain_predictions(model, X), scores, best, strict=True):
        ranked = np.sort(row)[::-1]
        assert [why.named, why.runner_up] == names.tolist()
        assert why.contributions.sum() == pytest.approx(why.lead, abs=1e-12)
        assert why.lead == pytest.approx(ranked[0] - ranked[1], abs=1e-9)
        assert why.score == pytest.approx(ranked[0], abs=1e-9)
        assert set(why.contributions.index) == {f"trait {i}" for i in range(8)}
        assert why.contributions.is_monotonic_decreasing


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 999), st.integers(1, 4))
def test_every_term_is_the_formula(seed, n_maps):
    rng = np.random.default_rng(seed)
    table = ClassEmbeddings(["a", "b", "c", "d"], rng.normal(size=(4, 3)), columns=list("xyz"))
    X, y = rng.normal(size=(12, 5)), np.array(["a", "b"] * 6)
    model = LatEm(table, n_maps=n_maps, n_epochs=2, random_state=seed, dtype="float64").fit(X, y)
    x = model.scaler_.transform(X[:1], "float64")[0]
    unit = {n: table[n] / np.linalg.norm(table[n]) for n in table.names}
    why = explain_predictions(model, X[:1], ["c", "d"])[0]
    by_map = {n: [x @ W @ unit[n] for W in model.maps_] for n in ("c", "d")}
    assert why.map == int(np.argmax(by_map[why.named]))
    assert why.runner_up_map == int(np.argmax(by_map[why.runner_up]))
    for i, column in enumerate("xyz"):
        own = (x @ model.maps_[why.map])[i] * unit[why.named][i]
        other = (x @ model.maps_[why.runner_up_map])[i] * unit[why.runner_up][i]
        assert why.contributions[column] == pytest.approx(own - other, abs=1e-12)
    if n_maps == 1:
        assert why.map_lead is None
    else:
        ranked = sorted(by_map[why.named])
        assert why.map_lead == pytest.approx(ranked[-1] - ranked[-2])


def test_why_not_another_class(world):
    dataset, table = world
    model = MODELS["LatEm"](table).fit(*dataset.training())
    X = dataset.testing()[0][:3]
    worst = model.top_k(X, 10, classes="unseen")[:, -1]
    for why, name in zip(explain_predictions(model, X, against=worst), worst, strict=True):
        assert why.runner_up == name
        assert why.contributions.sum() == pytest.approx(why.lead)
    with pytest.raises(ValueError, match="'nobody' is not among the candidates"):
        explain_predictions(model, X[:1], against=["nobody"])
    import pandas as pd

    series = pd.Series(worst, index=[7, 8, 9])
    assert explain_predictions(model, X, against=series)[0].runner_up == worst[0]
    assert f"compared with {worst[0]}" in explain_predictions(model, X, against=series)[0].text()
    with pytest.raises(ValueError, match="at least 1"):
        explain_predictions(model, X)[0].text(0)
    with pytest.raises(ValueError, match="names 1 classes for 3 images"):
        explain_predictions(model, X, against=["nobody"])


def test_text_and_picture(world, tmp_path):
    dataset, table = world
    model = MODELS["LatEm"](table).fit(*dataset.training())
    why = explain_predictions(model, dataset.testing()[0][:1])[0]
    text = why.text(3)
    assert str(why.named) in text
    assert "runner-up" in text
    assert "ahead of the next best map" in text
    assert "the other 5" in text
    shown = [float(line.rsplit(None, 1)[1]) for line in text.splitlines()[2:]]
    assert sum(shown) == pytest.approx(why.lead, rel=0.05, abs=0.01)
    why.plot(tmp_path / "why.png")
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")
    why.plot(tmp_path / "why.svg")
    assert (tmp_path / "why.svg").read_text().count("<path") > 8
    odd = [f"${i} \\frac$ _^" for i in range(8)]  # would be formulas, and wrong ones
    odd_table = ClassEmbeddings(table.names, table.vectors, columns=odd)
    model = MODELS["LatEm"](odd_table).fit(*dataset.training())
    explain_predictions(model, dataset.testing()[0][:1])[0].plot(tmp_path / "odd.png")
    assert (tmp_path / "odd.png").stat().st_size > 1000


def test_what_cannot_be_explained(world):
    dataset, table = world
    X, y = dataset.training()
    fusion = LateFusion([("a", ESZSL(table)), ("b", ESZSL(table, gamma=10))]).fit(X, y)
    with pytest.raises(TypeError, match="LateFusion does not add up its scores"):
        explain_predictions(fusion, X)
    with pytest.raises(TypeError, match="ConSE does not add up its scores"):
        explain_predictions(ConSE(table).fit(X, y), X)
    model = MODELS["ESZSL"](table).fit(X, y)
    with pytest.raises(ValueError, match="at least two candidates"):
        explain_predictions(model, X, [dataset.split().test[0]])
