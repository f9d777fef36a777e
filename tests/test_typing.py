"""What type checkers are told: `fit` gives back the model it was called on."""

import shutil
import subprocess
import sys

import pytest
from helpers import REPOSITORY

SNIPPET = """
from latem import CCA, DAP, ESZSLCV, HeldOutSearch, LateFusion, LatEm, LatEmCV

reveal_type(LatEm().fit([], []))
reveal_type(LatEm().partial_fit([], []))
reveal_type(ESZSLCV().fit([], []))
reveal_type(DAP().fit([], []))
reveal_type(CCA().fit([], []))
reveal_type(LatEmCV().fit([], []))
reveal_type(HeldOutSearch(LatEm()).fit([], []))
reveal_type(LateFusion([]).fit([], []))
"""


@pytest.mark.slow
def test_fit_is_of_the_model_s_own_type(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "snippet.py").write_text(SNIPPET)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(REPOSITORY / "pyproject.toml"),
         "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "snippet.py")],
        capture_output=True, text=True, check=False, cwd=REPOSITORY,
        env={"MYPYPATH": str(REPOSITORY / "src"), "PATH": str(shutil.which("env"))},
    )  # fmt: skip
    revealed = [
        line.split('"')[1].split(".")[-1] for line in run.stdout.splitlines() if "Reveal" in line
    ]
    assert revealed == [
        "LatEm", "LatEm", "ESZSLCV", "DAP", "CCA", "LatEmCV", "HeldOutSearch", "LateFusion"
    ], run.stdout + run.stderr  # fmt: skip
