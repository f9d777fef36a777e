"""Dataset folders from zip files, in whatever state they are."""

import zipfile

import numpy as np
import pytest
from matlab_files import write_gbu

from latem import ClassEmbeddings, Split, ZeroShotDataset, read_folder, write_folder
from latem.core import memory
from latem.datasets.archives import unpack_datasets


@pytest.fixture
def tiny(tmp_path):
    classes = ["ant", "bee", "cat", "dog"]
    dataset = ZeroShotDataset(
        features=np.eye(4, dtype=np.float32),
        labels=np.array(classes),
        embeddings={"att": ClassEmbeddings(classes, np.eye(4), name="att")},
        splits={"standard": Split(["ant", "bee"], ["cat"], ["dog"])},
    )
    return write_folder(dataset, tmp_path / "tiny")


def zip_up(target, content, **options):
    """A zip file with folders by their places in it."""
    target.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(target, "w", **options) as archive:
        for place, folder in content.items():
            for file in sorted(folder.rglob("*")):
                archive.write(file, f"{place}{file.relative_to(folder)}")
    return target


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_folders_and_pairs_become_dataset_folders(tmp_path, tiny):
    write_gbu(tmp_path / "birds")
    content = {"sets/tiny/": tiny, "xlsa17/data/BIRDS/": tmp_path / "birds"}
    file = zip_up(tmp_path / "data" / "all.zip", content)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("../evil.txt", "outside")
    made = unpack_datasets(file, file.parent)
    assert [path.name for path in made] == ["tiny", "BIRDS"]
    assert read_folder(file.parent / "tiny").labels.tolist() == ["ant", "bee", "cat", "dog"]
    assert len(read_folder(file.parent / "BIRDS").features) == 20
    assert names(file.parent) == ["BIRDS", "all.zip", "tiny"]
    assert not (tmp_path / "evil.txt").exists()
    assert unpack_datasets(file, file.parent) == made


@pytest.mark.parametrize(
    ("name", "made"), [("birds.zip", "birds"), ("birds", "birds.dataset"), ("v1.0", "v1")]
)
def test_a_dataset_at_the_root_has_the_name_of_the_file(tmp_path, tiny, name, made):
    file = zip_up(tmp_path / "data" / name, {"": tiny})
    assert unpack_datasets(file, file.parent) == [file.parent / made]
    assert len(read_folder(file.parent / made).labels) == 4


def test_other_files_are_left_as_they_are(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"hello")
    assert unpack_datasets(tmp_path / "a.bin", tmp_path) == []
    assert names(tmp_path) == ["a.bin"]


def test_names_that_are_taken(tmp_path, tiny):
    file = zip_up(tmp_path / "data" / "two.zip", {"a/tiny/": tiny, "b/tiny/": tiny})
    with pytest.raises(ValueError, match=r"several datasets called \['tiny'\]"):
        unpack_datasets(file, file.parent)
    file = zip_up(tmp_path / "data" / "one.zip", {"tiny/": tiny})
    (file.parent / "tiny").write_text("mine")
    with pytest.raises(FileExistsError, match="exists and is no dataset folder"):
        unpack_datasets(file, file.parent)
    assert (file.parent / "tiny").read_text() == "mine"


def encrypted(content):
    """The flag that says so, in every entry: of the file and of its list."""
    content = bytearray(content)
    for start, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = content.find(start)
        while place >= 0:
            content[place + offset] |= 1
            place = content.find(start, place + 1)
    return bytes(content)


def strange(content):
    """An unknown compression in every entry."""
    content = bytearray(content)
    for start, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        place = content.find(start)
        while place >= 0:
            content[place + offset] = 77
            place = content.find(start, place + 1)
    return bytes(content)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (encrypted, "needs a password; unpack it by hand"),
        (strange, "cannot be unpacked: .*compression"),
        (lambda c: c[:-30], "cut short or no zip file"),
        (lambda c: c[:100], "cut short or no zip file"),
        (lambda c: b"<html>not found</html>", "cut short or no zip file"),
        (lambda c: c.replace(b"image,class", b"egami,class", 1), "damaged"),
    ],
)
def test_what_cannot_be_unpacked_says_why(tmp_path, tiny, damage, message):
    file = zip_up(tmp_path / "data" / "one.zip", {"tiny/": tiny})
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(OSError, match=rf"one\.zip (is|cannot).*{message}|one\.zip {message}"):
        unpack_datasets(file, file.parent)
    assert names(file.parent) == ["one.zip"]


