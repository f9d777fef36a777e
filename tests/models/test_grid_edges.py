"""Which chosen values are at the end of their grids, and what is said of them."""

import warnings

import numpy as np
import pytest

import latem
from latem import ESZSL, ESZSLCV, GridEdgeWarning, make_latent_world
from latem.models.grid_edges import (
    Edge,
    allowed_edges,
    edges_in_array,
    edges_in_list,
    ends,
    warn_of_edges,
)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([10, 5, 20], {"lowest": (5, 2), "highest": (20, 40)}),
        ([2, 4, 6, 8, 10], {"lowest": (2, 1), "highest": (10, 12)}),
        ([1, 2, 3], {"highest": (3, 4)}),  # there is no count below 1
        ([0.0, 0.1, 1.0], {"highest": (1.0, 10.0)}),  # no penalty below 0
        ([-1.0, 0.0, 1.0], {"lowest": (-1.0, -2.0), "highest": (1.0, 2.0)}),
        ([None, 0.5, 0.7, 1.0], {"lowest": (0.5, 0.357), "highest": (1.0, 1.43)}),
        ([None, 0.5, 1.0], {}),
        ([0.1, 0.1, 1.0], {}),
        ([False, True, 2], {}),
        (["a", "b", "c"], {}),
        ([], {}),
    ],
)
def test_ends_of_grids(values, expected):
    assert ends(values) == expected


def test_only_a_better_end_is_an_edge():
    grid = [{"C": c, "kind": k} for c in (1.0, 2.0, 4.0) for k in ("a", "b", "c")]
    scores = np.arange(9.0)
    assert edges_in_list(grid, scores, 8) == [Edge("C", 4.0, "highest", 8.0)]
    scores[5] = 8  # an inner value does as well
    assert edges_in_list(grid, scores, 8) == []
    assert edges_in_list(grid, np.roll(scores, 3), 2 + 3) == []  # in the middle


def test_edges_of_an_array_are_those_of_the_list():
    rng = np.random.default_rng(0)
    axes = {"a": [1.0, 2.0, 4.0], "b": [None, 1, 2, 3], "c": [0.5, 1.0]}
    grid = [{"a": a, "b": b, "c": c} for a in axes["a"] for b in axes["b"] for c in axes["c"]]
    seen = set()
    for _ in range(60):
        scores = rng.normal(size=(3, 4, 2))
        best = np.unravel_index(scores.argmax(), scores.shape)
        found = edges_in_array(scores, axes, best)
        assert found == edges_in_list(grid, scores.ravel(), int(scores.argmax()))
        seen |= {(edge.name, edge.end) for edge in found}
    assert seen == {("a", "lowest"), ("a", "highest"), ("b", "highest")}


def test_values_that_the_model_would_refuse_are_no_edges():
    further = [Edge("prune_below", 0.9, "highest", 1.8), Edge("margin", 1.0, "highest", 2.0)]
    assert allowed_edges(latem.LatEm(), further) == further[1:]


def test_the_warning_is_one_sentence():
    edges = [Edge("gamma", 1000.0, "highest", 1e4), Edge("n_epochs", 5, "lowest", 2)]
    with pytest.warns(GridEdgeWarning) as caught:
        warn_of_edges("SJE", edges)
    assert str(caught[0].message) == (
        "SJE did best at the end of what was tried: gamma=1000 (highest), n_epochs=5 (lowest); a "
        "better value may lie beyond, so try gamma=10000 and n_epochs=2, too."
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_edges("SJE", [])


# -- ESZSLCV ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_images=10, n_poses=1, noise=1.0, random_state=0)


def test_eszslcv_says_so_and_its_file_too(world, tmp_path):
    X, y = world.training()
    search = ESZSLCV(world.embeddings["att"], cv=3, random_state=0).fit(X, y)
    assert search.grid_edges_ == {}
    below = search.gamma_ * np.array([0.01, 0.1, 1.0])  # a grid that ends at the best value
    with pytest.warns(GridEdgeWarning, match=r"ESZSLCV did best .* gamma=\S+ \(highest\); .* try"):
        search.set_params(gammas=below, lams=[search.lam_]).fit(X, y)
    assert search.grid_edges_ == {"gamma": "highest"}
    search.save(tmp_path / "m")
    assert latem.load(tmp_path / "m").grid_edges_ == {"gamma": "highest"}
    tensors, meta = search.pack()
    del meta["record"]["grid_edges"]  # as in earlier files
    assert ESZSLCV.unpack(tensors, meta).grid_edges_ == {}


def test_too_few_images_to_choose_on_give_no_edges():
    search = ESZSLCV(gammas=[1.0, 2.0, 3.0]).fit(np.eye(3), [0, 1, 2])
    assert search.grid_edges_ == {}
    assert ESZSL().fit(np.eye(3), [0, 1, 2]).map_.shape == (3, 3)
