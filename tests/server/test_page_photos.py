"""The explorer page on photos of birds, from a folder of them to names in the browser."""

import re
import shutil

import pytest
from helpers import SHARED
from live_server import LiveServer, serve_command
from typer.testing import CliRunner

from latem import ESZSL, calibrate_answers, read_folder
from latem.cli import app

PHOTOS = SHARED / "cub_photos"
UNSEEN = ("Groove billed Ani", "Purple Finch", "Hooded Oriole")
N_SEEN, N_PHOTOS = 12, 6

pytestmark = pytest.mark.skipif(
    not PHOTOS.is_dir(), reason=f"the photos of birds are not in {PHOTOS}"
)


@pytest.fixture(scope="module")
def birds(tmp_path_factory):
    """A folder of photos, its dataset, and a model that has never seen three of the species."""
    place = tmp_path_factory.mktemp("birds")
    names = [one.name for one in sorted((PHOTOS / "images").iterdir()) if one.name not in UNSEEN]
    for name in (*names[:N_SEEN], *UNSEEN):
        (place / "photos" / name).mkdir(parents=True)
        for photo in sorted((PHOTOS / "images" / name).iterdir())[:N_PHOTOS]:
            shutil.copy(photo, place / "photos" / name)
    (place / "unseen.txt").write_text("\n".join(UNSEEN), encoding="utf-8")
    table = f"att={PHOTOS / 'traits.csv'}"
    made = ["embed", "images", place / "photos", "--table", table, "--out", place / "birds"]
    result = CliRunner().invoke(app, list(map(str, [*made, "--unseen", place / "unseen.txt"])))
    assert result.exit_code == 0, result.output
    dataset = read_folder(place / "birds")
    X, y = dataset.training()
    model = ESZSL(dataset.embeddings["att"], feature_scaling="l2-centered", gamma=1.0, lam=1.0)
    calibrate_answers(model.fit(X, y), X, y, cv=4)
    model.save(place / "model.safetensors")
    return place


@pytest.fixture(scope="module")
def address(birds):
    pytest.importorskip("fastapi")
    command = serve_command(birds / "model.safetensors", birds / "birds", "--port", 0)
    running = LiveServer(command)
    yield running.address
    running.stop()


def test_a_photo_of_an_unseen_bird_is_named_and_explained(go, address, birds):
    page = go("picture", at=address)
    photo = sorted((birds / "photos" / UNSEEN[0]).iterdir())[0]
    page.locator("input[type=file]").first.set_input_files(photo)
    page.locator(".ranking button").first.wait_for()
    assert UNSEEN[0] in page.locator(".ranking").inner_text()
    page.locator(".pulls .sum").wait_for()
    assert "color" in page.locator(".why").inner_text()
    near = page.get_by_role("region", name="Nearest pictures").locator("img")
    near.first.wait_for()
    assert near.first.evaluate("each => each.decode().then(() => each.naturalWidth)") > 50


def test_pictures_rank_anew_while_a_trait_moves(go, address):
    page = go("invent", at=address)
    cards = page.locator(".live-grid .card")
    cards.first.wait_for()
    before = cards.all_inner_texts()
    page.get_by_label("Search traits").fill("black")
    slider = page.get_by_label("black").and_(page.locator("input[type=range]:visible")).first
    slider.fill(slider.get_attribute("max"))
    page.locator(".described").get_by_text("black").wait_for()
    page.wait_for_function(
        "before => JSON.stringify([...document.querySelectorAll('.live-grid .card')]"
        ".map(each => each.innerText)) !== JSON.stringify(before)",
        arg=before,
    )


def test_an_album_of_birds(go, address, birds):
    page = go("album", at=address, width=390, scheme="dark")
    photos = [one for name in UNSEEN for one in sorted((birds / "photos" / name).iterdir())[:3]]
    page.locator("input[type=file][multiple]").set_input_files(photos)
    page.get_by_text("9 pictures named among").wait_for()
    page.get_by_label("Name them together").check()
    page.get_by_text(re.compile("transductive|otherwise than alone")).first.wait_for()
    named = page.locator(".album-grid .card-name b").all_text_contents()
    assert len(set(named)) > 1


def test_scores_and_galleries_of_birds(go, address):
    page = go("scores", at=address)
    page.get_by_role("heading", name="Gallery").wait_for()
    picture = page.locator("img").first
    picture.wait_for()
    assert picture.evaluate("each => each.decode().then(() => each.naturalWidth)") > 50
    shown = page.locator(".scores").inner_text()
    assert all(name in shown for name in UNSEEN)
    assert "%" in page.locator(".figures").inner_text()
