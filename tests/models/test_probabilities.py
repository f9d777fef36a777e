"""Probabilities, "none of these" and retrieval, for every model."""

import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import rewrite
from model_suite import EVERY, make
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import latem
from latem import ClassEmbeddings, FileFormatError, make_latent_world
from latem.metrics.calibration import probabilities_of
from latem.models.probabilities import UncalibratedWarning


@pytest.fixture(scope="module")
def world():
    """A world of traits, noisy enough that names are sometimes wrong."""
    world = make_latent_world(n_poses=1, n_seen=20, n_images=8, noise=0.8, random_state=0)
    table = world.embeddings["att"]
    shifted = table.vectors - table.vectors.min()
    columns = [f"trait {i}" for i in range(8)]
    table = ClassEmbeddings(table.names, shifted, name="att", columns=columns)
    return latem.ZeroShotDataset(world.features, world.labels, {"att": table}, world.splits)


@pytest.fixture(scope="module")
def fitted(world):
    """Every kind of model, fitted to the train classes once."""
    X, y = world.training(val=False)
    return {kind: make(kind, world.embeddings["att"]).fit(X, y) for kind in EVERY}


@pytest.fixture(params=EVERY)
def model(request, fitted, tmp_path):
    """A model of its own for every test, by way of a file."""
    fitted[request.param].save(tmp_path / "model")
    return latem.load(tmp_path / "model")


@pytest.fixture
def eszsl(fitted, tmp_path):
    fitted["ESZSL"].save(tmp_path / "model")
    return latem.load(tmp_path / "model")


# -- probabilities ----------------------------------------------------------------------------


