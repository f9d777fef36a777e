"""What is built holds everything: the sdist all files of the repository, the wheel the package."""

import sys

import pytest
from helpers import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools"))
import dist

FILES = {
    "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\n'
    'build-backend = "setuptools.build_meta"\n[project]\nname = "latem"\nversion = "1"\n'
    "[tool.setuptools]\ninclude-package-data = false\n"
    '[tool.setuptools.packages.find]\nwhere = ["src"]\n'
    '[tool.setuptools.package-data]\nlatem = ["words.txt"]\n',
    "MANIFEST.in": "include MANIFEST.in notes.md\n",
    "notes.md": "of okapis",
    "src/latem/__init__.py": "",
    "src/latem/words.txt": "okapi",
}


def built(place, files):
    pytest.importorskip("setuptools", "77", reason="archives are built by setuptools")
    for name, content in files.items():
        path = place / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    sdist = dist.build("sdist", place / "source", place / "sdist")
    return sdist, dist.build("wheel", dist.unpack(sdist, place / "unpacked"), place / "wheel")


def test_complete_archives_pass(tmp_path):
    dist.check_complete(list(FILES), *built(tmp_path, FILES))


@pytest.mark.parametrize(
    ("file", "line", "lacking"),
    [
        ("MANIFEST.in", " notes.md", r"latem-1.tar.gz lacks 1 of 5 files, notes.md for one"),
        ("pyproject.toml", '"words.txt"', r"whl lacks 1 of 2 files, src/latem/words.txt for one"),
    ],
)
def test_what_is_left_out_is_named(tmp_path, file, line, lacking):
    changed = {**FILES, file: FILES[file].replace(line, "")}
    if file == "pyproject.toml":  # the sdist has it nevertheless
        changed["MANIFEST.in"] += "include src/latem/words.txt\n"
    with pytest.raises(dist.Failure, match=lacking):
        dist.check_complete(list(FILES), *built(tmp_path, changed))


def test_what_is_committed_is_complete(tmp_path):
    pytest.importorskip("setuptools", "77", reason="archives are built by setuptools")
    if not (REPOSITORY / ".git").exists():
        pytest.skip("this is no clone of the repository")
    dist.clone(tmp_path / "clone")
    sdist = dist.build("sdist", tmp_path / "clone", tmp_path / "sdist")
    wheel = dist.build("wheel", dist.unpack(sdist, tmp_path / "unpacked"), tmp_path / "wheel")
    dist.check_complete(dist.tracked(tmp_path / "clone"), sdist, wheel)


def test_changed_bytes_are_seen_and_caches_are_not(tmp_path):
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "a.py").write_text("1")
    before = dist.digests(tmp_path)
    (tmp_path / "__pycache__" / "a.pyc").write_text("1")
    assert dist.digests(tmp_path) == before
    (tmp_path / "a.py").write_text("2")
    assert dist.digests(tmp_path) != before


def test_a_command_that_fails_is_told(capfd):
    with pytest.raises(dist.Failure, match="failed with 3: .*python"):
        dist.run(sys.executable, "-c", "raise SystemExit(3)")
