"""Threads that share an epoch: the same bytes, and none is left behind or waited for in vain."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from helpers import random_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from latem import ALE, SJE, DeViSE, LatEm, make_latent_world
from latem.models.sgd import team
from latem.models.sgd.loop import Schedule
from latem.models.sgd.pairs import PairClassSpace


@pytest.fixture
def no_epoch_is_too_small(monkeypatch):
    """Let threads share epochs that would be over before they have begun."""
    monkeypatch.setattr(team, "SMALLEST_EPOCH", 0)
    monkeypatch.setattr(team, "FEWEST_CLASSES", 1)


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_images=6, random_state=0)


def left_behind():
    return [thread.name for thread in threading.enumerate() if thread.name == "latem-train"]


class Task:
    """One epoch of a random problem, as often as wanted."""

    def __init__(self, length=7, dtype=np.float32, **sizes):
        p = random_problem(**{"seed": 0, "n": 60, "d": 9, "c": 6, "e": 4, "k": 3, **sizes})
        self.X, self.W, self.Y = (p[name].astype(dtype) for name in ("X", "W", "Y"))
        self.order, rivals = p["visits"][0]
        self.classes = np.stack([p["y"][self.order], rivals], axis=1)
        self.length = length

    def load(self, rows, out):
        out[: len(rows)] = self.X[rows]
        return out[: len(rows)]

    def run(self, n_threads, load=None):
        """Everything that an epoch leaves, as bytes."""
        space = PairClassSpace(self.W, self.Y)
        counts = np.zeros((2, len(space)), np.int64)
        on = team.ClassRows(space.rows, space.steps, space.vectors, space.gram)
        schedule = Schedule(0.1, 1.0, 1)
        epoch = team.Epoch(
            on, load or self.load, self.classes, self.order, schedule, self.length, *counts
        )
        loss = epoch.run(n_threads)
        return [a.tobytes() for a in (space.rows, space.steps, counts, np.array(loss))]


@settings(deadline=None, max_examples=60)
@given(
    st.fixed_dictionaries(
        {
            "seed": st.integers(0, 2**16),
            "n": st.integers(20, 90),
            "d": st.integers(1, 40),
            "c": st.integers(2, 20),
            "k": st.integers(1, 7),
        }
    ),
    st.integers(1, 100),
    st.sampled_from([np.float32, np.float64]),
)
def test_any_number_of_threads_leaves_the_same_bytes(sizes, length, dtype):
    task = Task(length, dtype, **sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(team, "FEWEST_CLASSES", 1)
        alone = task.run(1)
        for n_threads in (2, 3, 5):
            assert task.run(n_threads) == alone
    assert left_behind() == []


@pytest.mark.parametrize("impatient", [False, True])
def test_hundreds_of_epochs_end(no_epoch_is_too_small, monkeypatch, impatient):
    if impatient:  # every wait is in vain at first
        monkeypatch.setattr(team, "_LOOKS", 1)
        monkeypatch.setattr(team, "_NAP", 0)
    for seed in range(6):
        task = Task(length=1 + 3 * seed, seed=seed, c=4 + seed)
        alone = task.run(1)
        for _ in range(40):
            assert task.run(2 + seed % 3) == alone
    assert left_behind() == []


@pytest.mark.slow
def test_thousands_of_epochs_end_beside_each_other(no_epoch_is_too_small):
    """Several trainings at once, with more threads than there are cores."""
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            sizes = {"n": int(rng.integers(30, 200)), "c": int(rng.integers(2, 30))}
            task = Task(int(rng.integers(1, 60)), seed=seed, d=int(rng.integers(1, 64)), **sizes)
            alone = task.run(1)
            wrong.extend(n for n in (2, 3, 4, 2, 3, 4, 2, 2, 2) if task.run(n) != alone)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert left_behind() == []


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("block", [0, 1, 4, 8])
def test_an_image_that_cannot_be_read_ends_the_epoch(n_threads, block):
    task = Task()

    def load(rows, out):
        if (rows == task.order[block * task.length]).any():
            raise OSError("the disk is gone")
        return task.load(rows, out)

    with pytest.raises(OSError, match="the disk is gone"):
        task.run(n_threads, load)
    assert left_behind() == []


def test_a_leader_that_fails_leaves_no_thread(monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(team.Epoch, "_lead", fail)
    with pytest.raises(KeyboardInterrupt):
        Task().run(3)
    assert left_behind() == []


def test_the_leader_does_it_all_where_the_helper_is_late(monkeypatch):
    task, loaders = Task(n=90), []
    alone = task.run(1)

    def late(epoch):
        while not epoch._stopped():
            time.sleep(0.001)

    def load(rows, out):
        loaders.append(threading.current_thread().name)
        return task.load(rows, out)

    monkeypatch.setattr(team.Epoch, "_load_and_help", late)
    assert task.run(2, load) == alone
    assert loaders == [threading.main_thread().name] * 13  # every block once


def test_without_new_threads_one_does_it_all(monkeypatch):
    task = Task()
    alone = task.run(1)
    monkeypatch.setattr(team, "start_thread", lambda thread: False)
    assert task.run(3) == alone


def test_small_epochs_and_few_classes_are_for_one_thread():
    rows = np.empty((150, 6, 1024), np.float32)
    on = team.ClassRows(rows, rows, rows[:, 0], rows[:, 0])
    assert on.team_size(8855, 1) == 1
    assert on.team_size(8855, 2) == 2
    assert on.team_size(8855, 64) == team.MOST_THREADS
    assert on.team_size(60, 2) == 1
    few = team.ClassRows(rows[:4], rows[:4], rows[:4, 0], rows[:4, 0])
    assert few.team_size(8855, 2) == 1


OPTIONS = [
    (LatEm, {"n_maps": 6}),
    (LatEm, {"n_maps": 5, "dtype": "float64", "feature_scaling": "l2-centered"}),
    (LatEm, {"n_maps": 8, "prune_below": 0.1, "prune_every": 2}),
    (LatEm, {"n_maps": 3, "average": True}),
    (LatEm, {"n_maps": 3, "n_rivals": 4}),
    (LatEm, {"start": "eszsl", "balance_classes": True, "center_classes": True}),
    (SJE, {}),
    (SJE, {"n_maps": 3, "normalize_projection": True}),
    (ALE, {}),
    (DeViSE, {}),
]


@pytest.mark.parametrize(("kind", "options"), OPTIONS)
def test_models_are_the_same_bytes(world, no_epoch_is_too_small, kind, options):
    X, y = world.training()

    def fitted(n_threads):
        model = kind(world.embeddings["att"], n_epochs=5, random_state=0, **options)
        model.set_params(n_threads=n_threads).fit(X, y)
        return model.maps_.tobytes(), model.history_, model.map_visits_.tolist()

    alone = fitted(1)
    assert fitted(2) == alone
    assert fitted(3) == alone


def test_the_best_epoch_on_held_out_classes_is_the_same(world, no_epoch_is_too_small):
    X, y = world.training()

    def fitted(n_threads):
        model = LatEm(world.embeddings["att"], n_epochs=6, random_state=0, n_threads=n_threads)
        model.fit(X, y, validation=world.testing(), n_iter_no_change=3)
        return model.maps_.tobytes(), model.history_, model.best_epoch_

    assert fitted(2) == fitted(1)


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1), (3, 2)])
def test_continues_with_another_number_of_threads(
    world, no_epoch_is_too_small, tmp_path, first, second
):
    X, y = world.training()
    settings = {"n_maps": 6, "prune_below": 0.1, "random_state": 0}

    def model(n_epochs, n_threads):
        params = {"n_epochs": n_epochs, "n_threads": n_threads, **settings}
        return LatEm(world.embeddings["att"], **params)

    whole = model(9, 1).fit(X, y)
    model(5, first).fit(X, y, checkpoint=tmp_path / "c", checkpoint_every=2)
    again = model(9, second).fit(X, y, checkpoint=tmp_path / "c")
    assert again.maps_.tobytes() == whole.maps_.tobytes()
    assert again.history_ == whole.history_


SCRIPT = textwrap.dedent(
    """
    import signal
    import threading
    from latem import LatEm, make_latent_world
    from latem.models.sgd import team

    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored from the start
    team.SMALLEST_EPOCH, team.FEWEST_CLASSES = 0, 1
    world = make_latent_world(n_images=30, random_state=0)
    model = LatEm(world.embeddings["att"], n_epochs=10**6, n_threads=2, random_state=0)
    try:
        model.fit(*world.training(), callback=lambda info: print(info.epoch, flush=True))
    except KeyboardInterrupt:
        print([thread.name for thread in threading.enumerate() if thread.is_alive()])
    """
)


@pytest.mark.skipif(os.name != "posix", reason="SIGINT is POSIX's")
def test_an_interruption_ends_all_threads():
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True)
    for _ in range(20):
        process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.splitlines()[-1] == "['MainThread']"
