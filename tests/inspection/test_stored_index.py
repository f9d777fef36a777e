"""An index beside stored images: what it finds, when it is refused, and how it is written."""

import json
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from latem import ALE, ESZSL, EXEM, Committee, LateFusion, LatEm, make_latent_world
from latem.core.alone import only_one
from latem.inspection.image_index import ImageIndex
from latem.inspection.stored_index import (
    RECALL,
    IndexMismatchError,
    KnownBest,
    StoredIndex,
    build_index,
    index_files,
    open_index,
    with_long_lists,
)
from latem.models.affine_form import AffineForm

pytest.importorskip("usearch")


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_images=40, n_unseen=4, noise=0.4, random_state=0)


def fitted(world, kind, scaling):
    table = world.embeddings["att"]
    model = {
        "ESZSL": lambda: ESZSL(table, feature_scaling=scaling),
        "LatEm": lambda: LatEm(
            table, n_maps=3, n_epochs=3, feature_scaling=scaling, random_state=0
        ),
        "Committee": lambda: Committee(
            table, [("a", ESZSL()), ("b", EXEM())], feature_scaling=scaling
        ),
        "LateFusion": lambda: LateFusion(
            [
                (name, ESZSL(table, gamma=g, feature_scaling=scaling))
                for name, g in (("a", 1), ("b", 9))
            ]
        ),
    }[kind]()
    return model.fit(*world.training())


def stored(folder, world, n=3000):
    rng = np.random.default_rng(0)
    X = np.asarray(world.features, np.float32)
    X = X[rng.integers(0, len(X), n)] + 0.1 * rng.standard_normal((n, X.shape[1]))
    np.save(folder / "X.npy", X.astype(np.float16))
    return folder / "X.npy", np.load(folder / "X.npy", mmap_mode="r")


@pytest.mark.parametrize("scaling", ["l2-centered", "l2", "zmax", None])
@pytest.mark.parametrize("kind", ["ESZSL", "LatEm", "Committee", "LateFusion"])
def test_it_finds_nearly_all_with_the_same_scores(world, kind, scaling, tmp_path):
    model = fitted(world, kind, scaling)
    path, X = stored(tmp_path, world, 1000)
    scaler = model.linear_pieces("seen")[0]
    build_index(path, X, scaler)
    index = ImageIndex(model, X, open_index(path, X, scaler))
    exact = ImageIndex(model, X)
    shares = []
    for name in world.split().test:
        rows, scores = index.best(name, 20)
        right, best = exact.best(name, 20)
        shares.append(len(np.intersect1d(rows, right)) / 20)
        np.testing.assert_allclose(
            scores, model.decision_function(np.asarray(X[rows]), [name])[:, 0], rtol=1e-4, atol=1e-5
        )
        assert (np.diff(scores) <= 0).all()
        assert scores[0] <= best[0] * (1 + 1e-4) + 1e-5
    assert np.mean(shares) >= 0.95


def test_among_some_rows(world, tmp_path):
    model = fitted(world, "ESZSL", "l2")
    path, X = stored(tmp_path, world)
    build_index(path, X, model.scaler_)
    index = ImageIndex(model, X, open_index(path, X, model.scaler_))
    name = world.split().test[0]
    half = np.arange(0, len(X), 2)
    rows, _ = index.best(name, 5, half)
    assert np.isin(rows, half).all()
    few = ImageIndex(model, X).best(name, len(X))[0][-3:]  # no list has these
    rows, _ = index.best(name, 2, np.sort(few))
    assert np.isin(rows, few).all()


class CoarseGraph:
    """Finds by directions that are rounded to thirds, so many images look alike to it."""

    def __init__(self, Z):
        self.Z = np.round(3 * Z / np.linalg.norm(Z, axis=1, keepdims=True))
        self.ndim = Z.shape[1]

    def __len__(self):
        return len(self.Z)

    def search(self, query, n, threads):
        return SimpleNamespace(keys=np.argsort(-(self.Z @ query), kind="stable")[:n])


