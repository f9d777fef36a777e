"""Same seed, same bytes: in files and scores, of every registered model."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from helpers import REPOSITORY, command
from model_suite import EVERY, emoji_problem, make, set_threads
from safetensors.numpy import save_file
from sklearn.base import clone

import latem
from latem import make_latent_world
from latem.datasets.folder_writer import write_folder
from latem.models import model_rows

sys.path.insert(0, str(REPOSITORY / "tools"))
import determinism

ON_COMMAND_LINE = [row.name for row in model_rows.rows() if row.on_command_line]
QUICK = ("ESZSL", "SAE", "SemanticOutputCodes")  # to choose for, on a small world


@pytest.fixture(scope="module")
def problem():
    return emoji_problem()


@pytest.mark.parametrize("name", EVERY)
def test_files_after_another_fit_a_pickle_and_with_two_threads(name, problem, tmp_path):
    X, y, table, X_new = problem

    def saved(fitted):
        fitted.save(tmp_path / "model")
        return (tmp_path / "model").read_bytes()

    model = set_threads(make(name, table, "float32"), 1).fit(X, y)
    first, scores = saved(model), model.decision_function(X_new, "all").tobytes()
    copy = pickle.loads(pickle.dumps(model))
    assert saved(copy) == first
    assert copy.decision_function(X_new, "all").tobytes() == scores
    assert saved(set_threads(clone(copy), 2).fit(X, y)) == first
    assert saved(copy.fit(X, y)) == first


def test_a_process_with_other_settings_writes_the_same_bytes(tmp_path):
    determinism.write(tmp_path / "one", n_threads=1)
    determinism.run(sys.executable, tmp_path / "two", determinism.AGAIN)
    found = determinism.compare(tmp_path / "one", tmp_path / "two")
    assert found == dict.fromkeys(EVERY, "same bytes")


def test_differences_are_seen(tmp_path):
    scores = np.array([[1.0, 2.0], [4.0, 3.0]])
    other = scores + [[0, 0], [0, 4]]
    for place, changed in (("one", scores), ("two", other)):
        (tmp_path / place).mkdir()
        arrays = {"A": scores, "B": changed, "C": scores, "D": scores, "E": changed}
        for name, array in arrays.items():
            note = {"versions": place if name in "BC" else ""}
            save_file({"maps": array}, tmp_path / place / f"{name}.safetensors", metadata=note)
        shown = {"A": scores, "B": changed, "C": scores, "D": changed, "E": scores}
        np.savez(tmp_path / place / determinism.SCORES, **shown)
    assert determinism.compare(tmp_path / "one", tmp_path / "two") == {
        "A": "same bytes",
        "B": "1e+00, names 50%",
        "C": "same numbers",
        "D": "same file, 1e+00, names 50%",
        "E": "same scores",
    }


def test_the_setting_without_vector_instructions_has_an_effect():
    setting = determinism.SETTINGS["NumPy without AVX"]
    if not setting["NPY_DISABLE_CPU_FEATURES"]:
        pytest.skip("this processor has none that NumPy can do without")
    code = "import numpy; print(numpy.show_config(mode='dicts')['SIMD Extensions'].get('found'))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **setting}, capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.stderr) in (("None", ""), ("[]", ""))


@pytest.mark.filterwarnings("ignore:.* did best at the end of what was tried")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow)
        for name in ON_COMMAND_LINE
    ],
)
def test_the_command_line_and_python_write_the_same_bytes(name, tmp_path):
    world = make_latent_world(n_poses=1, n_seen=12, n_images=5, random_state=0)
    write_folder(world, tmp_path / "data")
    run = command("train", tmp_path / "data", "--model", name, "--out", tmp_path / "one", "-q")
    assert run.exit_code == 0, run.output
    latem.train(tmp_path / "data", kind=name).save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
