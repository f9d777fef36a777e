"""Bad requests to the server: a problem that tells what to do, with the right status."""

import gzip
import shlex
from functools import cache

import pytest
from bad_input.cases import check_message, every, untouched
from bad_input.workspace import zoo

pytest.importorskip("fastapi")

from starlette.testclient import TestClient

from latem.server.app import create_app
from latem.server.problems import MEDIA_TYPE
from latem.server.settings import Limits, Settings
from latem.server.shelf import Source

JSON = "application/json"
TOKEN = "a-token-that-is-long-enough"
PICTURE = ("pictures", ("a.jpg", b"not a picture", "image/jpeg"))
FORMS = {
    "nothing": [("note", (None, "x"))],
    "other field": [("files", ("a.jpg", b"x", "image/jpeg"))],
    "text as picture": [PICTURE],
    "two texts as pictures": 2 * [PICTURE],
    "classes that are no list": [PICTURE, ("classes", (None, "[1,"))],
    "a top of zero": [PICTURE, ("top", (None, "0"))],
    "another model": [PICTURE, ("model", (None, "eagle"))],
    "a field that is not known": [PICTURE, ("colour", (None, "red"))],
    "thirty fields": [PICTURE, *((f"n{i}", (None, "x")) for i in range(30))],
    "too many": 40 * [PICTURE],
}
BODIES = {
    "deep": b"[" * 100_000,
    "not UTF-8": b'{"row": "\xff\xfe"}',
    "three kilobytes": b" " * 3000,
    "gzip that is cut": gzip.compress(b'{"inputs": []}')[:-9],
    "gzip of 5 kB": gzip.compress(bytes(5000)),
    "a form without an end": b'--x\r\nContent-Disposition: form-data; name="pictures"',
    "a form of noise": bytes(range(256)),
}
TIGHT = Limits(
    upload_bytes=4000, json_bytes=2000, pictures=1, rows=2, classes=1, album_pictures=1
)  # fmt: skip


@pytest.fixture(scope="module")
def app_of(built):
    """Applications by name: with two models and the dataset unless a case names another one."""
    files = {name: built / f"{name}.safetensors" for name in ("zoo", "fusion", "pictured")}

    @cache
    def make(name):
        two = {name: files[name] for name in ("zoo", "fusion")}
        if name == "with a token":
            return create_app(two, settings=Settings(token=TOKEN))
        if name == "with tight limits":
            return create_app(two, Source(zoo()), Settings(limits=TIGHT))
        if name == "for pictures":
            return create_app({"pictured": files["pictured"]}, settings=Settings(limits=TIGHT))
        if name == "that writes to names.txt":
            return create_app(two, settings=Settings(classes_file=built / "names.txt"))
        if name == "that writes to features.npy":
            return create_app(two, settings=Settings(classes_file=built / "features.npy"))
        assert name == "plain", name
        return create_app(two, Source(zoo()))

    return make


def asked_before(client, lines):
    """Send requests that a case begins with; what the last one answers, by name."""
    found = {}
    for line in lines:
        method, path, body = shlex.split(line)
        answer = client.request(method, path, content=body, headers={"content-type": JSON})
        assert answer.is_success, answer.text
        found = answer.json()
    return found


@every("server")
def test_refused(case, app_of, built):
    client = TestClient(
        app_of(case.get("app", "plain")),
        base_url="http://127.0.0.1",
        raise_server_exceptions=False,
    )
    known = asked_before(client, case.get("first", ()))
    method, path = case["request"].split()
    headers = dict(case.get("headers", {}))
    content = {}
    if "form" in case:
        content["files"] = FORMS[case["form"]]
    elif "json" in case:
        content["content"] = case["json"]
        headers.setdefault("content-type", JSON)
    elif "body" in case:
        content["content"] = BODIES.get(case["body"], case["body"])
    with untouched(built):
        answer = client.request(
            method, path.replace("ALBUM", known.get("album", "ALBUM")), headers=headers, **content
        )
    assert answer.status_code == case["status"], answer.text
    assert answer.headers["content-type"] == MEDIA_TYPE
    problem = answer.json()
    assert problem["status"] == case["status"]
    check_message(case, problem["detail"])
