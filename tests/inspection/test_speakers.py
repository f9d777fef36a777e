"""What speaks for a model, and explanations by it."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from latem import (
    ESZSL,
    EXEM,
    SJE,
    ClassEmbeddings,
    Committee,
    CommitteeCV,
    ConSE,
    HeldOutSearch,
    LateFusion,
    LatEm,
    explain_predictions,
    make_latent_world,
)
from latem.inspection.class_displays import TrainingCurveDisplay, has_training_curve
from latem.inspection.galleries import kinds_for
from latem.inspection.maps import map_profiles, top_images
from latem.inspection.speakers import (
    bilinear_maps,
    by_likeness,
    by_maps,
    explained_models,
    explains,
    inner_model,
    projected_images,
    speaker,
)
from latem.inspection.traits import has_trait_names, trait_scores
from latem.models.registry import MODELS as MODEL_ROWS

KERNEL = {"class_kernel": 0.7, "center_classes": True, "balance_classes": True}
QUICK = {"n_epochs": 3, "random_state": 0}
MODELS = {
    "kernel": lambda t: ESZSL(t, **KERNEL),
    "1NN": lambda t: EXEM(t, neighbour="1NN"),
    "1NNs": lambda t: EXEM(t, neighbour="1NNs"),
    "whitened": lambda t: EXEM(t, neighbour="whitened", center_classes=True),
    "committee": lambda t: Committee(t, random_state=0),
    "search": lambda t: CommitteeCV(t, cv=2, random_state=0),
}


@pytest.fixture(scope="module")
def world():
    world = make_latent_world(n_poses=1, n_seen=12, n_images=5, noise=0.5, random_state=0)
    table = world.embeddings["att"]
    columns = [f"look::trait {i}" if i < 4 else f"trait {i}" for i in range(8)]
    return world, ClassEmbeddings(table.names, table.vectors, columns=columns)


@pytest.fixture(scope="module")
def committee(world):
    dataset, table = world
    return MODELS["committee"](table).fit(*dataset.training())


@pytest.fixture(scope="module")
def without_maps(world):
    dataset, table = world
    members = [("kernel", ESZSL(**KERNEL)), ("exemplars", EXEM())]
    return Committee(table, members).fit(*dataset.training())


# -- explanations ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(MODELS))
def test_contributions_add_up_to_the_lead(world, name):
    dataset, table = world
    model = MODELS[name](table).set_params(dtype="float64").fit(*dataset.training())
    X = dataset.testing()[0][:8]
    scores = model.decision_function(X, "unseen")
    best = model.top_k(X, 2, classes="unseen")
    seen = {f"like {one}" for one in model.classes_}
    shared = {"(what the seen classes share)"}
    columns = {
        "kernel": seen,
        "committee": seen | shared | set(table.columns),
        "search": seen | shared | set(table.columns),
    }.get(name, seen | shared)
    for why, row, names in zip(explain_predictions(model, X), scores, best, strict=True):
        ranked = np.sort(row)[::-1]
        size = np.abs(row).max()
        assert [why.named, why.runner_up] == names.tolist()
        assert why.contributions.sum() == pytest.approx(why.lead, abs=1e-10 * size)
        assert why.lead == pytest.approx(ranked[0] - ranked[1], abs=1e-8 * size)
        assert why.score == pytest.approx(ranked[0], abs=1e-8 * size)
        assert why.runner_up_score == pytest.approx(ranked[1], abs=1e-8 * size)
        assert set(why.contributions.index) == columns
        assert why.map_lead is None
        assert sum(f.contribution for f in why.families) == pytest.approx(why.lead, abs=1e-9 * size)


def test_why_not_another_class_and_a_penalty(world, committee):
    dataset, _ = world
    X = dataset.testing()[0][:4]
    worst = committee.top_k(X, 5, classes="all")[:, -1]
    found = explain_predictions(committee, X, "all", against=worst, seen_penalty=0.5)
    scores = committee.decision_function(X, "all").astype(float)
    names = committee.candidate_names("all")
    scores -= 0.5 * np.isin(names, committee.classes_)
    for why, row, other in zip(found, scores, worst, strict=True):
        assert why.named == names[row.argmax()]
        assert why.score == pytest.approx(row.max(), abs=1e-4)
        if other != why.named:
            assert why.runner_up == other
            assert why.lead == pytest.approx(row.max() - row[list(names).index(other)], abs=1e-4)
        assert why.contributions.sum() == pytest.approx(why.lead, abs=1e-9)


def test_traits_of_a_committee_are_gathered_in_families(world, committee):
    why = explain_predictions(committee, world[0].testing()[0][:1])[0]
    families = {family.name: family for family in why.families}
    assert set(families["look"].members.index) == {f"look::trait {i}" for i in range(4)}
    like = families["likeness to seen classes"].members.index
    assert {f"like {name}" for name in committee.classes_} <= set(like)
    text = why.text(30)
    assert "like class" in text
    assert "look" in text


def test_classes_that_were_added_are_explained(world, committee):
    dataset, table = world
    new = ClassEmbeddings(["new", "newer"], table.vectors[:2] * 0.9 + 0.1, columns=table.columns)
    more = committee.with_classes(new)
    X = dataset.testing()[0][:2]
    for one, classes in ((committee, new), (more, ["new", "newer"])):
        why = explain_predictions(one, X, classes)[0]
        row = one.decision_function(X[:1], classes)[0]
        assert {why.named, why.runner_up} == {"new", "newer"}
        assert why.lead == pytest.approx(abs(float(row[0]) - float(row[1])), abs=1e-4)
    assert trait_scores(more, X, ["new", "newer"]).shape == (2, 8)


# -- who speaks -----------------------------------------------------------------------------------


def test_the_model_that_a_search_has_chosen_speaks(world):
    dataset, table = world
    X, y = dataset.training()
    ours = HeldOutSearch(ESZSL(table), {"gamma": [1.0]}, cv=3).fit(X, y)
    theirs = GridSearchCV(ESZSL(table), {"gamma": [1.0]}, cv=GroupKFold(3)).fit(X, y, groups=y)
    for search in (ours, theirs):
        assert inner_model(search, "ask") is search.best_estimator_
        assert by_maps(search, "ask") is search.best_estimator_
    model = ESZSL(table).fit(X, y)
    assert inner_model(model, "ask") is model
    with pytest.raises(Exception, match="not fitted"):
        inner_model(ESZSL(table), "ask")
    with pytest.raises(TypeError, match="ask takes a model of latem, not LogisticRegression"):
        inner_model(LogisticRegression(), "ask")
    with pytest.raises(TypeError, match="ask takes a model of latem, not Pipeline: give the model"):
        inner_model(make_pipeline(StandardScaler(), ESZSL(table)).fit(X, y), "ask")


def test_the_first_member_with_maps_over_traits_speaks_for_a_committee(
    world, committee, without_maps
):
    dataset, table = world
    assert by_maps(committee, "ask") is committee.member("ranking")
    assert by_maps(without_maps, "ask") is without_maps
    members = [("kernel", ESZSL(**KERNEL)), ("closed", ESZSL()), ("ranked", SJE(**QUICK))]
    several = Committee(table, members).fit(*dataset.training())
    assert by_maps(several, "ask") is several.member("closed")
    search = CommitteeCV(table, cv=2, random_state=0).fit(*dataset.training())
    assert by_maps(search, "ask") is search.best_estimator_.member("ranking")


def test_displays_and_galleries_of_a_committee_are_its_rankings(world, committee, without_maps):
    dataset, _ = world
    X = dataset.testing()[0]
    member = committee.member("ranking")
    assert has_training_curve(committee)
    assert TrainingCurveDisplay.from_estimator(committee).history == member.history_
    assert has_trait_names(committee)
    assert trait_scores(committee, X).equals(trait_scores(member, X))
    assert kinds_for(committee) == kinds_for(member)
    for one, other in zip(map_profiles(committee, X), map_profiles(member, X), strict=True):
        assert repr(one) == repr(other)
    assert top_images(committee, X, n=2) == top_images(member, X, n=2)
    assert not has_training_curve(without_maps)
    assert kinds_for(without_maps) == ["class"]
    with pytest.raises(TypeError, match="Committee was not learned in epochs"):
        TrainingCurveDisplay.from_estimator(without_maps)
    with pytest.raises(TypeError, match="Committee does not add up its scores over the dimensions"):
        trait_scores(without_maps, X)
    with pytest.raises(TypeError, match="Only models with maps have images per map, not Committee"):
        top_images(without_maps, X)


def test_maps_are_three_dimensional_and_exact(world):
    dataset, table = world
    X, y = dataset.training()
    for model, n_maps in ((ESZSL(table), 1), (LatEm(table, n_maps=2, **QUICK), 2)):
        maps = bilinear_maps(model.fit(X, y))
        assert maps.shape == (n_maps, X.shape[1], 8)
        assert maps.dtype == np.float64
    with pytest.raises(TypeError, match="EXEM does not add up.*; LatEm, SJE, .* do"):
        bilinear_maps(EXEM(table).fit(X, y))


def test_projected_images_have_length_one_where_directions_count(world):
    dataset, table = world
    X, y = dataset.training()
    for by_direction in (False, True):
        model = SJE(table, n_maps=2, normalize_projection=by_direction, **QUICK).fit(X, y)
        maps = bilinear_maps(model)
        found = projected_images(model, X[0].astype(float), maps)
        plain = np.array([X[0].astype(float) @ W for W in maps])
        lengths = np.linalg.norm(plain, axis=1, keepdims=True) if by_direction else 1
        np.testing.assert_allclose(found, plain / lengths)


def test_who_knows_classes_by_likeness(world):
    dataset, table = world
    X, y = dataset.training()
    assert by_likeness(ESZSL(table, class_kernel=1.0).fit(X, y))
    assert not by_likeness(ESZSL(table).fit(X, y))


def test_who_can_be_explained(world, committee):
    dataset, table = world
    X, y = dataset.training()
    explained = explained_models().split(", ")
    names = {row.name for row in MODEL_ROWS}
    assert [name for name in explained if name in names] == [
        "LatEm", "SJE", "ALE", "DeViSE", "WSABIE", "ESZSL", "ESZSLCV", "EXEM", "Committee",
    ]  # fmt: skip
    for row in MODEL_ROWS:
        assert explains(row.load()([])) == (row.name in explained), row.name
    for model in (
        ConSE(table).fit(X, y),
        LateFusion([("a", ESZSL(table)), ("b", EXEM(table))]).fit(X, y),
    ):
        assert not explains(model)
        name = type(model).__name__
        with pytest.raises(TypeError, match=f"{name} does not add up.*explanations are for LatEm"):
            speaker(model)
    found = speaker(committee)(
        committee.scaler_.transform(X[:1], np.float64)[0], committee.class_view_.candidates()
    )
    np.testing.assert_allclose(
        found.terms.sum(axis=1), committee.decision_function(X[:1], "seen")[0], atol=1e-4
    )
