"""What each map has learned: images, classes, attributes, and the page."""

import numpy as np
import pytest
from helpers import save_pieces
from typer.testing import CliRunner

from latem import (
    ESZSL,
    SJE,
    ClassEmbeddings,
    LatEm,
    load_emoji,
    make_latent_world,
    map_overlap,
    map_profiles,
    top_images,
    write_folder,
)
from latem.cli import app
from latem.inspection.galleries import picture_path


@pytest.fixture(scope="module")
def fitted():
    world = make_latent_world(random_state=0)
    model = LatEm(world.embeddings["att"], n_maps=2, random_state=0).fit(*world.training())
    return world, model


def test_top_images_are_those_of_the_ranked_pairs(fitted):
    world, model = fitted
    X, _ = world.testing()
    scaled = model.scaler_.transform(X, "float32")
    names = world.split().test
    vectors = world.embeddings["att"].select(names).unit_vectors()
    for k, images in enumerate(top_images(model, X, names, n=7)):
        scores = scaled @ model.maps_[k] @ vectors.T
        expected = []
        for pair in np.argsort(-scores, axis=None):
            row, _ = divmod(int(pair), len(names))
            if row not in expected:
                expected.append(row)
        assert [image.row for image in images] == expected[:7]
        for image in images:
            assert image.named == names[scores[image.row].argmax()]
            assert image.score == pytest.approx(scores[image.row].max(), rel=1e-4)


def test_maps_specialise_on_poses(fitted):
    world, model = fitted
    rows = world.rows(world.split().test)
    galleries = top_images(model, world.features[rows], n=10)
    poses = [{str(world.images[rows[i.row]]).split()[-1] for i in images} for images in galleries]
    assert sorted(map(len, poses)) == [1, 1]
    assert poses[0] != poses[1]


def test_profiles(fitted):
    world, model = fitted
    X, _ = world.testing()
    profiles = map_profiles(model, X)
    winners, named = model.latent_map(X, "unseen"), model.predict(X, "unseen")
    assert sum(p.share for p in profiles) == pytest.approx(1)
    for k, profile in enumerate(profiles):
        assert profile.share == pytest.approx((winners == k).mean())
        assert profile.classes.sum() == (winners == k).sum()
        for name, count in profile.classes.items():
            assert count == ((winners == k) & (named == name)).sum()
        scores = model.decision_function(X[winners == k], "unseen").max(axis=1)
        assert profile.attributes.sum() == pytest.approx(scores.mean(), rel=1e-4)


def test_profiles_of_directions(fitted):
    world, _ = fitted
    model = SJE(world.embeddings["att"], n_maps=2, n_epochs=3, normalize_projection=True)
    model.fit(*world.training())
    X, _ = world.testing()
    scores = model.decision_function(X, "unseen").max(axis=1)
    profiles = map_profiles(model, X)
    total = sum(p.share * p.attributes.sum() for p in profiles)
    assert total == pytest.approx(scores.mean(), rel=1e-4)


def test_overlap(fitted):
    _, model = fitted
    overlap = map_overlap(model)
    np.testing.assert_allclose(np.diag(overlap), 1)
    W = model.maps_.astype(float)
    cosine = (W[0] * W[1]).sum() / np.linalg.norm(W[0]) / np.linalg.norm(W[1])
    assert overlap[0, 1] == pytest.approx(cosine)


def test_only_models_with_maps(fitted):
    world, _ = fitted
    model = ESZSL(world.embeddings["att"]).fit(*world.training())
    with pytest.raises(TypeError, match="not ESZSL"):
        top_images(model, world.testing()[0])
    with pytest.raises(ValueError, match="at least 1"):
        top_images(fitted[1], world.testing()[0], n=0)


def test_command(tmp_path):
    emoji = load_emoji()
    split = emoji.split()
    keep = emoji.rows([*split.train[:30], *split.test[:6]])
    table = emoji.embeddings["att"].select([*split.train[:30], *split.test[:6]])
    table = ClassEmbeddings(table.names, table.vectors, name="att", columns=table.columns)
    from latem import Split, ZeroShotDataset

    small = ZeroShotDataset(
        emoji.features[keep].astype(np.float32), emoji.labels[keep], {"att": table},
        {"standard": Split(split.train[:24], split.train[24:30], split.test[:6])},
        emoji.images[keep], "Emoji <small>",
    )  # fmt: skip
    write_folder(small, tmp_path / "data")
    model = LatEm(table, n_maps=2, n_epochs=5, random_state=0).fit(*small.training())
    model.save(tmp_path / "m")
    out = tmp_path / "out"
    run = CliRunner().invoke(
        app, ["gallery", str(tmp_path / "m"), str(tmp_path / "data"), "--out", str(out)]
    )
    assert run.exit_code == 0, run.output
    page = (out / "gallery.html").read_text()
    assert "Emoji &lt;small&gt;" in page
    assert page.count("<figure>") == 16
    assert "Wins most often for" in page
    assert "Nearest to map" in page
    assert len((out / "images.csv").read_text().splitlines()) == 17
    assert "data:image" not in page  # there are features only
    everything = LatEm(table, n_maps=2, n_epochs=1, random_state=0)
    everything.fit(small.features, small.labels).save(tmp_path / "knows")
    for arguments, message in (
        ([str(tmp_path / "knows"), str(tmp_path / "data")], "The model was fitted to"),
        (["nowhere", str(tmp_path / "data")], "There is no model file 'nowhere'"),
        ([str(tmp_path / "m"), "nowhere"], "nowhere"),
        ([str(tmp_path / "m"), str(tmp_path / "data"), "--split", "odd"], "no split 'odd'"),
        ([str(tmp_path / "m"), str(tmp_path / "data"), "--pictures", "no"], "no folder no with"),
    ):
        run = CliRunner().invoke(app, ["gallery", *arguments, "--out", str(tmp_path / "o")])
        assert run.exit_code == 1
        assert message in run.output


def test_names_that_no_file_can_have(tmp_path):
    assert picture_path(tmp_path, "x" * 5000) is None
    assert picture_path(tmp_path, "nul\0") is None


@pytest.mark.parametrize("listed", [False, True])
def test_pictures_are_found_where_they_were_embedded_from(listed, tmp_path):
    from latem.features import embed_pictures

    names = ["ant", "bee", "cat"]
    for i, name in enumerate(names):
        save_pieces(tmp_path / "in" / name, 2, 2 * i)
    source = tmp_path / "in"
    if listed:
        rows = [f"{path.relative_to(source)},{path.parent.name}" for path in source.rglob("*.jpg")]
        source = source / "list.csv"
        source.write_text("\n".join(["image,class", *rows]))
    made = embed_pictures(source, tmp_path / "data", {"att": (names, np.eye(3))}, unseen=["cat"])
    model = LatEm(made.dataset.embeddings["att"], n_maps=1, n_epochs=1, random_state=0)
    model.fit(*made.dataset.training()).save(tmp_path / "m")
    run = CliRunner().invoke(
        app, ["gallery", str(tmp_path / "m"), str(tmp_path / "data"), "--out", str(tmp_path / "o")]
    )
    assert run.exit_code == 0, run.output
    assert run.output.startswith("1 map;")
    page = (tmp_path / "o" / "gallery.html").read_text()
    assert page.count("data:image") == 2
    assert "What 1 map has learned" in page
