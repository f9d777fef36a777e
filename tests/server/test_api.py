"""The REST doors: the same answers as from Python and the command line."""

import csv
import io
import json

import numpy as np
import pytest
from helpers import PHOTOS
from PIL import Image

pytest.importorskip("fastapi")

from latem import explain_predictions, load
from latem.cli import app as command_line
from latem.embeddings.table import ClassEmbeddings


@pytest.fixture(scope="module")
def model(emoji_model):
    return load(emoji_model)


@pytest.fixture(scope="module")
def photos():
    return {name: (PHOTOS / name).read_bytes() for name in ("china.jpg", "flower.jpg")}


def uploaded(photos):
    return [("pictures", (name, content, "image/jpeg")) for name, content in photos.items()]


def asked(client, path, **body):
    answer = client.post(f"/api/{path}", json=body)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


# -- naming ---------------------------------------------------------------------------------------


def test_about(client, emoji, model):
    about = client.get("/api/about").json()
    assert [one["name"] for one in about["models"]] == ["keywords", "maps"]
    facts = about["models"][0]
    assert facts["n_seen"] == len(model.classes_)
    assert facts["describes"] is True
    assert about["models"][1]["n_maps"] == 3
    assert about["dataset"]["n_images"] == len(emoji.labels)
    assert about["signed_in"] is True


@pytest.mark.parametrize("classes", ["unseen", "seen", "all"])
def test_features_are_named_as_by_the_model(client, emoji, model, classes):
    X, _ = emoji.testing()
    found = asked(client, "predict", features=X[:5].tolist(), classes=classes, top=3)
    own = model.answer(X[:5], classes, top=3).to_dicts()
    for here, there in zip(found["answers"], own, strict=True):
        assert here["answer"] == there["answer"]
        assert here["verdict"] == there["verdict"]
        assert here["strangeness"] == pytest.approx(there["strangeness"])
        assert [one["class"] for one in here["classes"]] == [c["class"] for c in there["classes"]]
        for ranked, given in zip(here["classes"], there["classes"], strict=True):
            assert ranked["probability"] == pytest.approx(given["probability"], abs=1e-6)
            assert ranked["seen"] == (given["class"] in model.classes_)
    assert found["temperature"] == model.temperature_
    assert found["false_accept_rate"] == model.acceptance_.false_accept_rate


def test_rows_and_the_other_model(client, emoji, emoji_models):
    other = load(emoji_models["maps"])
    found = asked(client, "predict", rows=[3, 1], model="maps", false_accept_rate=1.0)
    own = other.answer(emoji.features[[3, 1]], false_accept_rate=1.0)
    assert [one["answer"] for one in found["answers"]] == own.names.tolist()
    assert found["answers"][0]["picture"] == "row 3"
    assert found["model"] == "maps"


def test_pictures_are_named_as_by_the_model(client, model, photos):
    answer = client.post(
        "/api/predict",
        files=[*uploaded(photos), ("pictures", ("no.png", b"not a picture", "image/png"))],
        data={"classes": "all", "top": "2", "keep": "true"},
    )
    assert answer.status_code == 200, answer.text
    found = answer.json()["answers"]
    own = model.name_pictures(list(photos.values()), "all", top=2)
    for here, there in zip(found[:2], own, strict=True):
        assert here["answer"] == there.name
        assert here["classes"][0]["score"] == pytest.approx(there.scores[0], abs=1e-5)
        assert here["image"]
    assert found[2] == {"picture": "no.png", "error": "it is not a picture of a known format"}
    kept = asked(client, "neighbours", image=found[0]["image"], n=3)["neighbours"]
    assert len(kept) == 3
    assert asked(client, "explain", image=found[0]["image"], classes="all")["families"]
    client.cookies.clear()
    answer = client.post("/api/neighbours", json={"image": found[0]["image"]})
    assert answer.status_code == 404  # it belongs to another session


