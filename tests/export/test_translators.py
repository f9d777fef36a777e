"""Every model computes the same in a graph as in the library."""

import numpy as np
import pytest
from export_runs import about, gap, newest_opset, run
from helpers import SHARED
from model_suite import EVERY, make

import latem
from latem import ClassEmbeddings, TableClassifier, make_latent_world
from latem.export import export_onnx, translates
from latem.export import translators as room

NEAR = 1e-5


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=2, n_seen=12, n_images=6, random_state=0)


@pytest.fixture(scope="module")
def table(world):
    """Descriptions that are also attributes: none is negative."""
    att = world.embeddings["att"]
    return ClassEmbeddings(
        att.names, att.vectors - att.vectors.min(), name="att", columns=list("abcdefgh")
    )


@pytest.fixture(scope="module")
def images(world):
    return world.testing()[0].astype(np.float32)


@pytest.fixture(scope="module")
def new(table):
    """Classes that no model has heard of, as a table; one of the same size and one smaller."""
    rng = np.random.default_rng(5)
    return ClassEmbeddings(
        [f"new {i}" for i in range(5)],
        rng.random((5, 8)).astype(np.float32) * table.vectors.max(),
        columns=list("abcdefgh"),
    )


def check(model, images, path, *, classes="all", opset=17, new=None):
    """Scores, names and probabilities of a model's file are the model's own."""
    written = export_onnx(model, path, classes=classes, opset=opset)
    found = run(path, features=images)
    expected = model.class_scores(images, classes)
    assert gap(found["scores"], expected) < NEAR
    assert found["scores"].dtype == np.float32
    assert written.difference < NEAR
    assert list(written.names) == model.candidate_names(classes).tolist()
    clear = np.sort(expected, axis=1)
    clear = clear[:, -1] - clear[:, -2] > 2 * NEAR * np.abs(expected).max()
    assert clear.any()
    np.testing.assert_array_equal(found["best"][clear], expected.argmax(axis=1)[clear])
    np.testing.assert_allclose(found["probabilities"].sum(axis=1), 1, rtol=1e-5)
    if new is not None:
        given = run(path, features=images, class_table=new.vectors.astype(np.float32), seen=[False])
        assert gap(given["scores"], model.decision_function(images, new)) < NEAR
    return found


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", EVERY)
def test_every_model_is_the_same_in_its_graph(kind, dtype, world, table, images, new, tmp_path):
    model = make(kind, table, dtype)
    if kind == "IAP":  # with its usual C it learns little here: scores would be all rounding
        model.set_params(C=1.0)
    model.fit(*world.training())
    opsets = (13, 17, newest_opset()) if dtype == "float32" else (17,)
    for opset in opsets:
        given = None if kind == "LateFusion" else new
        check(model, images, tmp_path / "m.onnx", opset=opset, new=given)
    check(model, images, tmp_path / "m.onnx", classes="unseen")


VARIANTS = [
    ("LatEm", {"n_maps": 3, "class_kernel": 0.7, "center_classes": True, "balance_classes": True}),
    ("LatEm", {"feature_scaling": "l2-centered", "start": "eszsl", "normalize_classes": False}),
    ("SJE", {"normalize_projection": True, "n_maps": 2}),
    ("ALE", {"feature_scaling": None, "class_kernel": 1.0, "normalize_classes": False}),
    ("ESZSL", {"center_classes": True, "class_kernel": 0.5, "balance_classes": True}),
    ("ESZSL", {"feature_scaling": "l2", "balance_classes": True}),
    ("EXEM", {"neighbour": "1NN", "center_classes": True}),
    ("EXEM", {"neighbour": "whitened", "feature_scaling": "zscore"}),
    ("SAE", {"direction": "semantic"}),
    ("SynC", {"loss": "structured", "lam": 0.1}),
    ("CMT", {"neighbour": "cosine"}),
    ("CMT", {"novelty": "gaussian"}),
    ("CMT", {"novelty": "gaussian", "neighbour": "cosine"}),
    ("SemanticOutputCodes", {"neighbour": "cosine"}),
    ("ConSE", {"n_top": 3}),
    ("DAP", {"prior": "uniform", "threshold": "column"}),
    ("IAP", {"prior": "uniform", "normalize_classes": True}),
    ("CCA", {"class_kernel": 0.8, "n_components": 3}),
]


