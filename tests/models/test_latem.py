"""LatEm's behaviour: answers, training, continuing."""

import numpy as np
import pandas as pd
import pytest
import reference
from helpers import Terminal
from hypothesis import given, settings
from hypothesis import strategies as st

from latem import ClassEmbeddings, LatEm, make_latent_world

QUICK = {"n_epochs": 3, "random_state": 0}


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_images=10, random_state=0)


@pytest.fixture(scope="module")
def fitted(world):
    return LatEm(world.embeddings["att"], n_maps=3, n_epochs=30, random_state=0).fit(
        *world.training()
    )


# -- answering --------------------------------------------------------------------------------


def test_scores_are_equation_4(world, fitted):
    X, _ = world.testing()
    scaled = fitted.scaler_.transform(X.astype(np.float64))
    Y = world.embeddings["att"].unit_vectors()
    expected = reference.scores(scaled, fitted.maps_.astype(np.float64), Y)
    np.testing.assert_allclose(fitted.decision_function(X, "all"), expected, atol=1e-5)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 60), st.integers(1, 40), st.integers(1, 6), st.integers(0, 99))
def test_scores_whatever_the_order_of_products(n, n_classes, n_maps, seed):
    from latem.models import scoring

    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(n, 5)), rng.normal(size=(n_maps, 5, 4))
    Y = rng.normal(size=(n_classes, 4))
    per_map = np.stack([X @ w @ Y.T for w in W])
    for size in (0, 10**9):  # forces one order of products, then the other
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(scoring, "_LARGEST_PRODUCTS", size)
            scorer = scoring.MapScorer(W, Y)
        np.testing.assert_allclose(scorer.scores(X), per_map.max(axis=0), atol=1e-12)
        scores, winners = scorer.winners(X)
        np.testing.assert_allclose(scores, per_map.max(axis=0), atol=1e-12)
        np.testing.assert_array_equal(winners, per_map.argmax(axis=0))


def test_every_way_to_name_the_candidates(world, fitted):
    X, _ = world.testing()
    split, table = world.split(), world.embeddings["att"]
    seen = sorted(split.train + split.val)
    unseen = list(split.test)
    everything = fitted.decision_function(X, "all")
    assert everything.shape == (len(X), 70)
    place = {name: i for i, name in enumerate(table.names.tolist())}
    for classes, names in (
        (None, seen),
        ("unseen", unseen),
        (unseen[::-1], unseen[::-1]),
        (np.array(unseen), unseen),
        (pd.Index(unseen), unseen),
        (table.select(unseen), unseen),
        (table.select(unseen).to_frame().set_axis(range(8), axis=1), unseen),
        ({name: table[name] for name in unseen}, unseen),
        ((unseen, table.select(unseen).vectors), unseen),
    ):
        scores = fitted.decision_function(X, classes)
        np.testing.assert_allclose(scores, everything[:, [place[n] for n in names]], atol=1e-5)
        assert (fitted.predict(X, classes) == np.array(names)[scores.argmax(axis=1)]).all()


def test_new_classes_after_training_and_reordered_columns(world):
    table = world.embeddings["att"].to_frame()
    seen = table.loc[list(world.split().train + world.split().val)]
    X, y = world.training()
    model = LatEm(seen, n_maps=2, n_epochs=60, random_state=0).fit(X, y)
    new = table.loc[list(world.split().test)]
    X_new, y_new = world.testing()
    assert model.score(X_new, y_new, new) > 0.9
    shuffled = new[new.columns[::-1]]
    assert (model.predict(X_new, shuffled) == model.predict(X_new, new)).all()
    with pytest.raises(ValueError, match="no unseen classes"):
        model.predict(X_new, "unseen")


def test_a_table_by_path(world, tmp_path):
    path = tmp_path / "att.csv"
    world.embeddings["att"].to_frame().to_csv(path)
    X, y = world.training()
    model = LatEm(str(path), **QUICK).fit(X, y)
    assert (model.predict(X, path) == model.predict(X, "all")).all()
    assert (model.predict(X, str(path)) == model.predict(X, "all")).all()


def test_top_k(world, fitted):
    X, _ = world.testing()
    scores = fitted.decision_function(X, "unseen")
    names, best = fitted.top_k(X, 3, "unseen", return_scores=True)
    order = np.argsort(-scores, axis=1)[:, :3]
    assert (names == np.array(world.split().test)[order]).all()
    np.testing.assert_array_equal(best, np.take_along_axis(scores, order, axis=1))
    assert (names[:, 0] == fitted.predict(X, "unseen")).all()
    with pytest.raises(ValueError, match="k must be between 1 and .*, 10, but is 11"):
        fitted.top_k(X, 11, "unseen")
    with pytest.raises(TypeError, match="k must be a whole number"):
        fitted.top_k(X, 1.5, "unseen")


