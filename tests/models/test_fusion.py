"""Late fusion of scores."""

import numpy as np
import pandas as pd
import pytest
from helpers import rewrite
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold

import latem
from latem import ClassEmbeddings, FileFormatError, LateFusion, LatEm, make_latent_world


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_images=10, random_state=0)


@pytest.fixture(scope="module")
def members(world):
    table = world.embeddings["att"]
    half = ClassEmbeddings(table.names[::-1], table.vectors[::-1, :4], name="half")
    settings = {"n_maps": 2, "n_epochs": 30, "random_state": 0}
    return [("att", LatEm(table, **settings)), ("half", LatEm(half, **settings))]


@pytest.fixture(scope="module")
def fusion(world, members):
    return LateFusion(members).fit(*world.training())


def test_scores_are_averaged(world, members, fusion):
    X, _ = world.testing()
    alone = [clone(model).fit(*world.training()) for _, model in members]
    names = list(world.split().test)
    expected = np.mean([model.decision_function(X, names) for model in alone], axis=0)
    np.testing.assert_allclose(fusion.decision_function(X, names), expected, rtol=1e-6)
    np.testing.assert_allclose(fusion.decision_function(X, "unseen"), expected, rtol=1e-6)
    assert (fusion.predict(X, "unseen") == np.array(names)[expected.argmax(axis=1)]).all()
    weighted = LateFusion(members, weights=[3, 1]).fit(*world.training())
    parts = [model.decision_function(X, names) for model in alone]
    np.testing.assert_allclose(
        weighted.decision_function(X, names), 0.75 * parts[0] + 0.25 * parts[1], rtol=1e-6
    )


def test_fitted_members_are_taken_as_they_are(world, members, fusion):
    X, y = world.training()
    fitted = [(name, clone(model).fit(X, y)) for name, model in members]
    prefit = LateFusion(fitted, prefit=True).fit(X, y)
    np.testing.assert_array_equal(prefit.decision_function(X), fusion.decision_function(X))
    assert prefit.models_[0] is fitted[0][1]
    with pytest.raises(Exception, match="not fitted"):
        LateFusion(members, prefit=True).fit(X, y)


def test_standardized_members_count_alike(world, members):
    X, y = world.training()
    fusion = LateFusion(members, standardize=True).fit(X, y)
    for model, scale in zip(fusion.models_, fusion.scales_, strict=True):
        scores = model.decision_function(X, model.classes_) / scale
        assert np.std(scores) == pytest.approx(1, rel=1e-4)


def test_weights_are_chosen_on_held_out_classes(world, members):
    X, y = world.training(val=False)
    X_val, y_val = world.validation()
    fusion = LateFusion(members).fit(X, y)
    before = fusion.score(X_val, y_val)
    fusion.choose_weights(X_val, y_val)
    assert fusion.weights_.sum() == pytest.approx(1)
    assert fusion.score(X_val, y_val) >= before
    with pytest.raises(ValueError, match="held-out classes, but the members have seen"):
        fusion.choose_weights(X, y)
    with pytest.raises(ValueError, match="too many weights"):
        fusion.choose_weights(X_val, y_val, steps=100_000)


def test_a_prior_draws_chosen_weights_towards_equal_ones(world, members):
    fusion = LateFusion(members).fit(*world.training(val=False))
    X, y = world.validation()
    best = fusion.choose_weights(X, y, steps=7).weights_
    n = len(np.unique(y))
    drawn = fusion.choose_weights(X, y, steps=7, prior=2 * n).weights_
    np.testing.assert_allclose(drawn, best / 3 + 1 / 3)


def test_chosen_weights_survive_the_fit_to_all_seen_classes(world, members, tmp_path):
    fusion = LateFusion(members).fit(*world.training(val=False))
    fusion.choose_weights(*world.validation(), steps=7)
    chosen = fusion.weights_
    assert chosen[0] != chosen[1]  # as seven steps cannot be shared evenly
    fusion.save(tmp_path / "f.safetensors")
    again = latem.load(tmp_path / "f.safetensors")
    for refitted in (clone(fusion), clone(again), again, fusion.twin(0), fusion):
        refitted.fit(*world.training())
        np.testing.assert_allclose(refitted.weights_, chosen, rtol=1e-15)
    assert set(world.split().val) <= set(fusion.classes_)
    even = clone(fusion).set_params(weights=None).fit(*world.training())
    np.testing.assert_array_equal(even.weights_, [0.5, 0.5])


def test_weights_that_were_chosen_before_a_file_kept_them(world, members, tmp_path):
    fusion = LateFusion(members).fit(*world.training())
    fusion.save(tmp_path / "f.safetensors")

    def as_earlier(tensors, meta):
        tensors["weights"] = np.array([0.9, 0.1])

    rewrite(tmp_path / "f.safetensors", as_earlier)
    again = latem.load(tmp_path / "f.safetensors")
    np.testing.assert_allclose(again.fit(*world.training()).weights_, [0.9, 0.1])


