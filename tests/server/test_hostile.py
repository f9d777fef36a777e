"""Clients that mean harm, or are broken: the right status, and a server that lives on."""

import contextlib
import json
import socket
import struct
import subprocess
import time
import zlib

import numpy as np
import pytest
from hostile_clients import (
    GROWTH,
    JSON,
    ask_patiently,
    everything,
    form,
    head,
    lives_on,
    problem,
    raw,
    small_picture,
    status_of,
)
from live_server import LiveServer, environment, serve_command, serve_script

pytest.importorskip("fastapi")
pytestmark = pytest.mark.slow

TOKEN = "not-a-secret-only-for-tests"


@pytest.fixture(scope="module")
def guarded(emoji_models):
    """A server that needs a token, and writes everything to its log."""
    running = LiveServer(serve_script(emoji_models, token=TOKEN))
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def unharmed(request):
    with lives_on([request.getfixturevalue("server")] if "server" in request.fixturenames else []):
        yield


# -- pictures -------------------------------------------------------------------------------------


def png(width, height, rows):
    """A PNG file that says it is of this size, with so many rows of zeros in it."""

    def chunk(kind, data):
        whole = kind + data
        return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))

    packer = zlib.compressobj(9)
    row = bytes(1 + width // 8)
    data = b"".join(packer.compress(row) for _ in range(rows)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    start = b"\x89PNG\r\n\x1a\n"
    return start + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def test_bombs_and_rubbish_as_pictures(server):
    good = small_picture()
    pictures = {
        "huge.png": png(60_000, 60_000, 4000),
        "liar.png": png(2**31 - 1, 2**31 - 1, 1),
        "cut.jpg": good[: len(good) // 2],
        "zip.png": b"PK\x03\x04" + zlib.compress(bytes(20_000_000)),
        "empty.png": b"",
        "text.svg": b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>',
        "../../etc/passwd": good,
    }
    headers, body = form(pictures.items(), top="2")
    status, _, content = server.ask("POST", "/api/predict", body, headers)
    assert status == 200, content
    answers = {one["picture"]: one for one in json.loads(content)["answers"]}
    assert [name for name, one in answers.items() if not one.get("error")] == ["../../etc/passwd"]
    assert "pixels" in answers["huge.png"]["error"]


def test_form_that_is_cut_or_wrong(server):
    headers, body = form([("a.jpg", small_picture())])
    cut = body[: len(body) // 2]
    problem(server.ask("POST", "/api/predict", cut, headers), 422)
    no_boundary = {"Content-Type": "multipart/form-data"}
    problem(server.ask("POST", "/api/predict", body, no_boundary), 400)
    many, body = form([(f"{i}.jpg", b"x") for i in range(40)])
    problem(server.ask("POST", "/api/predict", body, many), 413)
    headers, body = form([("a.jpg", b"x")], **{f"field{i}": "x" for i in range(50)})
    problem(server.ask("POST", "/api/predict", body, headers), 400)
    headers, body = form([("a.jpg", b"x")], odd="x")
    problem(server.ask("POST", "/api/predict", body, headers), 422)
    headers, body = form([("a.jpg", b"x")], classes="[" * 5000)
    problem(server.ask("POST", "/api/predict", body, headers), 422)


# -- tokens and other hosts -----------------------------------------------------------------------


def test_tokens(guarded):
    wrong = [
        {},
        {"Authorization": "Bearer " + TOKEN[:-1]},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic " + TOKEN},
        {"Authorization": b"Bearer \xff\xfe" + TOKEN.encode()},
        {"Cookie": "latem_session=" + TOKEN},
        {"Cookie": "latem_session=; ;;="},
        {"Latem-Session": TOKEN},
    ]
    for headers in wrong:
        for path in ("/api/classes", "/metrics", "/v2/models/keywords", "/api/openapi.json"):
            status, told, content = guarded.ask("GET", path, headers=headers)
            assert status == 401, (path, headers)
            assert told["WWW-Authenticate"] == "Bearer"
            assert TOKEN.encode() not in content
    right = {"Authorization": f"bearer {TOKEN}"}
    assert guarded.ask("GET", "/api/classes", headers=right)[0] == 200
    for token in ("", "x" * 999, TOKEN + "x", "\ud800"):
        status, _, content = guarded.ask("POST", "/api/session", {"token": token})
        assert status in (401, 422)
        assert TOKEN.encode() not in content
    problem(guarded.ask("POST", "/api/session", {"token": "x" * 2000}), 422)
    told = json.loads(guarded.ask("GET", "/api/about")[2])
    assert told["models"] == []
    assert told["token_needed"]
    assert not told["signed_in"]

    status, headers, _ = guarded.ask("POST", "/api/session", {"token": TOKEN})
    assert status == 204
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    inside = {"Cookie": cookie.partition(";")[0]}
    assert guarded.ask("GET", "/api/classes", headers=inside)[0] == 200
    guarded.ask("GET", f"/api/classes?model={TOKEN}", headers=right)
    measured = guarded.ask("GET", "/metrics", headers=right)[2].decode()
    assert "latem_requests_total" in measured
    assert TOKEN not in measured
    assert len(guarded.lines) > 1  # the log is on
    assert TOKEN not in "".join(guarded.lines)


def test_other_machines_need_a_token(emoji_model):
    command = serve_command(emoji_model, "--host", "0.0.0.0", "--port", 0)
    run = subprocess.run(
        command, capture_output=True, text=True, env=environment(), check=False, timeout=120
    )
    assert run.returncode == 1
    assert "so it needs a token" in run.stderr
    assert "Traceback" not in run.stderr
    short = environment(LATEM_TOKEN="short")
    run = subprocess.run(
        command, capture_output=True, text=True, env=short, check=False, timeout=120
    )
    assert run.returncode == 1
    assert "too short" in run.stderr


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "127.0.0.1@evil.example", "[::1", "a b"]
)
def test_foreign_host(server, host):
    answer = raw(
        server, f"GET /api/about HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    )
    assert status_of(answer) in (400, 403)
    assert b"keywords" not in answer


def test_no_host_at_all(server):
    assert status_of(raw(server, b"GET /api/classes HTTP/1.1\r\n\r\n")) in (400, 403)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "x://["])
def test_foreign_origin(server, origin):
    answer = server.ask("POST", "/api/predict", {"row": 1}, {"Origin": origin})
    assert "other hosts" in problem(answer, 403)
    own = f"http://{server.host}:{server.port}"
    assert server.ask("POST", "/api/predict", {"row": 1}, {"Origin": own})[0] == 200
    _, headers, _ = server.ask("GET", "/api/classes", headers={"Origin": origin})
    assert "Access-Control-Allow-Origin" not in headers


# -- bodies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "1e39", "9" * 400, '"1"', "true"])
def test_odd_numbers(server, number):
    for vector in (f"[[{number}]]", "[[" + ",".join([number] * 1280) + "]]"):
        body = f'{{"features": {vector}}}'.encode()
        status, _, content = server.ask("POST", "/api/predict", body, JSON)
        assert status in (400, 422), content
    body = f'{{"features": [{",".join([number] * 1280)}]}}'.encode()
    for path in ("/api/explain", "/api/neighbours"):
        status, _, content = server.ask("POST", path, body, JSON)
        assert status == 200 if number in ('"1"', "true") else status in (400, 422), content
    for field in ("seen_penalty", "false_accept_rate", "top"):
        body = f'{{"row": 1, "{field}": {number}}}'.encode()
        status, _, content = server.ask("POST", "/api/predict", body, JSON)
        assert status in (200, 400, 422), content


@pytest.mark.parametrize(
    "body",
    [
        b'{"features": [[1, 2], [1]]}',
        b'{"features": [[]]}',
        b'{"features": []}',
        b'{"features": {"a": 1}}',
        b'{"features": ' + b"[" * 70 + b"1" + b"]" * 70 + b"}",
        b'{"rows": []}',
        b'{"row": 1, "rows": [1]}',
        b'{"row": 99999}',
        b'{"row": -1}',
        b'{"row": 1, "odd": 1}',
        b'{"row": 1, "classes": []}',
        b'{"row": 1, "classes": [["seen"]]}',
        b'{"row": 1, "classes": "\\u0000"}',
        b'{"row": 1, "classes": ["\\ud800"]}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[]",
        b"",
        b"\xff\xfe",
        b'{"row": 1',
        b"null",
    ],
    ids=lambda body: body[:30].decode("latin-1"),
)
def test_odd_bodies(server, body):
    status, headers, content = server.ask("POST", "/api/predict", body, JSON)
    assert status in (400, 422), content
    assert headers["Content-Type"] == "application/problem+json"
    for path in ("/api/explain", "/api/retrieve", "/api/classes", "/v2/models/keywords/infer"):
        status, _, content = server.ask("POST", path, body, JSON)
        assert status in (200, 400, 422), (path, content)


def test_wrong_kinds_of_body(server):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "", "application/xml"):
        answer = server.ask("POST", "/api/predict", b'{"row": 1}', {"Content-Type": kind})
        problem(answer, 415)
        status, _, _ = server.ask("POST", "/api/explain", b'{"row": 1}', {"Content-Type": kind})
        assert status in (415, 422)


