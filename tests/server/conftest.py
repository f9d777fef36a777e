"""Two quick models of a few emoji, as an application and as a running server."""

from dataclasses import replace

import numpy as np
import pytest
from live_server import LiveServer, serve_command

from latem import ESZSL, LatEm, calibrate_answers, load_emoji, write_folder
from latem.datasets.dataset import Split

N_SEEN, N_HELD_OUT, N_UNSEEN = 60, 20, 12


@pytest.fixture(scope="session")
def emoji():
    """A dataset of a few emoji: features, keywords, sentences, and which classes are unseen."""
    whole = load_emoji()
    split = whole.split()
    parts = (split.train[:N_SEEN], split.val[:N_HELD_OUT], split.test[:N_UNSEEN])
    names = [name for part in parts for name in part]
    rows = whole.rows(names)
    return replace(
        whole,
        features=np.array(whole.features[rows]),
        labels=whole.labels[rows],
        images=None if whole.images is None else np.array(whole.images)[rows],
        embeddings={key: whole.embeddings[key].select(names) for key in ("att", "text")},
        splits={"standard": Split(*parts)},
    )


@pytest.fixture(scope="session")
def emoji_folder(emoji, tmp_path_factory):
    """The same as a dataset folder."""
    return write_folder(emoji, tmp_path_factory.mktemp("emoji") / "emoji")


@pytest.fixture(scope="session")
def emoji_models(emoji, tmp_path_factory):
    """Paths of two model files: "keywords" (attributes), and "maps" (three maps, sentences)."""
    folder = tmp_path_factory.mktemp("models")
    X, y = emoji.training()
    models = {
        "keywords": ESZSL(emoji.embeddings["att"], gamma=1e3, lam=1.0),
        "maps": LatEm(emoji.embeddings["text"], n_maps=3, n_epochs=5, random_state=0),
    }
    paths = {}
    for name, model in models.items():
        calibrate_answers(model.fit(X, y), X, y, cv=list(emoji.split().val))
        paths[name] = folder / f"{name}.safetensors"
        model.save(paths[name])
    return paths


@pytest.fixture(scope="session")
def emoji_model(emoji_models):
    """Path of the first of the two models."""
    return emoji_models["keywords"]


@pytest.fixture(scope="session")
def app(emoji, emoji_models):
    """The application with both models and the dataset."""
    pytest.importorskip("fastapi")
    from latem.server.app import create_app
    from latem.server.shelf import Source

    return create_app(emoji_models, Source(emoji))


@pytest.fixture
def client(app):
    """A client of the application, without cookies of earlier tests."""
    from starlette.testclient import TestClient

    return TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)


@pytest.fixture(scope="session")
def server(emoji_models, emoji_folder):
    """The same as `latem serve` runs it, on any free port; it has `.address` and `.process`."""
    pytest.importorskip("fastapi")
    running = LiveServer(
        serve_command(*emoji_models.values(), emoji_folder, "--port", 0, "--no-browser")
    )
    yield running
    running.stop()
