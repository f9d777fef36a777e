"""The other views of the explorer page: inventing a class, albums, scores."""

import re
import time
from pathlib import Path

import pytest
from visits import choose, pick

# -- invent a class -------------------------------------------------------------------------------


def first_pictures(page, n=12):
    cards = page.locator(".live-grid .card").all()[:n]
    return [card.get_attribute("href") for card in cards]


def test_a_class_is_invented_kept_and_tried(go, page_emoji):
    page = go("invent")
    page.locator(".live-grid .card").first.wait_for()
    start = first_pictures(page)
    name = page_emoji.split().train[0]
    pick(page, "Start from", name)
    described = page.locator(".described")
    described.get_by_text(name).wait_for()
    page.get_by_label("Search traits").fill("a")
    page.get_by_text(re.compile(r"^\d+ traits$")).wait_for()
    slider = page.locator(".traits input[type=range]").first
    assert slider.input_value() in ("0", "1")
    before = described.inner_text()
    slider.press("Home")
    slider.press("End" if slider.evaluate("each => each.value === '0'") else "Home")
    page.get_by_text(re.compile(", but ")).wait_for()
    moved = first_pictures(page)
    assert moved != start
    page.get_by_role("button", name="Undo").click()
    described.get_by_text(before, exact=True).wait_for()
    page.get_by_role("button", name="Redo").click()
    page.get_by_text(re.compile(", but ")).wait_for()
    page.get_by_label("Keep it under a name").fill("my thing")
    page.get_by_role("button", name="Keep").click()
    page.get_by_text("Kept My thing").wait_for()
    page.get_by_role("link", name="Try a picture with it").click()
    page.get_by_role("button", name="Take my thing off the list").wait_for()
    page.get_by_role("button", name="Surprise me").click()
    page.locator(".verdict").get_by_text("among 13 classes").wait_for()


def test_traits_are_reset_one_by_one_and_together(go):
    page = go("invent")
    page.get_by_label("Search traits").fill("animal")
    sliders = page.locator(".traits input[type=range]")
    page.get_by_text(re.compile(r"^\d+ traits?$")).wait_for()
    for index in (0, 1):
        sliders.nth(index).press("End")
    assert page.locator(".trait.moved").count() == 2
    page.locator(".trait.moved .reset").first.click()
    assert page.locator(".trait.moved").count() == 1
    page.get_by_role("button", name="Reset all").click()
    assert page.locator(".trait.moved").count() == 0
    page.keyboard.press("Control+z")
    assert page.locator(".trait.moved").count() == 1


def test_a_class_is_described_by_a_sentence(go, server):
    page = go("invent", at=server.address)
    page.get_by_label("Model").select_option("maps")
    sentence = page.get_by_label("A sentence about the class")
    page.locator(".invent .note").wait_for()
    if not sentence.is_visible():
        pytest.skip(page.locator(".note").inner_text())
    assert page.locator(".live-grid .card").count() == 0
    sentence.fill("a furry animal with a long tail")
    page.locator(".described").get_by_text("a furry animal").wait_for()
    furry = first_pictures(page)
    sentence.fill("a vehicle with four wheels")
    page.locator(".described").get_by_text("a vehicle").wait_for()
    assert first_pictures(page) != furry


def test_a_name_that_is_taken_is_refused_beside_the_field(go, page_emoji):
    page = go("invent", refused=(409,))
    page.get_by_label("Keep it under a name").fill(page_emoji.split().train[0])
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


def test_an_album_is_named_put_right_and_downloaded(go, album, page_emoji):
    page = go("album")
    page.locator("input[type=file][multiple]").set_input_files(sorted(album.iterdir()))
    page.get_by_text("11 pictures named among the 12 unseen classes").wait_for()
    assert "broken.jpg" in page.locator(".unreadable").inner_text()
    cards = page.locator(".album-grid .card")
    assert cards.count() == 11
    name = page_emoji.split().test[2]
    page.get_by_role("button", name="Change the name of p03.jpg").click()
    pick(page, "Name of p03.jpg", name)
    page.get_by_text("named by hand").wait_for()
    assert page.get_by_role("button", name="Change the name of p03.jpg").evaluate(
        "each => each === document.activeElement"
    )
    choose(page, "Show", "by hand 1")
    assert cards.count() == 1
    assert name in cards.text_content().lower()  # also of a card that is not in sight
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
    page.locator("input[type=file][webkitdirectory]").set_input_files(album)
    page.get_by_text("11 pictures named").wait_for()
    files = page.locator(".album-grid .file")
    assert files.all_text_contents() == sorted(path.name for path in album.glob("p*.jpg"))
    choose(page, "Sort by", "Doubt")
    cards = page.locator(".album-grid .card").all()
    kinds = [card.get_attribute("class").split()[-1] for card in cards]
    assert kinds == sorted(kinds, key=["none", "doubtful", "settled"].index)
    told = [
        card.text_content() for card, kind in zip(cards, kinds, strict=True) if kind == "doubtful"
    ]
    sure = [float(re.search(r"([\d.]+) % sure", text)[1]) for text in told]
    assert len(sure) > 1
    assert sure == sorted(sure)
    choose(page, "Sort by", "Name")
    names = page.locator(".album-grid .card-name b").all_text_contents()
    assert names == sorted(names, key=str.lower)


def test_a_name_that_was_no_candidate_becomes_one(go, album, page_emoji):
    page = go("album")
    page.locator("input[type=file][multiple]").set_input_files(sorted(album.glob("p0[0-3].jpg")))
    page.get_by_text("4 pictures named among the 12 unseen classes").wait_for()
    name = page_emoji.split().train[0]
    page.get_by_role("button", name="Change the name of p01.jpg").click()
    pick(page, "Name of p01.jpg", name)
    page.get_by_text("4 pictures named among 13 classes").wait_for()
    page.get_by_role("button", name=f"Take {name} off the list").click()
    page.get_by_text("1 name given by hand is not among these classes").wait_for()
    assert page.get_by_text("named by hand").count() == 0


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
    assert "chance: 8.3 %" in page.locator(".figures").inner_text()
    names = page.locator(".class-bars b")
    assert names.count() == 12
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
