"""Committee against its members fitted one by one."""

import pickle

import numpy as np
import pandas as pd
import pytest
from helpers import read_meta, rewrite
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import latem
from latem import (
    ESZSL,
    ESZSLCV,
    EXEM,
    SJE,
    ClassEmbeddings,
    Committee,
    ConSE,
    FileFormatError,
    LateFusion,
    LatEm,
    make_latent_world,
)
from latem.models.committee import usual_members

SHARED = {"feature_scaling": "l2-centered", "normalize_classes": True, "dtype": "float64"}
PAIR = [("map", ESZSL(gamma=3.0)), ("exemplars", EXEM(center_classes=True))]


@parametrize_with_checks([Committee(None, PAIR), Committee(random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_seen=15, n_images=5, noise=0.5, random_state=0)


@pytest.fixture(scope="module")
def usual(world):
    return Committee(world.embeddings["att"], dtype="float64", random_state=0).fit(
        *world.training()
    )


def members():
    """Members with and without a `learn` of their own, with and without random numbers."""
    return [
        *usual_members(),
        ("paper", LatEm(n_maps=2, n_epochs=3)),
        ("structured", SJE(n_epochs=3, random_state=5)),
        ("mixed", ConSE()),
        ("chosen", ESZSLCV(gammas=[1.0, 10.0], lams=[1.0], cv=3)),
    ]


@pytest.mark.parametrize("weights", [None, [1, 2, 3, 4, 0, 5, 0.5, 1]])
def test_scores_are_the_weighted_sum_of_members_fitted_alone(world, weights):
    X, y = world.training()
    table = world.embeddings["att"]
    committee = Committee(table, members(), weights=weights, dtype="float64", random_state=7)
    committee.fit(X, y)
    shares = np.ones(8) if weights is None else np.array(weights, float)
    expected = 0
    for (name, model), share in zip(members(), shares, strict=True):
        alone = clone(model).set_params(class_embeddings=table, **SHARED)
        if alone.get_params().get("random_state", 0) is None:
            alone.set_params(random_state=7)
        alone.fit(X, y)
        member = committee.member(name)
        for classes in ("all", "unseen"):
            np.testing.assert_array_equal(
                member.decision_function(X, classes), alone.decision_function(X, classes)
            )
        spread = np.std([list(row) for row in alone.decision_function(X, alone.classes_)])
        expected = expected + share / shares.sum() * alone.decision_function(X, "all") / spread
    np.testing.assert_allclose(committee.decision_function(X, "all"), expected, rtol=1e-9)
    together = np.tensordot(committee.weights_, committee.member_scores(X, "all"), axes=1)
    np.testing.assert_allclose(together, expected, rtol=1e-9)
    unseen = committee.candidate_names("unseen")
    places = [list(committee.candidate_names("all")).index(name) for name in unseen]
    named = unseen[expected[:, places].argmax(axis=1)]
    np.testing.assert_array_equal(committee.predict(X, "unseen"), named)


def test_members_count_alike_on_the_training_images(world, usual):
    X, _ = world.training()
    scores = usual.member_scores(X)
    assert scores.shape == (4, len(X), 15)
    np.testing.assert_allclose(scores.std(axis=(1, 2)), 1)
    np.testing.assert_array_equal(usual.weights_, [0.25] * 4)


def test_a_committee_of_one_names_as_its_member(world):
    X, y = world.training()
    alone = EXEM(world.embeddings["att"], center_classes=True).fit(X, y)
    for weights, pair in (([0, 1], PAIR), (None, PAIR[1:])):
        committee = Committee(world.embeddings["att"], pair, weights=weights).fit(X, y)
        np.testing.assert_array_equal(committee.predict(X, "all"), alone.predict(X, "all"))


def test_members_take_over_what_is_shared(world):
    X, y = world.training()
    options = {"feature_scaling": "zscore", "normalize_classes": False, "dtype": "float64"}
    pair = [("a", ESZSL(feature_scaling="zmax", dtype="float32")), ("b", SJE(n_epochs=1))]
    committee = Committee(world.embeddings["att"], pair, **options, n_threads=2, random_state=4)
    committee.fit(X, y)
    for name in ("a", "b"):
        for member in (committee.member(name), committee.unfitted_member(name)):
            params = member.get_params()
            assert {key: params[key] for key in options} == options
            assert params["n_threads"] == 2
            assert params["class_embeddings"] is committee.class_embeddings
            assert params.get("random_state", 4) == 4
        np.testing.assert_array_equal(committee.member(name).scaler_.shift, committee.scaler_.shift)
    assert pair[0][1].dtype == "float32"  # what was given is left alone
    own = Committee(world.embeddings["att"], [("b", SJE(random_state=9))], random_state=4)
    assert own.unfitted_member("b").random_state == 9


def test_what_is_known_of_training_is_known_once(world, tmp_path):
    X, y = world.training()
    committee = Committee(world.embeddings["att"], PAIR).fit(X, y)
    assert committee.training_digest_ == ESZSL(world.embeddings["att"]).fit(X, y).training_digest_
    assert all(model.training_digest_ is None for model in committee.models_)
    committee.save(tmp_path / "m")
    assert latem.load(tmp_path / "m").training_digest_ == committee.training_digest_
    unseen = clone(committee)
    unseen.records_training = False
    assert unseen.fit(X, y).training_digest_ is None


# -- travelling -----------------------------------------------------------------------------------


def assert_alike(one, other, X, classes=("all", "unseen", None)):
    for which in classes:
        np.testing.assert_array_equal(
            one.decision_function(X, which), other.decision_function(X, which)
        )


def test_files_pickles_and_clones(world, usual, tmp_path):
    X, y = world.training()
    usual.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    assert type(again) is Committee
    assert again.member_names_ == usual.member_names_
    assert [type(model) for model in again.models_] == [type(model) for model in usual.models_]
    again.save(tmp_path / "again")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "again").read_bytes()
    for other in (again, pickle.loads(pickle.dumps(usual))):
        assert_alike(other, usual, X)
        np.testing.assert_array_equal(other.member_scores(X), usual.member_scores(X))
    for other in (clone(usual), clone(again), again, usual.twin(0), again.twin(0)):
        assert_alike(other.fit(X, y), usual, X)
    again.save(tmp_path / "refitted")
    refitted = latem.load(tmp_path / "refitted")
    assert_alike(refitted, usual, X)


def test_a_table_that_members_share_is_stored_once(world, usual, tmp_path):
    usual.save(tmp_path / "m")
    tensors, _ = read_meta(tmp_path / "m")
    assert [name for name in tensors if name.endswith("table.vectors")] == ["table.vectors"]
    assert [name for name in tensors if name.endswith("scaling.shift")] == ["scaling.shift"]


def test_weights_survive(world, tmp_path):
    X, y = world.training()
    committee = Committee(world.embeddings["att"], PAIR, weights=[3, 1]).fit(X, y)
    committee.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    assert again.get_params()["weights"] == [3, 1]
    for other in (committee, again, clone(again), again.twin(0), committee.twin(0)):
        np.testing.assert_array_equal(other.fit(X, y).weights_, [0.75, 0.25])


@pytest.mark.parametrize("kind", ["table", "dict", "frame", "arrays", "path", "list"])
def test_new_classes_are_described_when_they_are_needed(world, usual, kind, tmp_path):
    X, _ = world.training()
    part = world.embeddings["att"].select(list(world.split().test[:3]))
    names = [f"new {name}" for name in part.names]
    table = ClassEmbeddings(names, part.vectors)
    frame = pd.DataFrame(part.vectors, index=names)
    if kind == "path":
        frame.to_csv(tmp_path / "new.csv")
    classes = {
        "table": table,
        "dict": dict(zip(names, part.vectors, strict=True)),
        "frame": frame,
        "arrays": (names, part.vectors),
        "path": tmp_path / "new.csv",
        "list": [table],
    }[kind]
    np.testing.assert_allclose(
        usual.decision_function(X, classes), usual.decision_function(X, list(part.names)),
        rtol=1e-9,
    )  # fmt: skip
    assert usual.candidate_names(classes).tolist() == names
    mixed = usual.decision_function(X, ["seen", table])
    np.testing.assert_allclose(mixed[:, 15:], usual.decision_function(X, table), rtol=1e-9)


def test_added_classes_are_known_to_all_members(world, usual, tmp_path):
    X, y = world.training()
    vectors = world.embeddings["att"].vectors[:2] * 0.9 + 0.05
    new = ClassEmbeddings(["new", "newer"], vectors)
    more = usual.with_classes(new)
    assert more.candidate_names("unseen")[-2:].tolist() == ["new", "newer"]
    assert "new" not in usual.candidate_names("all")
    np.testing.assert_array_equal(
        more.decision_function(X, ["new", "newer"]), usual.decision_function(X, new)
    )
    for model in more.models_:
        assert "newer" in model.class_table_
        assert model.decision_function(X, "unseen").shape[1] == 12
    more.save(tmp_path / "m")
    assert_alike(latem.load(tmp_path / "m"), more, X)
    assert_alike(clone(more).fit(X, y), more, X)
    assert "new" in more.twin(0).fit(X, y).class_table_
    assert_alike(usual.with_classes(dict(zip(new.names, vectors, strict=True))), more, X)


def test_one_hot_classes(world, tmp_path):
    X, y = world.training()
    committee = Committee(None, PAIR).fit(X, y)
    assert committee.score(X, y) > 0.9
    committee.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    assert again.class_embeddings is None
    assert_alike(again, committee, X, ("all", None))
    assert_alike(clone(again).fit(X, y), committee, X, ("all", None))


def test_two_seen_classes_give_one_column(world):
    X, y = world.training()
    two = np.isin(y, np.unique(y)[:2])
    committee = Committee(world.embeddings["att"], PAIR).fit(X[two], y[two])
    both = committee.decision_function(X, "seen")
    np.testing.assert_array_equal(committee.decision_function(X), both[:, 1] - both[:, 0])
    assert committee.member_scores(X).shape == (2, len(X), 2)


def test_the_encoder_and_feature_names_travel(world, tmp_path):
    X, y = world.training()
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    committee = Committee(world.embeddings["att"], PAIR)
    committee.encoder_ = {"name": "an encoder", "n_features": X.shape[1]}
    committee.fit(frame, y).save(tmp_path / "m")
    for other in (latem.load(tmp_path / "m"), clone(committee).fit(frame, y), committee.twin(0)):
        assert other.encoder_ == committee.encoder_
    assert list(latem.load(tmp_path / "m").feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        committee.predict(frame.iloc[:3, ::-1])


def test_threads_make_no_difference(world):
    X, y = world.training()
    results = [
        Committee(world.embeddings["att"], n_threads=n, random_state=0).fit(X, y) for n in (1, 3)
    ]
    assert_alike(*results, X)


def test_parameters_of_members_can_be_searched(world):
    X, y = world.training()
    search = GridSearchCV(
        Committee(world.embeddings["att"], PAIR), {"map__gamma": [1e-9, 10.0], "weights": [[1, 0]]},
        cv=GroupKFold(3), error_score="raise",
    ).fit(X, y, groups=y)  # fmt: skip
    by_hand = [
        GridSearchCV(ESZSL(world.embeddings["att"], feature_scaling="l2-centered"),
                     {"gamma": [gamma]}, cv=GroupKFold(3)).fit(X, y, groups=y).best_score_
        for gamma in (1e-9, 10.0)
    ]  # fmt: skip
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_hand)
    assert PAIR[0][1].gamma == 3.0
    assert search.best_estimator_.member("map").gamma == search.best_params_["map__gamma"]


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (ESZSL(), TypeError, r"must be pairs \(name, model\), not ESZSL"),
        ((1, ESZSL()), TypeError, r"must be pairs \(name, model\), not \(1, ESZSL"),
        (("a", ESZSL), TypeError, r"not a class: call ESZSL\(...\) first"),
        (("a", LogisticRegression()), TypeError, "a model of latem, not LogisticRegression"),
        (("a", LateFusion([("b", ESZSL())])), TypeError,
         r"models with one class table, not LateFusion \('a'\); LateFusion joins any models"),
        (("a", Committee()), TypeError, r"not Committee \('a'\)"),
        (("a", latem.CommitteeCV()), TypeError, r"not CommitteeCV \('a'\)"),
        (("a", ESZSL({"x": [1.0]})), ValueError, "'a' of Committee has a class table of its own"),
        (("map", EXEM()), ValueError, "members with different names"),
        (("weights", EXEM()), ValueError, "cannot be called 'weights'"),
        (("my__map", EXEM()), ValueError, "cannot be called 'my__map'"),
        (("a", ESZSL(gamma=-1.0)), ValueError, "'gamma' parameter of ESZSL must be"),
        (("a", LatEm(n_epochs=0)), ValueError, "'n_epochs' parameter of LatEm must be"),
    ],
)  # fmt: skip
def test_members_that_are_none(world, bad, error, message):
    committee = Committee(world.embeddings["att"], PAIR).fit(*world.training())
    committee.members = [*PAIR, bad]
    before = committee.models_
    with pytest.raises(error, match=message):
        committee.fit(*world.training())
    assert committee.models_ is before  # refused before anything is forgotten


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"members": []}, "members with different names"),
        (
            {"members": tuple(PAIR)},
            "'members' parameter of Committee must be an instance of 'list'",
        ),
        ({"weights": [1]}, "Committee needs one weight per member, 2"),
        ({"weights": [1, -1]}, "none negative"),
        ({"weights": [0, 0]}, "at least one weight above zero"),
        ({"feature_scaling": "none"}, "'feature_scaling' parameter of Committee"),
    ],
)
def test_bad_parameters(world, change, message):
    committee = Committee(world.embeddings["att"], PAIR).set_params(**change)
    with pytest.raises(ValueError, match=message):
        committee.fit(*world.training())


