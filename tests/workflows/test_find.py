"""Stored pictures that fit a class: from a dataset folder or a file, with an index and without."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from latem import CCA, ESZSL, find_images, index_images, make_latent_world, write_folder
from latem.inspection.stored_index import RECALL, IndexMismatchError
from latem.workflows import explore, find
from latem.workflows.find import found_text, image_index, stored_images


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("find")
    world = make_latent_world(n_images=20, random_state=0)
    images = np.array([f"{i}.png" for i in range(len(world.labels))])
    world = replace(world, images=images, features=np.asarray(world.features, np.float16))
    write_folder(world, folder / "set")
    np.save(folder / "X.npy", world.features)
    model = ESZSL(world.embeddings["att"], feature_scaling="l2").fit(*world.training())
    return folder, world, model


def test_from_a_folder_and_from_a_file(made):
    folder, world, model = made
    names = list(world.split().test[:2])
    found = find_images(model, folder / "set", names, k=3)
    assert [one.wanted for one in found] == [names[0]] * 3 + [names[1]] * 3
    assert [one.place for one in found] == [1, 2, 3] * 2
    for i, name in enumerate(names):
        rows, scores = model.rank_images(world.features, name, 3)
        part = found[3 * i : 3 * i + 3]
        assert [one.row for one in part] == rows.tolist()
        assert [one.image for one in part] == world.images[rows].tolist()
        assert [one.label for one in part] == world.labels[rows].tolist()
        np.testing.assert_allclose([one.score for one in part], scores, rtol=1e-5)
    plain = find_images(model, folder / "X.npy", names, k=3)
    assert [one.row for one in plain] == [one.row for one in found]
    assert {one.image for one in plain} == {None}
    everything = find_images(model, folder / "X.npy", names[:1], k=10**9)
    assert len(everything) == len(world.features)


def test_texts(made):
    folder, world, model = made
    found = find_images(model, folder / "set", [world.split().test[0]], k=2)
    lines = list(csv.DictReader(found_text(found, "csv").splitlines()))
    assert [line["image"] for line in lines] == [one.image for one in found]
    assert json.loads(found_text(found, "json")) == [one.to_dict() for one in found]
    assert list(lines[0]) == ["class", "place", "row", "image", "label", "score"]
    with pytest.raises(ValueError, match="csv or json, not 'xml'"):
        found_text(found, "xml")


def test_with_an_index(made, monkeypatch):
    pytest.importorskip("usearch")
    folder, world, model = made
    name = world.split().test[0]
    with pytest.raises(FileNotFoundError, match="no index of these images for this model"):
        find_images(model, folder / "set", [name], use_index=True)
    done = []
    path = index_images(model, folder / "set", progress=done.append)
    assert path == folder / "set" / "features-directions.usearch"
    assert sum(done) == len(world.features)
    X = stored_images(folder / "set").X
    assert image_index(model, X, use_index=True).stored.recall >= RECALL
    exact = find_images(model, folder / "set", [name], k=5, use_index=False)
    quick = find_images(model, folder / "set", [name], k=5, use_index=True)
    assert [one.row for one in quick] == [one.row for one in exact]
    assert image_index(model, X).stored is None  # few images are looked through
    monkeypatch.setattr(find, "INDEX_FROM", 10)
    assert image_index(model, X).stored is not None
    assert image_index(model, np.array(X)).stored is None
    explorer = explore.Explorer(model, replace(world, features=X))
    assert explorer.index.stored is not None
    assert [one["row"] for one in explorer.find(name, 5)] == [one.row for one in exact]
    (folder / "set" / "features-directions.json").write_text("{}")
    assert image_index(model, X).stored is None
    with pytest.raises(IndexMismatchError, match="is damaged"):
        image_index(model, X, use_index=True)


def test_an_index_that_misses_much_is_told(made, monkeypatch, caplog):
    pytest.importorskip("usearch")
    folder, _, model = made

    def other_rows(X, names, k):
        return np.full((len(names), k), len(X)), None  # images that no list can hold

    monkeypatch.setattr(model, "best_images", other_rows)
    index_images(model, folder / "X.npy")
    assert "finds only 0 % of the best 100 images of a class" in caplog.text
    assert "latem find --index" in caplog.text
    monkeypatch.setattr(find, "INDEX_FROM", 10)
    X = stored_images(folder / "X.npy").X
    assert image_index(model, X).stored is None
    assert image_index(model, X, use_index=True).stored is not None


def test_what_is_refused(made, tmp_path):
    folder, world, model = made
    with pytest.raises(FileNotFoundError, match="no dataset folder or file of features"):
        find_images(model, tmp_path / "nowhere", "unseen")
    np.save(tmp_path / "other.npy", np.zeros((4, 3), np.float32))
    for ask in (find_images, index_images):
        with pytest.raises(ValueError, match=r"trained on 32 features, but .*other\.npy have 3"):
            ask(model, tmp_path / "other.npy")
    for k in (0, 2.5, True):
        with pytest.raises(ValueError, match="k must be a whole number from 1 on"):
            find_images(model, folder / "X.npy", "unseen", k=k)
    cca = CCA(world.embeddings["att"]).fit(*world.training())
    with pytest.raises(TypeError, match="CCA does not score images by a few products"):
        index_images(cca, folder / "X.npy")
    assert find_images(cca, folder / "X.npy", "unseen", k=1)
    lines = (folder / "set" / "images.csv").read_text().splitlines()
    short = tmp_path / "short"
    short.mkdir()
    (short / "features.npy").write_bytes((folder / "X.npy").read_bytes())
    (short / "images.csv").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(ValueError, match="they must match one to one"):
        find_images(model, short, "unseen")
