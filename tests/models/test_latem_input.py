"""LatEm on bad input, and on input that once broke it."""

import numpy as np
import pytest

from latem import LatEm, make_latent_world

QUICK = {"n_epochs": 3, "random_state": 0}


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_images=10, random_state=0)


@pytest.fixture(scope="module")
def fitted(world):
    return LatEm(world.embeddings["att"], n_maps=3, n_epochs=30, random_state=0).fit(
        *world.training()
    )


# -- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_maps": 0}, "'n_maps' parameter of LatEm must be an int in the range .1, inf.. Got 0"),
        ({"learning_rate": 0}, "'learning_rate' parameter of LatEm must be a float"),
        ({"learning_rate": float("nan")}, "'learning_rate'"),
        ({"n_epochs": 0}, "'n_epochs'"),
        ({"margin": -1}, "'margin'"),
        ({"feature_scaling": "minmax"}, "'feature_scaling' parameter of LatEm.*Got 'minmax'"),
        ({"prune_below": 1.5}, "'prune_below'"),
        ({"n_threads": 0}, "'n_threads'"),
        ({"dtype": "float16"}, "'dtype'"),
    ],
)
def test_bad_parameters(world, params, message):
    with pytest.raises(ValueError, match=message):
        LatEm(world.embeddings["att"], **params).fit(*world.training())


@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_features_that_are_not_finite(world, fitted, value, name):
    X, y = world.training()
    X = X.copy()
    X[7, 3] = value
    message = f"LatEm got X with {name}.* in row 7, column 3"
    with pytest.raises(ValueError, match=message):
        LatEm(world.embeddings["att"]).fit(X, y)
    with pytest.raises(ValueError, match=message):
        fitted.predict(X)


def test_classes_without_a_description(world):
    X, y = world.training()
    table = world.embeddings["att"].select(np.unique(y)[2:])
    message = r"without rows for 'class 00', 'class 01' .*; add them or drop those samples"
    with pytest.raises(ValueError, match=message):
        LatEm(table).fit(X, y)


def test_one_class_only(world):
    X, y = world.training()
    with pytest.raises(ValueError, match=r"at least 2 classes .* only 1 class: \['class 00'\]"):
        LatEm(world.embeddings["att"]).fit(X[:5], y[:5])


def test_wrong_widths(world, fitted):
    X, y = world.training()
    with pytest.raises(ValueError, match="X has 31 features, but LatEm is expecting 32"):
        fitted.predict(X[:, 1:])
    with pytest.raises(ValueError, match="has 3 columns, but the model was trained with 8"):
        fitted.predict(X, {"a": [1, 2, 3]})
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LatEm(world.embeddings["att"]).fit(X, y[1:])
    with pytest.raises(ValueError, match="1D array"):
        fitted.predict(X[0])


def test_labels_of_another_type(world):
    X, y = world.training()
    numbers = np.unique(y, return_inverse=True)[1]
    with pytest.raises(TypeError, match="labels of type int .such as 0.*names .* of type str"):
        LatEm(world.embeddings["att"]).fit(X, numbers)


def test_empty_images(world, fitted):
    X, y = world.training()
    with pytest.raises(ValueError, match="0 sample"):
        LatEm(world.embeddings["att"]).fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="0 sample"):
        fitted.predict(X[:0])


@pytest.mark.parametrize("form", ["class", "embedding"])
def test_diverging_step(world, form, monkeypatch):
    monkeypatch.setattr("latem.models.latem.pair_form", lambda *_: form)
    X, y = world.training()
    with pytest.raises(ValueError, match="diverged in epoch [12]: .* smaller learning_rate"):
        LatEm(world.embeddings["att"], learning_rate=1e38).fit(X, y)
    with pytest.raises(ValueError, match="diverged in epoch 1"):
        LatEm(world.embeddings["att"], learning_rate=1e38, n_epochs=1).fit(X, y)


def test_zero_vectors(world):
    X, y = world.training()
    frame = world.embeddings["att"].to_frame()
    frame.loc["class 03"] = 0
    with pytest.raises(ValueError, match="vectors of 'class 03' are all zero"):
        LatEm(frame).fit(X, y)
    assert LatEm(frame, normalize_classes=False, **QUICK).fit(X, y).n_iter_ == 3


