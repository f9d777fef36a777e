"""How the server is run: its loop, its sockets, and that it stops."""

import json
import signal
import socket
import sys
import time

import pytest
from live_server import LiveServer

pytest.importorskip("fastapi")

from latem.server.run import run_app
from latem.server.settings import Settings

SCRIPT = """
import asyncio, json
from latem.server.run import run_app
from latem.server.settings import Settings

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    loop = type(asyncio.get_running_loop()).__module__
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": loop.encode()})

run_app(app, Settings(port=0), lambda address: print(address, flush=True))
"""


@pytest.fixture
def plain():
    """A server of a tiny application."""
    running = LiveServer([sys.executable, "-c", SCRIPT])
    yield running
    running.stop()


def test_fast_loop(plain):
    pytest.importorskip("uvloop")
    assert plain.ask("GET", "/")[2].startswith(b"uvloop")


def test_stops_when_it_is_asked_to(plain):
    plain.ask("GET", "/")
    start = time.monotonic()
    plain.process.send_signal(signal.SIGINT)
    plain.process.wait(20)
    assert time.monotonic() - start < 8


def test_small_answers_are_not_delayed(server):
    """On one connection answer follows answer; small packets do not wait for one another."""
    connection = server.connection()
    times = []
    try:
        for _ in range(20):
            start = time.perf_counter()
            body = json.dumps({"row": 1})
            connection.request("POST", "/api/predict", body, {"Content-Type": "application/json"})
            connection.getresponse().read()
            times.append(time.perf_counter() - start)
    finally:
        connection.close()
    assert min(times) < 0.03  # a delayed packet takes 0.04 seconds


def test_port_in_use():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ValueError, match=rf"127.0.0.1:{port} cannot be used .* --port"):
            run_app(None, Settings(port=port))
