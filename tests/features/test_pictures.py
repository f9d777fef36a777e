"""Finding pictures and reading them, whatever state they are in."""

import io
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets
from broken_pictures import BLUE, BROKEN, RED, bomb, halves
from PIL import Image

from latem.features import PictureError, find_pictures, pictures, read_picture
from latem.features.pictures import to_rgb

CHINA = Path(sklearn.datasets.__file__).parent / "images" / "china.jpg"


def near(picture, place, colour, tolerance=12):
    assert picture.mode == "RGB"
    found = np.array(picture.getpixel(place), float)
    assert np.abs(found - colour).max() <= tolerance, f"{found} at {place}, expected {colour}"


def test_a_real_photo():
    picture = read_picture(CHINA)
    assert (picture.mode, picture.size) == ("RGB", (640, 427))
    with open(CHINA, "rb") as file:
        np.testing.assert_array_equal(np.asarray(read_picture(file)), np.asarray(picture))


@pytest.mark.parametrize(
    ("orientation", "size", "red", "blue"),
    [
        (1, (64, 32), (5, 16), (58, 16)),
        (3, (64, 32), (58, 16), (5, 16)),
        (6, (32, 64), (16, 5), (16, 58)),
        (8, (32, 64), (16, 58), (16, 5)),
    ],
)
def test_exif_rotation(tmp_path, orientation, size, red, blue):
    exif = Image.Exif()
    exif[0x0112] = orientation
    halves().save(tmp_path / "turned.jpg", exif=exif, quality=95)
    picture = read_picture(tmp_path / "turned.jpg")
    assert picture.size == size
    near(picture, red, RED)
    near(picture, blue, BLUE)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
