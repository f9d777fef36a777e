"""A person's browser, for the tests of pages."""

import importlib.util
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

AXE = Path(__file__).parent / "server" / "axe" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Milliseconds that an answer may take longer, at random: pages are right on a slow network too.
DELAY = int(os.environ.get("LATEM_PAGE_DELAY", "0"))
LATE_ANSWERS = """{
  const soon = window.fetch;
  const late = () => new Promise((go) => setTimeout(go, Math.random() * DELAY));
  window.fetch = async (...asked) => {
    await late();
    const got = await soon(...asked);
    await late();
    return got;
  };
}"""
CAMERA = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")


def missing(name):
    """Skip a test in a browser, or fail it where CI says that there must be one."""
    if os.environ.get("LATEM_BROWSER") == "required":
        pytest.fail(f"{name} is not installed, and LATEM_BROWSER says that it must be")
    pytest.skip(f"{name} is not installed: this test in a browser was not run")


@contextmanager
def chromium(*options):
    """A browser without a window."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if importlib.util.find_spec("playwright") is None:
        missing("playwright")
    if path is None:
        missing("chromium")
    driver = importlib.import_module("playwright.sync_api")
    with driver.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage", *options]
        )
        yield browser
        browser.close()


@contextmanager
def visit(
    browser, address, view="", *, width=1280, scheme="light", refused=(), inside=True, **options
):
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
    inside : bool
        Whether to wait until the view is there; a server may ask for a token first.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, **options
    )
    if DELAY:
        context.add_init_script(LATE_ANSWERS.replace("DELAY", str(DELAY)))
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
    page.goto(f"{address}#/{view}")
    if inside:
        page.get_by_role("heading", level=1).first.wait_for()
    yield page
    context.close()
    assert not wrong, wrong
    assert hosts == {urlsplit(address).netloc}
    refusals = [one for one in answers if one[0] >= 400 and one[0] not in refused]
    assert not refusals, refusals


def violations(page):
    """What axe finds against the rules of accessibility."""
    page.evaluate(f"() => {{ {AXE.read_text(encoding='utf-8')} }}")
    found = page.evaluate("tags => axe.run(document, {runOnly: tags})", RULES)
    assert len(found["passes"]) > 10
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


def row_of(dataset, name):
    """The first row of a class."""
    return int((dataset.labels == name).nonzero()[0][0])


def pick(page, label, text):
    """Choose in a searchable list, by typing."""
    field = page.get_by_role("combobox", name=label)
    field.fill(text)
    field.press("Enter")


def choose(page, group, name):
    """Press one of a group of switches."""
    page.get_by_role("group", name=group).get_by_role("radio", name=name, exact=True).check()
