"""The explorer page: its first view, links, doors and refusals, in a browser as people use it."""

import re
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import PHOTOS
from live_server import LiveServer, environment, serve_command
from visits import choose, pick, row_of

import latem.server
from latem import ESZSL

STATIC = Path(latem.server.__file__).parent / "static"
TEMPLATE = STATIC.parent / "templates" / "explorer.html.j2"
TOKEN = "a token that is long enough"


# -- try a picture --------------------------------------------------------------------------------


def test_a_picture_of_the_dataset_is_named_and_explained(go, page_emoji):
    name = page_emoji.split().test[0]
    page = go(f"picture?row={row_of(page_emoji, name)}")
    page.locator(".ranking button").first.wait_for()
    assert page.locator(".ranking li").count() == 5
    assert page.locator(".truth").inner_text().lower().startswith(f"in truth: {name.lower()}")
    assert "among the 12 unseen classes" in page.locator(".verdict").inner_text()
    page.locator(".pulls").wait_for()
    third = page.locator(".ranking button").nth(2)
    other = third.locator(".ranked-name").inner_text().split("\n")[0].removesuffix("unseen")
    third.click()
    page.get_by_role("heading", name=re.compile(f"rather than {other}")).wait_for()
    assert third.get_attribute("aria-pressed") == "true"
    assert "Of the model's maps, 0 to 1, map" in page.locator(".why").inner_text()
    assert page.get_by_role("region", name="Nearest pictures").locator(".card").count() == 8


@pytest.mark.slow
def test_contributions_add_up_to_the_lead(go, page_emoji):
    page = go(f"picture?row={row_of(page_emoji, page_emoji.split().test[1])}")
    page.locator(".pulls .sum").wait_for()
    values = page.locator(".pulls > li > .pull .value, .pulls > li > details > summary .value")
    numbers = [float(text.replace("−", "-")) for text in values.all_inner_texts()]
    assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=0.01)


@pytest.mark.slow
def test_a_picture_is_picked_from_the_dataset(go, page_emoji):
    page = go("picture")
    page.get_by_role("button", name="From the dataset").click()
    dialog = page.get_by_role("dialog", name="Pick a picture of the dataset")
    name = page_emoji.split().train[3]
    choose(dialog, "Pictures of", "Seen")
    pick(page, "Of one class", name)
    dialog.get_by_text(re.compile(r"^\d pictures, \d shown")).wait_for()
    dialog.locator("button.card").first.click()
    dialog.wait_for(state="hidden")
    page.get_by_text("not among these classes").wait_for()
    choose(page, "Name it out of", "All")
    page.locator(".verdict").get_by_text("among all 92 classes").wait_for()


def test_surprise_me(go):
    page = go("picture")
    page.get_by_role("button", name="Surprise me").click()
    page.locator(".ranking").wait_for()
    assert "row=" in page.url


@pytest.mark.slow
def test_an_own_list_of_candidates(go, page_emoji):
    first, second, third = page_emoji.split().test[:3]
    page = go(f"picture?row={row_of(page_emoji, first)}")
    page.locator(".ranking").wait_for()
    choose(page, "Name it out of", "My list")
    assert page.get_by_text("The list is empty").is_visible()
    for name in (first, second, third):
        pick(page, "Add a class", name)
    page.locator(".verdict").get_by_text("among 3 classes").wait_for()
    page.get_by_role("button", name=f"Take {third} off the list").click()
    page.locator(".verdict").get_by_text("among 2 classes").wait_for()
    assert page.locator(".ranking li").count() == 2


def test_a_photo_of_ones_own(go):
    page = go("picture")
    page.locator(".drop input[type=file]").set_input_files(PHOTOS / "flower.jpg")
    page.locator(".pulls").wait_for()
    assert page.get_by_alt_text("Your picture, flower.jpg").is_visible()
    assert page.get_by_role("region", name="Nearest pictures").locator(".card").count() == 8
    choose(page, "Name it out of", "Seen")
    page.locator(".verdict").get_by_text("among the 80 seen classes").wait_for()


@pytest.mark.slow
def test_a_photo_is_pasted_and_dropped(go, album):
    page = go("picture")
    content = list((album / "p00.jpg").read_bytes())
    script = """([kind, content]) => {
        const data = new DataTransfer();
        const file = new File([new Uint8Array(content)], `${kind}.jpg`, {type: "image/jpeg"});
        data.items.add(file);
        const event = kind === "paste"
            ? new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true})
            : new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true});
        (kind === "paste" ? document.body : document.querySelector(".drop")).dispatchEvent(event);
    }"""
    for kind in ("paste", "drop"):
        page.evaluate(script, [kind, content])
        page.get_by_alt_text(f"Your picture, {kind}.jpg").wait_for()
        page.locator(".ranking").wait_for()


@pytest.mark.slow
def test_a_photo_from_the_camera(go):
    page = go("picture", permissions=["camera"])
    page.get_by_role("button", name="Camera").click()
    page.get_by_role("button", name="Take the picture", disabled=False).click()
    page.get_by_alt_text("Your picture, camera.jpg").wait_for()
    page.locator(".ranking").wait_for()
    assert page.evaluate("document.querySelector('video').srcObject") is None


