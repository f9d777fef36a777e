"""LatEm as a scikit-learn citizen."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from latem import LatEm, make_latent_world


@parametrize_with_checks([LatEm(random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_images=10, random_state=0)


def test_grid_search_over_class_disjoint_folds(world):
    X, y = world.training()
    model = LatEm(world.embeddings["att"], n_epochs=30, random_state=0)
    search = GridSearchCV(model, {"n_maps": [1, 2]}, cv=GroupKFold(4), error_score="raise")
    search.fit(X, y, groups=y)
    assert search.best_params_ == {"n_maps": 2}
    assert search.best_score_ > 0.8
    assert search.cv_results_["mean_test_score"][0] < 0.6
    X_new, y_new = world.testing()
    assert search.best_estimator_.score(X_new, y_new) > 0.8


def test_folds_in_threads_and_processes_agree(world):
    X, y = world.training()
    model = LatEm(world.embeddings["att"], n_maps=2, n_epochs=5, random_state=0)
    options = {"groups": y, "cv": GroupKFold(4)}
    alone = cross_val_score(model, X, y, n_jobs=1, **options)
    import joblib

    with joblib.parallel_config(backend="threading"):
        threads = cross_val_score(model, X, y, n_jobs=2, **options)
    processes = cross_val_score(model, X, y, n_jobs=2, **options)
    assert alone.tolist() == threads.tolist() == processes.tolist()


def test_pipeline_passes_features_on(world):
    X, y = world.training()
    double = FunctionTransformer(lambda X: 2 * X)
    pipeline = make_pipeline(double, LatEm(world.embeddings["att"], n_epochs=3, random_state=0))
    pipeline.fit(X, y)
    alone = LatEm(world.embeddings["att"], n_epochs=3, random_state=0).fit(2 * X, y)
    assert (pipeline.predict(X, classes="all") == alone.predict(2 * X, classes="all")).all()


def test_clone_and_pickle(world):
    X, y = world.training()
    model = LatEm(world.embeddings["att"], n_epochs=2, random_state=0).fit(X, y)
    copy = clone(model)
    assert copy.class_embeddings is model.class_embeddings
    assert not hasattr(copy, "maps_")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_repr_is_short(world):
    assert len(repr(LatEm(world.embeddings["att"]))) < 120


def test_data_frames_with_feature_names(world):
    import pandas as pd

    X, y = world.training()
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    model = LatEm(world.embeddings["att"], n_epochs=2, random_state=0).fit(frame, y)
    assert model.feature_names_in_[0] == "f0"
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[frame.columns[::-1]])
