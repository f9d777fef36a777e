"""The bundled set, the synthetic world and the dataset folder."""

import numpy as np
import pytest

from latem import Split, ZeroShotDataset, load_emoji, make_latent_world, read_folder
from latem.datasets.emoji import quantise, restore
from latem.datasets.synthetic import turn


@pytest.fixture(scope="module")
def emoji():
    return load_emoji()


def test_emoji_is_whole(emoji):
    assert emoji.features.shape == (4767, 1280)
    assert np.isfinite(emoji.features).all()
    assert len(emoji.classes) == 634
    assert {name: table.n_dimensions for name, table in emoji.embeddings.items()} == {
        "att": 473, "glo": 100, "text": 384
    }  # fmt: skip
    for table in emoji.embeddings.values():
        assert table.names.tolist() == emoji.classes.tolist()
        assert np.linalg.norm(table.vectors, axis=1).min() > 0
    drawings = emoji.rows(["zebra"])
    assert all(name.startswith("🦓 ") for name in emoji.images[drawings])
    assert 5 <= len(drawings) <= 9
    assert "OpenMoji" in emoji.info["licence"]


@pytest.mark.parametrize("name", ["standard", "random1", "random2", "random3", "random4"])
def test_emoji_splits_are_class_disjoint(emoji, name):
    split = emoji.split(name)
    assert (len(split.train), len(split.val), len(split.test)) == (494, 80, 60)
    assert len({*split.train, *split.val, *split.test}) == 634
    X, y = emoji.training(name)
    X_train, y_train = emoji.training(name, val=False)
    X_val, y_val = emoji.validation(name)
    X_test, y_test = emoji.testing(name)
    assert len(X) == len(X_train) + len(X_val)
    assert len(X) + len(X_test) == 4767
    assert set(y) == {*split.train, *split.val}
    assert set(y_train) == set(split.train)
    assert set(y_val) == set(split.val)
    assert set(y_test) == set(split.test)


def test_quantised_features_are_close():
    features = np.linspace(0, 6, 1001)
    assert np.abs(restore(quantise(features)) - features).max() < 0.025


def test_one_map_cannot_name_all_poses():
    """The proof in the module's text, checked on noiseless images and the best of many maps."""
    world = make_latent_world(n_poses=3, noise=0, random_state=0)
    X, y = world.training()
    Y = world.embeddings["att"].unit_vectors()
    names = world.embeddings["att"].names
    own = np.searchsorted(names, y)
    pose = np.arange(len(X)) % 3
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores = X @ rng.normal(size=(32, 8)) @ Y.T
        true = scores[np.arange(len(X)), own]
        best = (scores - 1e-5 < true[:, None]).all(axis=1)
        for label in np.unique(own):
            right = [best[(own == label) & (pose == p)].all() for p in range(3)]
            assert sum(right) <= 2


def test_as_many_maps_as_poses_suffice():
    world = make_latent_world(n_poses=3, noise=0, random_state=0)
    X, y = world.training()
    table = world.embeddings["att"]
    turned = np.vstack([turn(table.vectors, 2 * np.pi * p / 3) for p in range(3)])
    # The carrier A is recovered exactly from the noiseless images of the seen classes.
    pose = np.arange(len(X)) % 3
    shown = turned.reshape(3, len(table), 8)[pose, np.searchsorted(table.names, y)]
    carrier = np.linalg.lstsq(shown, X, rcond=None)[0].T
    maps = [carrier @ turn(np.eye(8), 2 * np.pi * p / 3).T for p in range(3)]
    scores = np.stack([X @ w @ table.vectors.T for w in maps]).max(axis=0)
    assert (table.names[scores.argmax(axis=1)] == y).all()


def test_world_is_reproducible_and_checks_its_sizes():
    one, two = (make_latent_world(random_state=5) for _ in range(2))
    assert one.features.tobytes() == two.features.tobytes()
    assert np.abs(one.features - make_latent_world(random_state=6).features).max() > 0.1
    with pytest.raises(ValueError, match="n_dimensions must be even and at most n_features=32"):
        make_latent_world(n_dimensions=7)
    with pytest.raises(ValueError, match="n_poses must be at least 1, but is 0"):
        make_latent_world(n_poses=0)


def write_folder(folder):
    (folder / "embeddings").mkdir(parents=True)
    (folder / "splits").mkdir()
    np.save(folder / "features.npy", np.arange(12, dtype=np.float16).reshape(6, 2))
    (folder / "dataset.toml").write_text('name = "Tiny"\nlicence = "none"\n')
    (folder / "images.csv").write_text(
        "image,class\na1.jpg,ant\n,ant\nb.jpg,bee\nb2.jpg,bee\nc.jpg,cat\nc2.jpg,cat\n"
    )
    (folder / "embeddings" / "att.csv").write_text("class,legs,fur\nant,6,0\nbee,6,1\ncat,4,1\n")
    (folder / "splits" / "standard.toml").write_text(
        'train = ["ant"]\nval = ["bee"]\ntest = ["cat"]\nheld_out = [1]\n'
    )
    return folder


