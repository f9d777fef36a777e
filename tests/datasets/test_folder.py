"""Dataset folders: round trips, checks, random splits."""

import time

import numpy as np
import pytest
from helpers import SHARED
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from latem import ClassEmbeddings, Split, ZeroShotDataset, random_class_splits, read_folder
from latem.datasets import check_folder, describe, hold_out, write_folder, write_split
from latem.datasets.splits import PAPER_SIZES

# Lines end lines, and NumPy's strings do not end with a zero; everything else is a fine name.
letters = st.characters(exclude_categories=["Cs", "Zl", "Zp"], exclude_characters="\x00\r\n")
text = st.text(letters, min_size=1, max_size=12)
floats = st.floats(-(2.0**40), 2.0**40, width=32)


@st.composite
def datasets(draw):
    classes = draw(st.lists(text, min_size=3, max_size=6, unique=True))
    n = draw(st.integers(len(classes), 12))
    labels = [*classes, *draw(st.lists(st.sampled_from(classes), min_size=n, max_size=n))][:n]
    width = draw(st.integers(1, 3))
    dtype = draw(st.sampled_from([np.float16, np.float32, np.float64]))
    features = draw(hnp.arrays(dtype, (n, width), elements=st.floats(-100, 100, width=16)))
    vectors = draw(hnp.arrays(np.float64, (len(classes), 2), elements=floats))
    split = Split(classes[:1], classes[1:2], classes[2:], draw(st.sampled_from([(), (0,), (0, 1)])))
    return ZeroShotDataset(
        features=features,
        labels=np.array(labels),
        embeddings={"att": ClassEmbeddings(classes, vectors, name="att", columns=["a", "b, c"])},
        splits={"standard": split},
        images=np.array(draw(st.lists(text, min_size=n, max_size=n))),
        name=draw(text),
        info={"licence": draw(text), "year": draw(st.integers(0, 9999))},
    )


@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(dataset=datasets())
def test_round_trip(dataset, tmp_path_factory):
    folder = write_folder(dataset, tmp_path_factory.mktemp("folder") / "data")
    again = read_folder(folder)
    assert again.features.dtype == dataset.features.dtype
    np.testing.assert_array_equal(again.features, dataset.features)
    assert again.labels.tolist() == dataset.labels.tolist()
    assert again.images.tolist() == dataset.images.tolist()
    assert dict(again.embeddings) == dict(dataset.embeddings)
    assert dict(again.splits) == dict(dataset.splits)
    assert again.name == dataset.name
    assert again.info["licence"] == dataset.info["licence"]
    assert again.info["year"] == dataset.info["year"]


@pytest.fixture
def dataset():
    return ZeroShotDataset(
        features=np.arange(24, dtype=np.float32).reshape(12, 2),
        labels=np.repeat(["ant", "bee", "cat", "dog"], 3),
        embeddings={"att": ClassEmbeddings(["ant", "bee", "cat", "dog"], np.eye(4), name="att")},
        splits={"standard": Split(["ant", "bee"], ["cat"], ["dog"], [0, 4])},
    )


