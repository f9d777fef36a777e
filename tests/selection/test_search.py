"""Choosing parameters on held-out classes, and never on anything else."""

import numpy as np
import pytest
from helpers import Terminal
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import latem
from latem import ALE, ESZSL, SJE, HeldOutSearch, LateFusion, LatEm, LatEmCV, make_latent_world
from latem.models.folds import class_folds
from latem.selection import GRIDS
from latem.selection.results import as_tried

QUICK = {"preset": "paper", "n_maps": (1, 2), "learning_rate": (0.1,), "n_epochs": 10}


@parametrize_with_checks(
    [LatEmCV(**QUICK, random_state=0),
     HeldOutSearch(ESZSL(), {"gamma": [1.0, 0.1], "lam": [1.0]}, random_state=0)]
)  # fmt: skip
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_images=10, random_state=0)


def test_the_right_number_of_maps_is_found(world):
    search = LatEmCV(
        world.embeddings["att"], preset="paper", n_maps=(1, 2), learning_rate=(0.001, 0.1), cv=3
    )
    search.set_params(n_epochs=(10, 40), random_state=0).fit(*world.training())
    assert search.best_params_["n_maps"] == 2
    assert search.best_params_["learning_rate"] == 0.1
    tried = as_tried(search.cv_results_)
    assert len(tried) == 8
    assert all(len(one.scores) == 3 for one in tried)
    assert search.score(*world.testing()) > 0.9
    assert search.best_estimator_.n_iter_ == search.best_params_["n_epochs"]


def test_candidates_are_scored_as_if_trained_and_scored_by_hand(world):
    X, y = world.training()
    table, held = world.embeddings["att"], list(world.split().val)
    grid = {"learning_rate": [0.01, 0.1], "n_epochs": [2, 5]}
    search = HeldOutSearch(SJE(table, random_state=3), grid, cv=held).fit(X, y)
    out = np.isin(y, held)
    tried = as_tried(search.cv_results_)
    for one in tried:
        model = SJE(table, random_state=3, **one.params).fit(X[~out], y[~out])
        assert one.scores == [model.score(X[out], y[out], classes=held)]
    best = max(tried, key=lambda one: one.mean)
    assert search.best_params_ == best.params == tried[search.best_index_].params
    refit = SJE(table, random_state=3, **best.params).fit(X, y)
    np.testing.assert_array_equal(search.best_estimator_.maps_, refit.maps_)


def test_of_equals_the_first_of_the_grid(world):
    grid = {"gamma": [5.0, 1.0, 3.0], "lam": [1.0]}
    perfect = make_latent_world(n_poses=1, noise=0.0, n_images=4, random_state=0)
    search = HeldOutSearch(ESZSL(perfect.embeddings["att"]), grid, cv=perfect.split().val)
    search.fit(*perfect.training())
    assert set(search.cv_results_["mean_test_score"]) == {1.0}
    assert search.best_params_["gamma"] == 5.0


def test_labels_of_test_classes_cannot_matter(world):
    """The whole protocol on a dataset whose test labels are shuffled gives the identical model."""
    rng = np.random.default_rng(0)
    shuffled = world.labels.copy()
    rows = world.rows(world.split().test)
    shuffled[rows] = rng.permutation(shuffled[rows])
    assert (shuffled != world.labels).any()
    other = latem.ZeroShotDataset(world.features, shuffled, world.embeddings, world.splits)
    models = [
        LatEmCV(d.embeddings["att"], cv=d.split().val, **QUICK, random_state=0).fit(*d.training())
        for d in (world, other)
    ]
    assert as_tried(models[0].cv_results_) == as_tried(models[1].cv_results_)
    np.testing.assert_array_equal(models[0].best_estimator_.maps_, models[1].best_estimator_.maps_)


