"""Terms of scores add up to the scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latem import (
    ALE,
    ESZSL,
    EXEM,
    SJE,
    WSABIE,
    ClassEmbeddings,
    Committee,
    ConSE,
    LatEm,
    make_latent_world,
)
from latem.models.score_terms import map_terms

QUICK = {"n_epochs": 3, "random_state": 0}
KERNEL = {"class_kernel": 0.7, "center_classes": True, "balance_classes": True}
MEMBERS = [
    ("map", LatEm(n_maps=2, **QUICK)),
    ("kernel", ESZSL(**KERNEL)),
    ("exemplars", EXEM(neighbour="1NN")),
    ("whitened", EXEM(neighbour="whitened", center_classes=True)),
]
MODELS = {
    "LatEm": lambda t: LatEm(t, n_maps=3, **QUICK),
    "LatEm, kernel": lambda t: LatEm(t, n_maps=2, **KERNEL, **QUICK),
    "SJE by direction": lambda t: SJE(t, n_maps=2, normalize_projection=True, **QUICK),
    "ALE": lambda t: ALE(t, **QUICK),
    "WSABIE": lambda t: WSABIE(t, rank=3, **QUICK),
    "ESZSL": ESZSL,
    "ESZSL, centred and balanced": lambda t: ESZSL(t, center_classes=True, balance_classes=True),
    "ESZSL, kernel": lambda t: ESZSL(t, **KERNEL),
    "ESZSL, plain kernel": lambda t: ESZSL(t, class_kernel=2.0, normalize_classes=False),
    "EXEM 1NN": lambda t: EXEM(t, neighbour="1NN"),
    "EXEM 1NNs": lambda t: EXEM(t, neighbour="1NNs", n_components=3),
    "EXEM whitened": lambda t: EXEM(t, neighbour="whitened", center_classes=True),
    "Committee": lambda t: Committee(t, MEMBERS, weights=[1, 2, 3, 4]),
    "Committee of maps": lambda t: Committee(
        t, [("low rank", WSABIE(rank=3, **QUICK)), ("closed", ESZSL())]
    ),
    "Committee of one": lambda t: Committee(t, MEMBERS, weights=[0, 0, 1, 0]),
}


@pytest.fixture(scope="module")
def world():
    world = make_latent_world(n_poses=1, n_seen=12, n_images=5, noise=0.5, random_state=0)
    table = world.embeddings["att"]
    columns = [f"trait {i}" for i in range(8)]
    return world, ClassEmbeddings(table.names, table.vectors, columns=columns)


def fitted(world, name):
    dataset, table = world
    model = MODELS[name](table).set_params(dtype="float64")
    return model.fit(*dataset.training())


def all_terms(model, X, chosen):
    scaled = model.scaler_.transform(X, np.float64)
    return [model.score_terms(x, chosen) for x in scaled]


@pytest.mark.parametrize("name", sorted(MODELS))
def test_terms_add_up_to_the_scores(world, name):
    model = fitted(world, name)
    X = world[0].testing()[0][:6]
    new = ClassEmbeddings(["new", "newer"], world[1].vectors[:2] * 0.9 + 0.05,
                          columns=world[1].columns)  # fmt: skip
    for classes in ("all", list(world[1].names[3:6]), new):
        expected = model.decision_function(X, classes)
        for found, row in zip(
            all_terms(model, X, model.class_view_.candidates(classes)), expected, strict=True
        ):
            assert found.terms.shape == (len(row), len(found.columns))
            np.testing.assert_allclose(found.terms.sum(axis=1), row, atol=1e-8 * np.abs(row).max())
            if found.by_map is not None:
                np.testing.assert_allclose(
                    found.by_map.max(axis=0), row, atol=1e-8 * np.abs(row).max()
                )


def test_what_terms_are_called(world):
    X = world[0].testing()[0][:1]
    traits = [f"trait {i}" for i in range(8)]
    for name in ("LatEm", "WSABIE", "ESZSL"):
        model = fitted(world, name)
        assert all_terms(model, X, model.class_view_.candidates())[0].columns == traits
    kernel, exem = fitted(world, "ESZSL, kernel"), fitted(world, "EXEM 1NN")
    seen = [f"like {one}" for one in kernel.classes_]
    assert all_terms(kernel, X, kernel.class_view_.candidates())[0].columns == seen
    assert all_terms(exem, X, exem.class_view_.candidates())[0].columns == [
        *seen, "(what the seen classes share)",
    ]  # fmt: skip
    committee = fitted(world, "Committee")
    columns = all_terms(committee, X, committee.class_view_.candidates())[0].columns
    assert columns == [*traits, *seen, "(what the seen classes share)"]


def test_terms_of_a_committee_are_its_members_weighed(world):
    model = fitted(world, "Committee")
    X = world[0].testing()[0][:3]
    chosen = model.class_view_.candidates("unseen")
    for i, found in enumerate(all_terms(model, X, chosen)):
        expected = {column: np.zeros(len(chosen)) for column in found.columns}
        for one, weight, scale in zip(model.models_, model.weights_, model.scales_, strict=True):
            own = all_terms(one, X, one.class_view_.candidates("unseen"))[i]
            for k, column in enumerate(own.columns):
                expected[column] += weight / scale * own.terms[:, k]
        for k, column in enumerate(found.columns):
            np.testing.assert_allclose(found.terms[:, k], expected[column], atol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        ESZSL(normalize_classes=False, center_classes=False),
        LatEm(n_maps=1, n_epochs=3, normalize_classes=False, random_state=0),
    ],
    ids=["ESZSL", "LatEm"],
)
def test_slopes_tell_what_more_of_a_column_does(world, model):
    """Scores of classes that have a little more of one column, by themselves."""
    dataset, table = world
    model = model.set_params(class_embeddings=table, dtype="float64").fit(*dataset.training())
    X = dataset.testing()[0][:3]
    chosen = model.class_view_.candidates("unseen")
    vectors = table.select(chosen.names).vectors
    signs = np.array([np.sign(found.slopes) for found in all_terms(model, X, chosen)])
    assert set(signs.ravel()) >= {-1.0, 1.0}
    before = model.decision_function(X, (chosen.names, vectors))
    for column in range(vectors.shape[1]):
        more = vectors.copy()
        more[:, column] += 0.01
        gain = model.decision_function(X, (chosen.names, more)) - before
        np.testing.assert_array_equal(np.sign(gain), signs[:, :, column])


def test_slopes_of_a_committee_are_its_members_weighed(world):
    model = fitted(world, "Committee")
    X = world[0].testing()[0][:3]
    chosen = model.class_view_.candidates("unseen")
    for i, found in enumerate(all_terms(model, X, chosen)):
        expected = {column: np.zeros(len(chosen)) for column in found.columns}
        for one, weight, scale in zip(model.models_, model.weights_, model.scales_, strict=True):
            own = all_terms(one, X, one.class_view_.candidates("unseen"))[i]
            for k, column in enumerate(own.columns):
                expected[column] += weight / scale * own.slopes[:, k]
        for k, column in enumerate(found.columns):
            np.testing.assert_allclose(found.slopes[:, k], expected[column], atol=1e-12)


def test_an_exemplar_like_no_seen_class_has_only_what_they_share(world):
    dataset, table = world
    model = EXEM(table, gamma=16.0, normalize_classes=False, dtype="float64")
    model.fit(*dataset.training())
    far = ClassEmbeddings(["far", "away"], table.vectors[:2] + 1000, columns=table.columns)
    found = all_terms(model, dataset.testing()[0][:1], model.class_view_.candidates(far))[0]
    np.testing.assert_array_equal(found.terms[:, :-1], 0)
    assert (found.terms[:, -1] != 0).all()


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 999), st.integers(1, 3), st.booleans())
def test_the_best_map_speaks_for_each_class(seed, n_maps, by_direction):
    rng = np.random.default_rng(seed)
    X, y, S = rng.normal(size=(12, 5)), np.arange(12) % 3, rng.normal(size=(4, 3))
    model = ESZSL((range(4), S), dtype="float64").fit(X, y)
    maps = rng.normal(size=(n_maps, 5, 3))
    found = map_terms(
        maps, model.class_view_, X[0], model.class_view_.candidates("all"),
        by_direction=by_direction,
    )  # fmt: skip
    for c in range(4):
        s = S[c] / np.linalg.norm(S[c])
        images = [X[0] @ W for W in maps]
        if by_direction:
            images = [p / np.linalg.norm(p) for p in images]
        best = max(images, key=lambda p, s=s: p @ s)
        np.testing.assert_allclose(found.terms[c], best * s, atol=1e-12)
        np.testing.assert_allclose(found.by_map[:, c], [p @ s for p in images], atol=1e-12)


def test_models_whose_scores_are_no_sums_say_so(world):
    dataset, table = world
    model = ConSE(table).fit(*dataset.training())
    X = dataset.testing()[0][:1]
    with pytest.raises(TypeError, match="ConSE does not add up its scores over traits or seen"):
        all_terms(model, X, model.class_view_.candidates())
    committee = Committee(table, [("map", ESZSL()), ("mixed", ConSE())]).fit(*dataset.training())
    with pytest.raises(TypeError, match="ConSE does not add up its scores"):
        all_terms(committee, X, committee.class_view_.candidates())
