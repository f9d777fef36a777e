"""A server and a person's browser, for the tests of the explorer page."""

import shutil
import threading
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

import numpy as np
import pytest

from latem import ZeroShotDataset, load_emoji
from latem.datasets.dataset import Split
from latem.embeddings.table import ClassEmbeddings
from latem.workflows.train import train_model

WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")


def few_emoji():
    """Forty of the bundled emoji with the traits that tell them apart; a fourth is held out."""
    emoji = load_emoji()
    standard = emoji.split("standard")
    parts = {"train": standard.train[:24], "val": standard.val[:8], "test": standard.test[:8]}
    names = [name for part in parts.values() for name in part]
    rows = emoji.rows(names)
    table = emoji.embeddings["att"]
    vectors = np.array([table[name] for name in names])
    differ = vectors.min(axis=0) < vectors.max(axis=0)
    columns = np.array(table.columns)[differ].tolist()
    labels = emoji.labels[rows]
    seen = np.flatnonzero(np.isin(labels, parts["train"] + parts["val"]))
    return ZeroShotDataset(
        features=emoji.features[rows],
        labels=labels,
        embeddings={"att": ClassEmbeddings(names, vectors[:, differ], name="att", columns=columns)},
        splits={"standard": Split(**parts, held_out=seen[::4].tolist())},
        images=emoji.images[rows],
        name="Emoji",
        info=emoji.info,
    )


def quick_model(dataset):
    """LatEm of two maps that knows how sure it is and when to say none of these."""
    given = {"n_maps": 2, "learning_rate": 0.1, "n_epochs": 10, "init_scale": 0.1}
    return train_model(dataset, "att", kind="LatEm", preset="paper", given=given).model


@contextmanager
def serving(models, source=None, settings=None):
    """Address of a server that runs in a thread of its own."""
    uvicorn = pytest.importorskip("uvicorn", reason="the server's extra is not installed")
    from latem.server.app import create_app

    app = create_app(models, source, settings)
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, ws="none", log_config=None, access_log=False
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.02)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def chromium(*options):
    """A browser without a window; the test is skipped where there is none."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("chromium is not installed")
    with driver.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage", *options]
        )
        yield browser
        browser.close()


@contextmanager
def visit(browser, address, view="", *, width=1280, scheme="light", refused=(), **options):
    """The page in a fresh session; afterwards nothing may have gone wrong in it.

    Parameters
    ----------
    browser : a browser
    address : str
        Of the server.
    view : str
        What stands after the "#/".
    width, scheme : int, str
        Width of the window, and whether it is "light" or "dark".
    refused : collection of int
        Statuses of refusals that the test means to bring about.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, **options
    )
    page = context.new_page()
    page.set_default_timeout(15_000)
    wrong, hosts, answers = [], set(), []
    meant = tuple(f"the server responded with a status of {status}" for status in refused)

    def said(message):
        if message.type in ("error", "warning") and not any(one in message.text for one in meant):
            wrong.append(message.text)

    def asked(request):
        if not request.url.startswith(("blob:", "data:")):
            hosts.add(urlsplit(request.url).netloc)

    page.on("console", said)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", asked)
    page.on("response", lambda answer: answers.append((answer.status, answer.url)))
    page.goto(f"{address}/#/{view}")
    page.get_by_role("heading", level=1).first.wait_for()
    yield page
    context.close()
    assert wrong == []
    assert hosts == {urlsplit(address).netloc}
    assert [one for one in answers if one[0] >= 400 and one[0] not in refused] == []
