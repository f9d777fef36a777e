"""What a machine that only answers can leave out."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from helpers import REPOSITORY, command
from model_suite import EVERY, make

import latem
from latem.core.slim import is_frame, is_index, is_series, needed
from latem.datasets import make_latent_world

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LEFT_OUT = ("pandas", "numba", "llvmlite", "matplotlib", "jinja2", "pyarrow")
ANSWER = """
import sys
from pathlib import Path
if sys.argv[2] == "without":
    from importlib import metadata
    known = metadata.version
    def version(name):
        if name in {left_out!r}:
            raise metadata.PackageNotFoundError(name)
        return known(name)
    metadata.version = version
    sys.modules.update(dict.fromkeys({left_out!r}))
import numpy as np
import latem
folder = Path(sys.argv[1])
X = np.load(folder / "features.npy")
for path in sorted(folder.glob("*.safetensors")):
    model = latem.load(path)
    if path.stem != "LateFusion":  # whose members have tables of their own
        model = model.with_classes({{"new": np.linspace(0, 1, 8)}})
    model.save(folder / "again")
    model = latem.load(folder / "again")
    print(path.stem, *model.predict(X, classes="unseen"), *model.top_k(X, 3, classes="all").ravel())
    print(model.answer(X, "all").to_csv())
    print(latem.read_info(path).n_numbers)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of every registered model, and features."""
    place = tmp_path_factory.mktemp("slim")
    world = make_latent_world(n_poses=1, n_seen=12, n_images=6, random_state=0)
    att = world.embeddings["att"]
    table = latem.ClassEmbeddings(att.names, att.vectors - att.vectors.min())
    for name in EVERY:
        make(name, table).fit(*world.training()).save(place / f"{name}.safetensors")
    np.save(place / "features.npy", world.features[::9])
    return place


def python(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_model_answers_without_what_trains_plots_and_frames(folder):
    code = ANSWER.format(left_out=LEFT_OUT)
    answers = python(code, folder, "without")
    assert answers.count("picture,place") == len(EVERY)
    assert answers == python(code, folder, "with")


def test_the_list_is_a_part_of_the_requirements():
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    whole = set(tomllib.loads(text)["project"]["dependencies"])
    lines = (REPOSITORY / "requirements" / "predict.txt").read_text(encoding="utf-8").splitlines()
    part = {line for line in lines if not line.startswith("#")}
    assert part < whole
    names = {line.partition(">")[0] for line in whole - part}
    assert names == {"pandas", "numba", "matplotlib", "jinja2"}


def test_training_says_what_is_missing():
    code = (
        "import sys, latem; sys.modules['numba'] = None\n"
        "try: latem.LatEm(n_epochs=1).fit([[1.0, 0], [0, 1]], ['a', 'b'])\n"
        "except ImportError as error: print(error)"
    )
    assert python(code) == "Compiled trainings need numba: pip install numba.\n"


def test_what_is_needed(monkeypatch):
    assert needed("os.path", "Paths").join("a", "b")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"^Plots need matplotlib: pip install matplotlib\.$"):
        needed("matplotlib.figure", "Plots")


def test_a_command_names_a_package_that_is_missing(monkeypatch, tmp_path):
    for module in [one for one in sys.modules if one.startswith("latem.report")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delitem(sys.modules, "latem.workflows.gallery", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = command("gallery", tmp_path / "m.safetensors", tmp_path, "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert done.output.strip() == "latem: jinja2 is not installed: pip install jinja2."


def test_kinds_of_pandas_are_known():
    frame = pd.DataFrame({"a": [1]})
    assert (is_frame(frame), is_series(frame["a"]), is_index(frame.index)) == (True, True, True)
    for one in ({}, [], np.zeros((1, 1)), None):
        assert (is_frame(one), is_series(one), is_index(one)) == (False, False, False)
