"""Clients that are slow, silent, too many, or gone; and sessions without end."""

import concurrent.futures
import json
import socket
import struct
import time

import pytest
from hostile_clients import (
    JSON,
    LIMITS,
    everything,
    form,
    head,
    lives_on,
    problem,
    raw,
    small_picture,
    status_of,
)
from live_server import LiveServer, serve_script

pytest.importorskip("fastapi")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def strict(emoji_models, emoji_folder):
    """A server with short limits."""
    running = LiveServer(serve_script(emoji_models, emoji_folder, LIMITS))
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def unharmed(request):
    with lives_on([request.getfixturevalue("strict")] if "strict" in request.fixturenames else []):
        yield


# -- clients that are slow, silent, or gone -------------------------------------------------------


def closed_after(connection, seconds):
    """Seconds until the server closed a connection, and what it said before."""
    start = time.monotonic()
    connection.settimeout(seconds)
    answer = everything(connection)
    return time.monotonic() - start, answer


def drip(connection, data, seconds, pause=0.1):
    """Send bytes one by one; seconds until the server closed, and what it said before."""
    start = time.monotonic()
    connection.settimeout(pause)
    answer = b""
    for place in range(10**6):
        if time.monotonic() - start > seconds:
            raise AssertionError("The server has not closed the connection.")
        try:
            connection.sendall(data[place % len(data) :][:1])
            part = connection.recv(65536)
            if not part:
                break
            answer += part
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - start, answer


def test_head_in_drips(strict):
    with socket.create_connection((strict.host, strict.port)) as connection:
        connection.sendall(b"GET /api/about HTTP/1.1\r\nX: ")
        took, answer = drip(connection, b"a", 8)
    assert took < 4
    assert answer == b""


def test_silence(strict):
    with socket.create_connection((strict.host, strict.port)) as connection:
        took, answer = closed_after(connection, 8)
    assert took < 4
    assert answer == b""


def test_line_ends_after_an_answer(strict):
    """Empty lines between requests do not hold a connection."""
    with socket.create_connection((strict.host, strict.port)) as connection:
        connection.sendall(head("GET", "/v2/health/live"))
        time.sleep(0.3)
        took, answer = drip(connection, b"\r\n", 10)
    assert took < 5
    assert status_of(answer) == 200


def test_body_in_drips(strict):
    start = head("POST", "/api/predict", "Content-Length: 9999", "Content-Type: application/json")
    with socket.create_connection((strict.host, strict.port)) as connection:
        connection.sendall(start)
        took, answer = drip(connection, b" ", 10)
    assert took < 6
    assert status_of(answer) == 408
    assert b"within 2 seconds" in answer


def test_body_in_drips_that_nobody_reads(strict):
    start = head("GET", "/v2/health/live", "Content-Length: 9999")
    with socket.create_connection((strict.host, strict.port)) as connection:
        connection.sendall(start)
        took, answer = drip(connection, b" ", 10)
    assert took < 6
    assert status_of(answer) == 200


def test_head_without_end(strict):
    sent = 0
    with socket.create_connection((strict.host, strict.port), 20) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")
        try:
            while sent < 50 * 2**20:
                connection.sendall(b"X-Long: " + b"a" * 8000 + b"\r\n")
                sent += 8010
        except OSError:
            pass
        answer = everything(connection)
    assert sent < 10 * 2**20
    assert status_of(answer) in (None, 400, 431)


def test_client_that_does_not_read(strict):
    """Answers that nobody takes are not kept for ever."""
    took = flood(strict, head("GET", "/api/classes") * 8, 0.05)
    assert took < 14


def test_client_that_does_not_wait(strict):
    """Requests that are sent ahead of answers are not queued without end."""
    took = flood(strict, head("GET", "/v2/health/live") * 1000, 0)
    assert took < 10


def flood(server, data, pause, seconds=20):
    """Seconds until the server has enough of a client that sends and does not read."""
    connection = socket.socket()
    with connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(seconds)
        connection.connect((server.host, server.port))
        start = time.monotonic()
        try:
            while time.monotonic() - start < seconds:
                connection.sendall(data)
                time.sleep(pause)
        except ConnectionError:
            pass
        return time.monotonic() - start


