"""CommitteeCV: a committee chosen on held-out classes, and never on anything else."""

import logging

import numpy as np
import pandas as pd
import pytest
from helpers import Terminal, rewrite
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import latem
from latem import Committee, CommitteeCV, FileFormatError, make_latent_world
from latem.models.committee import usual_members
from latem.models.folds import class_folds
from latem.models.weights import HeldOutScores, best_weights
from latem.selection import committee_cv
from latem.selection.results import as_tried

NAMES = ["ranking", "kernel", "exemplars", "whitened"]


@pytest.mark.slow
@parametrize_with_checks([CommitteeCV(cv=2, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_seen=12, n_images=5, noise=1.0, random_state=0)


@pytest.fixture(scope="module")
def search(world):
    return CommitteeCV(world.embeddings["att"], cv=3, random_state=0).fit(*world.training())


def assert_same(one, other, X):
    assert as_tried(one.cv_results_) == as_tried(other.cv_results_)
    assert one.best_params_ == other.best_params_
    assert one.best_index_ == other.best_index_
    assert one.best_score_ == other.best_score_
    for classes in ("all", "unseen"):
        np.testing.assert_array_equal(
            one.decision_function(X, classes), other.decision_function(X, classes)
        )


def of_member(search, name):
    """What was tried for one member, without the committee itself."""
    return [
        one
        for one in as_tried(search.cv_results_)[:-1]
        if all(key.startswith(f"{name}__") for key in one.params)
    ]


def test_what_was_tried(world, search):
    tried = as_tried(search.cv_results_)
    n_epochs = len(search.tried_values()["ranking__n_epochs"])
    sizes = {
        "ranking": 8 * 5 + n_epochs, "kernel": 3 * 8 * 5, "exemplars": 9 * 4, "whitened": 9 * 4
    }  # fmt: skip
    assert {name: len(of_member(search, name)) for name in NAMES} == sizes
    assert len(tried) == sum(sizes.values()) + 1
    assert search.best_index_ == len(tried) - 1
    assert tried[-1].params == search.best_params_
    assert tried[-1].mean == search.best_score_
    values = search.tried_values()
    assert set(search.best_params_) == {*values, "weights"}
    for name, allowed in values.items():
        assert search.best_params_[name] in allowed
        column = search.cv_results_[f"param_{name}"]
        assert set(column.compressed()) == set(allowed)
    assert search.cv_results_["mean_test_score"].shape == (len(tried),)
    assert [f"split{i}_test_score" in search.cv_results_ for i in range(4)] == [True] * 3 + [False]
    assert all(0 <= score <= 1 for one in tried for score in one.scores)


def test_members_have_the_best_of_their_own_grids(search):
    for name in NAMES:
        of_epochs = [o for o in of_member(search, name) if f"{name}__n_epochs" in o.params]
        grid = [one for one in of_member(search, name) if one not in of_epochs]
        most = max(one.mean for one in grid)
        chosen = [o for o in grid if o.params.items() <= search.best_params_.items()]
        assert [one.mean for one in chosen] == [most]
        assert chosen == [one for one in grid if one.mean == most][-1:]
        if name == "ranking":
            most = max(one.mean for one in of_epochs)
            best = next(one for one in of_epochs if one.mean == most)
            assert search.best_params_["ranking__n_epochs"] == best.params["ranking__n_epochs"]


def test_members_are_scored_as_if_trained_by_hand(world, search):
    X, y = world.training()
    committee = search.unfitted_model()
    tried = as_tried(search.cv_results_)
    looked_at = [of_member(search, name)[i] for name in NAMES[1:] for i in (0, 17, -1)]
    looked_at += [one for one in tried[:-1] if "ranking__n_epochs" in one.params]
    start = {k: v for k, v in search.best_params_.items() if k.startswith("ranking__start")}
    for one in looked_at:
        name = next(iter(one.params)).split("__")[0]
        model = clone(committee).set_params(**start, **one.params).unfitted_member(name)
        if name != "ranking":
            model.set_params(dtype="float64")
        scores = [
            clone(model).fit(X[~out], y[~out]).score(X[out], y[out], held)
            for out, held in class_folds(y, 3, 0, "Test")
        ]
        np.testing.assert_allclose(one.scores, scores)


def test_weights_are_those_that_a_plain_way_gives(world, search):
    X, y = world.training()
    params = {key: value for key, value in search.best_params_.items() if key != "weights"}
    found = []
    for out, held in class_folds(y, 3, 0, "Test"):
        one = search.unfitted_model().set_params(**params).fit(X[~out], y[~out])
        found.append(HeldOutScores(one.member_scores(X[out], held), y[out], held))
    spreads = np.array(
        [np.prod([fold.scores[m].std(dtype=float) for fold in found]) ** (1 / 3) for m in range(4)]
    )
    alike = [fold._replace(scores=fold.scores / spreads[:, None, None]) for fold in found]
    weights = best_weights(alike, steps=6, prior=50)
    expected = weights / spreads / (weights / spreads).sum()
    np.testing.assert_allclose(search.best_params_["weights"], expected)
    np.testing.assert_allclose(
        as_tried(search.cv_results_)[-1].scores, [fold.accuracy(weights) for fold in alike]
    )
    np.testing.assert_allclose(search.best_estimator_.weights_, expected)


def test_the_best_committee_is_fitted_to_all_images(world, search):
    X, y = world.training()
    by_hand = Committee(world.embeddings["att"], usual_members(), random_state=0)
    by_hand.set_params(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(
        search.decision_function(X, "all"), by_hand.decision_function(X, "all")
    )
    assert type(search.best_estimator_) is Committee
    assert search.twin(0).get_params()["weights"] == search.best_params_["weights"]
    assert search.score(*world.testing()) > 0.7


@pytest.mark.parametrize("n_threads", [1, 3])
def test_threads_make_no_difference(world, search, n_threads):
    X, y = world.training()
    assert_same(clone(search).set_params(n_threads=n_threads).fit(X, y), search, X)


def test_seeds_make_it_reproducible(world, search):
    X, y = world.training()
    two = [
        clone(search).set_params(random_state=np.random.RandomState(5)).fit(X, y) for _ in range(2)
    ]
    assert_same(*two, X)
    assert as_tried(two[0].cv_results_) != as_tried(search.cv_results_)  # other folds


def test_descriptions_of_test_classes_cannot_matter(world, search):
    X, y = world.training()
    seen = world.embeddings["att"].select(list(np.unique(y)))
    other = clone(search).set_params(class_embeddings=seen).fit(X, y)
    assert other.best_params_ == search.best_params_
    np.testing.assert_array_equal(
        other.decision_function(X, "seen"), search.decision_function(X, "seen")
    )


@pytest.mark.parametrize("cv", ["number", "classes"])
def test_files(world, search, cv, tmp_path):
    X, y = world.training()
    if cv == "classes":
        search = clone(search).set_params(cv=np.array(world.split().val)).fit(X, y)
        assert "split1_test_score" not in search.cv_results_
    search.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    assert type(again) is CommitteeCV
    assert_same(again, search, X)
    for name in search.cv_results_:
        assert np.array_equal(again.cv_results_[name], search.cv_results_[name]), name
    again.save(tmp_path / "again")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "again").read_bytes()
    new = again.with_classes({"new": world.embeddings["att"].vectors[0] * 0.9 + 0.1})
    new.save(tmp_path / "new")
    assert latem.load(tmp_path / "new").candidate_names("unseen")[-1] == "new"
    assert "new" in clone(latem.load(tmp_path / "new")).class_embeddings
    assert_same(clone(again).fit(X, y), search, X)  # and it can be fitted anew


def test_one_hot_classes(world, tmp_path):
    X, y = world.training()
    search = CommitteeCV(cv=2, random_state=0).fit(X, y)
    assert search.score(X, y) > 0.9
    assert len(as_tried(search.cv_results_)[-1].scores) == 2
    search.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    assert again.class_embeddings is None
    np.testing.assert_array_equal(again.decision_function(X), search.decision_function(X))


def test_one_hot_classes_of_single_images_leave_nothing_to_choose_on(tmp_path):
    X, y = np.eye(4), np.arange(4)
    search = CommitteeCV(random_state=0).fit(X, y)
    assert search.best_params_["weights"] is None
    assert search.best_score_ == 0
    assert (search.predict(X) == y).all()
    assert search.words(search.best_params_).startswith("ranking 0.25 (n_epochs ")
    search.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    assert again.best_params_ == search.best_params_
    np.testing.assert_array_equal(again.decision_function(X), search.decision_function(X))


def test_what_cannot_be_searched(world):
    X, y = world.training()
    few = np.isin(y, np.unique(y)[:3])
    table = world.embeddings["att"]
    message = "CommitteeCV needs at least 2 classes to hold out and 2 to learn from, and y has 3"
    with pytest.raises(ValueError, match=message):
        CommitteeCV(table).fit(X[few], y[few])
    with pytest.raises(ValueError, match="at least 2 classes to hold out"):
        CommitteeCV(table, cv=[y[0]]).fit(X, y)
    with pytest.raises(ValueError, match="cannot hold out .'nobody'"):
        CommitteeCV(table, cv=["nobody", y[0]]).fit(X, y)
    with pytest.raises(ValueError, match="'cv' parameter of CommitteeCV"):
        CommitteeCV(table, cv=1).fit(X, y)
    with pytest.raises(ValueError, match="'dtype' parameter of CommitteeCV"):
        CommitteeCV(table, dtype="int").fit(X, y)


def test_a_failing_fit_leaves_nothing_behind(world, search):
    X, y = world.training()
    one = clone(search).fit(X, y)
    with pytest.raises(ValueError, match="at least 2"):
        one.fit(X[:4], y[:1].repeat(4))
    assert not [name for name in vars(one) if name.endswith("_")]


def test_what_is_known_travels(world, tmp_path):
    X, y = world.training()
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    search = CommitteeCV(world.embeddings["att"], cv=world.split().val, random_state=0)
    search.encoder_ = {"name": "an encoder", "n_features": X.shape[1]}
    search.fit(frame, y).save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    for other in (search, search.best_estimator_, again, again.best_estimator_, again.twin(0)):
        assert other.encoder_ == {"name": "an encoder", "n_features": X.shape[1]}
    assert list(again.feature_names_in_) == list(frame.columns)
    assert again.training_digest_ == search.training_digest_ is not None


def test_what_was_chosen_in_words(search):
    words = search.words(search.best_params_)
    params = search.best_params_
    for name, weight in zip(NAMES, params["weights"], strict=True):
        assert f"{name} {weight:.2f} (" in words
    assert f"(start_gamma {params['ranking__start_gamma']:g}, " in words
    assert f"n_epochs {params['ranking__n_epochs']}" in words
    assert f"alpha {params['whitened__alpha']:g})" in words
    assert "__" not in words


def test_progress_and_log(world, capfd, caplog, monkeypatch):
    X, y = world.training()
    search = CommitteeCV(world.embeddings["att"], cv=2, random_state=0)
    with caplog.at_level(logging.INFO, "latem"):
        search.fit(X, y)
    assert capfd.readouterr() == ("", "")
    assert any(text.startswith("chose {'ranking__") for text in caplog.messages)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    search.set_params(verbose=True).fit(X, y)
    assert "7/7" in terminal.getvalue()


def lose_member(tensors, meta):
    meta["inner"]["record"]["members"].pop()


def lose_results(tensors, meta):
    del meta["cv_results"]


def not_a_committee(tensors, meta):
    meta["inner"]["model"] = "ESZSL"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lose_member, "damaged: weights of shape"),
        (lose_results, "lacks 'cv_results'"),
        (not_a_committee, "damaged"),
    ],
)
def test_damaged_files(search, damage, message, tmp_path):
    search.save(tmp_path / "m")
    rewrite(tmp_path / "m", damage)
    with pytest.raises(FileFormatError, match=message):
        latem.load(tmp_path / "m")


def test_a_member_without_an_opinion_of_unseen_classes_is_not_made_loud(monkeypatch):
    """Scores that hardly differ between held-out classes are not blown up to the others' size."""
    world = make_latent_world(n_poses=1, n_images=6, random_state=0)
    narrow = {"gamma": (1e3,), "alpha": (1.0,)}  # likeness to any other class is nothing
    monkeypatch.setattr(committee_cv, "_EXEMPLARS", narrow)
    grids = {**committee_cv._GRIDS, "exemplars": narrow, "whitened": narrow}
    monkeypatch.setattr(committee_cv, "_GRIDS", grids)
    options = {"cv": world.split().val, "random_state": 0}
    search = CommitteeCV(world.embeddings["att"], **options).fit(*world.training())
    assert search.best_params_["weights"][0] > 0.01
    assert search.score(*world.testing()) > 0.8