def test_latent_map(world, fitted):
    X, _ = world.testing()
    scaled = fitted.scaler_.transform(X, "float32")
    Y = world.embeddings["att"].select(world.split().test).unit_vectors()
    per_map = np.stack([scaled @ w @ Y.T for w in fitted.maps_])
    winners = fitted.latent_map(X, "unseen", per_class=True)
    np.testing.assert_array_equal(winners, per_map.argmax(axis=0))
    best = per_map.max(axis=0).argmax(axis=1)
    assert (fitted.latent_map(X, "unseen") == winners[np.arange(len(X)), best]).all()


def test_poses_get_maps_of_their_own():
    world = make_latent_world(n_poses=2, random_state=1)
    X, y = world.training()
    model = LatEm(world.embeddings["att"], n_maps=2, random_state=0).fit(X, y)
    pose = np.array([int(name[-1]) for name in world.images])[world.rows(np.unique(y))]
    agreement = (model.latent_map(X) == pose).mean()
    assert max(agreement, 1 - agreement) > 0.95


def test_score_chooses_candidates_from_the_labels(world, fitted):
    X, y = world.training()
    X_new, y_new = world.testing()
    assert fitted.score(X, y) == fitted.score(X, y, None)
    assert fitted.score(X_new, y_new) == fitted.score(X_new, y_new, "unseen")
    both = np.concatenate([X, X_new]), np.concatenate([y, y_new])
    assert fitted.score(*both) == fitted.score(*both, "all")


def test_results_do_not_depend_on_threads(world):
    X, y = world.training()
    models = [
        LatEm(world.embeddings["att"], n_maps=3, n_threads=n, **QUICK).fit(X, y) for n in (1, 2, 7)
    ]
    many = np.tile(X, (30, 1))
    for model in models[1:]:
        assert model.maps_.tobytes() == models[0].maps_.tobytes()
        expected = models[0].decision_function(many, "all")
        assert model.decision_function(many, "all").tobytes() == expected.tobytes()


def test_two_seen_classes_follow_scikit_learn(world):
    X, y = world.training()
    two = np.isin(y, np.unique(y)[:2])
    model = LatEm(world.embeddings["att"], **QUICK).fit(X[two], y[two])
    both = model.decision_function(X[two], model.classes_)
    np.testing.assert_allclose(model.decision_function(X[two]), both[:, 1] - both[:, 0])


def test_features_of_any_float_type_and_memory_maps(world, tmp_path):
    X, y = world.training()
    np.save(tmp_path / "X.npy", X.astype(np.float16))
    stored = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = LatEm(world.embeddings["att"], **QUICK)
    halves = model.fit(stored, y).maps_
    np.testing.assert_allclose(halves, model.fit(X.astype(np.float64), y).maps_, atol=0.05)
    assert model.fit(stored, y).predict(stored).shape == y.shape


# -- properties -------------------------------------------------------------------------------


def test_one_map_is_the_bilinear_model():
    world = make_latent_world(n_poses=1, n_images=10, random_state=0)
    X_new, y_new = world.testing()
    model = LatEm(world.embeddings["att"], n_maps=1, random_state=0).fit(*world.training())
    assert model.score(X_new, y_new) > 0.95
    scaled = model.scaler_.transform(X_new, "float32")
    Y = world.embeddings["att"].select(world.split().test).unit_vectors()
    np.testing.assert_allclose(
        model.decision_function(X_new, "unseen"), scaled @ model.maps_[0] @ Y.T, atol=1e-5
    )


def test_order_of_the_table_changes_nothing(world):
    X, y = world.training()
    table = world.embeddings["att"]
    turned = table.select(table.names[::-1])
    models = [LatEm(t, **QUICK).fit(X, y) for t in (table, turned)]
    assert models[0].maps_.tobytes() == models[1].maps_.tobytes()
    names = list(world.split().test)
    np.testing.assert_array_equal(*(model.decision_function(X, names) for model in models))


def test_permuting_maps_changes_nothing(world, fitted):
    import copy

    X, _ = world.testing()
    other = copy.deepcopy(fitted)
    other.maps_ = fitted.maps_[::-1]
    np.testing.assert_array_equal(
        other.decision_function(X, "all"), fitted.decision_function(X, "all")
    )


def test_an_extra_unseen_class_changes_no_other_score(world, fitted):
    X, y = world.training()
    table = world.embeddings["att"]
    extra = ClassEmbeddings([*table.names, "unicorn"], np.vstack([table.vectors, np.ones(8)]))
    model = LatEm(extra, n_maps=3, n_epochs=30, random_state=0).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X, "all")[:, :-1], fitted.decision_function(X, "all"), atol=1e-6
    )


@pytest.mark.parametrize("scaling", ["zmax", "zscore", "l2", None])
def test_test_images_never_change_the_scaling(world, scaling):
    X, y = world.training()
    X_new, _ = world.testing()
    rate = {"zscore": 1e-3}.get(scaling, 0.1)
    model = LatEm(world.embeddings["att"], feature_scaling=scaling, learning_rate=rate, **QUICK)
    model.fit(X, y)
    together = model.decision_function(X_new, "unseen")
    alone = np.concatenate([model.decision_function(X_new[i : i + 1], "unseen") for i in range(9)])
    np.testing.assert_allclose(together[:9], alone, atol=1e-5)


