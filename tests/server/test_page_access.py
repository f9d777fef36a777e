"""The explorer page for everybody: rules of accessibility, narrow windows, the keyboard alone."""

import pytest
from helpers import PHOTOS
from visits import violations

VIEWS = ("picture", "invent", "album", "scores")


def settle(page, view):
    """Fill a view as a person would before looking at it."""
    if view == "picture":
        page.get_by_role("button", name="Surprise me").click()
        page.locator(".pulls").wait_for()
        page.get_by_role("region", name="Nearest pictures").locator(".card").first.wait_for()
    elif view == "invent":
        page.locator(".live-grid .card").first.wait_for()
        page.locator(".trait").first.wait_for()
    elif view == "album":
        files = [PHOTOS / "china.jpg", PHOTOS / "flower.jpg"]
        page.locator("input[type=file][multiple]").set_input_files(files)
        page.get_by_text("2 pictures named").wait_for()
    else:
        page.locator(".figures").wait_for(timeout=60_000)
        page.locator(".gallery-group").first.wait_for()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"),
        pytest.param(390, "dark", marks=pytest.mark.slow),
        pytest.param(1280, "dark", marks=pytest.mark.slow),
        pytest.param(390, "light", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_nothing_and_nothing_sticks_out(go, view, width, scheme):
    page = go(view, width=width, scheme=scheme)
    settle(page, view)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_axe_finds_nothing_in_dialogs_and_lists(go, scheme):
    page = go("picture", scheme=scheme)
    page.get_by_role("radio", name="My list").check()
    page.get_by_role("combobox", name="Add a class").click()
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("ArrowDown")
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="From the dataset").click()
    page.locator("dialog .card").first.wait_for()
    assert violations(page) == []


def test_targets_are_large_enough_for_fingers(go):
    page = go("picture", width=390, has_touch=True, is_mobile=True)
    settle(page, "picture")
    buttons = page.locator("main button:visible, .tabs a:visible").all()
    heights = {each.inner_text(): each.bounding_box()["height"] for each in buttons}
    assert len(heights) > 8
    assert {name: height for name, height in heights.items() if height < 43.9} == {}


def focus(page):
    return page.evaluate("""() => {
        const each = document.activeElement;
        return each.getAttribute("aria-label") || each.labels?.[0]?.textContent || each.textContent;
    }""")


def tab_to(page, wanted):
    """Press Tab until something of that name has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if wanted in focus(page).strip():
            return
    raise AssertionError(f"Tab does not reach {wanted!r}")


def test_a_class_is_invented_by_the_keyboard_alone(go):
    page = go()
    page.keyboard.press("Tab")
    assert focus(page) == "Skip to the content"
    tab_to(page, "Invent a class")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Invent a class").wait_for()
    assert focus(page) == "Invent a class"
    page.locator(".trait").first.wait_for()
    tab_to(page, "Start from")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("[role=option][aria-selected=true] span").last.inner_text()
    page.keyboard.press("Enter")
    page.locator(".described").get_by_text(chosen).wait_for()
    assert page.get_by_role("combobox", name="Start from").input_value() == chosen
    tab_to(page, "Search traits")
    page.keyboard.type("animal")
    slider = page.locator(".traits input[type=range]").first
    page.locator(".traits .hint").wait_for()
    page.keyboard.press("Tab")
    assert slider.evaluate("each => each === document.activeElement")
    page.keyboard.press("End" if slider.input_value() == "0" else "Home")
    page.locator(".described").get_by_text("but").wait_for()
    tab_to(page, "Keep it under a name")
    page.keyboard.type("typed thing")
    page.keyboard.press("Enter")
    page.get_by_text("Kept Typed thing").wait_for()
    tab_to(page, "Try a picture with it")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Try a picture").wait_for()
    tab_to(page, "Surprise me")
    page.keyboard.press("Enter")
    page.locator(".pulls").wait_for()
    third = page.locator(".ranking button").nth(2)
    tab_to(page, third.text_content())
    page.keyboard.press("Space")
    page.wait_for_function("document.querySelectorAll('.rank')[2].ariaPressed === 'true'")


def test_answers_are_told_to_those_who_listen(go):
    page = go("picture")
    page.get_by_role("button", name="Surprise me").click()
    page.locator(".ranking").wait_for()
    name = page.locator(".verdict strong").inner_text()
    assert name in page.locator("#live").inner_text()
