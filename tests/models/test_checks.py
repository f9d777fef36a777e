"""What takes a model says the same of whatever is none, and what to do instead."""

import pytest
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from latem import (
    ESZSL,
    HeldOutSearch,
    LateFusion,
    LatEm,
    evaluate,
    explain_predictions,
    make_latent_world,
    map_overlap,
    map_profiles,
    top_images,
)
from latem.inspection.galleries import galleries_of
from latem.models.checks import check_is_model
from latem.workflows.name_pictures import name_pictures

WORLD = make_latent_world(n_poses=1, n_images=6, random_state=0)
X, Y = WORLD.training()
USERS = {
    "evaluate": lambda model: evaluate(model, WORLD),
    "HeldOutSearch": lambda model: HeldOutSearch(model, {"gamma": [1.0]}).fit(X, Y),
    "LateFusion": lambda model: LateFusion([("a", model)]).fit(X, Y),
    "explain_predictions": lambda model: explain_predictions(model, X),
    "top_images": lambda model: top_images(model, X),
    "map_profiles": lambda model: map_profiles(model, X),
    "map_overlap": map_overlap,
    "galleries_of": lambda model: galleries_of(model, WORLD),
    "name_pictures": lambda model: name_pictures(model, []),
}
SENTENCE = (
    "{} takes a model of latem, not Pipeline: give the model itself, which scales features by its "
    "parameter feature_scaling, and do any other step to the dataset's features beforehand."
)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("fitted", [False, True])
def test_a_pipeline_is_refused_in_one_sentence(user, fitted):
    pipeline = make_pipeline(StandardScaler(), LatEm(WORLD.embeddings["att"], n_epochs=1))
    if fitted:
        pipeline.fit(X, Y)
    with pytest.raises(TypeError) as told:
        USERS[user](pipeline)
    assert str(told.value) == SENTENCE.format(user)


def test_fitted_members_of_a_fusion_too():
    pipeline = make_pipeline(StandardScaler(), ESZSL(WORLD.embeddings["att"])).fit(X, Y)
    with pytest.raises(TypeError, match="LateFusion takes a model of latem, not Pipeline"):
        LateFusion([("a", pipeline)], prefit=True).fit(X, Y)


def test_the_pipeline_inside_a_search_is_found():
    pipeline = make_pipeline(StandardScaler(), ESZSL(WORLD.embeddings["att"]))
    search = GridSearchCV(pipeline, {"eszsl__gamma": [1.0, 2.0]}, cv=GroupKFold(3))
    search.fit(X, Y, groups=Y)
    with pytest.raises(TypeError, match="not Pipeline: give the model itself"):
        explain_predictions(search, X)


def test_other_things():
    with pytest.raises(TypeError, match=r"^here takes a model of latem, not LinearSVC\.$"):
        check_is_model(LinearSVC(), "here")
    with pytest.raises(TypeError, match=r"not a class: call ESZSL\(\.\.\.\) first"):
        check_is_model(ESZSL, "here")
    search = GridSearchCV(ESZSL(WORLD.embeddings["att"]), {"gamma": [1.0]}, cv=GroupKFold(3))
    search.fit(X, Y, groups=Y)
    with pytest.raises(TypeError, match="not GridSearchCV: give its best_estimator_"):
        evaluate(search, WORLD)
    assert len(explain_predictions(search, X[:2])) == 2  # looks inside by itself
    check_is_model(search.best_estimator_, "here")
