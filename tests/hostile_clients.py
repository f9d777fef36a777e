"""What hostile clients do: raw bytes, forms, and looking whether a server lives on."""

import contextlib
import io
import json
import socket
import time

import numpy as np

LIMITS = {
    "upload_bytes": 4 * 2**20,
    "json_bytes": 2**20,
    "seconds": 2.0,
    "header_seconds": 1.0,
    "connections": 24,
    "sessions": 100,
    "session_bytes": 100_000,
    "all_session_bytes": 2_000_000,
}
GROWTH = 250 * 2**20  # bytes that a server may grow by under any of these attacks
JSON = {"Content-Type": "application/json"}


def ask_patiently(server, *request):
    """An answer, as soon as the server is not busy any more."""
    for _ in range(50):
        try:
            answer = server.ask(*request)
        except OSError:
            answer = (503, {}, b"")
        if answer[0] != 503:
            break
        time.sleep(0.2)
    return answer


def raw(server, data, seconds=20):
    """All that a server says to some bytes, until it closes the connection."""
    with socket.create_connection((server.host, server.port), seconds) as connection:
        try:
            connection.sendall(data)
        except OSError:  # it may have closed already
            return b""
        return everything(connection)


def everything(connection):
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        return found
    return found


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else None


def head(method, path, *lines):
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *lines, "", ""]).encode()


def form(pictures, **fields):
    """A form as browsers send it: its headers and its body."""
    parts = [
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    for name, content in pictures:
        parts.append(
            f'--x\r\nContent-Disposition: form-data; name="pictures"; filename="{name}"\r\n'
            f"Content-Type: image/png\r\n\r\n".encode()
            + content
            + b"\r\n"
        )
    return {"Content-Type": "multipart/form-data; boundary=x"}, b"".join(parts) + b"--x--\r\n"


def problem(answer, status):
    """The sentence of an answer that must be a problem of this status."""
    found, headers, content = answer
    assert found == status, content
    assert headers["Content-Type"] == "application/problem+json"
    told = json.loads(content)
    assert told["status"] == status
    assert told["detail"][-1] in ".?"
    return told["detail"]


def small_picture(kind="JPEG"):
    from PIL import Image

    file = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


@contextlib.contextmanager
def lives_on(servers):
    """Whatever is done to servers, they answer afterwards, and have not grown much."""
    before = [one.memory() for one in servers]
    yield
    for one, old in zip(servers, before, strict=True):
        status, _, content = ask_patiently(one, "POST", "/api/predict", {"row": 3})
        assert status == 200, content
        assert one.memory() - old < GROWTH
        assert one.process.poll() is None
