"""The explorer page, used in a browser as people use it."""

import re
import time
from pathlib import Path

import pytest
from helpers import PHOTOS
from visits import chromium, few_emoji, quick_model, serving, visit

import latem.server

STATIC = Path(latem.server.__file__).parent / "static"
TEMPLATE = STATIC.parent / "templates" / "explorer.html.j2"
TOKEN = "a token that is long enough"
CAMERA = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")


@pytest.fixture(scope="module")
def browser():
    with chromium(*CAMERA) as found:
        yield found


@pytest.fixture(scope="module")
def dataset():
    return few_emoji()


@pytest.fixture(scope="module")
def model(dataset):
    return quick_model(dataset)


@pytest.fixture(scope="module")
def address(browser, model, dataset):
    from latem.server.shelf import Source

    with serving({"emoji": model}, Source(dataset)) as found:
        yield found


@pytest.fixture(scope="module")
def album(tmp_path_factory):
    """Eleven pieces of photos, and a file that is none."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("album")
    for number in range(11):
        with Image.open(PHOTOS / ("china.jpg", "flower.jpg")[number % 2]) as photo:
            photo.crop((20 * number, 0, 20 * number + 240, 240)).save(folder / f"p{number:02}.jpg")
    (folder / "broken.jpg").write_text("not a picture")
    return folder


@pytest.fixture
def go(browser, address):
    """Opens a view of the page; closes it after the test and looks for errors."""
    visits = []

    def opened(view="", at=address, **options):
        visits.append(visit(browser, at, view, **options))
        return visits[-1].__enter__()

    yield opened
    for each in visits:
        each.__exit__(None, None, None)


def row_of(dataset, name):
    return int((dataset.labels == name).nonzero()[0][0])


def pick(page, label, text):
    """Choose in a searchable list, by typing."""
    field = page.get_by_role("combobox", name=label)
    field.fill(text)
    field.press("Enter")


def choose(page, group, name):
    """Press one of a group of switches."""
    page.get_by_role("group", name=group).get_by_role("radio", name=name, exact=True).check()


# -- try a picture --------------------------------------------------------------------------------


def test_a_picture_of_the_dataset_is_named_and_explained(go, dataset):
    name = dataset.splits["standard"].test[0]
    page = go(f"picture?row={row_of(dataset, name)}")
    page.locator(".ranking button").first.wait_for()
    assert page.locator(".ranking li").count() == 5
    assert page.locator(".truth").inner_text().lower().startswith(f"in truth: {name.lower()}")
    assert "among the 8 unseen classes" in page.locator(".verdict").inner_text()
    page.locator(".pulls").wait_for()
    third = page.locator(".ranking button").nth(2)
    other = third.locator(".ranked-name").inner_text().split("\n")[0].removesuffix("unseen")
    third.click()
    page.get_by_role("heading", name=re.compile(f"rather than {other}")).wait_for()
    assert third.get_attribute("aria-pressed") == "true"
    assert "Of the model's 2 maps, map" in page.locator(".why").inner_text()
    assert page.get_by_role("region", name="Nearest pictures").locator(".card").count() == 8


def test_contributions_add_up_to_the_lead(go, dataset):
    page = go(f"picture?row={row_of(dataset, dataset.splits['standard'].test[1])}")
    page.locator(".pulls .sum").wait_for()
    values = page.locator(".pulls > li > .pull .value, .pulls > li > details > summary .value")
    numbers = [float(text.replace("−", "-")) for text in values.all_inner_texts()]
    assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=0.01)


def test_a_picture_is_picked_from_the_dataset(go, dataset):
    page = go("picture")
    page.get_by_role("button", name="From the dataset").click()
    dialog = page.get_by_role("dialog", name="Pick a picture of the dataset")
    name = dataset.splits["standard"].train[3]
    choose(dialog, "Pictures of", "Seen classes")
    pick(page, "Of one class", name)
    dialog.get_by_text(re.compile(r"^\d pictures, \d shown")).wait_for()
    dialog.locator("button.card").first.click()
    dialog.wait_for(state="hidden")
    page.get_by_text("not among these classes").wait_for()
    choose(page, "Name it out of", "All")
    page.locator(".verdict").get_by_text("among all 40 classes").wait_for()


def test_surprise_me(go):
    page = go("picture")
    page.get_by_role("button", name="Surprise me").click()
    page.locator(".ranking").wait_for()
    assert "row=" in page.url


def test_an_own_list_of_candidates(go, dataset):
    first, second, third = dataset.splits["standard"].test[:3]
    page = go(f"picture?row={row_of(dataset, first)}")
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
    page.locator(".verdict").get_by_text("among the 32 seen classes").wait_for()


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


def test_a_photo_from_the_camera(go):
    page = go("picture", permissions=["camera"])
    page.get_by_role("button", name="Camera").click()
    page.get_by_role("button", name="Take the picture", disabled=False).click()
    page.get_by_alt_text("Your picture, camera.jpg").wait_for()
    page.locator(".ranking").wait_for()
    assert page.evaluate("document.querySelector('video').srcObject") is None


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


# -- invent a class -------------------------------------------------------------------------------


def first_pictures(page, n=12):
    cards = page.locator(".live-grid .card").all()[:n]
    return [card.get_attribute("href") for card in cards]


def test_a_class_is_invented_kept_and_tried(go, dataset):
    page = go("invent")
    page.locator(".live-grid .card").first.wait_for()
    start = first_pictures(page)
    pick(page, "Start from", dataset.splits["standard"].train[0])
    page.locator(".described").get_by_text("Like").wait_for()
    page.get_by_label("Search traits").fill("a")
    slider = page.locator(".traits input[type=range]").first
    slider.wait_for()
    assert slider.input_value() in ("0", "1")
    before = page.locator(".described").inner_text()
    slider.press("Home")
    slider.press("End" if slider.evaluate("each => each.value === '0'") else "Home")
    page.get_by_text(re.compile(", but ")).wait_for()
    moved = first_pictures(page)
    assert moved != start
    page.get_by_role("button", name="Undo").click()
    page.locator(".described").get_by_text(before, exact=True).wait_for()
    page.get_by_role("button", name="Redo").click()
    page.get_by_text(re.compile(", but ")).wait_for()
    page.get_by_label("Keep it under a name").fill("my thing")
    page.get_by_role("button", name="Keep").click()
    page.get_by_text("Kept My thing").wait_for()
    page.get_by_role("link", name="Try a picture with it").click()
    page.get_by_role("button", name="Take my thing off the list").wait_for()
    page.get_by_role("button", name="Surprise me").click()
    page.locator(".verdict").get_by_text("among 9 classes").wait_for()


def test_traits_are_reset_one_by_one_and_together(go):
    page = go("invent")
    page.get_by_label("Search traits").fill("animal")
    sliders = page.locator(".traits input[type=range]")
    sliders.nth(1).wait_for()
    for index in (0, 1):
        sliders.nth(index).press("End")
    assert page.locator(".trait.moved").count() == 2
    page.locator(".trait.moved .reset").first.click()
    assert page.locator(".trait.moved").count() == 1
    page.get_by_role("button", name="Reset all").click()
    assert page.locator(".trait.moved").count() == 0
    page.keyboard.press("Control+z")
    assert page.locator(".trait.moved").count() == 1


def test_a_name_that_is_taken_is_refused_beside_the_field(go, dataset):
    page = go("invent", refused=(409,))
    page.get_by_label("Keep it under a name").fill(dataset.splits["standard"].train[0])
    page.get_by_role("button", name="Keep").click()
    page.locator(".side").get_by_role("alert").get_by_text("There is a class").wait_for()


def test_kept_classes_are_downloaded_and_deleted(go):
    page = go("invent")
    for name in ("one", "two"):
        page.get_by_label("Keep it under a name").fill(name)
        page.get_by_role("button", name="Keep").click()
        page.get_by_text(f"Kept {name.capitalize()}").wait_for()
    with page.expect_download() as download:
        page.get_by_role("link", name="All 2 as CSV").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert [line.partition(",")[0] for line in lines] == ["class", "one", "two"]
    page.get_by_role("button", name="Delete one").click()
    page.get_by_role("button", name="Delete one").wait_for(state="detached")
    assert page.locator(".kept b").all_inner_texts() == ["Two"]


# -- an album -------------------------------------------------------------------------------------


def test_an_album_is_named_put_right_and_downloaded(go, album, dataset):
    page = go("album")
    page.locator("input[type=file][multiple]").set_input_files(sorted(album.iterdir()))
    page.get_by_text("11 pictures named among the 8 unseen classes").wait_for()
    assert "broken.jpg" in page.locator(".unreadable").inner_text()
    cards = page.locator(".album-grid .card")
    assert cards.count() == 11
    name = dataset.splits["standard"].test[2]
    page.get_by_role("button", name="Change the name of p03.jpg").click()
    pick(page, "Name of p03.jpg", name)
    page.get_by_text("named by hand").wait_for()
    assert page.get_by_role("button", name="Change the name of p03.jpg").evaluate(
        "each => each === document.activeElement"
    )
    choose(page, "Show", "by hand 1")
    assert cards.count() == 1
    assert name in cards.inner_text().lower()
    choose(page, "Show", "All 11")
    page.get_by_label("Name them together").check()
    page.get_by_text(re.compile("came out otherwise than alone")).wait_for()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV").click()
    text = Path(download.value.path()).read_text()
    assert "p03.jpg" in text
    assert name in text
    page.get_by_role("button", name="Undo the name given to p03.jpg").click()
    page.get_by_text("named by hand").wait_for(state="detached")
    page.get_by_role("button", name="Clear the album").click()
    assert cards.count() == 0


def test_an_album_is_sorted_by_doubt_and_by_name(go, album):
    page = go("album")
    page.locator("input[type=file][multiple]").set_input_files(sorted(album.glob("p*.jpg")))
    page.get_by_text("11 pictures named").wait_for()
    files = page.locator(".album-grid .file")
    assert files.all_inner_texts() == sorted(files.all_inner_texts())
    choose(page, "Sort by", "Doubt")
    cards = page.locator(".album-grid .card").all()
    kinds = [card.get_attribute("class").split()[-1] for card in cards]
    assert kinds == sorted(kinds, key=["none", "doubtful", "settled"].index)
    told = [
        card.inner_text() for card, kind in zip(cards, kinds, strict=True) if kind == "doubtful"
    ]
    sure = [float(re.search(r"([\d.]+) % sure", text)[1]) for text in told]
    assert len(sure) > 1
    assert sure == sorted(sure)
    choose(page, "Sort by", "Name")
    names = page.locator(".album-grid .card-name b").all_inner_texts()
    assert names == sorted(names, key=str.lower)


def test_an_upload_can_be_cancelled(go, album):
    page = go("album")
    page.route("**/pictures", lambda route: (time.sleep(1), route.continue_()))
    page.locator("input[type=file][multiple]").set_input_files(sorted(album.glob("p*.jpg")))
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel").wait_for(state="hidden")
    assert page.locator(".album-grid .card").count() == 0


# -- maps and scores ------------------------------------------------------------------------------


def test_scores_curves_and_galleries(go):
    page = go("scores")
    page.locator(".figures").wait_for(timeout=60_000)
    assert "chance: 13 %" in page.locator(".figures").inner_text()
    names = page.locator(".class-bars b")
    assert names.count() == 8
    choose(page, "Sort by", "Name")
    assert names.all_inner_texts() == sorted(names.all_inner_texts(), key=str.lower)
    assert page.get_by_role("img", name=re.compile("Reliability")).is_visible()
    slider = page.get_by_label("Penalty γ")
    slider.press("Home")
    low = page.locator(".gamma-out").inner_text()
    slider.press("End")
    high = page.locator(".gamma-out").inner_text()
    seen = [float(re.search(r"seen ([\d.]+) %", text)[1]) for text in (low, high)]
    assert seen[0] > seen[1]
    choose(page, "Pictures arranged", "By map")
    page.get_by_text(re.compile(r"fires for \d+")).first.wait_for()
    assert page.locator(".gallery-group").count() == 2
    choose(page, "Pictures arranged", "By trait")
    page.get_by_text(re.compile(r"fires for \d+")).first.wait_for(state="detached")
    assert page.locator(".gallery-group .card").count() > 8


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


def test_a_busy_server_is_asked_once_more(go, dataset):
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


def test_a_server_that_fails_is_said(go):
    page = go("picture", refused=(500,))
    page.route("**/api/images*", lambda route: route.fulfill(status=500, body="oops"))
    refusal = page.get_by_role("alert").get_by_text("The server answered 500")
    page.get_by_role("button", name="Surprise me").click()
    refusal.wait_for()


def test_signing_in_with_a_token(browser, model, dataset):
    from latem.server.settings import Settings
    from latem.server.shelf import Source

    settings = Settings(token=TOKEN)
    with (
        serving({"emoji": model}, Source(dataset), settings) as at,
        browser.new_context() as context,
    ):
        page = context.new_page()
        page.goto(at)
        page.get_by_label("Token").fill("a wrong token of some length")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("alert").get_by_text("This is not the token.").wait_for()
        page.get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Try a picture").wait_for()


def test_switching_to_a_model_that_reads_no_pictures(go, model, dataset):
    from latem import ESZSL
    from latem.server.shelf import Source

    X, y = dataset.training()
    plain = ESZSL(class_embeddings=dataset.embeddings["att"]).fit(X[:], y)
    plain.encoder_ = None
    with serving({"emoji": model, "plain": plain}, Source(dataset)) as at:
        page = go("picture", at=at)
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