def test_descriptions_of_test_classes_cannot_matter(world):
    table = world.embeddings["att"]
    seen = table.select(list(world.split().train + world.split().val))
    models = [
        LatEmCV(t, cv=world.split().val, **QUICK, random_state=0).fit(*world.training())
        for t in (table, seen)
    ]
    np.testing.assert_array_equal(models[0].best_estimator_.maps_, models[1].best_estimator_.maps_)


def test_threads_make_no_difference(world):
    X, y = world.training()
    search = LatEmCV(world.embeddings["att"], **QUICK, cv=3, random_state=0)
    results = [clone(search).set_params(n_threads=n).fit(X, y) for n in (1, 3)]
    assert as_tried(results[0].cv_results_) == as_tried(results[1].cv_results_)
    np.testing.assert_array_equal(
        results[0].best_estimator_.maps_, results[1].best_estimator_.maps_
    )


@pytest.mark.parametrize("kind", ["LatEmCV", "HeldOutSearch"])
def test_files(world, tmp_path, kind):
    X, y = world.training()
    if kind == "LatEmCV":
        search = LatEmCV(world.embeddings["att"], **QUICK, cv=world.split().val, random_state=0)
    else:
        eszsl = ESZSL(world.embeddings["att"])
        search = HeldOutSearch(eszsl, {"gamma": [0.1, 1]}, cv=3, random_state=0)
    search.fit(X, y).save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    assert type(again).__name__ == kind
    assert again.best_params_ == search.best_params_
    assert as_tried(again.cv_results_) == as_tried(search.cv_results_)
    np.testing.assert_array_equal(
        again.decision_function(X, "unseen"), search.decision_function(X, "unseen")
    )
    again.fit(X, y)  # and it can be fitted anew
    assert again.best_params_ == search.best_params_


def test_every_model_has_a_grid_of_its_own_parameters():
    for name, grid in GRIDS.items():
        model = getattr(latem, name)()
        assert set(grid) <= set(model.get_params()), name
        for parameter, values in grid.items():
            for value in values:
                model.set_params(**{parameter: value})._validate_params()


@pytest.mark.parametrize("values", [{"n_epochs": [0, 2]}, {"n_maps": ["a"]}, {"n_maps": [None]}])
@pytest.mark.parametrize("preset", ["paper", "tuned"])
def test_values_that_cannot_be_tried(world, preset, values):
    search = LatEmCV(world.embeddings["att"], preset=preset, cv=world.split().val, **values)
    with pytest.raises(ValueError, match=f"The {next(iter(values))!r} parameter of LatEm must be"):
        search.fit(*world.training())


def test_folds_are_disjoint_and_cover_all_classes():
    y = np.repeat(np.arange(11), 3)
    folds = class_folds(y, 4, 0, "Search")
    assert sorted(np.concatenate([fold.candidates for fold in folds])) == list(range(11))
    for fold in folds:
        assert set(y[fold.out]) == set(fold.candidates)
        assert not set(y[~fold.out]) & set(fold.candidates)


def test_what_cannot_be_searched(world):
    X, y = world.training()
    table = world.embeddings["att"]
    with pytest.raises(ValueError, match="cannot hold out"):
        LatEmCV(table, cv=["nobody", "nothing"]).fit(X, y)
    with pytest.raises(ValueError, match="at least 2 classes to hold out"):
        LatEmCV(table, cv=list(world.split().val)[:1]).fit(X, y)
    with pytest.raises(ValueError, match="no values to try for n_maps"):
        LatEmCV(table, n_maps=()).fit(X, y)
    with pytest.raises(TypeError, match="models with one class table, not of LateFusion"):
        HeldOutSearch(LateFusion([("a", LatEm())])).fit(X, y)
    with pytest.raises(ValueError, match="no usual grid for ESZSLCV"):
        HeldOutSearch(latem.ESZSLCV(table)).fit(X, y)
    with pytest.raises(ValueError, match="Invalid parameter 'rank'"):
        HeldOutSearch(ALE(table), {"rank": [1]}, cv=3).fit(X, y)