def test_too_many_pixels_are_refused_before_decoding(emoji, emoji_models):
    from starlette.testclient import TestClient

    from latem.server.app import create_app
    from latem.server.settings import Limits, Settings

    small = create_app(emoji_models, settings=Settings(limits=Limits(pixels=1000, pictures=2)))
    content = io.BytesIO()
    Image.new("RGB", (100, 100)).save(content, "PNG")
    with TestClient(small, base_url="http://127.0.0.1") as client:
        files = [("pictures", ("a.png", content.getvalue(), "image/png"))]
        found = client.post("/api/predict", files=files).json()
        assert "100 × 100, and 1000 are allowed" in found["answers"][0]["error"]
        assert client.post("/api/predict", files=3 * files).status_code == 413


# -- explanations ---------------------------------------------------------------------------------


def test_explanations_are_those_of_the_model(client, emoji, model):
    row = int(emoji.rows(emoji.split().test)[0])
    (own,) = explain_predictions(model, emoji.features[row : row + 1])
    found = asked(client, "explain", row=row, n=5)
    assert found["named"] == own.named
    assert found["lead"] == pytest.approx(own.lead)
    told = sum(one["contribution"] for one in found["families"]) + found["rest"]["contribution"]
    assert told == pytest.approx(found["lead"])
    other = next(name for name in emoji.split().test if name not in (own.named, own.runner_up))
    against = asked(client, "explain", row=row, against=other)
    assert (against["runner_up"], against["chosen"]) == (other, True)
    of = asked(client, "explain", row=row, of=other)
    assert {of["named"], of["runner_up"]} == {other, own.named}
    in_answer = asked(client, "predict", row=row, explain=True)["answers"][0]["explanation"]
    assert in_answer["text"] == own.text()


def test_one_image_must_be_given(client):
    for body in ({}, {"row": 1, "image": "x"}):
        assert client.post("/api/explain", json=body).status_code == 422
    assert client.post("/api/neighbours", json={"row": 10**9}).status_code == 400


# -- classes --------------------------------------------------------------------------------------


def test_an_invented_class_everywhere(client, emoji, model, tmp_path):
    seen, unseen = str(model.classes_[0]), emoji.split().test[0]
    trait = next(
        t for f in client.get("/api/traits", params={"like": seen}).json()["families"]
        for t in f["traits"] if t["value"] == 0
    )  # fmt: skip
    made = client.post(
        "/api/classes", json={"name": "thing", "like": seen, "set": {trait["name"]: 1}}
    )
    assert made.status_code == 201
    assert made.json()["described"] == f"like {seen!r}, but {trait['name']} 0 → 1"
    assert made.headers["latem-session"]
    names = [one["name"] for one in client.get("/api/classes").json()["classes"]]
    assert names[-1] == "thing"
    row = int(emoji.rows([seen])[0])
    answers = asked(client, "predict", row=row, classes=["thing", unseen])["answers"][0]
    assert {one["class"] for one in answers["classes"]} == {"thing", unseen}
    assert {one["class"]: one["invented"] for one in answers["classes"]}["thing"] is True
    why = asked(client, "explain", row=row, classes=["unseen", "thing"], against="thing")
    assert "thing" in (why["named"], why["runner_up"])
    # the table that is downloaded is one that models and the command line read
    text = client.get("/api/classes/table", params={"name": "thing"}).text
    path = tmp_path / "new.csv"
    path.write_text(text, encoding="utf-8")
    table = ClassEmbeddings.read(path)
    scores = model.decision_function(emoji.features[row : row + 1], table)[0, 0]
    assert scores == pytest.approx(
        {one["class"]: one["score"] for one in answers["classes"]}["thing"], abs=1e-5
    )
    assert client.post("/api/classes", json={"name": "thing"}).status_code == 409
    assert client.delete("/api/classes", params={"name": "thing"}).status_code == 204
    assert client.delete("/api/classes", params={"name": "thing"}).status_code == 404
    assert client.get("/api/classes/table").status_code == 404
    assert client.post("/api/predict", json={"row": 0, "classes": ["thing"]}).status_code == 400


def test_near_names_are_suggested(client, emoji):
    name = emoji.split().test[0]
    answer = client.post("/api/predict", json={"row": 0, "classes": [name + "x"]})
    assert answer.json()["detail"] == f"There is no class {name + 'x'!r}. Did you mean {name!r}?"


