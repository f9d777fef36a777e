"""Scores along traits: the slope they are said to be, and what they find."""

import numpy as np
import pytest

from latem import ESZSL, SJE, ClassEmbeddings, LatEm, make_latent_world, trait_scores
from latem.inspection import trait_agreement
from latem.inspection.traits import distinct_traits, has_trait_names


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_unseen=8, n_dimensions=6, random_state=0)


@pytest.mark.parametrize("normalize", [True, False])
def test_scores_are_slopes_at_the_average_class(world, normalize):
    table = world.embeddings["att"]
    model = ESZSL(table, normalize_classes=normalize).fit(*world.training())
    X, _ = world.testing()
    seen = model.class_view_.training(np.float64).mean(axis=0)
    average = seen / np.linalg.norm(seen) if normalize else seen
    slopes, step = [], 1e-5
    projected = model.scaler_.transform(X, np.float64) @ model.map_
    for a in range(6):
        up, down = average.copy(), average.copy()
        up[a] += step
        down[a] -= step
        if normalize:
            up, down = up / np.linalg.norm(up), down / np.linalg.norm(down)
        slopes.append(projected @ (up - down) / (2 * step))
    np.testing.assert_allclose(trait_scores(model, X), np.array(slopes).T, rtol=1e-4, atol=1e-7)


def test_centred_classes_need_no_correction(world):
    model = LatEm(
        world.embeddings["att"], n_maps=1, n_epochs=2, center_classes=True, random_state=0
    )
    model.fit(*world.training())
    X, _ = world.testing()
    expected = model.scaler_.transform(X, np.float64) @ model.maps_[0].astype(np.float64)
    np.testing.assert_allclose(trait_scores(model, X), expected)


def test_the_map_that_names_an_image_counts():
    world = make_latent_world(random_state=0)
    table = world.embeddings["att"]
    model = LatEm(table, n_maps=3, normalize_classes=False, random_state=0)
    model.fit(*world.training())
    X, _ = world.testing()
    features = model.scaler_.transform(X, np.float64)
    winner = model.latent_map(X, "unseen")
    assert len(np.unique(winner)) > 1
    expected = [
        x @ model.maps_[k].astype(np.float64) for x, k in zip(features, winner, strict=True)
    ]
    np.testing.assert_allclose(trait_scores(model, X), expected, rtol=1e-6)


def test_learned_traits_agree_with_the_descriptions(world):
    table = world.embeddings["att"]
    model = ESZSL(table).fit(*world.training())
    X, y = world.testing()
    agreement = trait_agreement(model, trait_scores(model, X), y)
    assert (np.diff(agreement) <= 0).all()
    assert agreement.iloc[0] > 0.8
    shuffled = np.random.default_rng(0).permutation(y)
    assert trait_agreement(model, trait_scores(model, X), shuffled).iloc[0] < 0.4
    value = np.corrcoef(table.vectors[table.positions(y), 2], trait_scores(model, X).iloc[:, 2])[
        0, 1
    ]
    assert agreement[table.column_names()[2]] == pytest.approx(value)


def test_constant_and_equal_traits(world):
    table = world.embeddings["att"]
    more = np.column_stack([table.vectors, np.ones(len(table)), -2 * table.vectors[:, 0]])
    columns = [*"abcdef", "one", "minus a"]
    model = ESZSL(ClassEmbeddings(table.names, more, columns=columns)).fit(*world.training())
    X, y = world.testing()
    agreement = trait_agreement(model, trait_scores(model, X), y)
    assert "one" not in agreement
    chosen = distinct_traits(model, agreement, np.unique(y), 12)
    assert len({"a", "minus a"} & set(chosen)) == 1
    assert chosen[0] == agreement.index[0]
    assert distinct_traits(model, agreement, np.unique(y), 2) == chosen[:2]


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        (["red", "w_1"], True),
        (["w_0", "w_1"], False),
        (["0", "1"], False),
        (["dim 1", "dim 2"], False),
    ],
)
def test_numbered_columns_are_no_traits(columns, named):
    table = ClassEmbeddings(["a", "b"], np.eye(2), columns=columns)
    model = SJE(table, n_epochs=1, random_state=0).fit(np.eye(2), ["a", "b"])
    assert has_trait_names(model) is named
