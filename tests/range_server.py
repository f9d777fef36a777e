"""A server of files on this machine that knows ranges, for downloads."""

import http.server
import threading
import time
from contextlib import contextmanager

_PIECE = 2**14


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves `files`; knows ranges; can break off after some bytes, or take its time."""

    files: dict[str, bytes] = {}  # noqa: RUF012 - each server has its own
    tag = '"one"'
    break_after: int | None = None
    ranges = True
    pause = 0.0  # seconds after every 16 kB
    requests: list[str | None] = []  # noqa: RUF012

    def do_GET(self):
        cls = type(self)
        cls.requests.append(self.headers.get("Range"))
        content = cls.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        start = 0
        wanted = self.headers.get("Range")
        if wanted and cls.ranges and self.headers.get("If-Range") == cls.tag:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("ETag", cls.tag)
        self.end_headers()
        end = len(content) if cls.break_after is None else start + cls.break_after
        self._send(content[start:end])

    def _send(self, content):
        if not self.pause:
            self.wfile.write(content)
            return
        try:
            for first in range(0, len(content), _PIECE):
                self.wfile.write(content[first : first + _PIECE])
                time.sleep(self.pause)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # who asked is gone

    def log_message(self, *_):
        pass


@contextmanager
def range_server(**settings):
    """A running server: a class derived from `Handler`, with its address as `url`."""
    own = type("Own", (Handler,), {"requests": [], **settings})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), own) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        own.url = f"http://127.0.0.1:{running.server_port}"
        try:
            yield own
        finally:
            running.shutdown()
            thread.join()
