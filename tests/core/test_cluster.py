"""A real cluster: a scheduler and workers, each a process of its own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from helpers import command

import latem
from latem.core import cluster
from latem.core.cluster import on_cluster
from latem.datasets import make_latent_world, write_folder

pytest.importorskip("distributed")
SEARCHES = {
    "HeldOutSearch": lambda table: latem.HeldOutSearch(
        latem.SJE(table, random_state=0), {"margin": [0.5, 1.0]}, cv=3, random_state=0
    ),
    "LatEmCV": lambda table: latem.LatEmCV(table, cv=2, random_state=0),
    "CommitteeCV": lambda table: latem.CommitteeCV(table, cv=2, random_state=0),
}


class Processes:
    """A scheduler and its workers."""

    def __init__(self, folder, n_workers):
        self.file = folder / "scheduler.json"
        self.log = open(folder / "log", "wb")  # noqa: SIM115
        self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", self.file)
        self.workers = [self.add_worker() for _ in range(n_workers)]
        deadline = time.monotonic() + 60
        while not self.file.is_file():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        self.address = json.loads(self.file.read_text())["address"]

    def _start(self, what, *arguments):
        # its own session: signals of a terminal do not reach it
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{what}", *map(str, arguments),
             "--no-dashboard", "--host", "127.0.0.1"],
            stdout=self.log, stderr=self.log, start_new_session=True,
        )  # fmt: skip

    def add_worker(self):
        return self._start(
            "worker", "--scheduler-file", self.file, "--nthreads", "1", "--no-nanny",
            "--death-timeout", "60",
        )  # fmt: skip

    def wait_for(self, n_workers):
        from distributed import Client

        with Client(self.address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(n_workers, timeout=60)

    def close(self):
        for process in [*self.workers, self.scheduler]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
            process.wait()
        self.log.close()


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    started = Processes(tmp_path_factory.mktemp("cluster"), 2)
    started.wait_for(2)
    yield started
    started.close()


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_seen=12, n_images=8, random_state=0)


def saved(model, world, path):
    model.fit(*world.training()).save(path)
    return path.read_bytes()


@pytest.mark.filterwarnings("ignore::latem.GridEdgeWarning")
@pytest.mark.parametrize("kind", SEARCHES)
def test_same_bytes_as_here(kind, processes, world, tmp_path, monkeypatch):
    monkeypatch.setattr("latem.core.parallel._LARGE", 1000)  # small arrays are mapped, too
    table = world.embeddings["att"]
    here = saved(SEARCHES[kind](table), world, tmp_path / "here")
    with on_cluster(processes.address):
        there = saved(SEARCHES[kind](table), world, tmp_path / "there")
    assert there == here


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::latem.GridEdgeWarning")
def test_a_worker_that_is_killed_costs_a_retry(processes, tmp_path):
    from distributed import Client

    world = make_latent_world(n_poses=2, n_seen=40, n_images=40, n_features=64, random_state=0)
    search = latem.HeldOutSearch(
        latem.LatEm(world.embeddings["att"], n_maps=4, n_epochs=60, random_state=0),
        {"learning_rate": [0.01, 0.03, 0.1, 0.3], "margin": [0.5, 1.0]}, cv=3, random_state=0,
    )  # fmt: skip
    here = saved(search, world, tmp_path / "here")
    victim = processes.add_worker()
    processes.workers.append(victim)
    processes.wait_for(3)
    killed = []

    class Killer:
        """Kills the third worker as soon as it works."""

        def __init__(self, scheduler):
            self.client = Client(scheduler, set_as_default=False)
            pids = self.client.run(os.getpid)
            self.name = next(name for name, pid in pids.items() if pid == victim.pid)

        def run(self):
            deadline = time.monotonic() + 120
            while not self.client.processing().get(self.name):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            os.kill(victim.pid, signal.SIGKILL)
            killed.append(victim.pid)
            self.client.close()

    killer = threading.Thread(target=Killer(processes.address).run)
    with on_cluster(processes.address):
        killer.start()
        there = saved(search, world, tmp_path / "there")
    killer.join()
    assert killed == [victim.pid]
    assert there == here


@pytest.mark.slow
def test_a_scheduler_that_is_killed_costs_a_resume(tmp_path):
    world = make_latent_world(n_seen=16, n_unseen=5, n_images=30, n_features=32, random_state=0)
    write_folder(world, tmp_path / "data" / "cub")
    line = [sys.executable, "-m", "latem", "reproduce", "table2", "--epochs", "40",
            "--data", str(tmp_path / "data"), "--out"]  # fmt: skip
    subprocess.run([*line, str(tmp_path / "here")], check=True, capture_output=True)
    processes = Processes(tmp_path, 2)
    try:
        processes.wait_for(2)
        out = tmp_path / "there"
        running = subprocess.Popen(
            [*line, str(out), "--cluster", processes.address],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        deadline = time.monotonic() + 300
        while not list((out / "cells").glob("*.json")):
            assert running.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(processes.scheduler.pid, signal.SIGKILL)
        told = running.communicate(timeout=300)[0]
        kept = len(list((out / "cells").glob("*.json")))
    finally:
        processes.close()
    assert running.returncode == 1, told
    assert "Traceback" not in told, told
    assert told.strip().splitlines()[-1].startswith("latem: ")
    assert kept
    again = subprocess.run([*line, str(out)], check=True, capture_output=True, text=True).stdout
    assert f"({kept} kept from before)" in again
    for name in ("results.json", "results.csv"):
        assert (out / name).read_bytes() == (tmp_path / "here" / name).read_bytes(), name


def test_no_scheduler(tmp_path):
    with (
        pytest.raises(OSError, match="There is no scheduler at 'tcp://127.0.0.1:1' .* start one"),
        on_cluster("tcp://127.0.0.1:1", seconds=1),
    ):
        pass
    with (
        pytest.raises(OSError, match="There is no scheduler at 'nonsense://x'"),
        on_cluster("nonsense://x", seconds=1),
    ):
        pass
    done = command("reproduce", "--data", tmp_path, "--cluster", "nonsense://x")
    assert done.exit_code == 1
    assert "There is no scheduler" in done.output


def test_workers_with_other_versions_are_refused(processes, monkeypatch):
    known = cluster.library_versions
    monkeypatch.setattr(cluster, "_own_versions", lambda: {**known(), "numpy": "0.0"})
    with (
        pytest.raises(ValueError, match="has numpy .*, this process 0.0: install the same"),
        on_cluster(processes.address),
    ):
        pass


def test_without_an_address_nothing_changes():
    with on_cluster(None):
        assert np.array_equal(list(latem.core.parallel.run_tasks(abs, [-1, 2])), [1, 2])


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(ImportError, match=r"pip install 'latem\[cluster\]'"),
        on_cluster("tcp://127.0.0.1:8786"),
    ):
        pass


def test_sums_over_blocks_on_workers_are_the_same_bytes(processes, world):
    da = pytest.importorskip("dask.array")
    from distributed import Client

    X, y = world.training()
    images = da.from_array(np.asarray(X), chunks=(37, -1)), da.from_array(np.asarray(y), chunks=37)
    here = latem.ESZSL(world.embeddings["att"], balance_classes=True).fit(*images)
    with Client(processes.address, timeout=60):  # the default for Dask arrays from here on
        there = latem.ESZSL(world.embeddings["att"], balance_classes=True).fit(*images)
    assert there.map_.tobytes() == here.map_.tobytes()
    assert there.training_digest_ == here.training_digest_