@pytest.mark.slow
def test_without_a_camera_a_sentence_says_so(go):
    page = go("picture")
    page.evaluate("""() => {
        navigator.mediaDevices.getUserMedia = async () => {
            throw new DOMException("none", "NotFoundError");
        };
    }""")
    page.get_by_role("button", name="Camera").click()
    page.get_by_role("alert").get_by_text("This device has no camera").wait_for()


def test_a_file_that_is_no_picture_is_refused_beside_the_drop(go, tmp_path):
    page = go("picture")
    (tmp_path / "notes.txt").write_text("not a picture")
    (tmp_path / "broken.png").write_text("not a picture either")
    field = page.locator(".drop input[type=file]")
    field.set_input_files(tmp_path / "notes.txt")
    page.locator(".side").get_by_role("alert").get_by_text(
        "'notes.txt' is not a picture"
    ).wait_for()
    field.set_input_files(tmp_path / "broken.png")
    page.locator(".side").get_by_role("alert").get_by_text("not a picture of a known").wait_for()


# -- the page around them -------------------------------------------------------------------------


def test_links_back_and_titles(go):
    page = go("scores")
    assert page.title() == "Maps and scores – latem explorer"
    page.get_by_role("link", name="Invent a class").click()
    page.get_by_role("heading", name="Invent a class").wait_for()
    assert page.title() == "Invent a class – latem explorer"
    assert page.evaluate("document.activeElement.textContent") == "Invent a class"
    current = page.locator(".tabs [aria-current=page]")
    assert current.text_content() == "Invent a class"
    page.go_back()
    page.get_by_role("heading", name="Maps and scores").wait_for()
    assert current.text_content() == "Maps and scores"


def test_an_image_that_does_not_exist_is_said(go):
    page = go("picture?row=99999")
    page.get_by_role("alert").get_by_text("The dataset has no image 99999").wait_for()


@pytest.mark.slow
def test_a_busy_server_is_asked_once_more(go, page_emoji):
    page = go("picture", refused=(503,))
    times = []

    def busy(route):
        times.append(time.monotonic())
        if len(times) == 1:
            route.fulfill(status=503, headers={"Retry-After": "1"}, body="{}")
        else:
            route.continue_()

    page.route("**/api/predict", busy)
    page.get_by_role("button", name="Surprise me").click()
    page.locator(".ranking").wait_for()
    assert len(times) == 2
    assert times[1] - times[0] >= 0.9


@pytest.mark.slow
def test_a_server_that_fails_is_said(go):
    page = go("picture", refused=(500,))
    page.route("**/api/images*", lambda route: route.fulfill(status=500, body="oops"))
    refusal = page.get_by_role("alert").get_by_text("The server answered 500")
    page.get_by_role("button", name="Surprise me").click()
    refusal.wait_for()


@pytest.fixture
def serve():
    """Starts a server; ends it after the test."""
    servers = []

    def started(*arguments, **variables):
        command = serve_command(*arguments, "--port", 0, "--no-browser")
        servers.append(LiveServer(command, environment(**variables)))
        return servers[-1].address

    yield started
    for each in servers:
        each.stop()


@pytest.mark.slow
def test_signing_in_with_a_token(serve, go, page_files):
    page = go(at=serve(*page_files, LATEM_TOKEN=TOKEN), inside=False, refused=(401,))
    page.get_by_label("Token").fill("a wrong token of some length")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").get_by_text("This is not the token.").wait_for()
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Try a picture").wait_for()
    page.context.clear_cookies()
    page.get_by_role("button", name="Surprise me").click()
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    page.locator(".ranking").wait_for()


@pytest.mark.slow
def test_switching_to_a_model_that_reads_no_pictures(serve, go, page_emoji, page_files, tmp_path):
    X, y = page_emoji.training()
    plain = ESZSL(page_emoji.embeddings["att"]).fit(np.array(X), y)
    plain.save(tmp_path / "plain.safetensors")
    model, folder = page_files
    page = go(at=serve(model, tmp_path / "plain.safetensors", folder))
    page.get_by_label("Model").select_option("plain")
    page.get_by_text("No photos of your own here").wait_for()
    page.get_by_role("button", name="Surprise me").click()
    page.locator(".ranking").wait_for()
    page.get_by_role("link", name="An album").click()
    page.get_by_text("An album needs a model that can read pictures").wait_for()


def test_the_page_needs_nothing_from_elsewhere():
    for file in [TEMPLATE, *STATIC.iterdir()]:
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, file.name
        assert len(text.splitlines()) < 400, file.name
    page = TEMPLATE.read_text(encoding="utf-8")
    assert "style=" not in page
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []


@pytest.mark.slow
def test_on_a_phone_the_answer_comes_into_sight(go):
    page = go("picture", width=390, has_touch=True, is_mobile=True)
    page.locator(".drop input[type=file]").set_input_files(PHOTOS / "flower.jpg")
    page.locator(".ranking").wait_for()
    page.wait_for_function("""() => {
        const { top, bottom } = document.querySelector(".verdict").getBoundingClientRect();
        return top >= 0 && bottom <= window.innerHeight + 1;
    }""")