def test_folder_is_read_without_loading_the_features(tmp_path):
    dataset = read_folder(write_folder(tmp_path / "tiny"))
    assert isinstance(dataset.features, np.memmap)
    assert dataset.name == "Tiny"
    assert dataset.images.tolist() == ["a1.jpg", "", "b.jpg", "b2.jpg", "c.jpg", "c2.jpg"]
    assert dataset.embeddings["att"].columns == ("legs", "fur")
    X, y = dataset.training()
    assert y.tolist() == ["ant", "bee", "bee"]
    assert X.tolist() == [[0, 1], [4, 5], [6, 7]]
    assert dataset.testing()[1].tolist() == ["cat", "cat"]
    with pytest.raises(ValueError, match="no split 'other'; it has standard"):
        dataset.split("other")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("dataset.toml", None, "needs dataset.toml"),
        ("dataset.toml", "name = ", "not valid TOML"),
        ("features.npy", None, "needs features.npy"),
        ("features.npy", "text", "not a readable .npy"),
        ("images.csv", None, "needs images.csv"),
        ("images.csv", "file,label\n", "needs the columns 'image' and 'class'"),
        ("images.csv", "image,class\na.jpg,\n", "line 2: the class is missing"),
        ("images.csv", "image,class\na.jpg,dog, black\n", "line 2: too many cells"),
        ("splits/standard.toml", 'train = ["ant"]\ntest = ["cat"]\nheld_out = "12"\n', "held_out"),
        ("splits/standard.toml", 'train = ["ant"]\ntest = ["cat"]\nheld_out = [1, 1]\n', "twice"),
        ("images.csv", "image,class\na.jpg,ant\n", "6 rows but images.csv has 1 lines"),
        ("splits/standard.toml", 'train = ["ant"]\n', "lacks 'test'"),
        ("splits/standard.toml", 'train = ["a"]\ntest = ["a"]\n', "'a' twice, in train and test"),
        ("splits/standard.toml", 'train = "ant"\ntest = ["cat"]\n', "train must be a list"),
        (
            "splits/standard.toml",
            'train = ["ant"]\ntest = ["cat"]\nheldout = [1]\n',
            r"unknown entries \['heldout'\]",
        ),
        ("embeddings/att.csv", "class,legs\nant,6\nbee,six\n", "column 'legs' holds 'six'"),
    ],
)
def test_broken_folders_are_refused_by_file(tmp_path, name, content, message):
    folder = write_folder(tmp_path / "tiny")
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content)
    with pytest.raises((ValueError, FileNotFoundError), match=message) as error:
        read_folder(folder)
    assert name.split("/")[-1] in str(error.value)


def test_other_files_in_the_folder_do_not_matter(tmp_path):
    folder = write_folder(tmp_path / "tiny")
    (folder / "embeddings" / "README.txt").write_text("hello")
    (folder / "embeddings" / "._att.csv").write_bytes(b"\x00\xff")
    assert list(read_folder(folder).embeddings) == ["att"]
    (folder / "embeddings" / "att.tsv").write_text("class\tlegs\nant\t6\n")
    with pytest.raises(ValueError, match="att.csv, att.tsv would have the same name"):
        read_folder(folder)


def test_archives_and_empty_arrays_are_no_features(tmp_path):
    folder = write_folder(tmp_path / "tiny")
    np.savez(tmp_path / "a.npz", features=np.eye(2))
    (folder / "features.npy").write_bytes((tmp_path / "a.npz").read_bytes())
    with pytest.raises(ValueError, match="an archive of arrays"):
        read_folder(folder)
    np.save(folder / "features.npy", np.empty((6, 0)))
    with pytest.raises(ValueError, match="must hold floating-point numbers"):
        read_folder(folder)


def test_pickled_features_are_refused(tmp_path):
    folder = write_folder(tmp_path / "tiny")
    np.save(folder / "features.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="not a readable .npy"):
        read_folder(folder)


def test_dataset_checks_its_splits():
    parts = np.ones((2, 2)), ["a", "b"], {}
    with pytest.raises(ValueError, match=r"'standard' names 'c', which have neither"):
        ZeroShotDataset(*parts, {"standard": Split(["a"], [], ["c"])})
    with pytest.raises(ValueError, match=r"holds out rows \[2, -1\], but rows go from 0 to 1"):
        ZeroShotDataset(*parts, {"standard": Split(["a"], [], ["b"], [2, -1])})


def test_dataset_checks_its_parts():
    with pytest.raises(ValueError, match="2 rows of features but 1 labels"):
        ZeroShotDataset(np.ones((2, 2)), np.array(["a"]), {}, {})
    with pytest.raises(ValueError, match="images × features"):
        ZeroShotDataset(np.ones(2), np.array(["a", "b"]), {}, {})
    with pytest.raises(ValueError, match="'a' twice, in train"):
        Split(["a", "a"], [], ["b"])