def test_too_much_to_explain(server):
    answer = server.ask("POST", "/api/predict", {"rows": [1] * 1000, "explain": True})
    assert "explained" in problem(answer, 413)


def test_body_that_is_too_large(server):
    line = "Content-Length: 104857600"
    answer = raw(server, head("POST", "/api/predict", line, "Content-Type: application/json"))
    assert status_of(answer) == 413
    assert b'"status":413' in answer
    answer = raw(server, head("POST", "/api/predict", "Content-Length: 99" + "9" * 30))
    assert status_of(answer) in (400, 413)


@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=x"])
@pytest.mark.parametrize("path", ["/api/predict", "/api/explain", "/v2/models/keywords/infer"])
def test_endless_body(server, path, kind):
    """A body of 100 MB in pieces, whose length was not said."""
    piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
    start = head("POST", path, "Transfer-Encoding: chunked", f"Content-Type: {kind}")
    sent = 0
    with socket.create_connection((server.host, server.port), 30) as connection:
        connection.sendall(start)
        try:
            while sent < 100 * 2**20:
                connection.sendall(piece)
                sent += 65536
        except OSError:
            pass
        answer = everything(connection)
    assert sent < 100 * 2**20, "the server has read all of it"
    assert status_of(answer) in (None, 400, 413, 415, 422)


