"""Things several tests need."""

import gzip
import io
import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets
from safetensors import safe_open
from safetensors.numpy import save_file
from typer.testing import CliRunner

from latem import LatEm
from latem.cli import app
from latem.models.sgd.pairs import PairClassSpace, PairEmbeddingSpace

REPOSITORY = Path(__file__).parents[1]
SHARED = Path(os.environ.get("LATEM_DATA", REPOSITORY.parent / "shared" / "data"))
GOLDEN = REPOSITORY / "tests" / "data" / "latem_golden.npz"
PHOTOS = Path(sklearn.datasets.__file__).parent / "images"  # china.jpg and flower.jpg
FORMS = {"class": PairClassSpace, "embedding": PairEmbeddingSpace}


class Terminal(io.StringIO):
    """A stream that claims to be a terminal, where progress is a bar."""

    def isatty(self):
        return True


class ScriptedLatEm(LatEm):
    """LatEm with its random choices injected: initial maps, order, rivals, form.

    Everything else is the estimator's own training loop.
    """

    def script(self, maps, visits, form):
        self.scripted_maps, self.scripted_visits, self.form = maps, visits, form
        return self

    def _initial_maps(self, shape):
        assert shape == self.scripted_maps.shape
        return self.scripted_maps.astype(self.dtype)

    def _visits(self, epoch, labels):
        return self.scripted_visits[epoch - 1]

    def _space(self, maps, vectors):
        return FORMS[self.form](maps, vectors)


def random_problem(seed, n=40, d=6, c=5, e=4, k=3, epochs=3):
    """A small random training problem with its visits drawn in advance."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(c), rng.integers(0, c, n - c)])
    visits = []
    for _ in range(epochs):
        order = rng.permutation(n)
        rivals = rng.integers(0, c - 1, n)
        rivals += rivals >= y[order]
        visits.append((order, rivals))
    return {
        "X": rng.normal(size=(n, d)),
        "y": y,
        "Y": rng.normal(size=(c, e)),
        "W": rng.normal(size=(k, d, e)) / np.sqrt(d),
        "visits": visits,
    }


def read_meta(path):
    with safe_open(path, framework="numpy") as file:
        meta = json.loads(file.metadata()["latem"])
        return {name: file.get_tensor(name) for name in file.keys()}, meta  # noqa: SIM118


def rewrite(path, change):
    tensors, meta = read_meta(path)
    change(tensors, meta)
    save_file(tensors, path, metadata={"latem": json.dumps(meta)})


def zipped(path):
    target = path.with_name(path.name + ".gz")
    target.write_bytes(gzip.compress(path.read_bytes()))
    return target


def save_pieces(folder, n, first=0):
    """Pieces of two real photos, all different, as small JPEG files."""
    from latem.features import read_picture

    folder.mkdir(parents=True, exist_ok=True)
    photos = [read_picture(PHOTOS / name) for name in ("china.jpg", "flower.jpg")]
    for i in range(first, first + n):
        left, top = 7 * i % 400, 5 * i % 200
        piece = photos[i % 2].crop((left, top, left + 200, top + 160 + i % 40))
        piece.save(folder / f"photo {i:03d}.jpg")


def with_small_disk(folder, size, arguments):
    """Command that runs another with a disk of so many bytes at `folder`, which only it sees.

    None where that cannot be had.
    """
    mounted = ("unshare", "--mount", "sh", "-c")
    mount = f"mount -t tmpfs -o size={size} tmpfs {shlex.quote(str(folder))}"
    if (
        not shutil.which("unshare")
        or subprocess.run((*mounted, mount), capture_output=True).returncode
    ):
        return None
    return [*mounted, f"{mount} && exec {shlex.join(map(str, arguments))}"]


def on_small_disk(folder, size, arguments):
    """Run a command with a disk of so many bytes at `folder`, in a file system of its own."""
    line = with_small_disk(folder, size, arguments)
    if line is None:
        pytest.skip("no small disk can be mounted here")
    return subprocess.run(line, capture_output=True, text=True, timeout=240)


def left_over(root):
    """Hidden files in a folder."""
    return sorted(path.name for path in root.iterdir() if path.name.startswith("."))


def command(*arguments, **options):
    """What a command line prints, and its exit code."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)