# -- training ---------------------------------------------------------------------------------


def test_pruning_keeps_what_is_used(world):
    X, y = world.training()
    model = LatEm(world.embeddings["att"], n_maps=16, prune_below=0.05, random_state=0).fit(X, y)
    kept = model.history_["n_maps"]
    assert kept == sorted(kept, reverse=True)
    assert 2 <= len(model.maps_) < 16
    assert len(model.map_visits_) == len(model.map_violations_) == len(model.maps_) == kept[-1]
    assert model.score(*world.testing()) > 0.9
    by_visits = LatEm(
        world.embeddings["att"], n_maps=16, prune_below=0.05, prune_count="visits", random_state=0
    ).fit(X, y)
    share = by_visits.map_visits_ / by_visits.map_visits_.sum()
    assert share.min() >= 0.05


def test_pruning_keeps_at_least_one_map(world):
    X, y = world.training()
    model = LatEm(world.embeddings["att"], n_maps=8, prune_below=0.99, **QUICK)
    assert len(model.set_params(prune_every=1).fit(X, y).maps_) == 1


def test_callback_sees_every_epoch_and_can_stop(world):
    X, y = world.training()
    seen = []

    def watch(info):
        seen.append(info)
        return info.epoch == 4

    model = LatEm(world.embeddings["att"], n_maps=3, n_epochs=10, random_state=0)
    model.fit(X, y, callback=watch)
    assert [info.epoch for info in seen] == [1, 2, 3, 4]
    assert model.n_iter_ == 4
    assert all(info.n_epochs == 10 and info.n_maps == 3 for info in seen)
    assert model.history_["violation_rate"] == [info.violation_rate for info in seen]
    assert model.history_["mean_loss"] == [info.mean_loss for info in seen]
    assert all(info.map_usage.sum() == pytest.approx(1) for info in seen)
    np.testing.assert_array_equal(seen[-1].maps(), model.maps_)


def test_early_stopping_equals_a_shorter_training(world):
    X, y = world.training()
    model = LatEm(world.embeddings["att"], n_epochs=10, random_state=0)
    stopped = model.fit(X, y, callback=lambda info: info.epoch == 3).maps_.tobytes()
    assert LatEm(world.embeddings["att"], **QUICK).fit(X, y).maps_.tobytes() == stopped


def test_warm_start_continues(world):
    X, y = world.training()
    model = LatEm(world.embeddings["att"], n_epochs=4, dtype="float64", random_state=0)
    whole = model.fit(X, y).maps_
    model.set_params(n_epochs=2, warm_start=True)
    delattr(model, "maps_")
    model.fit(X, y)
    assert model.n_iter_ == 2
    model.fit(X, y)
    assert model.n_iter_ == 4
    assert len(model.history_["mean_loss"]) == 4
    np.testing.assert_allclose(model.maps_, whole, atol=1e-9)


def test_partial_fit_equals_fit(world):
    X, y = world.training()
    whole = LatEm(world.embeddings["att"], dtype="float64", **QUICK).fit(X, y)
    parts = LatEm(world.embeddings["att"], dtype="float64", **QUICK)
    for _ in range(3):
        parts.partial_fit(X, y)
    np.testing.assert_allclose(parts.maps_, whole.maps_, atol=1e-9)
    assert parts.n_iter_ == 3


def test_partial_fit_in_batches_learns(world):
    X, y = world.training()
    model = LatEm(world.embeddings["att"], n_maps=2, random_state=0)
    for epoch in range(40):
        for rows in np.array_split(np.random.default_rng(epoch).permutation(len(X)), 3):
            model.partial_fit(X[rows], y[rows], classes=np.unique(y))
    assert model.score(*world.testing()) > 0.9
    with pytest.raises(ValueError, match="other classes than in its first call"):
        model.partial_fit(X, y, classes=["class 00", "class 01"])
    with pytest.raises(ValueError, match=r"'class 60', .* are not among them"):
        model.partial_fit(*world.testing())


def test_a_failed_fit_leaves_an_unfitted_model(world):
    X, y = world.training()
    model = LatEm(world.embeddings["att"], **QUICK).fit(X, y)
    with pytest.raises(ValueError, match="diverged"):
        model.set_params(learning_rate=1e38).fit(X, y)
    with pytest.raises(Exception, match="not fitted"):
        model.predict(X)


def test_verbose_shows_progress_on_the_error_stream(world, capsys, monkeypatch):
    X, y = world.training()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    LatEm(world.embeddings["att"], verbose=True, **QUICK).fit(X, y)
    assert "3/3" in terminal.getvalue()
    assert capsys.readouterr() == ("", "")


def test_same_seed_same_bytes_other_seed_other_bytes(world):
    X, y = world.training()
    one, two, other = (
        LatEm(world.embeddings["att"], n_epochs=2, random_state=seed).fit(X, y).maps_.tobytes()
        for seed in (3, 3, 4)
    )
    assert one == two != other
    state = LatEm(world.embeddings["att"], n_epochs=2, random_state=np.random.RandomState(3))
    assert state.fit(X, y).maps_.tobytes() == one