def test_progress_is_shown_on_the_error_stream_only_if_asked(world, capfd, monkeypatch):
    X, y = world.training()
    search = HeldOutSearch(ESZSL(world.embeddings["att"]), {"gamma": [1.0]}, cv=3)
    search.fit(X, y)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    search.set_params(verbose=True).fit(X, y)
    assert capfd.readouterr() == ("", "")
    shown = terminal.getvalue()
    assert "4/4" in shown
    assert "trainings" in shown


@pytest.mark.parametrize(
    "search",
    [
        lambda t: HeldOutSearch(ESZSL(t), {"gamma": np.logspace(-1, 1, 3)}, cv=3),
        lambda t: HeldOutSearch(ESZSL(t), {"gamma": [np.float32(1)]}, cv=t.names[:4]),
        lambda t: LatEmCV(t, n_maps=range(1, 3), learning_rate=np.array([0.1]), n_epochs=2, cv=2),
        lambda t: latem.ESZSLCV(t, gammas=np.array([1.0, 2.0]), cv=t.names[:4]),
    ],
)
@pytest.mark.filterwarnings("ignore::latem.GridEdgeWarning")  # what is chosen does not matter
def test_searches_over_arrays_can_be_stored(world, tmp_path, search):
    X, y = world.training()
    model = search(world.embeddings["att"]).set_params(random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    np.testing.assert_array_equal(
        again.decision_function(X, "unseen"), model.decision_function(X, "unseen")
    )


def test_names_of_features_are_kept(world):
    import pandas as pd

    X, y = world.training()
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    search = HeldOutSearch(ESZSL(world.embeddings["att"]), {"gamma": [1.0]}, cv=3).fit(frame, y)
    assert list(search.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        search.predict(frame.iloc[:3, ::-1])


def test_a_failing_fit_leaves_nothing_behind(world):
    X, y = world.training()
    for model in (
        HeldOutSearch(ESZSL(world.embeddings["att"]), {"gamma": [1.0]}, cv=3),
        latem.CMT(world.embeddings["att"], n_hidden=3, max_iter=3),
    ):
        model.fit(X, y)
        with pytest.raises(ValueError, match="at least 2|needs images"):
            model.fit(X[:4], y[:1].repeat(4))
        assert not [name for name in vars(model) if name.endswith("_") and "n_features" not in name]


# -- the ends of grids ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def noisy():
    return make_latent_world(n_images=10, n_poses=1, noise=1.0, random_state=0)


STEPS = {"learning_rate": [1e-7, 1e-6, 1e-5], "n_epochs": [1, 2, 4]}  # all of them too small


def test_a_grid_that_ends_too_soon(noisy, tmp_path):
    import pandas as pd

    X, y = noisy.training()
    model = SJE(noisy.embeddings["att"], init_scale=0.001, random_state=0)
    search = HeldOutSearch(model, STEPS, cv=noisy.split().val)
    with pytest.warns(latem.GridEdgeWarning, match=r"SJE did best .*learning_rate=1e-05 \(high"):
        search.fit(X, y)
    assert search.grid_edges_["learning_rate"] == "highest"
    frame = pd.DataFrame(search.cv_results_)
    expected = frame["param_learning_rate"].isin([1e-7, 1e-5])
    assert (frame["edge_learning_rate"] == expected).all()
    assert (frame["edge_n_epochs"] == (frame["param_n_epochs"] == 4)).all()
    search.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    assert again.grid_edges_ == search.grid_edges_
    for name in ("edge_learning_rate", "edge_n_epochs"):
        np.testing.assert_array_equal(again.cv_results_[name], search.cv_results_[name])


def test_a_grid_with_the_best_value_inside_says_nothing(noisy):
    grid = {"gamma": [1e-3, 0.1, 10.0, 1e3, 1e5, 1e7]}
    search = HeldOutSearch(ESZSL(noisy.embeddings["att"]), grid, cv=3, random_state=0)
    search.fit(*noisy.training())
    assert search.best_params_["gamma"] not in (1e-3, 1e7)
    assert search.grid_edges_ == {}


def test_too_few_images_to_choose_on_are_at_no_edge():
    search = HeldOutSearch(ESZSL(), {"gamma": [1.0, 2.0, 3.0]}).fit(np.eye(3), [0, 1, 2])
    assert search.best_params_ == {"gamma": 1.0}
    assert search.grid_edges_ == {}


def test_the_tuned_preset_warns_of_given_values_only(noisy, monkeypatch, tmp_path):
    from latem.selection import latem_cv

    X, y = noisy.training()
    monkeypatch.setattr(latem_cv, "GAMMAS", np.array([1e2, 1e4, 1e6]))
    monkeypatch.setattr(latem_cv, "LAMS", np.array([1.0]))
    search = LatEmCV(noisy.embeddings["att"], cv=3, random_state=0)
    search.fit(X, y)  # no warning: nobody gave these values
    assert search.grid_edges_ == {"start_gamma": "lowest"}
    search.set_params(class_kernel=(None, 0.1, 0.2, 0.4), random_state=0)
    search.fit(X, y)  # None is best
    with pytest.warns(latem.GridEdgeWarning, match="class_kernel=0.4 .highest") as caught:
        search.set_params(class_kernel=(0.1, 0.2, 0.4)).fit(X, y)
    assert "start_gamma" not in str(caught[0].message)
    assert search.grid_edges_["class_kernel"] == "highest"
    search.save(tmp_path / "m")
    assert latem.load(tmp_path / "m").grid_edges_ == search.grid_edges_


# -- early stopping ---------------------------------------------------------------------------

EPOCHS = {"learning_rate": [0.1, 1.0], "n_epochs": [1, 2, 4, 6, 8, 12, 16, 24]}


def test_candidates_that_gain_no_more_are_trained_no_further(noisy, tmp_path, monkeypatch):
    from latem.models.sgd import loop

    X, y = noisy.training()
    model = SJE(noisy.embeddings["att"], random_state=0)
    whole = HeldOutSearch(model, EPOCHS, cv=noisy.split().val).fit(X, y)
    patient = clone(whole).set_params(patience=8).fit(X, y)
    assert as_tried(patient.cv_results_) == as_tried(whole.cv_results_)
    trained = []
    train = loop.train

    def counted(*args):
        train(*args)
        trained.append(args[4].epoch)

    monkeypatch.setattr("latem.models.ranking.train", counted)
    hasty = clone(whole).set_params(patience=1, n_threads=1).fit(X, y)
    *tries, last = trained
    assert max(tries) < 24
    assert last == hasty.best_params_["n_epochs"]
    expected = whole.cv_results_["mean_test_score"].reshape(2, 8)
    found = hasty.cv_results_["mean_test_score"].reshape(2, 8)
    for long, short in zip(expected, found, strict=True):
        n = int((np.diff(long) <= 0).argmax()) + 2  # up to the first that is no better
        np.testing.assert_array_equal(short, [*long[:n], *[np.nan] * (8 - n)])
    assert hasty.best_score_ == np.nanmax(found)
    assert (hasty.cv_results_["rank_test_score"][hasty.best_index_]) == 1
    hasty.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    assert (again.best_index_, again.patience) == (hasty.best_index_, 1)
    np.testing.assert_array_equal(again.cv_results_["mean_test_score"], found.ravel())


def test_patience_of_latem_cv(noisy):
    search = LatEmCV(noisy.embeddings["att"], **QUICK, cv=3, patience=1, random_state=0)
    search.set_params(n_epochs=(1, 2, 4, 8, 16, 32)).fit(*noisy.training())
    assert np.isnan(search.cv_results_["mean_test_score"]).any()
    assert search.best_estimator_.n_iter_ == search.best_params_["n_epochs"] < 32
    with pytest.raises(ValueError, match="'patience' parameter of LatEmCV"):
        search.set_params(patience=0).fit(*noisy.training())
