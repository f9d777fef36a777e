"""Albums through a model: answers, verdicts, labels, refusals; for every kind of model."""

import json

import numpy as np
import pandas as pd
import pytest

import latem
from latem import ESZSL, LateFusion, calibrate_answers, make_latent_world, train
from latem.models.album_answers import ALBUM_COLUMNS, AlbumAnswers


@pytest.fixture(scope="module")
def world():
    return make_latent_world(
        n_poses=1, n_seen=24, n_unseen=8, n_images=12, noise=0.8, random_state=0
    )


@pytest.fixture(scope="module")
def model(world):
    return train(world, kind="ESZSL")


def test_every_picture_is_answered_in_order(world, model):
    X, _ = world.testing()
    album = model.predict_album(X, top=3)
    assert isinstance(album, AlbumAnswers)
    assert len(album) == len(X)
    assert [answer.picture for answer in album] == [f"image {i}" for i in range(len(X))]
    assert album.inductive.tolist() == model.predict(X, "unseen").tolist()
    assert all(len(answer.names) == 3 for answer in album)
    names = album.probabilities.idxmax(axis=1).tolist()
    assert names == [answer.names[0] for answer in album]
    np.testing.assert_allclose(album.probabilities.sum(axis=1), 1, rtol=1e-5)
    assert album.shares.index.tolist() == model.candidate_names("unseen").tolist()
    assert album.shares.sum() == pytest.approx(1)


def test_rows_in_another_order_have_the_same_answers(world, model):
    X, _ = world.testing()
    order = np.random.default_rng(0).permutation(len(X))
    album, other = model.predict_album(X), model.predict_album(X[order])
    assert other.names.tolist() == album.names[order].tolist()


def test_one_picture_is_named_as_alone(world, model):
    X, _ = world.testing()
    for row in range(0, len(X), 9):
        (one,), (alone,) = (ask(X[row : row + 1]) for ask in (model.predict_album, model.answer))
        assert (one.names, one.verdict) == (alone.names, alone.verdict)
        np.testing.assert_allclose(one.probabilities, alone.probabilities, atol=1e-5)


def test_it_says_that_it_is_transductive(world, model):
    X, _ = world.testing()
    album = model.predict_album(X, labels={4: "class 24"})
    assert "transductive" in repr(album)
    frame = album.to_frame()
    assert tuple(frame.columns) == ALBUM_COLUMNS
    by_hand = frame["picture"] == "image 4"
    assert set(frame["mode"][by_hand]) == {"by hand"}
    assert set(frame["mode"][~by_hand]) == {"transductive"}
    assert all(
        one["mode"] in ("transductive", "by hand")
        for one in json.loads(json.dumps(album.to_dicts()))
    )
    part = album[2:5]
    assert isinstance(part, AlbumAnswers)
    assert part.to_frame().equals(frame[15 - 5 : 25].reset_index(drop=True))
    assert part.probabilities.shape == (3, 8)
    assert album.n_changed == sum(a.names[0] != a.alone for a in album)


def test_pictures_of_other_kinds_are_left_out(world, model):
    X, _ = world.testing()
    strange = 5 * np.random.default_rng(0).normal(size=(40, X.shape[1])) - 20
    both = np.concatenate([X, strange])
    album, alone = model.predict_album(both), model.answer(both)
    left_out = np.array([answer.none_of_these for answer in album])
    assert left_out[len(X) :].mean() > 0.5
    assert [a.none_of_these for a in album] == [a.none_of_these for a in alone]
    kept = model.predict_album(both[~left_out])
    np.testing.assert_allclose(album.shares, kept.shares, atol=1e-3)
    named = model.predict_album(both, false_accept_rate=1)
    assert named.count("named") == len(both)


def test_labels_spread_to_pictures_like_them(world, model):
    X, y = world.testing()
    names = model.candidate_names("unseen")
    told = {int(np.flatnonzero(y == name)[0]): name for name in names}
    wrong = {row: names[(list(names).index(name) + 1) % 8] for row, name in told.items()}
    right, misled = (
        model.predict_album(X, labels=one, false_accept_rate=1) for one in (told, wrong)
    )
    assert all(right[row].names[0] == name for row, name in told.items())
    assert all(misled[row].verdict == "named" for row in wrong)
    rest = np.setdiff1d(np.arange(len(X)), list(told))
    assert (right.names[rest] == y[rest]).mean() > (misled.names[rest] == y[rest]).mean()


def test_what_is_known_of_the_album_counts(world, model):
    X, y = world.testing()
    few = model.candidate_names("unseen")[:3].tolist()
    rows = np.isin(y, few)
    known = model.predict_album(X[rows], expected_share=dict.fromkeys(few, 1 / 3))
    assert set(known.names) - {None} <= set(few)
    even = model.predict_album(X, expected_share=dict.fromkeys(model.candidate_names("unseen"), 7))
    assert even.probabilities.shape == (len(X), 8)
    by_number = model.predict_album(X[rows], expected_share=0.375)
    assert by_number.shares[few].sum() > 0.8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": {0: "unicorn"}}, "label 'unicorn' for row 0, which is none of the candidates"),
        ({"labels": {96: "class 24"}}, "row 96, but the album has the rows 0 to 95"),
        ({"labels": {-1: "class 24"}}, "row -1"),
        ({"labels": {0.5: "class 24"}}, "a label for 0.5; rows are given by their numbers"),
        ({"labels": ["class 24"]}, "labels of type list; give a mapping from row numbers"),
        ({"expected_share": 0}, "expected_share=0; give the share of the classes"),
        ({"expected_share": 1.5}, "expected_share=1.5"),
        ({"expected_share": "few"}, "expected_share='few'"),
        ({"expected_share": {"unicorn": 0.5}}, "expected_share for 'unicorn'"),
        ({"expected_share": {"class 24": 1.5}}, "with the sum 1.5"),
        ({"expected_share": {"class 24": -0.5}}, "shares are at least 0"),
    ],
)
def test_refusals(world, model, options, message):
    X, _ = world.testing()
    with pytest.raises((TypeError, ValueError), match=message):
        model.predict_album(X, **options)


def test_searches_fusions_and_uncalibrated_models(world):
    X, y = world.testing()
    table = world.embeddings["att"]
    search = latem.ESZSLCV(table, cv=3, gammas=(0.1, 1.0), random_state=0).fit(*world.training())
    fusion = LateFusion([("a", ESZSL(table)), ("b", latem.EXEM(table))]).fit(*world.training())
    for one in (search, fusion):
        album = one.predict_album(X)
        assert album[0].probabilities is None
        assert (album.names == y).mean() >= (album.inductive == y).mean() - 0.02
        calibrate_answers(one, *world.training(), cv=3)
        assert one.predict_album(X)[0].probabilities is not None


def test_frames_keep_their_index(world):
    model = ESZSL(world.embeddings["att"])
    X, y = world.training()
    columns = [f"f{i}" for i in range(X.shape[1])]
    model.fit(pd.DataFrame(X, columns=columns), y)
    pictures = pd.DataFrame(world.testing()[0], columns=columns)
    pictures.index = [f"photo {i}" for i in range(len(pictures))]
    assert model.predict_album(pictures).probabilities.index.equals(pictures.index)


def test_seen_classes_are_penalised_as_in_answers(world, model):
    X, _ = world.testing()
    album = model.predict_album(X, "all")
    assert album.inductive.tolist() == [a.names[0] for a in model.answer(X, "all")]
    plain = model.predict_album(X, "all", seen_penalty=0)
    assert plain.inductive.tolist() == model.predict(X, "all").tolist()