def test_json_that_grows_when_it_is_read(server):
    body = b'{"features": [' + b"{}," * 5_000_000 + b"{}]}"
    assert server.ask("POST", "/api/predict", body, JSON)[0] in (400, 422)
    body = b'{"inputs": [' + b"[]," * 5_000_000 + b"[]]}"
    packed = zlib.compress(body, 9)
    headers = {**JSON, "Content-Encoding": "deflate"}
    assert server.ask("POST", "/v2/models/keywords/infer", packed, headers)[0] in (400, 422)


def test_compressed_bomb(server):
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(2**20)) for _ in range(300)) + packer.flush()
    headers = {**JSON, "Content-Encoding": "deflate"}
    answer = server.ask("POST", "/v2/models/keywords/infer", packed, headers)
    assert "more than" in problem(answer, 413)


def test_many_uploads_at_a_time(emoji_models):
    """What all requests hold together is bounded, however many there are."""
    limits = {"upload_bytes": 2**20, "json_bytes": 2**20, "all_upload_bytes": 3 * 2**20}
    running = LiveServer(serve_script({"keywords": emoji_models["keywords"]}, limits=limits))
    place, kind, stack = (running.host, running.port), "application/json", contextlib.ExitStack()
    try:
        for number in range(6):
            connection = stack.enter_context(socket.create_connection(place, 30))
            start = head("POST", "/api/predict", "Content-Length: 1048000", f"Content-Type: {kind}")
            connection.sendall(start + b" " * 1_000_000)
            if number < 3:
                time.sleep(0.5)  # it is read, and held
            else:
                answer = everything(connection)
                assert status_of(answer) == 503
                assert b"too much to read" in answer
        stack.close()
        data = {"features": [[0.5] * 1280]}
        assert ask_patiently(running, "POST", "/api/predict", data)[0] == 200
    finally:
        stack.close()
        running.stop()