@pytest.mark.parametrize(("kind", "options"), VARIANTS, ids=lambda value: str(value)[:60])
def test_other_ways_of_a_model(kind, options, world, table, images, new, tmp_path):
    model = make(kind, table, "float32").set_params(**options).fit(*world.training())
    for opset in (13, newest_opset()):
        check(model, images, tmp_path / "m.onnx", opset=opset, new=new)


def test_novelty_is_told_which_classes_are_seen(world, table, images, tmp_path):
    model = make("CMT", table).set_params(novelty="gaussian", novelty_quantile=0.2)
    model.fit(*world.training())
    mixed = [*model.classes_[:3], *model.candidate_names("unseen")[:4]]
    novel = model.is_novel(images)
    assert novel.any()
    export_onnx(model, tmp_path / "m.onnx", classes="unseen")
    flags = np.isin(mixed, model.classes_)
    given = table.select(mixed).vectors.astype(np.float32)
    found = run(tmp_path / "m.onnx", features=images, class_table=given, seen=flags)
    assert gap(found["scores"], model.decision_function(images, mixed)) < NEAR


def test_which_map_won(world, table, images, tmp_path):
    model = make("LatEm", table, "float64").set_params(n_maps=3, n_epochs=20)
    model.fit(*world.training())
    found = check(model, images, tmp_path / "m.onnx")
    expected = model.latent_map(images, "all", per_class=True)
    assert len(np.unique(expected)) > 1
    assert found["best_map"].dtype == np.int64
    assert (found["best_map"] == expected).mean() > 0.999  # maps may tie but for rounding
    single = make("LatEm", table).set_params(n_maps=1).fit(*world.training())
    assert "best_map" not in export_onnx(single, tmp_path / "s.onnx").outputs


def test_a_class_that_is_the_centre_of_all(world, table, images, tmp_path):
    """It has no direction once the centre is gone; rounding must not give it one."""
    seen = make("ESZSL", table).fit(*world.training()).classes_
    middle = table.select(seen).vectors.mean(axis=0)
    wide = ClassEmbeddings(
        [*table.names, "middle"], [*table.vectors, middle], columns=list("abcdefgh")
    )
    model = latem.ESZSL(wide, center_classes=True).fit(*world.training())
    export_onnx(model, tmp_path / "m.onnx", classes="all")
    found = run(tmp_path / "m.onnx", features=images)["scores"]
    assert not found[:, -1].any()
    assert not model.decision_function(images, "all")[:, -1].any()


def test_fusions_of_searches_committees_and_fusions(world, table, images, tmp_path):
    other = ClassEmbeddings(table.names, np.tanh(table.vectors[:, ::-1]), name="other")
    inner = latem.LateFusion([("c", make("CCA", other)), ("s", make("HeldOutSearch", table))])
    members = [("x", make("Committee", table, "float32")), ("y", inner), ("z", make("DAP", other))]
    model = latem.LateFusion(members, weights=[1, 2, 0.5], standardize=True)
    model.fit(*world.training())
    check(model, images, tmp_path / "m.onnx")
    assert [one["name"] for one in about(tmp_path / "m.onnx")["tables"]] == [
        "att", "other", "att", "other"
    ]  # fmt: skip


def test_a_committee_whose_member_has_no_say(world, table, images, tmp_path):
    members = [("a", latem.ESZSL()), ("b", latem.EXEM())]
    model = latem.Committee(table, members, weights=[1, 0]).fit(*world.training())
    check(model, images, tmp_path / "m.onnx")


class Shy(TableClassifier):
    """A model of another package."""

    _learned = "map_"

    def __init__(self, class_embeddings=None, *, feature_scaling=None, normalize_classes=True,
                 n_threads=None, dtype="float32"):  # fmt: skip
        self.class_embeddings, self.feature_scaling = class_embeddings, feature_scaling
        self.normalize_classes, self.n_threads, self.dtype = normalize_classes, n_threads, dtype

    def fit(self, X, y):
        X, _ = self._begin_anew(X, y)
        self.map_ = np.ones((X.shape[1], self.class_view_.width), self.dtype_)
        return self

    def _block_scorer(self, chosen):
        return lambda X: X @ self.map_ @ chosen.vectors.T

    def _state(self):
        return {"map": self.map_}, {}

    def _restore(self, tensors, record):
        self.map_ = tensors["map"]


