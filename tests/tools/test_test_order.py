"""The tool that runs the tests in many orders, on small projects."""

import os
import subprocess
import sys

from helpers import REPOSITORY

TOOL = REPOSITORY / "tools" / "test_order.py"
SOUND = "def test_sound():\n    pass\n"
SLOW = "import pytest\n\n\n@pytest.mark.slow\ndef test_slow():\n    raise AssertionError\n"
LEAVES = "import builtins\n\n\ndef test_leaves():\n    builtins.left_behind = True\n"
NEEDS = "def test_needs():\n    assert left_behind\n"
EXAMPLE = '"""A module.\n\n>>> 1 + 1\n2\n"""\n'
SETTINGS = """[tool.pytest.ini_options]
testpaths = ["tests", "src"]
addopts = "--doctest-modules --import-mode=importlib -p pytest_randomly -p xdist"
markers = ["slow: long"]
"""


def run_tool(folder, files, *options):
    """Write some files and run the tool beside them: its exit code and what it prints."""
    for name, content in {"pyproject.toml": SETTINGS, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, TOOL, *options],
        cwd=folder, env={**own, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_sound_tests_pass_in_every_order(tmp_path):
    files = {"tests/test_a.py": SOUND, "tests/b/test_b.py": SLOW, "src/c.py": EXAMPLE}
    code, text = run_tool(tmp_path, files, "--seeds", "7", "-m", "not slow")
    assert code == 0
    assert [line.split(" s  ")[1] for line in text.splitlines() if line.startswith("ok")] == [
        "src/c.py alone",
        "tests/b/test_b.py alone",
        "tests/test_a.py alone",
        "everything with --randomly-seed=7",
    ]
    assert text.endswith("\n4 runs, 0 failed\n")


def test_tests_that_need_an_order_are_found(tmp_path):
    files = {"tests/test_a.py": LEAVES, "tests/test_b.py": NEEDS, "src/no_example.py": ""}
    code, text = run_tool(tmp_path, files, "--seeds", "31415926", "27182818", "--jobs", "1")
    assert code == 1
    assert "FAILED tests/test_b.py::test_needs - NameError" in text
    failed = text.partition(" runs, ")[2].splitlines()
    assert failed == [
        "2 failed", "  tests/test_b.py alone", "  everything with --randomly-seed=27182818"
    ]  # fmt: skip