def test_saving_and_loading_changes_nothing(world, fusion, tmp_path):
    X, _ = world.testing()
    fusion.save(tmp_path / "fusion.safetensors")
    again = latem.load(tmp_path / "fusion.safetensors")
    assert type(again) is LateFusion
    assert [name for name, _ in again.members] == ["att", "half"]
    np.testing.assert_array_equal(
        again.decision_function(X, "unseen"), fusion.decision_function(X, "unseen")
    )
    again.save(tmp_path / "again.safetensors")
    contents = [(tmp_path / f"{n}.safetensors").read_bytes() for n in ("fusion", "again")]
    assert contents[0] == contents[1]
    (tmp_path / "cut").write_bytes(contents[0][:1000])
    with pytest.raises(FileFormatError, match="damaged"):
        latem.load(tmp_path / "cut")


def test_fusions_can_be_members(world, members):
    X, y = world.training()
    nested = LateFusion([("both", LateFusion(members)), ("att", members[0][1])]).fit(X, y)
    names = list(world.split().test)
    expected = nested.decision_function(X, names)
    np.testing.assert_array_equal(nested.decision_function(X, "unseen"), expected)
    np.testing.assert_array_equal(nested.decision_function(X, pd.Series(names)), expected)


def test_a_loaded_fusion_can_be_fitted_anew(world, fusion, tmp_path):
    X, y = world.training()
    fusion.save(tmp_path / "f")
    half = np.isin(y, np.unique(y)[:30])
    again = latem.load(tmp_path / "f").fit(X[half], y[half])
    assert len(again.classes_) == 30
    assert len(clone(latem.load(tmp_path / "f")).fit(X, y).classes_) == 60


def test_parameters_of_members_can_be_searched(world, members):
    X, y = world.training()
    search = GridSearchCV(
        LateFusion(members), {"att__n_epochs": [1, 20]}, cv=GroupKFold(3), error_score="raise"
    )
    search.fit(X, y, groups=y)
    assert search.best_params_ == {"att__n_epochs": 20}
    assert members[0][1].n_epochs == 30


def test_only_classes_every_member_describes_are_common(world, members):
    X, y = world.training()
    few = members[1][1].class_embeddings.select([*np.unique(y), "class 60"])
    pair = [members[0], ("few", clone(members[1][1]).set_params(class_embeddings=few))]
    fusion = LateFusion(pair).fit(X, y)
    assert fusion.top_k(X, 1, "unseen").tolist() == [["class 60"]] * len(X)
    assert fusion.decision_function(X, "all").shape == (len(X), 61)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [1]}, "one weight per member, 2"),
        ({"weights": [1, -1]}, "none negative"),
        ({"weights": [0, 0]}, "at least one weight above zero"),
        ({"members": []}, "members with different names"),
    ],
)
def test_bad_parameters(world, members, change, message):
    fusion = LateFusion(members).set_params(**change)
    with pytest.raises(ValueError, match=message):
        fusion.fit(*world.training())


def test_bad_requests(world, members, fusion):
    table = world.embeddings["att"]
    with pytest.raises(TypeError, match="call with_classes on each fitted member"):
        fusion.with_classes(table)
    with pytest.raises(TypeError, match="a list of names"):
        fusion.predict(world.testing()[0], (table.names, table.vectors))
    X, y = world.training()
    with pytest.raises(ValueError, match="different names"):
        LateFusion([members[0], members[0]]).fit(X, y)
    with pytest.raises(TypeError, match="must be pairs .name, model., not LatEm"):
        LateFusion([members[0][1]]).fit(X, y)
    fitted = [(name, model) for (name, _), model in zip(members, fusion.models_, strict=True)]
    with pytest.raises(ValueError, match="X has 31 features, but the members were fitted to 32"):
        LateFusion(fitted, prefit=True).fit(X[:, 1:], y)
    with pytest.raises(ValueError, match="have not seen .'class 60'"):
        LateFusion(fitted, prefit=True).fit(*world.testing())
    X_new, y_new = world.testing()
    with pytest.raises(ValueError, match="at least two held-out classes"):
        clone(fusion).fit(X, y).choose_weights(X_new[:5], y_new[:5])
    with pytest.raises(TypeError, match="different tables"):
        fusion.predict(X, world.embeddings["att"])
    with pytest.raises(ValueError, match="k must be between 1 and"):
        fusion.top_k(X, 11, "unseen")
    other = clone(members[1][1]).fit(*world.testing())
    pair = [("att", clone(members[0][1]).fit(X, y)), ("half", other)]
    with pytest.raises(ValueError, match="'half' has not seen the same classes as 'att'"):
        LateFusion(pair, prefit=True).fit(X, y)