class OwnESZSL(latem.ESZSL):
    """A model that looks like one of the library's, and scores otherwise."""

    def _block_scorer(self, chosen):
        score = super()._block_scorer(chosen)
        return lambda X: -score(X)


@pytest.fixture
def registered(monkeypatch):
    from latem.models import model_rows

    monkeypatch.setattr(model_rows, "_ROWS", dict(model_rows._ROWS))
    monkeypatch.setattr(room, "_TRANSLATORS", dict(room._TRANSLATORS))
    latem.register(Shy)
    latem.register(OwnESZSL)


def test_what_cannot_be_written_is_refused(registered, world, table, tmp_path):
    for kind in (Shy, OwnESZSL):
        model = kind(table).fit(*world.training())
        fusion = latem.LateFusion([("a", kind(table))]).fit(*world.training())
        search = latem.HeldOutSearch(OwnESZSL(table), {"gamma": [1.0]}, cv=3)
        for one in (model, fusion):
            with pytest.raises(TypeError, match=f"{kind.__name__} has no ONNX form: .*translates"):
                export_onnx(one, tmp_path / "m.onnx")
    with pytest.raises(TypeError, match="OwnESZSL has no ONNX form"):
        export_onnx(search.fit(*world.training()), tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_another_package_adds_a_translator(registered, world, table, images, new, tmp_path):
    @translates("Shy")
    def shy(model, X, classes):
        return X @ model.map_ @ classes.vectors(model.class_view_).astype(X.dtype).T

    model = Shy(table).fit(*world.training())
    export_onnx(model, tmp_path / "m.onnx", classes="all")
    found = run(tmp_path / "m.onnx", features=images)["scores"]
    assert gap(found, model.decision_function(images, "all")) < NEAR


@pytest.fixture(scope="module")
def cub():
    folder = SHARED / "cub"
    if not (folder / "features.npy").is_file():
        pytest.skip(f"needs {folder}")
    return latem.read_folder(folder)


REAL = [
    ("LatEm", {"n_maps": 4, "n_epochs": 2, "random_state": 0}),
    ("ESZSL", {"class_kernel": 0.7, "center_classes": True, "balance_classes": True}),
    ("SAE", {}),
    ("EXEM", {"n_components": 100}),
    ("EXEM", {"n_components": 100, "neighbour": "whitened"}),
    ("GFZSL", {}),
    ("CCA", {}),
    ("SynC", {}),
    ("Committee", {"random_state": 0}),
]


@pytest.mark.parametrize(("kind", "options"), REAL, ids=lambda value: str(value)[:60])
def test_real_birds(kind, options, cub, tmp_path):
    rng = np.random.default_rng(0)
    X, y = cub.training()
    rows = np.sort(rng.choice(len(X), 900, replace=False))
    model = getattr(latem, kind)(cub.embeddings["att"], **options)
    model.fit(np.asarray(X)[rows], np.asarray(y)[rows])
    unseen, _ = cub.testing()
    some = np.asarray(unseen)[:: len(unseen) // 60].astype(np.float32)
    for opset in (13, 17, newest_opset()):
        check(model, some, tmp_path / "m.onnx", classes="all", opset=opset)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted({*EVERY} - {kind for kind, _ in REAL}))
def test_real_birds_and_every_other_model(kind, cub, tmp_path):
    X, y = (np.asarray(part) for part in cub.training())
    rows = np.sort(np.random.default_rng(0).choice(len(X), 900, replace=False))
    table = cub.embeddings["att"]
    model = make(kind, table, "float32").fit(X[rows].astype(np.float32), y[rows])
    unseen, _ = cub.testing()
    some = np.asarray(unseen)[:: len(unseen) // 60].astype(np.float32)
    check(model, some, tmp_path / "m.onnx", classes="all")