def is_live(connection):
    """Whether the whole answer is that the server lives; it may come in several packets."""
    found = b""
    while b'{"live":true}' not in found:
        part = connection.recv(4096)
        if not part:
            return False
        found += part
    return status_of(found) == 200


def test_too_many_connections(strict):
    time.sleep(2)  # those of earlier tests are closed
    opened = [socket.create_connection((strict.host, strict.port), 10) for _ in range(24)]
    try:
        for one in opened:
            one.sendall(head("GET", "/v2/health/live"))
            assert is_live(one)
        answer = raw(strict, head("GET", "/v2/health/live"))
        assert status_of(answer) == 503
        assert b"retry-after: 1" in answer.lower()
        assert b"application/problem+json" in answer
        opened[0].sendall(head("GET", "/v2/health/live"))  # those inside are served on
        assert is_live(opened[0])
        more = [socket.create_connection((strict.host, strict.port), 10) for _ in range(60)]
        for one in more:
            one.close()
    finally:
        for one in opened:
            one.close()


@pytest.mark.parametrize(
    "rubbish",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        bytes(range(256)) * 40,
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        b"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -4\r\n\r\n",
        b"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
        b"\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n"
        b"Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n",
    ],
    ids=["tls", "bytes", "line", "version", "http2", "smuggled", "negative", "chunk", "websocket"],
)
def test_rubbish(strict, rubbish):
    answer = raw(strict, rubbish, 30)
    assert status_of(answer) in (None, 200, 400, 403, 415)
    assert b"HTTP/1.1 101" not in answer


def test_client_goes_away(strict):
    """In the middle of its body, and before the answer; the log stays quiet."""
    start = head("POST", "/api/predict", "Content-Length: 900000", "Content-Type: application/json")
    headers, body = form([("a.png", small_picture("PNG"))] * 8)
    lines = (f"Content-Length: {len(body)}", f"Content-Type: {headers['Content-Type']}")
    whole = head("POST", "/api/predict", *lines) + body
    for data in (start, start + b"{" * 1000, whole[:5000], whole):
        for _ in range(5):
            with socket.create_connection((strict.host, strict.port), 10) as connection:
                connection.sendall(data)
                reset = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    time.sleep(1)
    log = "".join(strict.lines)
    assert "unexpected error" not in log, log[log.find("unexpected error") :][:6000]


# -- sessions -------------------------------------------------------------------------------------


def test_many_sessions(strict):
    """More than a thousand clients that all want to be remembered."""

    def visit(numbers):
        connection = strict.connection()
        try:
            for i in numbers:
                body = json.dumps({"name": f"bird {i}", "set": {"tag:animal": 1}})
                connection.request("POST", "/api/classes", body, JSON)
                answer = connection.getresponse()
                content = answer.read()
                assert answer.status == 201, content
        finally:
            connection.close()

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        list(threads.map(visit, [range(i, 1200, 4) for i in range(4)]))
    assert strict.metric("latem_sessions") <= LIMITS["sessions"]
    assert strict.metric("latem_session_bytes") <= LIMITS["all_session_bytes"]


def test_session_that_wants_too_much(strict):
    _, headers, _ = strict.ask("POST", "/api/classes", {"name": "bird 0", "set": {}})
    session = {"Latem-Session": headers["Latem-Session"]}
    for i in range(1, 200):
        wanted = {"name": f"bird {i}", "set": {"tag:animal": 1}}
        answer = strict.ask("POST", "/api/classes", wanted, session)
        if answer[0] != 201:
            break
    assert "keeps as much as it may" in problem(answer, 413)
    assert strict.ask("DELETE", "/api/classes?name=bird%200", headers=session)[0] == 204
    assert strict.ask("POST", "/api/classes", wanted, session)[0] == 201
    again = strict.ask("POST", "/api/classes", {"name": "bird 1"}, session)
    problem(again, 409)


def test_forgotten_album(strict):
    for name in ("x", "..", "%00", "a" * 64):
        assert strict.ask("DELETE", f"/api/albums/{name}")[0] in (404, 405)
    problem(strict.ask("POST", "/api/albums/x/names", {}), 404)


def test_many_albums(strict):
    _, headers, _ = strict.ask("POST", "/api/albums", {})
    session = {"Latem-Session": headers["Latem-Session"]}
    statuses = [strict.ask("POST", "/api/albums", {}, session)[0] for _ in range(10)]
    assert statuses == [201] * 7 + [409] * 3
