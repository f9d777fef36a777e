"""Which bytes are the same: every registered model, trained in other ways and other environments.

    python tools/determinism.py [--beside PYTHON ...]
    python tools/determinism.py --write FOLDER [--threads N]

Trains all models on drawings of thirty kinds of emoji in processes of their own and compares their
files and their scores of unseen classes with those of this Python. `--beside` names the Pythons of
other environments (`make determinism` makes some); the other columns are this one with other
settings. A cell says

    same bytes     files and scores are
    same numbers   arrays in the files and scores are; files also record versions and losses
    same scores    scores are; arrays in the files differ in their last digits
    same file      and scores differ by so much
    a number       by so much the scores differ, relative to the largest; and how many names agree
"""

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests"))
SCORES = "scores.npz"
AGAIN = {"OPENBLAS_NUM_THREADS": "2", "PYTHONHASHSEED": "2", "THREADS": "2"}
SETTINGS: dict[str, dict[str, str]] = {
    "again, 2 threads": AGAIN,
    "OpenBLAS as on Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "OpenBLAS as on Nehalem": {"OPENBLAS_CORETYPE": "Nehalem"},
    "NumPy without AVX": {
        "NPY_DISABLE_CPU_FEATURES": " ".join(
            np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
        ),
        "PYTHONWARNINGS": "error::ImportWarning",  # NumPy's, of what it cannot disable
    },
    "numba for any processor": {"NUMBA_CPU_NAME": "generic"},
}


def write(folder: Path, n_threads: int) -> None:
    """Train every model; leave its file and its scores of unseen classes."""
    from model_suite import EVERY, emoji_problem, make, set_threads

    X, y, table, X_new = emoji_problem()
    folder.mkdir(parents=True, exist_ok=True)
    # classes of the same description tie, and rounding decides between them
    unseen = table.select([one for one in table.names.tolist() if one not in set(y)])
    _, first = np.unique(unseen.vectors, axis=0, return_index=True)
    candidates = unseen.names[np.sort(first)].tolist()
    scores = {}
    for name in EVERY:
        model = set_threads(make(name, table, "float32"), n_threads)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of parameters at the end of a grid
            model.fit(X, y)
        model.save(folder / f"{name}.safetensors")
        scores[name] = model.decision_function(X_new, candidates)
    np.savez(folder / SCORES, **scores)


def run(python: str, folder: Path, setting: Mapping[str, str]) -> None:
    """`write` in a process of its own."""
    setting = dict(setting)
    threads = setting.pop("THREADS", "1")
    ways = {"PYTHONPATH": str(REPOSITORY / "src"), "OPENBLAS_NUM_THREADS": "1", **setting}
    command = [python, __file__, "--write", str(folder), "--threads", threads]
    subprocess.run(command, env={**os.environ, **ways}, check=True)


def compare(one: Path, other: Path) -> dict[str, str]:
    """What is the same in two folders, by model."""
    found = {}
    with np.load(one / SCORES) as ours, np.load(other / SCORES) as theirs:
        for name in ours.files:
            files = [folder / f"{name}.safetensors" for folder in (one, other)]
            same_file = files[0].read_bytes() == files[1].read_bytes()
            a, b = ours[name], theirs[name]
            if np.array_equal(a, b) and (same_file or same_arrays(*map(load_file, files))):
                found[name] = "same bytes" if same_file else "same numbers"
                continue
            if np.array_equal(a, b):
                found[name] = "same scores"
                continue
            difference = np.abs(a - b).max() / np.abs(a).max()
            named = (a.argmax(axis=1) == b.argmax(axis=1)).mean()
            found[name] = ("same file, " if same_file else "") + f"{difference:.0e}"
            found[name] += "" if named == 1 else f", names {named:.0%}"
    return found


def same_arrays(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> bool:
    """Whether two files hold the same arrays, to the last bit."""
    return one.keys() == other.keys() and all(
        (array.dtype, array.shape, array.tobytes())
        == (other[name].dtype, other[name].shape, other[name].tobytes())
        for name, array in one.items()
    )


def title_of(python: str) -> str:
    """Versions that an environment has."""
    code = (
        "import platform, numpy, numba; print('Python', platform.python_version() + ',', "
        "'NumPy', numpy.__version__ + ',', 'numba', numba.__version__)"
    )
    return subprocess.run(
        [python, "-c", code], stdout=subprocess.PIPE, encoding="utf-8", check=True
    ).stdout.strip()


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; gives 1 if the same environment does not give the same bytes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="train, and leave the files in this folder")
    parser.add_argument("--threads", type=int, default=1, help="with --write: threads of a model")
    parser.add_argument("--beside", nargs="*", default=[], help="Pythons of other environments")
    options = parser.parse_args(argv)
    if options.write:
        write(options.write, options.threads)
        return 0
    with tempfile.TemporaryDirectory() as place:
        first = Path(place) / "first"
        run(sys.executable, first, {"PYTHONHASHSEED": "1"})
        columns = {}
        for python in options.beside:
            run(python, Path(place) / str(len(columns)), {})
            columns[title_of(python)] = compare(first, Path(place) / str(len(columns)))
        for title, setting in SETTINGS.items():
            run(sys.executable, Path(place) / str(len(columns)), setting)
            columns[title] = compare(first, Path(place) / str(len(columns)))
    print(f"Beside {title_of(sys.executable)}:\n")
    print("| model |" + "".join(f" {title} |" for title in columns))
    print("|---|" + "---|" * len(columns))
    for name in next(iter(columns.values())):
        print(f"| {name} |" + "".join(f" {column[name]} |" for column in columns.values()))
    return int(set(columns["again, 2 threads"].values()) != {"same bytes"})


if __name__ == "__main__":
    sys.exit(main())