# -- many classes ---------------------------------------------------------------------------------


def test_ten_thousand_candidates(server, emoji, tmp_path):
    names = [f"class {i}" for i in range(10_000)]
    answer = server.ask("POST", "/api/predict", {"row": 1, "classes": names})
    assert "no class 'class 0'" in problem(answer, 400)
    known = list(emoji.split().test) * 1000
    assert server.ask("POST", "/api/predict", {"row": 1, "classes": known[:10_000]})[0] == 200
    problem(server.ask("POST", "/api/predict", {"row": 1, "classes": ["seen"] * 30_000}), 422)

    from latem import ESZSL

    rng = np.random.default_rng(0)
    table = (names, rng.random((10_000, 40)))
    model = ESZSL(table, gamma=1.0, lam=1.0).fit(rng.random((40, 16)), np.array(names[:20] * 2))
    model.save(tmp_path / "many.safetensors")
    running = LiveServer(serve_script({"many": tmp_path / "many.safetensors"}))
    try:
        features = rng.random((1, 16)).tolist()
        before = running.memory()
        for first in range(80):  # different questions, more than are kept
            wanted = {"features": features, "classes": names[first:]}
            status, _, content = running.ask("POST", "/api/predict", wanted)
            assert status == 200, content
        assert f"among {10_000 - 79} classes" in content.decode()
        assert running.memory() - before < GROWTH
    finally:
        running.stop()


# -- paths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/../../../../../../etc/passwd",
        "/static/%2e%2e/app.py",
        "/static/..%2f..%2fapp.py",
        "/static/%2e%2e%2fapp.py",
        "/static/..%5c..%5capp.py",
        "/static//etc/passwd",
        "/static/%00",
        "/static/a%00.js",
        "/static/" + "a" * 5000,
        "/static/%ff%fe",
        "/static/",
        "/static",
        "/api/pictures/../../etc/passwd",
        "/api/pictures/..%2f..%2fetc%2fpasswd",
        "/api/pictures/%00",
        "/api/pictures/-1",
        "/api/pictures/1e3",
        "/api/pictures/999999999999999999999999",
        "/api/albums/..%2f..%2fx/answers.csv",
        "/v2/models/..%2f..%2fetc",
        "/v2/models/%00",
        "/%",
        "//evil.example/",
        "/api/images?name=%00&offset=-1",
    ],
)
def test_paths_lead_nowhere(server, path):
    answer = raw(server, head("GET", path, "Connection: close"))
    assert status_of(answer) in (400, 404, 405, 422, 307), answer[:300]
    assert b"root:" not in answer
    assert b"create_app" not in answer


def test_targets_that_are_no_paths(server):
    for line in ("GET http://evil.example/api/about", "CONNECT evil.example:80", "OPTIONS *"):
        answer = raw(server, f"{line} HTTP/1.1\r\nHost: evil.example\r\n\r\n".encode())
        assert status_of(answer) in (None, 400, 403, 404, 405)


def test_more_pictures_than_fit(emoji_models):
    """Pictures of all requests together are bounded; further ones are told to come back."""
    limits = {"pictures": 32, "all_pictures": 8}
    running = LiveServer(serve_script({"keywords": emoji_models["keywords"]}, limits=limits))
    try:
        headers, body = form([("a.jpg", small_picture())] * 9)
        answer = running.ask("POST", "/api/predict", body, headers)
        assert "too much to do" in problem(answer, 503)
        assert answer[1]["Retry-After"] == "1"
        headers, body = form([("a.jpg", small_picture())] * 8)
        for _ in range(3):  # what was taken is given back
            assert running.ask("POST", "/api/predict", body, headers)[0] == 200
    finally:
        running.stop()