def test_probabilities_are_the_softmax_of_the_scores(model, world):
    X, _ = world.testing()
    names = list(world.split().test)[::-1]
    model.calibrate(*world.validation())
    for classes in (names, None, "unseen", "all"):
        p = model.predict_proba(X, classes)
        scores = model.decision_function(X, classes) / model.temperature_
        expected = np.exp(scores - scores.max(axis=1, keepdims=True))
        np.testing.assert_allclose(p, expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    p = model.predict_proba(X, names)
    assert (np.array(names)[p.argmax(axis=1)] == model.predict(X, names)).all()


def test_a_hotter_model_is_less_sure(model, world):
    X, _ = world.testing()
    names, sureness = list(world.split().test), []
    spread = np.ptp(model.decision_function(X, names), axis=1).mean()
    for temperature in (0.03, 0.1, 0.3, 1, 10):
        model.temperature_ = temperature * spread
        p = model.predict_proba(X, names)
        sureness.append(p.max(axis=1))
        assert (np.array(names)[p.argmax(axis=1)] == model.predict(X, names)).all()
    assert (np.diff(sureness, axis=0) < 0).all()
    np.testing.assert_allclose(p, 1 / len(names), atol=0.1)


def test_the_flag_of_uncalibrated_probabilities(model, world):
    X, _ = world.testing()
    for _ in range(2):  # each call
        with pytest.warns(
            UncalibratedWarning, match="gives uncalibrated probabilities.* calibrate"
        ):
            p = model.predict_proba(X, "unseen")
    np.testing.assert_allclose(p, probabilities_of(model.decision_function(X, "unseen")))
    model.calibrate(*world.validation())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict_proba(X, "unseen")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_two_seen_classes_have_two_columns(dtype):
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = np.where(X[:, 0] > 0, "right", "left")
    model = latem.ESZSL(dtype=dtype).fit(X, y)
    with pytest.warns(UncalibratedWarning):
        p = model.predict_proba(X)
    assert p.shape == (40, 2)
    assert p.dtype == dtype
    with pytest.warns(UncalibratedWarning):
        np.testing.assert_allclose(p, model.predict_proba(X, model.classes_), rtol=1e-5)
    assert (model.classes_[p.argmax(axis=1)] == model.predict(X)).all()
    named = model.predict_or_none(X, threshold=0)
    assert named.tolist() == model.predict(X).tolist()


def test_calibration_lowers_the_loss_and_reports_it(model, world):
    X, y = world.validation()
    report = model.calibrate(X, y)
    assert report.temperature == model.temperature_ > 0
    assert (report.n_images, report.n_classes) == (len(y), len(np.unique(y)))
    assert report.log_loss_after < report.log_loss_before
    own = model.predict_proba(X, np.unique(y))[np.arange(len(y)), np.searchsorted(np.unique(y), y)]
    assert report.log_loss_after == pytest.approx(-np.log(own).mean())


def test_calibration_among_more_candidates(eszsl, world):
    X, y = world.validation()
    alone = eszsl.calibrate(X, y)
    more = eszsl.calibrate(X, y, "unseen")
    assert more.n_classes == 14 > alone.n_classes == 4
    assert more.temperature == eszsl.temperature_ != alone.temperature
    table = world.embeddings["att"].select(world.split().val)
    assert eszsl.calibrate(X, y, table).temperature == pytest.approx(alone.temperature)


def test_what_calibration_refuses(eszsl, world):
    X, y = world.validation()
    with pytest.raises(ValueError, match="held-out classes, but was fitted to 'class 00'"):
        eszsl.calibrate(*world.training(val=False))
    with pytest.raises(ValueError, match="at least 2 held-out classes .* only .'class 16'"):
        eszsl.calibrate(X[:8], y[:8])
    with pytest.raises(ValueError, match="y holds 'class 17', .* not among the candidate"):
        eszsl.calibrate(X, y, ["class 16", "class 20"])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        eszsl.calibrate(X, y[:-1])
    with pytest.raises(NotFittedError):
        clone(eszsl).calibrate(X, y)
    assert not hasattr(eszsl, "temperature_")


def test_bad_candidates(model, world):
    X, _ = world.testing()
    with pytest.raises(ValueError, match="classes is empty; name at least one"):
        model.predict_proba(X, [])
    with pytest.raises(ValueError, match="no rows for 'okapi'"):
        model.predict_proba(X, ["class 20", "okapi"])
    with pytest.raises(NotFittedError):
        clone(model).predict_proba(X)


# -- what the numbers survive -----------------------------------------------------------------


def test_both_numbers_travel_with_the_file(model, world, tmp_path):
    X, y = world.validation()
    model.calibrate(X, y)
    model.choose_rejection(X, y, world.split().val, coverage=0.5)
    model.save(tmp_path / "one")
    again = latem.load(tmp_path / "one")
    assert again.temperature_ == model.temperature_
    assert again.rejection_threshold_ == model.rejection_threshold_
    X_new, _ = world.testing()
    np.testing.assert_array_equal(
        again.predict_proba(X_new, "unseen"), model.predict_proba(X_new, "unseen")
    )
    assert (
        again.predict_or_none(X, "unseen").tolist() == model.predict_or_none(X, "unseen").tolist()
    )
    again.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_fresh_fit_is_uncalibrated(model, world):
    X, y = world.validation()
    model.calibrate(X, y)
    model.choose_rejection(X, y, world.split().val, coverage=0.5)
    copy = clone(model)
    assert not hasattr(copy, "temperature_")
    assert not hasattr(copy, "rejection_threshold_")
    model.fit(*world.training(val=False))
    assert not hasattr(model, "temperature_")
    assert not hasattr(model, "rejection_threshold_")


def test_members_of_a_fusion_keep_their_own(fitted, world, tmp_path):
    members = [("one", clone(fitted["ESZSL"])), ("two", clone(fitted["CCA"]))]
    X, y = world.training(val=False)
    for _, member in members:
        member.fit(X, y).calibrate(*world.validation())
    fusion = latem.LateFusion(members, prefit=True).fit(X, y)
    fusion.save(tmp_path / "fusion")
    again = latem.load(tmp_path / "fusion")
    assert not hasattr(again, "temperature_")
    assert [m.temperature_ for m in again.models_] == [m.temperature_ for _, m in members]


def test_other_weights_and_further_training_need_another_temperature(fitted, world):
    X, y = world.training(val=False)
    fusion = clone(fitted["LateFusion"]).fit(X, y)
    fusion.calibrate(*world.validation())
    fusion.choose_weights(*world.validation())
    assert not hasattr(fusion, "temperature_")
    for more in ("partial_fit", "fit"):
        model = clone(fitted["LatEm"]).set_params(warm_start=True).fit(X, y)
        model.calibrate(*world.validation())
        getattr(model, more)(X, y)
        assert not hasattr(model, "temperature_")


def test_another_temperature_needs_another_threshold(eszsl, world):
    X, y = world.validation()
    eszsl.choose_rejection(X, y, world.split().val, coverage=0.5)
    eszsl.calibrate(X, y)
    with pytest.raises(ValueError, match="no threshold below which it gives no answer"):
        eszsl.predict_or_none(X, "unseen")


def test_an_uncalibrated_file_says_nothing_of_it(eszsl, world, tmp_path):
    """So files from before there was calibration are no different."""
    eszsl.save(tmp_path / "m")
    found = {}
    rewrite(tmp_path / "m", lambda tensors, meta: found.update(meta))
    assert "calibration" not in found


@pytest.mark.parametrize(
    "calibration",
    [{"temperature": 0.0}, {"temperature": -1.0}, {"temperature": "1"}, {"temperature": None},
     {"rejection_threshold": [0.5]}, 3],
)  # fmt: skip
def test_damaged_calibration(eszsl, world, tmp_path, calibration):
    eszsl.calibrate(*world.validation())
    eszsl.save(tmp_path / "m")
    rewrite(tmp_path / "m", lambda tensors, meta: meta.update(calibration=calibration))
    with pytest.raises(FileFormatError, match="is damaged"):
        latem.load(tmp_path / "m")


# -- none of these ----------------------------------------------------------------------------


def test_the_least_sure_get_no_answer(model, world):
    X, y = world.validation()
    names = list(world.split().val)
    model.calibrate(X, y)
    report = model.choose_rejection(X, y, names, coverage=0.6)
    confidence = model.predict_proba(X, names).max(axis=1)
    answered = confidence >= np.sort(confidence)[::-1][int(np.ceil(0.6 * len(y))) - 1]
    named = model.predict_or_none(X, names)
    assert [name is not None for name in named] == answered.tolist()
    assert named[answered].tolist() == model.predict(X, names)[answered].tolist()
    assert report.threshold == model.rejection_threshold_
    assert report.coverage == answered.mean()
    assert report.risk == (named[answered] != y[answered]).mean()
    assert (report.n_images, report.n_outsiders) == (len(y), 0)
    assert report.false_accept_rate is None
    assert report.curve.at(report.coverage) == pytest.approx(report.risk)
    assert report.curve.at(1) == pytest.approx((model.predict(X, names) != y).mean())


def test_insiders_and_outsiders_together(eszsl, world):
    X = np.concatenate([world.validation()[0], world.testing()[0]])
    y = np.concatenate([world.validation()[1], world.testing()[1]])
    names = list(world.split().val)
    inside = np.isin(y, names)
    report = eszsl.choose_rejection(X, y, names, false_accept_rate=0.1)
    answered = np.array([name is not None for name in eszsl.predict_or_none(X, names)])
    assert (report.n_images, report.n_outsiders) == (inside.sum(), (~inside).sum())
    assert report.false_accept_rate == answered[~inside].mean() == 0.1
    assert report.coverage == answered[inside].mean()
    right = eszsl.predict(X, names) == y
    assert report.risk == pytest.approx((~right[inside & answered]).mean())
    unlabelled = eszsl.choose_rejection(X[~inside], None, names, false_accept_rate=0.1)
    assert unlabelled.threshold == report.threshold
    assert (unlabelled.coverage, unlabelled.risk, unlabelled.curve) == (None, None, None)
    by_coverage = eszsl.choose_rejection(X[inside], None, names, coverage=0.5)
    assert by_coverage.coverage == 0.5
    assert (by_coverage.risk, by_coverage.false_accept_rate) == (None, None)
    assert by_coverage.threshold == eszsl.choose_rejection(X, y, names, coverage=0.5).threshold


def test_a_threshold_of_ones_own(eszsl, world):
    X, _ = world.testing()
    assert eszsl.predict_or_none(X, "unseen", threshold=2).tolist() == [None] * len(X)
    everyone = eszsl.predict_or_none(X, "unseen", threshold=0)
    assert everyone.tolist() == eszsl.predict(X, "unseen").tolist()
    names = eszsl.candidate_names("unseen").tolist()
    for classes in (iter(names), (name for name in names)):  # can be looked at once only
        assert eszsl.predict_or_none(X, classes, threshold=0).tolist() == everyone.tolist()


def test_what_rejection_refuses(eszsl, world):
    X, y = world.validation()
    names = list(world.split().val)
    with pytest.raises(ValueError, match="give one of them, not none"):
        eszsl.choose_rejection(X, y, names)
    with pytest.raises(ValueError, match="ESZSL got no images of none of the candidate classes"):
        eszsl.choose_rejection(X, y, names, false_accept_rate=0.1)
    with pytest.raises(ValueError, match="ESZSL got no images of candidate classes"):
        eszsl.choose_rejection(*world.testing(), names, coverage=0.9)
    with pytest.raises(ValueError, match="coverage must be a share above 0 and up to 1, not 90"):
        eszsl.choose_rejection(X, y, names, coverage=90)
    with pytest.raises(ValueError, match="classes is empty"):
        eszsl.choose_rejection(X, y, [], coverage=0.9)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        eszsl.choose_rejection(X, y[:-1], names, coverage=0.9)
    with pytest.raises(NotFittedError):
        clone(eszsl).predict_or_none(X, threshold=0.5)
    for threshold in ("0.5", float("nan"), True):
        with pytest.raises(ValueError, match="threshold must be a probability"):
            eszsl.predict_or_none(X, names, threshold=threshold)
    with pytest.raises(ValueError, match="always sure of a single candidate"):
        eszsl.predict_or_none(X, names[:1], threshold=0.5)
    assert not hasattr(eszsl, "rejection_threshold_")


# -- retrieval --------------------------------------------------------------------------------


def test_images_of_a_class_that_never_had_one(model, world):
    X, _ = world.testing()
    name = world.split().test[3]
    column = model.decision_function(X, [name])[:, 0]
    rows, scores = model.rank_images(X, name)
    assert rows.tolist() == np.argsort(-column, kind="stable").tolist()
    assert scores.tolist() == column[rows].tolist()
    few, best = model.rank_images(X, name, 5)
    assert few.tolist() == rows[:5].tolist()
    assert best.tolist() == scores[:5].tolist()


def test_images_of_a_class_described_just_now(eszsl, world):
    X, _ = world.testing()
    name = world.split().test[3]
    row = world.embeddings["att"].select([name])
    expected = eszsl.rank_images(X, name)[0].tolist()
    new = ClassEmbeddings(["new"], row.vectors, columns=row.columns)
    frame = pd.DataFrame(row.vectors, index=["new"], columns=row.columns)
    for table in (new, frame, {"new": row.vectors[0]}):
        assert eszsl.rank_images(X, table)[0].tolist() == expected


def test_retrieval_finds_the_class():
    world = make_latent_world(n_poses=1, noise=0.05, random_state=0)
    model = latem.ESZSL(world.embeddings["att"]).fit(*world.training())
    X, y = world.testing()
    hits = [(y[model.rank_images(X, name, 10)[0]] == name).mean() for name in world.split().test]
    assert np.mean(hits) > 0.9


def test_of_equal_images_the_first_comes_first(eszsl, world):
    X, _ = world.testing()
    twice = np.concatenate([X[:3], X[:3]])
    rows, _ = eszsl.rank_images(twice, "class 20")
    assert [row % 3 for row in rows[::2]] == [row % 3 for row in rows[1::2]]
    assert all(first < second for first, second in zip(rows[::2], rows[1::2], strict=True))


def test_bad_retrieval(eszsl, fitted, world):
    X, _ = world.testing()
    with pytest.raises(ValueError, match="no rows for 'class 2x'; did you mean 'class 2"):
        eszsl.rank_images(X, "class 2x")
    with pytest.raises(ValueError, match="one class, but the table has 30"):
        eszsl.rank_images(X, world.embeddings["att"])
    for k in (0, len(X) + 1):
        with pytest.raises(ValueError, match=f"number of images, {len(X)}, but is {k}"):
            eszsl.rank_images(X, "class 20", k)
    with pytest.raises(TypeError, match="k must be a whole number, not 2.0"):
        eszsl.rank_images(X, "class 20", 2.0)
    with pytest.raises(TypeError, match="different tables"):
        fitted["LateFusion"].rank_images(X, world.embeddings["att"].select(["class 20"]))
    with pytest.raises(NotFittedError):
        clone(eszsl).rank_images(X, "class 20")
