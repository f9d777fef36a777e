"""Two quick models of a few emoji, as an application and as a running server."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import PHOTOS
from live_server import LiveServer, serve_command
from visits import CAMERA, chromium, visit

from latem import ESZSL, LatEm, calibrate_answers, load_emoji, write_folder
from latem.datasets.dataset import Split
from latem.embeddings.table import ClassEmbeddings

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


# -- for the page ---------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def page_emoji(emoji):
    """The emoji with the keywords that tell them apart; a fourth of seen images is held out."""
    table, split = emoji.embeddings["att"], emoji.split()
    differ = table.vectors.min(axis=0) < table.vectors.max(axis=0)
    columns = np.array(table.columns)[differ].tolist()
    told = ClassEmbeddings(table.names, table.vectors[:, differ], name="att", columns=columns)
    seen = np.flatnonzero(np.isin(emoji.labels, [*split.train, *split.val]))
    held_out = replace(split, held_out=seen[::4].tolist())
    return replace(emoji, embeddings={"att": told}, splits={"standard": held_out})


@pytest.fixture(scope="session")
def page_files(page_emoji, tmp_path_factory):
    """A model file of two maps, and the dataset folder."""
    folder = tmp_path_factory.mktemp("page")
    X, y = page_emoji.training()
    model = LatEm(page_emoji.embeddings["att"], n_maps=2, n_epochs=5, random_state=0).fit(X, y)
    calibrate_answers(model, X, y, cv=list(page_emoji.split().val))
    model.save(folder / "maps.safetensors")
    return folder / "maps.safetensors", write_folder(page_emoji, folder / "emoji")


@pytest.fixture(scope="session")
def page_address(page_files):
    """Address of a server of these."""
    pytest.importorskip("fastapi")
    running = LiveServer(serve_command(*page_files, "--port", 0, "--no-browser"))
    yield running.address
    running.stop()


@pytest.fixture(scope="module")
def browser():
    """A browser with a camera that shows a test picture."""
    with chromium(*CAMERA) as found:
        yield found


@pytest.fixture
def go(browser, page_address):
    """Opens a view of the page in a session of its own; afterwards no error may have shown."""
    visits = []

    def opened(view="", at=page_address, **options):
        visits.append(visit(browser, at, view, **options))
        return visits[-1].__enter__()

    yield opened
    for each in visits:
        each.__exit__(None, None, None)


@pytest.fixture(scope="session")
def album(tmp_path_factory):
    """Folder of eleven pieces of photos, and a file that is none."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("album")
    for number in range(11):
        with Image.open(PHOTOS / ("china.jpg", "flower.jpg")[number % 2]) as photo:
            photo.crop((20 * number, 0, 20 * number + 240, 240)).save(folder / f"p{number:02}.jpg")
    (folder / "broken.jpg").write_text("not a picture")
    return folder