def test_bad_candidates(world, fitted):
    X, _ = world.testing()
    with pytest.raises(ValueError, match="classes is empty"):
        fitted.predict(X, [])
    with pytest.raises(ValueError, match=r"for a single class write \['class 61'\]"):
        fitted.predict(X, "class 61")
    with pytest.raises(ValueError, match="did you mean 'class 61'"):
        fitted.predict(X, ["class  61"])
    with pytest.raises(ValueError, match="names .* more than once"):
        fitted.predict(X, ["class 61", "class 61"])
    with pytest.raises(ValueError, match="no unseen classes"):
        LatEm(**QUICK).fit(X, world.testing()[1]).predict(X, "unseen")


def test_not_fitted(world):
    with pytest.raises(Exception, match="not fitted yet"):
        LatEm(world.embeddings["att"]).predict([[1.0]])


# -- regressions ------------------------------------------------------------------------------


def test_parameters_changed_after_fit_do_not_spoil_the_file(world, tmp_path):
    import latem

    X, y = world.training()
    model = LatEm(world.embeddings["att"], **QUICK).fit(X, y)
    expected = model.decision_function(X, "all")
    model.set_params(dtype="float64", feature_scaling="l2", n_threads=1).save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    assert (again.dtype, again.feature_scaling) == ("float32", "zmax")
    np.testing.assert_array_equal(again.decision_function(X, "all"), expected)


def test_files_do_not_depend_on_threads(world, tmp_path):
    X, y = world.training()
    for n in (1, 2):
        LatEm(world.embeddings["att"], n_threads=n, **QUICK).fit(X, y).save(tmp_path / str(n))
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_one_candidate_is_no_score(world, fitted):
    X, y = world.testing()
    one = y == y[0]
    with pytest.raises(ValueError, match="among one class only, .'class 60'., and always be right"):
        fitted.score(X[one], y[one])
    assert 0 <= fitted.score(X[one], y[one], "unseen") <= 1


def test_any_mapping_is_a_table_of_candidates(world, fitted):
    from types import MappingProxyType

    X, _ = world.testing()
    new = {"class 60": np.ones(8), "class 61": -np.ones(8)}
    expected = fitted.decision_function(X, new)
    np.testing.assert_array_equal(fitted.decision_function(X, MappingProxyType(new)), expected)
    with pytest.raises(TypeError, match="a list of names or a class table, not 5"):
        fitted.predict(X, 5)


def test_numbers_as_labels_for_names_that_are_numerals():
    table = {"1": [1, 0], "2": [0, 1]}
    with pytest.raises(TypeError, match=r"for instance y = y.astype\(str\)"):
        LatEm(table).fit(np.eye(4), [1, 2, 1, 2])
    labels = np.array([np.str_("1"), np.str_("2")] * 2, dtype=object)
    assert LatEm(table, **QUICK).fit(np.eye(4), labels).predict(np.eye(4)).shape == (4,)


def test_images_far_from_the_training_images_are_refused(world):
    X, y = world.training()
    model = LatEm(world.embeddings["att"], **QUICK).fit(X.astype(float), y)
    with (
        pytest.raises(ValueError, match="too large to scale"),
        np.errstate(over="ignore", invalid="ignore"),
    ):
        model.predict(X.astype(float) * 1e300)


def test_few_images_of_many_classes_are_no_regression_problem(world):
    X, y = world.training()
    first = np.unique(y, return_index=True)[1]
    LatEm(world.embeddings["att"], **QUICK).fit(X[first], y[first])


def test_answers_after_the_main_thread_has_ended():
    import subprocess
    import sys

    code = """
import threading, time
from latem import LatEm, make_latent_world
world = make_latent_world(n_images=4, random_state=0)
X, y = world.training()
model = LatEm(world.embeddings["att"], n_epochs=1, random_state=0).fit(X, y)
def late():
    time.sleep(0.3)
    print(len(model.predict(X, "all")))
threading.Thread(target=late).start()
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("240\n", "")