def test_members_that_are_not_there(world, usual):
    with pytest.raises(ValueError, match="no member 'map'; there are ranking, kernel, exemplars"):
        usual.member("map")
    with pytest.raises(ValueError, match="no member 'nobody'; there are map, exemplars"):
        Committee(world.embeddings["att"], PAIR).unfitted_member("nobody")
    for ask in (lambda c: c.member("map"), lambda c: c.member_scores(world.training()[0])):
        with pytest.raises(Exception, match="not fitted"):
            ask(Committee(world.embeddings["att"], PAIR))


def lose_member(tensors, meta):
    meta["record"]["members"].pop()


def lose_all(tensors, meta):
    meta["record"]["members"] = []
    tensors["weights"] = tensors["scales"] = np.empty(0)


def lose_array(tensors, meta):
    del tensors["1/coef"]


def cut_array(tensors, meta):
    tensors["0/map"] = np.ascontiguousarray(tensors["0/map"][:-1])


def cut_weights(tensors, meta):
    tensors["weights"] = tensors["weights"][:1].copy()


def no_number(tensors, meta):
    tensors["weights"] = np.array([np.nan, 1.0])


def negative(tensors, meta):
    tensors["weights"] = np.array([-1.0, 2.0])


def no_scale(tensors, meta):
    tensors["scales"] = np.array([0.0, 1.0])


