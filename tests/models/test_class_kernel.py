"""A kernel on the class side: the same option of every model whose scores can use it."""

from inspect import signature

import numpy as np
import pytest

import latem
from latem.models import model_rows

KINDS = [
    row.name
    for row in model_rows.own_rows()
    if row.module.startswith("latem.models.") and "class_kernel" in signature(row.load()).parameters
]
QUICK = {"n_epochs": 5, "n_hidden": 20, "rank": 5}


@pytest.fixture(scope="module")
def world():
    return latem.make_latent_world(n_poses=1, n_images=8, random_state=0)


def made(kind, table, **params):
    model = model_rows.find(kind).load()(table)
    known = model.get_params()
    quick = {name: value for name, value in QUICK.items() if name in known}
    seed = {"random_state": 0} if "random_state" in known else {}
    return model.set_params(**quick, **seed, **params)


def test_most_models_have_it():
    assert {"LatEm", "SJE", "ALE", "DeViSE", "WSABIE", "ESZSL", "ESZSLCV"} <= set(KINDS)
    assert {"CCA", "SAE", "SemanticOutputCodes", "CMT"} <= set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::latem.GridEdgeWarning")
def test_it_is_used_saved_and_carried_to_new_classes(kind, world, tmp_path):
    table = world.embeddings["att"]
    X, y = world.training()
    model = made(kind, table, class_kernel=0.7).fit(X, y)
    plain = made(kind, table).fit(X, y)
    assert model.class_view_.kernel is not None
    scores = model.decision_function(X[:20], "unseen")
    assert not np.allclose(scores, plain.decision_function(X[:20], "unseen"))
    model.save(tmp_path / "model.safetensors")
    again = latem.load(tmp_path / "model.safetensors")
    assert again.class_kernel == 0.7
    assert np.array_equal(again.decision_function(X[:20], "unseen"), scores)
    new = latem.ClassEmbeddings(["new"], table.vectors[:1] + table.vectors[1:2])
    assert np.isfinite(model.with_classes(new).decision_function(X[:3], ["new"])).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_width_is_checked(kind, world):
    with pytest.raises(ValueError, match="class_kernel"):
        made(kind, world.embeddings["att"], class_kernel=0.0).fit(*world.training())


def test_folds_of_eszslcv_do_not_know_the_held_out_classes(world):
    table, (X, y) = world.embeddings["att"], world.training()
    val = sorted(world.split().val)
    options = {"class_kernel": 0.7, "center_classes": True, "balance_classes": True}
    grid = {"gammas": (0.1, 1.0), "lams": (0.1, 1.0)}
    search = latem.ESZSLCV(table, cv=val, **grid, **options).fit(X, y)
    out = np.isin(y, val)
    for i, gamma in enumerate(grid["gammas"]):
        for j, lam in enumerate(grid["lams"]):
            alone = latem.ESZSL(table, gamma=gamma, lam=lam, dtype="float64", **options)
            score = alone.fit(X[~out], y[~out]).score(X[out], y[out], val)
            assert search.cv_scores_[i, j] == pytest.approx(score)
