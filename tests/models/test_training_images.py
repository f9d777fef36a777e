"""Images read ahead through a buffer: the same rows, whole blocks of a file, little memory."""

import subprocess
import sys

import numpy as np
import pytest

import latem
from latem import ALE, SJE, DeViSE, LatEm, make_latent_world
from latem.models.scaling import FeatureScaler
from latem.models.sgd.visits import BLOCKS, random_visits, visiting_order
from latem.models.training_images import ReadAhead, TrainingImages

MODELS = {
    "LatEm": lambda table, **more: LatEm(table, n_maps=2, **more),
    "LatEm, several rivals": lambda table, **more: LatEm(
        table, n_maps=1, n_rivals=3, average=True, **more
    ),
    "LatEm, all rivals": lambda table, **more: LatEm(table, n_rivals=999, **more),
    "SJE": SJE,
    "SJE, unshuffled": lambda table, **more: SJE(table, shuffle=False, **more),
    "ALE": ALE,
    "DeViSE": DeViSE,
}
QUICK = {"n_epochs": 3, "random_state": 0}


class Spied(np.ndarray):
    """An array that notes which rows are looked at, and how."""

    def __getitem__(self, rows):
        self.asked.append(rows)
        return np.asarray(super().__getitem__(rows))


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_images=10, random_state=0)


@pytest.fixture
def mapped(world, tmp_path):
    """Training images in a file of half precision, and their labels."""
    X, y = world.training()
    np.save(tmp_path / "features.npy", X.astype(np.float16))
    return np.load(tmp_path / "features.npy", mmap_mode="r"), y


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("n", "buffer"), [(1000, 130), (1000, 7), (129, 128), (90, 500)])
def test_rows_are_those_of_the_order_however_many_are_asked_for(dtype, n, buffer):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)).astype(dtype)
    scaler = FeatureScaler.fit(X, "zscore")
    vectors = np.eye(4, dtype=np.float32)
    images = TrainingImages(X, np.zeros(n, int), vectors, scaler, buffer=buffer)
    visits = images.announcing(lambda epoch: (visiting_order(rng, n, buffer), None))
    for epoch in (1, 2):
        order, _ = visits(epoch)
        first = 0
        while first < n:
            rows = order[first : first + rng.integers(1, 60)]
            expected = scaler.load(X, rows, np.empty((len(rows), 3), np.float32))
            found = images.load(rows, np.empty((60, 3), np.float32))
            np.testing.assert_array_equal(found, expected)
            first += len(rows)