def other_classes(tensors, meta):
    names = meta["record"]["members"][0]["content"]["classes"]["names"]
    names[0], names[1] = names[1], names[0]


def other_kind(tensors, meta):
    meta["record"]["members"][0]["content"]["model"] = "EXEM"


def unknown_kind(tensors, meta):
    meta["record"]["members"][0]["content"]["model"] = "Oracle"


def more_classes(tensors, meta):
    tensors["table.vectors"] = np.vstack([tensors["table.vectors"]] * 2)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lose_member, "damaged: weights of shape"),
        (lose_all, "damaged: no members"),
        (lose_array, "lacks 'coef'"),
        (cut_array, "damaged: map of shape"),
        (cut_weights, "damaged: weights of shape"),
        (no_number, "damaged: weights"),
        (negative, "damaged: Committee needs one weight per member"),
        (no_scale, "damaged: no members, or scales"),
        (other_classes, "damaged: member 'map' does not fit the others"),
        (other_kind, "damaged"),
        (unknown_kind, "a model called 'Oracle', which is not registered"),
        (more_classes, "damaged"),
    ],
)
def test_damaged_files(world, damage, message, tmp_path):
    Committee(world.embeddings["att"], PAIR).fit(*world.training()).save(tmp_path / "m")
    rewrite(tmp_path / "m", damage)
    with pytest.raises(FileFormatError, match=message):
        latem.load(tmp_path / "m")
