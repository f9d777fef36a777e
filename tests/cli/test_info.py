"""`latem info`: three formats, and sentences for bad files."""

import json

import pytest
from helpers import REPOSITORY, command

import latem

FILE = REPOSITORY / "tests" / "data" / "files" / "late_fusion.safetensors"


def test_text_is_the_default():
    done = command("info", FILE)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[0].split() == ["model", "LateFusion"]
    assert command("info", FILE, "--format", "text").output == done.output


def test_json():
    done = command("info", FILE, "--format", "json")
    assert done.exit_code == 0, done.output
    found, info = json.loads(done.output), latem.read_info(FILE)
    assert found["seen"] == list(info.seen)
    assert found["unseen"] == list(info.unseen)
    assert found["n_numbers"] == info.n_numbers
    assert found["tensors"]["weights"] == {"dtype": "F64", "shape": [len(info.members)]}


def test_markdown():
    done = command("info", FILE, "--format", "markdown")
    assert done.exit_code == 0, done.output
    assert done.output.startswith("# LateFusion: names ")


def test_a_format_that_is_not():
    done = command("info", FILE, "--format", "yaml")
    assert done.exit_code == 2
    assert "text, json or markdown" in done.output


@pytest.mark.parametrize("content", [b"", b"nonsense that is long enough", b"\xff" * 64, None])
def test_bad_files_fail_in_the_sentence_of_load(content, tmp_path):
    path = tmp_path / "m.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises((OSError, ValueError)) as caught:
        latem.load(path)
    done = command("info", path)
    assert done.exit_code == 1
    assert " ".join(str(caught.value).split()) in " ".join(done.output.split())
    assert "Traceback" not in done.output