def test_lists_become_as_long_as_they_must(world, tmp_path):
    model = fitted(world, "ESZSL", "l2")
    _, X = stored(tmp_path, world, 20_000)
    names = list(world.split().test)
    _, form = model.linear_pieces(names)
    rows = model.best_images(X, names, 100)[0]
    known = KnownBest([form.of(i) for i in range(len(names))], rows)
    graph = CoarseGraph(np.asarray(X, np.float32))
    short, long = StoredIndex(graph, model.scaler_), with_long_lists(graph, model.scaler_, known)
    assert known.recall(short) < RECALL <= long.recall == known.recall(long)
    assert long.listed in (800, 1600, 3200, 6400)
    assert known.recall(StoredIndex(graph, model.scaler_, long.listed // 2)) < RECALL
    assert len(long.candidates(known.forms[0], 200)) == 2 * long.listed
    shuffled = KnownBest(known.forms, np.arange(400).reshape(4, 100))  # nothing would help
    assert with_long_lists(graph, model.scaler_, shuffled).listed == 6400  # and no longer
    assert with_long_lists(graph, model.scaler_, None).listed == 400
    nowhere = AffineForm(np.zeros((1, 1, 32)), np.zeros((1, 1)), (1,))  # a class like any other
    assert KnownBest([nowhere], rows[:1]).recall(long) is None
    one_more = KnownBest([*known.forms, nowhere], rows[[0, 1, 2, 3, 0]])
    assert one_more.recall(long) == long.recall


def test_images_that_are_nearly_alike_are_found(world, tmp_path):
    model, rng = fitted(world, "ESZSL", "l2"), np.random.default_rng(0)
    X = np.repeat(np.asarray(world.features, np.float32)[::40], 100, axis=0)
    np.save(tmp_path / "X.npy", X + 0.02 * rng.standard_normal(X.shape, np.float32))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    names = list(world.split().test)
    pieces = model.linear_pieces(names)
    known = KnownBest([pieces[1].of(i) for i in range(4)], model.best_images(X, names, 100)[0])
    build_index(tmp_path / "X.npy", X, model.scaler_, known=lambda: known, n_threads=1)
    found = open_index(tmp_path / "X.npy", X, model.scaler_)
    assert known.recall(found) >= RECALL
    assert found.listed <= 800  # 3200 if they came in the order of the file


@pytest.mark.parametrize("scaling", ["zscore", None])
def test_where_inner_products_lead_to_few_images_all_are_reached(scaling, tmp_path):
    world = make_latent_world(
        n_poses=1, n_seen=20, n_unseen=6, n_images=10, n_features=64, random_state=0
    )
    rng = np.random.default_rng(0)
    X = np.resize(world.testing()[0], (8000, 64)) * (1 + 0.05 * rng.standard_normal((8000, 64)))
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    images = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = ESZSL(world.embeddings["att"], feature_scaling=scaling).fit(*world.training())
    names = model.candidate_names("all")
    right, _ = model.best_images(images, names, 100)
    pieces = model.linear_pieces(names)[1]
    forms = [pieces.of(i) for i in range(len(names))]
    build_index(tmp_path / "X.npy", images, model.scaler_, known=lambda: KnownBest(forms, right))
    index = open_index(tmp_path / "X.npy", images, model.scaler_)
    assert index.recall >= RECALL
    assert index.listed < len(X) / 3
    assert all(len(index.candidates(form, 100)) == index.listed for form in forms)
    told = json.loads(index_files(tmp_path / "X.npy", model.scaler_)[1].read_text())
    assert told["parameters"]["metric"] == "cos"  # inner products were tried and did not do


def test_images_that_are_all_zero(world, tmp_path):
    width = world.features.shape[1]
    np.save(tmp_path / "X.npy", np.zeros((50, width), np.float32))
    images = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = fitted(world, "ESZSL", None)
    build_index(tmp_path / "X.npy", images, model.scaler_)
    index = open_index(tmp_path / "X.npy", images, model.scaler_)
    pieces = model.linear_pieces([model.candidate_names("seen")[0]])[1]
    assert index.candidates(pieces.of(0), 10).tolist() == list(range(50))


def test_how_long_lists_are_travels_with_the_file(world, tmp_path):
    model = fitted(world, "LatEm", "l2")
    path, X = stored(tmp_path, world)
    names = list(world.split().test)
    pieces = model.linear_pieces(names)
    known = KnownBest([pieces[1].of(i) for i in range(4)], model.best_images(X, names, 100)[0])
    build_index(path, X, model.scaler_, known=lambda: known)
    index, note = open_index(path, X, model.scaler_), index_files(path, model.scaler_)[1]
    assert index.recall == known.recall(index) >= RECALL
    facts = json.loads(note.read_text())
    note.write_text(json.dumps(facts | {"lists": {"length": 1200, "recall": 0.5}}))
    index = open_index(path, X, model.scaler_)
    assert (index.listed, index.recall) == (1200, 0.5)


def test_one_index_for_all_models_that_divide_by_length(world, tmp_path):
    path, X = stored(tmp_path, world, 300)
    one, other = fitted(world, "ESZSL", "l2"), fitted(world, "Committee", "l2-centered")
    third = fitted(world, "ESZSL", "zmax")
    build_index(path, X, one.scaler_)
    found = open_index(path, X, other.scaler_)
    assert len(found) == 300
    assert found.fits(other.scaler_)
    assert not found.fits(third.scaler_)
    assert open_index(path, X, third.scaler_) is None
    name = world.split().test[0]  # one that does not fit is not asked
    np.testing.assert_array_equal(
        ImageIndex(third, X, found).best(name, 5)[0], ImageIndex(third, X).best(name, 5)[0]
    )


def test_one_thread_makes_the_same_bytes(world, tmp_path):
    path, X = stored(tmp_path, world, 400)
    scaler = fitted(world, "ESZSL", "l2").scaler_
    files = [build_index(path, X, scaler, n_threads=1).read_bytes() for _ in range(2)]
    assert files[0] == files[1]
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        "X-directions.json", "X-directions.usearch", "X.npy",
    ]  # fmt: skip


def test_what_is_refused(world, tmp_path):
    path, X = stored(tmp_path, world, 200)
    scaler = fitted(world, "ESZSL", "l2").scaler_
    build_index(path, X, scaler)
    file, note = index_files(path, scaler)
    os.utime(path, ns=(1, 1))  # another time alone is looked into
    os.utime(file, ns=(1, 1))
    assert len(open_index(path, X, scaler)) == 200
    content, told = file.read_bytes(), note.read_text()
    file.write_bytes(content[:-100])
    with pytest.raises(IndexMismatchError, match=r"does not belong to what is in .*usearch now"):
        open_index(path, X, scaler)
    file.write_bytes(content)
    for change in ({"rows": 7}, {"parameters": {}}, {"scaling": "x"}, {"format": 1}):
        note.write_text(json.dumps(json.loads(told) | change))
        with pytest.raises(IndexMismatchError, match=rf"of another kind \({next(iter(change))}\)"):
            open_index(path, X, scaler)
    no_lists = [told.replace('"length": 400', f'"length": {odd}') for odd in ("0", "true", "{}")]
    assert told not in no_lists
    for damaged in ("", "{", "[]", "{}", '{"format": 1}', told.replace('"sha', '"s'), *no_lists):
        note.write_text(damaged)
        with pytest.raises(IndexMismatchError, match="is damaged; make it again"):
            open_index(path, X, scaler)
    note.write_text(told)
    changed = np.array(X)
    changed[0, 0] += 1
    del X
    np.save(path, changed)
    with pytest.raises(IndexMismatchError, match=r"does not belong to what is in .*X\.npy now"):
        open_index(path, changed, scaler)
    note.unlink()
    assert open_index(path, changed, scaler) is None


def test_a_file_that_is_no_graph(world, tmp_path):
    path, X = stored(tmp_path, world, 50)
    scaler = fitted(world, "ESZSL", "l2").scaler_
    build_index(path, X, scaler)
    file, note = index_files(path, scaler)
    from latem.features.encoder import file_digest

    file.write_bytes(b"nothing of the kind")
    facts = json.loads(note.read_text())
    facts["index"] = {"sha256": file_digest(file), "stamp": [0, 0]}
    note.write_text(json.dumps(facts))
    with pytest.raises(IndexMismatchError, match="is damaged"):
        open_index(path, X, scaler)


def test_images_that_are_not_finite(world, tmp_path):
    path, X = stored(tmp_path, world, 50)
    bad = np.array(X)
    bad[7, 1] = np.inf
    scaler = fitted(world, "ESZSL", "l2").scaler_
    with pytest.raises(ValueError, match="not finite, or too large, in row 7"):
        build_index(path, bad, scaler)
    assert [one.name for one in tmp_path.iterdir()] == ["X.npy"]


def test_one_writer_at_a_time(world, tmp_path):
    path, X = stored(tmp_path, world, 50)
    scaler = fitted(world, "ESZSL", "l2").scaler_
    file, _ = index_files(path, scaler)
    with (
        only_one(file.with_name(f".{file.name}.lock"), "first"),
        pytest.raises(BlockingIOError, match="Another process is writing"),
    ):
        build_index(path, X, scaler)


def test_without_usearch(world, tmp_path, monkeypatch):
    path, X = stored(tmp_path, world, 50)
    monkeypatch.setitem(sys.modules, "usearch", None)
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(ImportError, match=r"needs usearch: pip install 'latem\[search\]'"):
        build_index(path, X, fitted(world, "ESZSL", "l2").scaler_)


def test_many_maps_in_several_models_have_no_lists(world, tmp_path):
    table = world.embeddings["att"]
    members = [
        (name, ALE(table, n_maps=9, n_epochs=1, feature_scaling="l2", random_state=0))
        for name in "ab"
    ]
    model = LateFusion(members).fit(*world.training())
    path, X = stored(tmp_path, world, 100)
    scaler, form = model.linear_pieces("unseen")
    build_index(path, X, scaler)
    assert open_index(path, X, scaler).candidates(form.of(0), 3) is None