def test_nothing_half_written_stays(dataset, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("latem.datasets.folder_writer.write_split", fail)
    with pytest.raises(OSError, match="disk full"):
        write_folder(dataset, tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    write_folder(dataset, tmp_path / "new")
    with pytest.raises(FileExistsError, match="exists already"):
        write_folder(dataset, tmp_path / "new")


def test_numbers_as_class_names_are_refused(dataset, tmp_path):
    numbered = ZeroShotDataset(np.ones((2, 2)), np.array([1, 2]), {}, {})
    with pytest.raises(TypeError, match="str class names"):
        write_folder(numbered, tmp_path / "new")


def test_a_sound_folder_has_no_problems(dataset, tmp_path):
    assert check_folder(write_folder(dataset, tmp_path / "new")) == []
    facts = describe(dataset)
    assert facts["images"] == 12
    assert facts["images_per_class"] == [3, 3.0, 3]
    assert facts["splits"]["standard"] == {
        "train": 2, "val": 1, "test": 1, "seen_images": 7, "unseen_images": 3, "held_out": 2
    }  # fmt: skip
    assert facts["warnings"] == []


def test_every_problem_is_named_at_once(dataset, tmp_path):
    folder = write_folder(dataset, tmp_path / "new")
    features = np.load(folder / "features.npy")
    features[5, 1] = np.nan
    np.save(folder / "features.npy", features[:-1])
    (folder / "dataset.toml").unlink()
    (folder / "embeddings" / "att.csv").write_text("class,a\nant,1\nbee,2\n")
    (folder / "embeddings" / "bad.csv").write_text("class,a\nant,1\nbee,2\ncat,x\n")
    write_split(folder, "other", Split(["ant", "eel"], [], ["dog"], [9, 11, 99]))
    (folder / "splits" / "twice.toml").write_text('train = ["ant"]\ntest = ["ant"]\n')
    problems = "\n".join(check_folder(folder))
    for message in (
        "needs dataset.toml",
        "row 5, column 1 is not a finite number",
        "features.npy has 11 rows but images.csv has 12",
        "att.csv has no row for 'cat', 'dog', 'eel'",
        "column 'a' holds 'x'",
        "train classes without images: 'eel'",
        "held_out rows 99 do not exist; rows are counted from 0 to 11",
        "held-out rows 9, 11 are not images of seen classes",
        "'ant' twice, in train and test",
    ):
        assert message in problems
    assert check_folder(tmp_path / "none") == [f"There is no dataset folder '{tmp_path / 'none'}'."]


@given(st.integers(0, 1000), st.integers(1, 4))
def test_random_splits_are_disjoint_and_reproducible(seed, n):
    classes = [f"c{i}" for i in range(20)]
    splits = random_class_splits(classes, (9, 5, 4), n, seed)
    assert splits == random_class_splits(classes[::-1], (9, 5, 4), n, seed)
    assert splits[0] == random_class_splits(classes, (9, 5, 4), 1, seed)[0]
    for split in splits:
        assert (len(split.train), len(split.val), len(split.test)) == (9, 5, 4)
        assert len({*split.train, *split.val, *split.test}) == 18


def test_the_papers_class_counts():
    totals = {name: (train + val, test) for name, (train, val, test) in PAPER_SIZES.items()}
    assert totals == {"CUB": (150, 50), "AWA": (40, 10), "Dogs": (85, 28)}  # its Table 1
    assert len(random_class_splits(range(200), "CUB")) == 5


def test_bad_splits():
    with pytest.raises(ValueError, match="ask for 6 classes, but there are 3"):
        random_class_splits("abc", (2, 2, 2))
    with pytest.raises(ValueError, match="at least one train and one test"):
        random_class_splits("abc", (0, 1, 1))
    with pytest.raises(ValueError, match="CUB, AWA, Dogs, not 'SUN'"):
        random_class_splits("abc", "SUN")


def test_hold_out_takes_a_share_of_every_seen_class(dataset):
    split = Split(["ant", "bee"], ["cat"], ["dog"])
    held = hold_out(dataset, split, 0.34, seed=1)
    labels = dataset.labels[list(held.held_out)]
    assert sorted(labels.tolist()) == ["ant", "bee", "cat"]
    assert held == hold_out(dataset, split, 0.34, seed=1)
    assert len(hold_out(dataset, split, 0.99).held_out) == 6  # one image of each stays
    with pytest.raises(ValueError, match="between 0 and 1"):
        hold_out(dataset, split, 1.0)


@pytest.mark.skipif(not (SHARED / "cub").is_dir(), reason="the real CUB folder is not here")
def test_real_cub_is_read_lazily_and_in_under_a_second():
    read_folder(SHARED / "cub")  # warm the file cache
    start = time.process_time()  # what others do on the machine does not count
    cub = read_folder(SHARED / "cub")
    assert time.process_time() - start < 1.0
    assert isinstance(cub.features, np.memmap)
    split = cub.split("standard")
    assert (len(split.train + split.val), len(split.test)) == (150, 50)
    assert len(cub.training("standard")[0]) == 8855
    assert describe(cub)["warnings"] == []


@pytest.mark.parametrize("name", ["dataset.toml", "images.csv", "splits/standard.toml"])
def test_a_folder_in_the_place_of_a_file(tmp_path, name):
    table = ClassEmbeddings(["ant", "bee", "cat"], np.eye(3), name="att")
    folder = write_folder(
        ZeroShotDataset(
            features=np.eye(3),
            labels=np.array(["ant", "bee", "cat"]),
            embeddings={"att": table},
            splits={"standard": Split(["ant"], ["bee"], ["cat"])},
        ),
        tmp_path / "data",
    )
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(ValueError, match=rf"{name} is a folder, but must be a file\."):
        read_folder(folder)