def test_damaged_exif_does_not_matter(tmp_path):
    halves().save(tmp_path / "a.jpg", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff\0\0", quality=95)
    near(read_picture(tmp_path / "a.jpg"), (5, 16), RED)


@pytest.mark.parametrize("mode", ["L", "1"])
def test_grey(tmp_path, mode):
    picture = Image.new("L", (20, 20), 255)
    picture.paste(0, (0, 0, 10, 20))
    picture.convert(mode).save(tmp_path / "grey.png")
    near(read_picture(tmp_path / "grey.png"), (2, 2), (0, 0, 0))
    near(read_picture(tmp_path / "grey.png"), (18, 2), (255, 255, 255))


def test_sixteen_bits(tmp_path):
    values = np.zeros((10, 30), np.uint16)
    values[:, 10:20], values[:, 20:] = 32768, 65535
    for name in ("deep.png", "deep.tif"):
        Image.fromarray(values).save(tmp_path / name)
        picture = read_picture(tmp_path / name)
        assert [picture.getpixel((x, 5))[0] for x in (5, 15, 25)] == [0, 128, 255]


@pytest.mark.parametrize("top", [1.0, 255.0, 65535.0])
def test_floating_point_grey(tmp_path, top):
    values = np.full((10, 20), top, np.float32)
    values[:, :10] = 0
    Image.fromarray(values).save(tmp_path / "float.tif")
    picture = read_picture(tmp_path / "float.tif")
    assert [picture.getpixel((x, 5))[0] for x in (5, 15)] == [0, 255]


def test_palette_with_and_without_transparency(tmp_path):
    indexed = halves().quantize(8)
    indexed.save(tmp_path / "plain.png")
    near(read_picture(tmp_path / "plain.png"), (5, 5), RED)
    indexed.save(tmp_path / "through.png", transparency=indexed.getpixel((60, 5)))
    picture = read_picture(tmp_path / "through.png")
    near(picture, (5, 5), RED)
    near(picture, (60, 5), (255, 255, 255))
    indexed.save(tmp_path / "bytes.png", transparency=bytes(256))
    near(read_picture(tmp_path / "bytes.png"), (5, 5), (255, 255, 255))


def test_cmyk(tmp_path):
    halves("CMYK").save(tmp_path / "print.jpg", quality=95)
    near(read_picture(tmp_path / "print.jpg"), (5, 16), RED, 25)
    near(read_picture(tmp_path / "print.jpg"), (58, 16), BLUE, 25)


def test_alpha_is_laid_over_white(tmp_path):
    picture = halves("RGBA")
    picture.putalpha(Image.linear_gradient("L").resize(picture.size))
    picture.save(tmp_path / "alpha.png")
    near(read_picture(tmp_path / "alpha.png"), (5, 0), (255, 255, 255))
    near(read_picture(tmp_path / "alpha.png"), (5, 31), RED)
    near(read_picture(tmp_path / "alpha.png"), (60, 16), (130, 130, 253), 10)
    Image.new("LA", (8, 8), (0, 0)).save(tmp_path / "grey.png")
    near(read_picture(tmp_path / "grey.png"), (4, 4), (255, 255, 255))
    Image.new("RGB", (8, 8), RED).save(tmp_path / "key.png", transparency=RED)
    near(read_picture(tmp_path / "key.png"), (4, 4), (255, 255, 255))


@pytest.mark.parametrize("suffix", ["gif", "webp", "png", "tif"])
def test_first_frame_of_many(tmp_path, suffix):
    frames = [Image.new("RGB", (16, 16), colour) for colour in (RED, BLUE, BLUE)]
    frames[0].save(tmp_path / f"film.{suffix}", save_all=True, append_images=frames[1:])
    near(read_picture(tmp_path / f"film.{suffix}"), (8, 8), RED)


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_read_says_why(tmp_path, name):
    content, reason = BROKEN[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(PictureError, match=reason) as caught:
        read_picture(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    assert name not in caught.value.reason
    with pytest.raises(PictureError, match=reason):
        read_picture(io.BytesIO(content))


def test_own_limit_on_pixels(tmp_path, monkeypatch):
    """Ours holds where Pillow's was lifted."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    (tmp_path / "bomb.png").write_bytes(bomb())
    with pytest.raises(PictureError, match="50000 × 50000 pixels"):
        read_picture(tmp_path / "bomb.png")


def test_what_is_not_a_file(tmp_path):
    with pytest.raises(PictureError, match="there is no such file"):
        read_picture(tmp_path / "none.jpg")
    with pytest.raises(PictureError, match="it is not a file"):
        read_picture(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.jpg")  # opening one would wait for ever
        with pytest.raises(PictureError, match="it is not a file"):
            read_picture(tmp_path / "pipe.jpg")


def test_large_jpegs_may_be_decoded_smaller(tmp_path):
    halves(size=(2000, 1500)).save(tmp_path / "large.jpg")
    assert read_picture(tmp_path / "large.jpg").size == (2000, 1500)
    assert read_picture(tmp_path / "large.jpg", at_least=512).size == (1000, 750)
    near(read_picture(tmp_path / "large.jpg", at_least=512), (900, 700), BLUE)


def many_modes():
    """A small picture in every mode, with colours, greys and transparency that vary."""
    ramp = np.arange(40 * 30, dtype=np.float64).reshape(30, 40)
    colour = Image.fromarray(np.stack([ramp % 256, ramp % 100, ramp // 5], 2).astype(np.uint8))
    through = colour.convert("RGBA")
    through.putalpha(Image.fromarray((ramp % 256).astype(np.uint8)))
    indexed = colour.quantize(16)
    indexed.info["transparency"] = 3
    key = colour.copy()
    key.info["transparency"] = (0, 0, 0)
    made = [through, through.convert("LA"), indexed, key]
    made += [colour.convert(mode) for mode in ("RGB", "L", "1", "P", "CMYK", "YCbCr")]
    made += [Image.fromarray((ramp * 50).astype(np.uint16)), Image.fromarray(ramp.astype(np.int32))]
    made += [Image.fromarray((ramp / 2000).astype(np.float32)), Image.new("RGB", (5, 1))]
    return made


@pytest.mark.parametrize("number", range(len(many_modes())))
def test_strips_make_no_difference(number, monkeypatch):
    picture = many_modes()[number]
    whole = to_rgb(picture)
    monkeypatch.setattr(pictures, "STRIP", 90)  # two rows
    assert whole.mode == "RGB"
    assert to_rgb(picture).tobytes() == whole.tobytes()


@pytest.mark.parametrize("number", range(len(many_modes()) - 1))
def test_huge_pictures_are_reduced(number, monkeypatch):
    picture = many_modes()[number]
    whole = np.asarray(to_rgb(picture), float)
    monkeypatch.setattr(pictures, "HUGE", 1000)
    monkeypatch.setattr(pictures, "STRIP", 200)
    made = to_rgb(picture, at_least=8)
    assert made.size == (14, 10)  # a third of 40 × 30
    means = whole[:, :39].reshape(10, 3, 13, 3, 3).mean(axis=(1, 3))
    assert np.abs(np.asarray(made, float)[:, :13] - means).max() < 1
    assert to_rgb(picture, at_least=16).size == (40, 30)
    assert to_rgb(picture).size == (40, 30)


def test_reduced_pictures_are_turned(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "HUGE", 1000)
    exif = Image.Exif()
    exif[0x0112] = 6
    halves().save(tmp_path / "turned.png", exif=exif)
    picture = read_picture(tmp_path / "turned.png", at_least=16)
    assert picture.size == (16, 32)
    near(picture, (8, 2), RED)
    near(picture, (8, 29), BLUE)


@pytest.mark.parametrize(
    ("name", "mode", "bytes_a_pixel"),
    [("a.png", "RGB", 4), ("a.png", "RGBA", 8), ("a.png", "L", 5), ("a.webp", "RGB", 12)],
)
def test_memory_is_foreseen(tmp_path, monkeypatch, name, mode, bytes_a_pixel):
    Image.new(mode, (100, 100)).save(tmp_path / name)
    monkeypatch.setattr(pictures, "MAX_BYTES", bytes_a_pixel * 10_000)
    assert read_picture(tmp_path / name).size == (100, 100)
    monkeypatch.setattr(pictures, "MAX_BYTES", bytes_a_pixel * 10_000 - 1)
    with pytest.raises(PictureError, match=r"too many pixels .*: they take \d+ kB of memory"):
        read_picture(tmp_path / name)


def test_rows_of_narrow_pictures_count(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "MAX_BYTES", 10 * 10_000)
    for size, fits in (((100, 100), True), ((8, 1250), False)):
        Image.new("L", size).save(tmp_path / "a.png")
        if fits:
            assert read_picture(tmp_path / "a.png").size == size
            continue
        with pytest.raises(PictureError, match="they take 130 kB of memory"):
            read_picture(tmp_path / "a.png")


def test_small_files_of_huge_pictures(tmp_path, monkeypatch):
    """A file of a few kilobytes that takes hundreds of megabytes is nobody's photograph."""
    path = tmp_path / "white.png"
    Image.new("RGB", (1000, 1000)).save(path)
    monkeypatch.setattr(pictures, "LARGEST_UNPACKED", 10**6)
    assert read_picture(path).size == (1000, 1000)
    monkeypatch.setattr(pictures, "MAX_RATIO", 4 * 10**6 // path.stat().st_size)
    with pytest.raises(PictureError, match=r"too many pixels .*: they take 4 MB of memory"):
        read_picture(path)
    monkeypatch.setattr(pictures, "LARGEST_UNPACKED", 4 * 10**6)
    assert read_picture(path).size == (1000, 1000)


MEASURE = """
import resource, sys
from PIL import Image
from latem.features import Encoder, Preprocessing
from latem.features.pictures import quiet_pillow

class Plain(Encoder):
    name, n_features, preprocessing = "plain", 3, Preprocessing(224, (0, 0, 0), (1, 1, 1))
    def encode_batch(self, batch):
        return batch

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with quiet_pillow():
    assert Plain().prepare(sys.argv[1]).shape == (224, 224, 3)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is told in kB on Linux only")
@pytest.mark.parametrize(
    ("name", "mode"), [("a.png", "I;16"), ("a.tif", "F"), ("a.png", "RGBA"), ("a.png", "LA")]
)
def test_pictures_at_the_limit_take_less_than_a_gigabyte(tmp_path, name, mode):
    side = 10_900 if mode == "F" else 13_300
    Image.new(mode, (side, side)).save(
        tmp_path / name, **({"compress_level": 1} if name == "a.png" else {})
    )
    made = subprocess.run(
        [sys.executable, "-c", MEASURE, tmp_path / name],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert made.returncode == 0, made.stderr
    assert int(made.stdout) < 1_000_000  # kB


def touch(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_class_folders(tmp_path):
    touch(tmp_path, "zebra/b.jpg", "zebra/a.PNG", "zebra/more/c.webp", "ant bear/ü 1.jpeg")
    touch(tmp_path, "zebra/notes.txt", "zebra/.hidden.jpg", ".cache/x.jpg", "README.md")
    found, skipped = find_pictures(tmp_path)
    assert [(p.image, p.label) for p in found] == [
        ("ant bear/ü 1.jpeg", "ant bear"),
        ("zebra/a.PNG", "zebra"),
        ("zebra/b.jpg", "zebra"),
        ("zebra/more/c.webp", "zebra"),
    ]
    assert all(picture.path.is_file() for picture in found)
    assert skipped == []


def test_nothing_is_left_out_silently(tmp_path):
    touch(tmp_path, "zebra/a.jpg", "lost.jpg")
    (tmp_path / "okapi").mkdir()
    (tmp_path / "zebra" / "gone.jpg").symlink_to("nowhere.jpg")
    (tmp_path / "zebra" / "self.jpg").symlink_to("self.jpg")
    found, skipped = find_pictures(tmp_path)
    assert [p.image for p in found] == ["zebra/a.jpg"]
    assert {item.image: item.reason for item in skipped} == {
        "lost.jpg": "it lies outside the class folders",
        "okapi": "the folder holds no pictures",
        "zebra/gone.jpg": "the link leads nowhere",
        "zebra/self.jpg": "the link leads nowhere",
    }


def test_links_are_followed_but_not_in_circles(tmp_path):
    touch(tmp_path, "elsewhere/a.jpg", "in/ant/b.jpg", "in/bee/c.jpg")
    (tmp_path / "in" / "cat").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "in" / "ant" / "up").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "ant" / "same").symlink_to(tmp_path / "in" / "ant")
    found, _ = find_pictures(tmp_path / "in")
    assert [p.image for p in found] == ["ant/b.jpg", "bee/c.jpg", "cat/a.jpg"]


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux only")
def test_names_that_are_not_unicode(tmp_path):
    touch(tmp_path, "zebra/a.jpg")
    for name in (b"zebra/\xff.jpg", b"\xfe/b.jpg"):
        path = os.path.join(os.fsencode(tmp_path), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "wb").close()
    found, skipped = find_pictures(tmp_path)
    assert [p.image for p in found] == ["zebra/a.jpg"]
    assert [item.image for item in skipped] == ["zebra/\ufffd.jpg", "\ufffd"]
    assert all("not Unicode" in item.reason for item in skipped)


def test_class_names_are_composed(tmp_path):
    touch(tmp_path, unicodedata.normalize("NFD", "Bébé/ä.jpg"))
    found, _ = find_pictures(tmp_path)
    assert found[0].label == unicodedata.normalize("NFC", "Bébé")
    assert found[0].path.is_file()


def test_a_list_of_pictures(tmp_path):
    (tmp_path / "list.csv").write_text('image,class\n"a, b.jpg",zebra\n/far/c.png,okapi\n,okapi\n')
    found, skipped = find_pictures(tmp_path / "list.csv")
    assert [(p.path, p.image, p.label) for p in found] == [
        (tmp_path / "a, b.jpg", "a, b.jpg", "zebra"),
        (Path("/far/c.png"), "/far/c.png", "okapi"),
    ]
    assert [item.reason for item in skipped] == ["the line names no file"]


def test_no_pictures(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder of pictures 'none'"):
        find_pictures("none")
    with pytest.raises(ValueError, match=r"holds no class folders with pictures\.$"):
        find_pictures(tmp_path)
    touch(tmp_path, "a.jpg")
    with pytest.raises(ValueError, match="must be put into folders, one per class"):
        find_pictures(tmp_path)
    with pytest.raises(ValueError, match=r"neither a folder of class folders nor a \.csv"):
        find_pictures(tmp_path / "a.jpg")
    (tmp_path / "list.csv").write_text("image,class\n")
    with pytest.raises(ValueError, match="names no pictures"):
        find_pictures(tmp_path / "list.csv")
    (tmp_path / "list.csv").write_text("file,class\na,b\n")
    with pytest.raises(ValueError, match="needs the columns 'image' and 'class'"):
        find_pictures(tmp_path / "list.csv")