def test_classes_are_written_only_if_asked(emoji, emoji_models, tmp_path):
    from starlette.testclient import TestClient

    from latem.server.app import create_app
    from latem.server.settings import Settings
    from latem.server.shelf import Source

    path = tmp_path / "kept.csv"
    own = create_app(emoji_models, Source(emoji), Settings(classes_file=path))
    with TestClient(own, base_url="http://127.0.0.1") as client:
        assert client.post("/api/classes", json={"name": "a"}).json()["written"] is False
        assert not path.exists()
        for name in ("b", "c"):
            body = {"name": name, "like": emoji.split().test[0], "write": True}
            assert client.post("/api/classes", json=body).json()["written"] is True
        assert ClassEmbeddings.read(path).names.tolist() == ["b", "c"]


def test_writing_is_refused_without_a_file(client):
    answer = client.post("/api/classes", json={"name": "a", "write": True})
    assert answer.status_code == 409
    assert "--classes-file" in answer.json()["detail"]


def test_retrieval_is_that_of_the_model(client, emoji, model):
    name = emoji.split().test[1]
    rows, scores = model.rank_images(emoji.features, name, 7)
    found = asked(client, "retrieve", among="all", k=7, **{"class": name})
    assert [one["row"] for one in found["images"]] == rows.tolist()
    np.testing.assert_allclose([one["score"] for one in found["images"]], scores, rtol=1e-4)
    same = asked(client, "retrieve", among="all", k=7, like=name)
    assert [one["row"] for one in same["images"]] == rows.tolist()
    assert same["described"] == f"like {name!r}"
    assert found["n"] == len(emoji.labels)
    both = client.post("/api/retrieve", json={"class": name, "like": name})
    assert both.status_code == 422


# -- the dataset ----------------------------------------------------------------------------------


def test_images_some_at_a_time(client, emoji):
    rows = emoji.rows(emoji.split().test).tolist()
    found = client.get("/api/images", params={"offset": 2, "limit": 3}).json()
    assert found["n"] == len(rows)
    assert [one["row"] for one in found["images"]] == rows[2:5]
    name = emoji.split().test[0]
    own = client.get("/api/images", params={"name": name}).json()
    assert {one["class"] for one in own["images"]} == {name}


def test_scores_are_measured_in_the_background(client):
    import time

    until = time.monotonic() + 60
    while (found := client.get("/api/scores").json())["status"] == "computing":
        assert time.monotonic() < until
        time.sleep(0.05)
    assert found["status"] == "ready"
    assert found["result"]["n_classes"] == 12


def test_galleries(client):
    assert client.get("/api/gallery").json()["kinds"] == ["class", "trait"]
    maps = client.get("/api/gallery", params={"by": "map", "model": "maps", "n": 4}).json()
    assert [one["title"] for one in maps["groups"]] == ["map 0", "map 1", "map 2"]
    answer = client.get("/api/gallery", params={"by": "map"})
    assert answer.status_code == 409
    assert "several maps" in answer.json()["detail"]


# -- albums ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("together", [True, False])
def test_an_album_is_named_as_by_the_command_line(client, emoji_model, photos, tmp_path, together):
    folder = tmp_path / "album"
    folder.mkdir()
    contents = {**photos, "broken.jpg": b"\xff\xd8 broken"}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    start = client.post("/api/albums", json={}).json()
    path = f"/api/albums/{start['album']}"
    for name in sorted(contents):
        files = [("pictures", (name, contents[name], "image/jpeg"))]
        added = client.post(f"{path}/pictures", files=files).json()
    assert added["n"] == 3
    body = {"classes": "all", "together": together, "top": 2}
    found = client.post(f"{path}/names", json=body).json()
    modes = {one["picture"]: one.get("mode") for one in found["answers"]}
    assert modes["china.jpg"] == ("transductive" if together else "alone")
    assert "error" in found["answers"][0]
    here = list(csv.reader(io.StringIO(client.get(f"{path}/answers.csv").text)))
    out = tmp_path / "answers.csv"
    command = ["predict", emoji_model, folder, "--classes", "all", "--top", "2", "--out", out]
    run(*command, *(["--album"] if together else []), code=3)
    there = list(csv.reader(io.StringIO(out.read_text(encoding="utf-8"))))
    width = len(there[0])
    assert [row[1:width] for row in here] == [row[1:] for row in there]
    assert [row[0] for row in here[1:]] == [row[0].rsplit("/", 1)[1] for row in there[1:]]