def test_flipped_bytes_never_do_worse_than_a_sentence(tmp_path, tiny):
    whole = zip_up(
        tmp_path / "data" / "one.zip", {"tiny/": tiny}, compression=zipfile.ZIP_DEFLATED
    ).read_bytes()
    rng = np.random.default_rng(0)
    n_fine, told = 0, []
    for number in range(60):
        content = bytearray(whole)
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)
        file = tmp_path / f"{number}" / "one.zip"
        file.parent.mkdir()
        file.write_bytes(bytes(content))
        try:
            unpack_datasets(file, file.parent)
            n_fine += 1
        except (OSError, ValueError) as error:
            told.append((str(error), names(file.parent)))
    assert n_fine
    assert told
    assert all("one.zip" in sentence and left == ["one.zip"] for sentence, left in told)


def test_a_dataset_that_is_not_sound(tmp_path, tiny):
    (tiny / "images.csv").write_text("class\nant\n")
    file = zip_up(tmp_path / "data" / "one.zip", {"tiny/": tiny})
    with pytest.raises(ValueError, match=r"one\.zip holds a dataset that cannot be used: tiny/im"):
        unpack_datasets(file, file.parent)
    assert names(file.parent) == ["one.zip"]


def test_bombs_are_not_unpacked(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(memory, "LARGEST_UNPACKED", 100_000)
    (tiny / "zeros").write_bytes(bytes(1_000_000))
    deflated = {"compression": zipfile.ZIP_DEFLATED}
    file = zip_up(tmp_path / "data" / "bomb.zip", {"tiny/": tiny}, **deflated)
    with pytest.raises(ValueError, match=r"bomb\.zip has .* but would unpack to 1 MB"):
        unpack_datasets(file, file.parent)
    assert names(file.parent) == ["bomb.zip"]


def test_a_full_disk_is_told_before_it_is_filled(tmp_path, tiny, monkeypatch):
    file = zip_up(tmp_path / "data" / "one.zip", {"tiny/": tiny})
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 100}))
    with pytest.raises(OSError, match=r"Unpacking .*one\.zip needs .* has 100 bytes left"):
        unpack_datasets(file, file.parent)
    assert names(file.parent) == ["one.zip"]


def test_what_a_killed_run_left_is_replaced(tmp_path, tiny):
    file = zip_up(tmp_path / "data" / "one.zip", {"tiny/": tiny})
    (file.parent / ".one.zip.unpacking").mkdir()
    (file.parent / ".one.zip.unpacking" / "dataset.toml").write_text("name = 'old'")
    unpack_datasets(file, file.parent)
    assert names(file.parent) == ["one.zip", "tiny"]
    assert read_folder(file.parent / "tiny").name == "tiny"


@pytest.mark.parametrize("inside_first", [False, True])
def test_a_file_and_a_folder_of_the_same_name(tmp_path, tiny, inside_first):
    file = tmp_path / "data" / "all.zip"
    file.parent.mkdir()
    with zipfile.ZipFile(file, "w") as archive:
        for name in (
            ["images.csv/x", "images.csv"] if inside_first else ["images.csv", "images.csv/x"]
        ):
            archive.write(tiny / "images.csv", f"tiny/{name}")
        archive.write(tiny / "dataset.toml", "tiny/dataset.toml")
    with pytest.raises(ValueError, match=r"has a file and a folder called 'images\.csv'; unpack"):
        unpack_datasets(file, file.parent)
    assert names(file.parent) == ["all.zip"]


@pytest.mark.parametrize("name", ["images.csv", "features.npy"])
def test_a_folder_in_the_place_of_a_file(tmp_path, tiny, name):
    (tiny / name).unlink()
    (tiny / name).mkdir()
    (tiny / name / "x").write_text("")
    file = zip_up(tmp_path / "data" / "all.zip", {"tiny/": tiny})
    with zipfile.ZipFile(file) as archive:
        kept = [info for info in archive.infolist() if not info.is_dir()]
        assert f"tiny/{name}/x" in [info.filename for info in kept]
    with pytest.raises(ValueError, match=rf"tiny/{name}"):
        unpack_datasets(file, file.parent)
    assert names(file.parent) == ["all.zip"]
