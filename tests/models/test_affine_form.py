"""Linear pieces: the scores of the models they are of, also from images as they are stored."""

import numpy as np
import pytest

from latem import ALE, CCA, ESZSL, EXEM, WSABIE, Committee, LatEm, SynC, make_latent_world
from latem.models.affine_form import AffineForm, CompiledForm, can_be_compiled

SCALINGS = ("zmax", "zscore", "l2", "l2-centered", None)


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_seen=12, n_unseen=5, n_images=8, random_state=0)


def models(table, scaling="l2-centered"):
    ranking = LatEm(n_maps=3, n_epochs=2, random_state=0)
    return {
        "LatEm": LatEm(table, n_maps=3, n_epochs=2, feature_scaling=scaling, random_state=0),
        "ALE": ALE(table, n_epochs=2, feature_scaling=scaling, random_state=0),
        "ESZSL": ESZSL(table, feature_scaling=scaling),
        "kernel": ESZSL(table, class_kernel=0.7, feature_scaling=scaling),
        "EXEM": EXEM(table, feature_scaling=scaling),
        "WSABIE": WSABIE(table, n_epochs=2, feature_scaling=scaling, random_state=0),
        "SynC": SynC(table, feature_scaling=scaling),
        "Committee": Committee(
            table,
            [("ranking", ranking), ("exemplars", EXEM()), ("map", ESZSL())],
            feature_scaling=scaling,
        ),
    }


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("kind", list(models(None)))
def test_pieces_are_the_scores(world, kind):
    model = models(world.embeddings["att"])[kind].fit(*world.training())
    X, _ = world.testing()
    expected = model.decision_function(X, "unseen")
    scaler, form = model.linear_pieces("unseen")
    Z = scaler.transform(np.asarray(X), np.float32)
    close(form.scores(Z), expected)
    close(form.of(2).scores(Z)[:, 0], expected[:, 2])
    close(form.one_group(64).scores(Z), expected)
    assert (
        sum(form.groups) == form.offsets.shape[1] == (3 if "ee" in kind or kind == "LatEm" else 1)
    )


@pytest.mark.parametrize("stored", [np.float16, np.float32])
@pytest.mark.parametrize("scaling", SCALINGS)
def test_images_are_scored_as_they_are_stored(world, scaling, stored):
    """Also far from zero, where features have lost digits and must not lose more."""
    X, y = world.training()
    X = (np.asarray(X, np.float64) + 20).astype(stored)
    new = (np.asarray(world.testing()[0], np.float64) + 20).astype(stored)
    model = models(world.embeddings["att"], scaling)["LatEm"].fit(X, y)
    compiled = CompiledForm(model.linear_pieces("unseen")[1], model.scaler_, new)
    rows = np.array([5, 0, 7, 7, 3, *range(len(new))])
    scores, odd = compiled(rows)
    assert not odd.any()
    close(scores, model.decision_function(new, "unseen")[rows])
    assert scores.dtype == np.float32


@pytest.mark.parametrize("stored", [np.float16, np.float32])
@pytest.mark.parametrize("n_pieces", [1, 2, 4, 5, 9])
def test_equal_images_have_equal_scores_wherever_they_are(stored, n_pieces):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((1, 37)), 101, axis=0).astype(stored)
    form = AffineForm(rng.random((1, n_pieces, 37)), np.zeros((1, n_pieces)), (n_pieces,))
    world = make_latent_world(n_features=37, random_state=0)
    scaler = ESZSL(world.embeddings["att"], feature_scaling="l2").fit(*world.training()).scaler_
    compiled = CompiledForm(form, scaler, X)
    scores = np.concatenate([compiled(np.arange(n))[0] for n in (1, 2, 33, 101)])
    assert len(np.unique(scores)) == 1


@pytest.mark.parametrize("stored", [np.float16, np.float32])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_told(stored, value):
    X = np.ones((9, 6), stored)
    X[4, 2] = value
    form = AffineForm(np.ones((2, 3, 6)), np.zeros((2, 3)), (3,))
    form.directions[:, :, 2] = 0  # a product with zero tells, too
    for kind in ("l2", None):
        scaler = ESZSL(feature_scaling=kind).fit(np.eye(6), list("ababab")).scaler_
        _, odd = CompiledForm(form, scaler, X)(np.arange(9))
        assert odd.tolist() == [row == 4 for row in range(9)]


def test_rows_whose_lengths_lose_digits_are_told():
    X = np.ones((4, 6), np.float32)
    X[1], X[2], X[3] = 1e-20, 1e25, 0
    scaler = ESZSL(feature_scaling="l2").fit(np.eye(6), list("ababab")).scaler_
    form = AffineForm.linear(np.ones((6, 1)))
    _, odd = CompiledForm(form, scaler, X)(np.arange(4))
    assert odd.tolist() == [False, True, True, True]


def test_sums():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(20, 4))
    several = [
        AffineForm(rng.normal(size=(2, n, 4)), rng.normal(size=(2, n)), (n,)) for n in (3, 2)
    ]
    alone = [AffineForm.linear(rng.normal(size=(4, 2)), rng.normal(size=2)) for _ in range(2)]
    forms, factors = [alone[0], *several, alone[1]], [0.5, 2.0, 1.0, 3.0]
    joined = AffineForm.sum_of(forms, factors)
    expected = sum(f * form.scores(Z) for f, form in zip(factors, forms, strict=True))
    np.testing.assert_allclose(joined.scores(Z), expected)
    assert joined.groups == (3, 2)
    np.testing.assert_allclose(joined.one_group(6).scores(Z), expected)
    assert joined.one_group(5) is None
    assert AffineForm.sum_of(alone, [1, 1]).groups == (1,)
    assert AffineForm.sum_of([*alone, None], [1, 1, 1]) is None


def test_no_form_is_too_large():
    assert AffineForm.best_of(np.ones((9, 2000, 1)), np.ones((1000, 1))) is None
    wide = AffineForm.linear(np.ones((2000, 5000)))
    assert AffineForm.sum_of([wide, wide], [1, 1]) is None


def test_models_without_pieces(world):
    table = world.embeddings["att"]
    assert CCA(table).fit(*world.training()).linear_pieces("unseen") is None
    by_direction = ALE(table, n_epochs=1).fit(*world.training())
    by_direction.by_direction = True
    assert by_direction.linear_pieces("unseen") is None


def test_what_can_be_compiled(monkeypatch):
    X = np.ones((3, 4), np.float32)
    assert can_be_compiled(X, "float32")
    assert can_be_compiled(X.astype(np.float16), "float32")
    assert not can_be_compiled(X, "float64")
    assert not can_be_compiled(X.astype(np.float64), "float32")
    assert not can_be_compiled(X[:, ::2], "float32")
    assert not can_be_compiled(X.astype(">f4"), "float32")
    monkeypatch.setitem(__import__("sys").modules, "numba", None)
    assert not can_be_compiled(X, "float32")