def test_a_file_is_read_once_an_epoch_in_whole_blocks():
    n, buffer = 5000, 640  # blocks of 10
    X = np.arange(2.0 * n).reshape(n, 2).view(Spied)
    X.asked = []
    ahead = ReadAhead(X, buffer)
    order = visiting_order(np.random.default_rng(0), n, buffer)
    ahead.begin(order)
    place = 0
    while place < n:
        held, places = ahead.next_rows(order[place : place + 50])
        np.testing.assert_array_equal(held[places, 0], 2.0 * order[place : place + len(places)])
        place += len(places)
    assert all(isinstance(rows, slice) for rows in X.asked)
    read = np.concatenate([np.arange(rows.start, rows.stop) for rows in X.asked])
    assert sorted(read.tolist()) == list(range(n))
    assert len(X.asked) <= n / (buffer // BLOCKS) + 2 * n / buffer


@pytest.mark.parametrize("name", MODELS)
def test_a_buffer_for_all_images_gives_the_bytes_of_none(name, world, tmp_path):
    X, y = world.training()
    table = world.embeddings["att"]
    plain = MODELS[name](table, **QUICK).fit(X, y)
    held = MODELS[name](table, shuffle_buffer=len(X), **QUICK).fit(X, y)
    assert plain.maps_.tobytes() == held.maps_.tobytes()
    less = MODELS[name](table, shuffle_buffer=100, **QUICK).fit(X, y)
    assert (less.maps_.tobytes() == plain.maps_.tobytes()) == ("unshuffled" in name)


@pytest.mark.parametrize("name", MODELS)
def test_mapped_files_clones_and_model_files(name, world, mapped, tmp_path):
    from sklearn.base import clone

    X, y = mapped
    model = MODELS[name](world.embeddings["att"], shuffle_buffer=90, **QUICK).fit(X, y)
    model.save(tmp_path / "mapped")
    for other in (clone(model), latem.load(tmp_path / "mapped")):
        assert other.get_params()["shuffle_buffer"] == 90
        other.fit(np.array(X), y).save(tmp_path / "other")
        assert (tmp_path / "other").read_bytes() == (tmp_path / "mapped").read_bytes()


def test_training_takes_the_visits_of_this_order(world):
    X, y = world.training()

    class Random(LatEm):
        def _visits(self, epoch, labels):
            return random_visits(self.seed_, epoch, labels, len(self.classes_), 90)

    plain = Random(world.embeddings["att"], **QUICK).fit(X, y)
    held = LatEm(world.embeddings["att"], shuffle_buffer=90, **QUICK).fit(X, y)
    assert plain.maps_.tobytes() == held.maps_.tobytes()


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("name", ["LatEm", "LatEm, several rivals", "SJE"])
def test_an_interrupted_training_goes_on_to_the_same_bytes(name, world, mapped, tmp_path):
    X, y = mapped
    settings = QUICK | {"n_epochs": 6, "shuffle_buffer": 90}

    def stop(info):
        if info.epoch == 3:
            raise Interrupted

    def fitted(**more):
        return MODELS[name](world.embeddings["att"], **settings).fit(X, y, **more)

    checkpoint = {"checkpoint": tmp_path / "training", "checkpoint_every": 2}
    with pytest.raises(Interrupted):
        fitted(callback=stop, **checkpoint)
    continued = fitted(**checkpoint)
    assert continued.maps_.tobytes() == fitted().maps_.tobytes()
    settings["shuffle_buffer"], settings["n_epochs"] = 91, 7
    with pytest.raises(ValueError, match="belongs to a training with other data, parameters"):
        fitted(**checkpoint)


def test_partial_fit_goes_through_the_buffer(world):
    X, y = world.training()
    parts = [LatEm(world.embeddings["att"], shuffle_buffer=b, **QUICK) for b in (90, len(X), None)]
    maps = [model.partial_fit(X, y).partial_fit(X, y).maps_.tobytes() for model in parts]
    assert maps[1] == maps[2] != maps[0]


def test_what_is_refused(world):
    X, y = world.training()
    with pytest.raises(ValueError, match=r"shuffle_buffer.*LatEm.*\[1, inf\).*Got 0"):
        LatEm(world.embeddings["att"], shuffle_buffer=0).fit(X, y)
    endless = np.lib.stride_tricks.as_strided(X, (10**12, X.shape[1]), (0, X.itemsize))
    with pytest.raises(ValueError, match=r"Holding shuffle_buffer=\d+ images .* of memory"):
        ReadAhead(endless, 10**11)


@pytest.fixture(scope="module")
def large_file(tmp_path_factory):
    """A file of 205 MB of features."""
    path = tmp_path_factory.mktemp("large") / "X.npy"
    X = np.lib.format.open_memmap(path, "w+", np.float16, (200_000, 512))
    rng = np.random.default_rng(0)
    some = rng.random((5000, 512), np.float32)
    for first in range(0, len(X), 5000):
        X[first : first + 5000] = np.roll(some, first // 5000, axis=1) * rng.random()
    X.flush()
    return str(path)


BOUNDED = """
import resource, sys
import numpy as np
from latem import LatEm

def data():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData")) * 1024

X = np.load(sys.argv[1], mmap_mode="r")
y = np.arange(len(X)) * 20 // len(X)  # sorted by class
table = (range(24), np.random.default_rng(0).random((24, 30)))
settings = {"n_maps": 2, "n_epochs": 2, "random_state": 0, "n_threads": 1, **eval(sys.argv[2])}
LatEm(table, **settings).fit(np.array(X[:: len(X) // 500]), y[:: len(X) // 500])  # compiles
limit = data() + X.nbytes // 4
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    np.array(X)
except MemoryError:
    print("not all of it")
model = LatEm(table, **settings).fit(X, y)
assert np.isfinite(model.maps_).all()
print("trained on", len(X))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits private memory")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"shuffle_buffer": 8192},
        {"shuffle_buffer": 8192, "start": "eszsl", "balance_classes": True, "average": True},
        {"shuffle_buffer": 8192, "feature_scaling": "l2-centered"},
    ],
    ids=["random", "buffer", "closed-form start and balance", "centred"],
)
def test_a_file_of_four_times_the_memory(settings, large_file):
    run = subprocess.run(
        [sys.executable, "-c", BOUNDED, large_file, repr(settings)],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["not all of it", "trained on 200000"]