def run(*arguments, code):
    from typer.testing import CliRunner

    result = CliRunner().invoke(command_line, [str(one) for one in arguments])
    assert result.exit_code == code, result.output


@pytest.mark.parametrize("together", [True, False])
def test_names_by_hand(client, photos, emoji, together):
    album = client.post("/api/albums", json={}).json()["album"]
    client.post(f"/api/albums/{album}/pictures", files=uploaded(photos))
    name = emoji.split().test[3]
    body = {"together": together, "labels": {"1": name}}
    found = client.post(f"/api/albums/{album}/names", json=body).json()["answers"]
    assert found[1]["answer"] == name
    assert (found[1]["mode"], found[1]["verdict"]) == ("by hand", "named")
    assert found[1]["classes"][0]["probability"] == pytest.approx(1)
    assert found[0]["mode"] != "by hand"
    for labels in ({"7": name}, {"0": "nobody"}):
        answer = client.post(f"/api/albums/{album}/names", json={"labels": labels})
        assert answer.status_code == 400
    assert client.delete(f"/api/albums/{album}").status_code == 204
    assert client.get(f"/api/albums/{album}/answers.csv").status_code == 404


def test_albums_have_bounds(client):
    for _ in range(8):
        album = client.post("/api/albums", json={}).json()["album"]
    assert client.get(f"/api/albums/{album}/answers.csv").status_code == 409
    assert client.post("/api/albums", json={}).status_code == 409


# -- the door -------------------------------------------------------------------------------------


def test_headers_that_browsers_need(client):
    for path in ("/", "/api/about", "/static/style.css", "/nothing"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_problems_are_problems(client):
    for answer in (
        client.get("/nothing"),
        client.get("/api/images", params={"limit": 0}),
        client.post("/api/predict", content=b"{", headers={"Content-Type": "application/json"}),
        client.post("/api/predict", content=b"[]", headers={"Content-Type": "text/plain"}),
        client.post("/api/explain", json={"row": 0, "unknown": 1}),
    ):
        assert answer.headers["content-type"] == "application/problem+json"
        found = answer.json()
        assert found["status"] == answer.status_code
        assert found["detail"] == found["error"]
        assert found["detail"].endswith(".")


def test_signing_in(emoji, emoji_models):
    from starlette.testclient import TestClient

    from latem.server.app import create_app
    from latem.server.settings import Settings
    from latem.server.shelf import Source

    token = "a-token-that-is-long-enough"
    locked = create_app(emoji_models, Source(emoji), Settings(host="0.0.0.0", token=token))
    with TestClient(locked, base_url="http://birds.example") as client:
        about = client.get("/api/about").json()
        assert about["token_needed"] is True
        assert (about["signed_in"], about["models"], about["dataset"]) == (False, [], None)
        assert client.get("/api/classes").status_code == 401
        assert client.get("/metrics").status_code == 401
        assert client.get("/v2/health/live").status_code == 200
        bearer = {"Authorization": f"Bearer {token}"}
        assert client.get("/api/classes", headers=bearer).status_code == 200
        wrong = {"Authorization": f"Bearer {token}x"}
        assert client.get("/api/classes", headers=wrong).status_code == 401
        assert client.post("/api/session", json={"token": "wrong"}).status_code == 401
        assert client.post("/api/session", json={"token": token}).status_code == 204
        assert client.get("/api/classes").status_code == 200  # the session remembers
        cookie = client.cookies.jar
        assert [one.name for one in cookie] == ["latem_session"]
        assert token not in json.dumps([one.value for one in cookie])
