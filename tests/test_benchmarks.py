"""Benchmarks and tools can at least be imported: they use names that exist."""

import subprocess
import sys

import pytest
from helpers import REPOSITORY

SCRIPTS = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for folder in ("benchmarks", "tools", "examples")
    for path in (REPOSITORY / folder).glob("*.py")
)
IMPORT = """
import importlib.util, sys
sys.path.insert(0, {folder!r})
spec = importlib.util.spec_from_file_location("script", {path!r})
spec.loader.exec_module(importlib.util.module_from_spec(spec))
"""


@pytest.mark.parametrize("script", SCRIPTS)
def test_imports(script):
    path = REPOSITORY / script
    code = IMPORT.format(folder=str(path.parent), path=str(path))
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=REPOSITORY
    )
    assert run.returncode == 0, run.stderr
