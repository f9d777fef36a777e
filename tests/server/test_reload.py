"""A model file is replaced while clients ask: nobody notices, except by the version."""

import json
import os
import shutil
import threading
import time

import pytest
from live_server import LiveServer, serve_command

pytest.importorskip("fastapi")
pytestmark = pytest.mark.slow

N_THREADS = 8


@pytest.fixture
def files(emoji_models, tmp_path):
    """A model file that may be replaced, and two to replace it with."""
    served = tmp_path / "bird.safetensors"
    for name, path in emoji_models.items():
        shutil.copy(path, tmp_path / f"new {name}")
    shutil.copy(emoji_models["keywords"], served)
    return served, tmp_path / "new maps", tmp_path / "new keywords"


@pytest.fixture
def running(files, emoji_folder):
    server = LiveServer(serve_command(files[0], emoji_folder, "--port", 0))
    yield server
    server.stop()


class Asking:
    """Threads that ask all the time, each on a connection of its own."""

    def __init__(self, server):
        self.server, self.stopped = server, threading.Event()
        self.versions, self.failures = [], []
        self.threads = [threading.Thread(target=self._ask, args=(i,)) for i in range(N_THREADS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join(60)

    def _ask(self, number):
        connection = self.server.connection()
        try:
            while not self.stopped.is_set():
                body = json.dumps({"row": number, "explain": number == 0})
                connection.request(
                    "POST", "/api/predict", body, {"Content-Type": "application/json"}
                )
                answer = connection.getresponse()
                content = answer.read()
                if answer.status != 200:
                    self.failures.append(content)
                    return
                told = json.loads(content)
                self.versions.append((told["version"], len(told["answers"][0]["classes"])))
        except Exception as error:
            self.failures.append(error)
        finally:
            connection.close()


def wait_for(task, wanted, seconds=60):
    """Ask until the answer is the wanted one; the last answer."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = task()
        if found == wanted:
            break
        time.sleep(0.1)
    return found


def kind(server):
    told = json.loads(server.ask("GET", "/api/about")[2])["models"][0]
    return told["version"], told["kind"]


def test_replaced_while_clients_ask(running, files):
    served, maps, keywords = files
    with Asking(running) as asking:
        time.sleep(0.5)
        os.replace(maps, served)
        assert wait_for(lambda: kind(running), (2, "LatEm")) == (2, "LatEm")
        time.sleep(0.5)
        os.replace(keywords, served)
        assert wait_for(lambda: kind(running), (3, "ESZSL")) == (3, "ESZSL")
        time.sleep(0.5)
    assert asking.failures == []
    assert {version for version, _ in asking.versions} == {1, 2, 3}
    assert {n for _, n in asking.versions} == {5}
    assert running.metric("latem_model_version") == 3
    status, _, _ = running.ask("GET", "/v2/models/bird/versions/1/ready")
    assert status == 404


def test_damaged_file_leaves_the_old_model(running, files):
    served, maps, _ = files
    content = maps.read_bytes()
    with Asking(running) as asking:
        for number, damaged in enumerate((content[:5000], b"", b"x" * 1000), start=1):
            part = served.with_name("part")
            part.write_bytes(damaged)
            os.replace(part, served)

            def failed():
                return failures(running)

            assert wait_for(failed, number) == number
            assert kind(running) == (1, "ESZSL")
        served.unlink()  # a file that is away for a while is no reason to stop
        time.sleep(1.5)
        assert kind(running) == (1, "ESZSL")
        os.replace(maps, served)
        assert wait_for(lambda: kind(running), (2, "LatEm")) == (2, "LatEm")
    assert asking.failures == []
    assert failures(running) == 3


def failures(server):
    _, _, text = server.ask("GET", "/metrics")
    lines = [one for one in text.decode().splitlines() if 'result="failed"' in one]
    return sum(float(one.split()[-1]) for one in lines if "_total" in one)


def test_models_share_their_encoder(app):
    shelf = app.state.latem.shelf
    assert shelf.get("keywords").encoder is shelf.get("maps").encoder


def test_many_replacements_take_no_more_memory(running, files, emoji_models):
    served = files[0]
    sizes = []
    for version in range(2, 10):
        part = served.with_name("part")
        shutil.copy(emoji_models["keywords"], part)
        os.replace(part, served)
        assert wait_for(lambda: kind(running)[0], version) == version
        assert running.ask("POST", "/api/predict", {"row": 1})[0] == 200
        sizes.append(running.memory())
    assert sizes[-1] - sizes[2] < 40 * 2**20


def test_model_of_other_features_is_refused(running, files, tmp_path):
    """A model that does not fit the dataset cannot take the place of one that does."""
    import numpy as np

    from latem import ESZSL

    rng = np.random.default_rng(0)
    names = np.array([f"class {i}" for i in range(6)])
    narrow = ESZSL((names, rng.random((6, 4))), gamma=1.0, lam=1.0)
    narrow.fit(rng.random((8, 5)), names[[0, 1, 2, 3] * 2]).save(tmp_path / "narrow.safetensors")
    os.replace(tmp_path / "narrow.safetensors", files[0])
    assert wait_for(lambda: failures(running), 1) == 1
    assert kind(running) == (1, "ESZSL")


def test_any_error_leaves_the_old_model(emoji_model, tmp_path, monkeypatch):
    from latem.server import shelf

    path = tmp_path / "m.safetensors"
    shutil.copy(emoji_model, path)
    noted = []
    models = shelf.Shelf({"m": path}, shelf.Source(), lambda *what: noted.append(what))

    def load(path):
        raise KeyError("maps")

    monkeypatch.setattr(shelf, "load", load)
    path.write_bytes(b"another file")
    assert models.refresh() == []
    assert noted == [("m", "ok", 1), ("m", "failed", 1)]
    assert models.get("m").version == 1
