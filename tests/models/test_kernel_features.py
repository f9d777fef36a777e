"""A kernel on the class side: its features, and models that use it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import latem
from latem import ESZSL, LatEm, LatEmCV, explain_predictions, make_latent_world, map_profiles
from latem.core.arrays import unit_rows
from latem.inspection import trait_scores
from latem.models.kernel_features import ClassKernel


@given(st.integers(2, 8), st.floats(0.2, 3), st.integers(0, 99))
def test_features_of_seen_classes_have_the_kernel_as_products(n, width, seed):
    vectors = unit_rows(np.random.default_rng(seed).normal(size=(n, 4)))
    kernel = ClassKernel.of(vectors, width)
    plain = np.array(
        [[np.exp(-((a - b) ** 2).sum() / (2 * width**2)) for b in vectors] for a in vectors]
    )
    np.testing.assert_allclose(kernel.similarities(vectors), plain, atol=1e-9)  # ten digits
    features = kernel(vectors)
    np.testing.assert_allclose(features @ features.T, plain, atol=1e-6)


def test_classes_that_are_described_alike():
    vectors = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    kernel = ClassKernel.of(vectors, 0.5)
    assert kernel.whitener.shape == (3, 2)
    assert np.isfinite(kernel(vectors)).all()


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_seen=24, n_unseen=6, n_images=10, random_state=0)


MODELS = {
    "ESZSL": lambda table: ESZSL(table, class_kernel=0.7),
    "balanced": lambda table: ESZSL(table, class_kernel=0.7, balance_classes=True),
    "LatEm": lambda table: LatEm(
        table, class_kernel=1.0, n_maps=2, n_epochs=10, learning_rate=0.1, random_state=0
    ),
    "tuned": lambda table: LatEm(
        table, class_kernel=1.0, n_epochs=2, random_state=0, **LatEmCV.tuned
    ),
}


@pytest.mark.parametrize("kind", MODELS)
def test_scores_are_those_of_a_table_of_features(world, kind, tmp_path):
    """By hand: the kernel's features as the class table of a plain model, not centred again."""
    table = world.embeddings["att"]
    model = MODELS[kind](table).fit(*world.training())
    X, y = world.testing()
    assert model.score(X, y) > 0.8
    seen = table.select(model.classes_).vectors
    centre = seen.mean(axis=0) if model.center_classes else 0
    kernel = ClassKernel.of(unit_rows(seen - centre), model.class_kernel)
    features = kernel(unit_rows(table.vectors - centre))
    by_hand = type(model)((table.names, features), **{
        name: value for name, value in model.get_params(deep=False).items()
        if name not in ("class_embeddings", "class_kernel", "center_classes")
    }).fit(*world.training())  # fmt: skip
    np.testing.assert_allclose(
        model.decision_function(X, "all"), by_hand.decision_function(X, "all"), rtol=2e-3, atol=2e-3
    )
    model.save(tmp_path / "m.safetensors")
    again = latem.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(
        again.decision_function(X, "all"), model.decision_function(X, "all")
    )


@pytest.mark.parametrize("kind", MODELS)
def test_a_class_added_later_goes_through_the_same_features(world, kind):
    table = world.embeddings["att"]
    few = table.select([*world.split().train, *world.split().val, *world.split().test[:3]])
    late = table.select(list(world.split().test[3:]))
    X, _ = world.testing()
    names = list(world.split().test)
    early = MODELS[kind](table).fit(*world.training())
    added = MODELS[kind](few).fit(*world.training()).with_classes(late)
    np.testing.assert_allclose(
        added.decision_function(X, names), early.decision_function(X, names), rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(
        early.decision_function(X, late), early.decision_function(X, late.names.tolist())
    )


@pytest.mark.parametrize("kind", MODELS)
def test_explanations_speak_by_similar_classes(world, kind):
    model = MODELS[kind](world.embeddings["att"]).fit(*world.training())
    X, _ = world.testing()
    for why in explain_predictions(model, X[:5]):
        assert why.contributions.index[0].startswith("like ")
        assert len(why.contributions) == len(model.classes_)
        assert why.contributions.sum() == pytest.approx(why.lead, abs=1e-4)
        row = X[: len(X)][:1]
        assert np.isfinite(model.decision_function(row, [why.named])).all()
    scores = model.class_scores(X[:1], "unseen")[0]
    best = explain_predictions(model, X[:1])[0]
    assert best.score == pytest.approx(float(scores.max()), rel=1e-3, abs=1e-3)
    with pytest.raises(TypeError, match="as like others, not by single traits"):
        trait_scores(model, X[:1])


def test_profiles_of_maps(world):
    model = MODELS["LatEm"](world.embeddings["att"]).fit(*world.training())
    profile = map_profiles(model, world.testing()[0])[0]
    assert profile.attributes.index[0].startswith("like ")


def test_the_width_is_chosen_on_held_out_classes(world):
    table, val = world.embeddings["att"], list(world.split().val)
    search = LatEmCV(table, class_kernel=(None, 0.05, 1.0), cv=val, random_state=0)
    search.fit(*world.training())
    assert search.best_params_["class_kernel"] in (None, 1.0)  # 0.05 knows no likeness at all
    alone = LatEmCV(table, class_kernel=(1.0,), cv=val, random_state=0).fit(*world.training())
    assert alone.best_estimator_.class_kernel == 1.0
    plain = LatEmCV(table, cv=val, random_state=0).fit(*world.training())
    assert "class_kernel" not in plain.best_params_
    paper = LatEmCV(
        table, preset="paper", class_kernel=(None, 1.0), n_maps=(1,), learning_rate=(0.1,),
        n_epochs=2, cv=val, random_state=0,
    ).fit(*world.training())  # fmt: skip
    assert len(paper.cv_results_["params"]) == 2


def test_widths_that_cannot_be(world):
    for width in (0, -1, "wide"):
        with pytest.raises(ValueError, match="class_kernel"):
            ESZSL(world.embeddings["att"], class_kernel=width).fit(*world.training())
