"""Starting the server: uvicorn with the limits that it does not have itself."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from latem.server.app import create_app
from latem.server.problems import problem_response
from latem.server.settings import Limits, Settings
from latem.server.shelf import Source

_KEPT_ALIVE = 15  # seconds that an idle connection stays open
_GRACE = 10  # seconds for requests under way when the server is stopped
_N_AHEAD = 128  # requests that a client may send before it has the answer to the first
_LARGEST_HEAD = 64 * 1024  # bytes
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"Content-Length: 0\r\nConnection: close\r\n\r\n"
)


def serve(
    models: dict[str, Any],
    source: Source | None = None,
    settings: Settings | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve models until the process is stopped.

    Parameters
    ----------
    models, source, settings
        As for `create_app`.
    ready : callable, optional
        Called with the server's address when it can be asked.
    """
    settings = Settings() if settings is None else settings
    with _listen(settings) as listener:
        _run(create_app(models, source, settings), listener, settings, ready)


def run_app(app: Any, settings: Settings, ready: Callable[[str], None] | None = None) -> None:
    """Serve any ASGI application as models are served.

    Parameters
    ----------
    app : ASGI application
    settings, ready
        As for `serve`.
    """
    with _listen(settings) as listener:
        _run(app, listener, settings, ready)


def _run(
    app: Any, listener: socket.socket, settings: Settings, ready: Callable[[str], None] | None
) -> None:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    server = _Server(_config(app, settings), ready, f"http://{shown}:{port}/")
    server.run(sockets=[listener])


def _listen(settings: Settings) -> socket.socket:
    """The socket, before the long work of reading models: a port in use is said at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # event loops switch off the delay of small packets for sockets that are said to be TCP only
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted ones inherit it
    try:
        listener.bind((settings.host.strip("[]"), settings.port))
    except OSError as error:
        listener.close()
        raise ValueError(
            f"{settings.host}:{settings.port} cannot be used ({error.strerror or error}); choose "
            f"another with --host and --port, 0 for any free port."
        ) from None
    return listener


def _config(app: Any, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_limited(settings.limits),
        ws="none",
        loop="auto",
        lifespan="on",
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEPT_ALIVE,
        timeout_graceful_shutdown=_GRACE,
        backlog=256,
    )


class _Server(uvicorn.Server):
    """A server that says when it can be asked."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[str], None] | None, address: str):
        super().__init__(config)
        self._ready, self._address = ready, address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets=sockets)
        if self.started and self._ready is not None:
            self._ready(self._address)


def _limited(limits: Limits) -> type[HttpToolsProtocol]:
    """The HTTP protocol, for clients that do not waste connections."""

    class Protocol(HttpToolsProtocol):
        """Closes connections of clients that say nothing, never end, or do not listen.

        A head of a request must be whole within some seconds and may not be long; the same holds
        for a body that nobody waits for any more. An answer must be taken within some seconds.
        """

        _patience: asyncio.TimerHandle | None = None
        _unread: asyncio.TimerHandle | None = None
        _n_head = 0

        def connection_made(self, transport: Any) -> None:
            """Begin to wait for a request; refuse it if there are too many connections."""
            super().connection_made(transport)
            n_over = len(self.connections) - limits.connections
            if n_over > limits.connections:
                transport.abort()
            elif n_over > 0:
                self.app = _too_many
            self._wait()

        def data_received(self, data: bytes) -> None:
            """Read on; a head that never ends is refused."""
            self._n_head += len(data)
            super().data_received(data)
            if self._patience is not None:
                if self._n_head > _LARGEST_HEAD and not self.transport.is_closing():
                    self.transport.write(_TOO_LARGE)
                    self.transport.close()
            elif self.timeout_keep_alive_task is None and (
                self.cycle is None or self.cycle.response_complete
            ):
                self._wait()  # for the end of a body that was not read, or for anything at all

        def on_message_begin(self) -> None:
            """Begin to wait for the rest of a head."""
            super().on_message_begin()
            self._wait()

        def on_headers_complete(self) -> None:
            """Stop waiting: the head is whole."""
            self._stop()
            self._n_head = 0
            if len(self.pipeline) >= _N_AHEAD:
                self.transport.abort()
                raise ValueError("a client sends requests without waiting for answers")
            super().on_headers_complete()

        def on_response_complete(self) -> None:
            """Answer the next request; read no further ones while some wait."""
            super().on_response_complete()
            if self.pipeline:
                self.flow.pause_reading()

        def pause_writing(self) -> None:
            """Begin to wait for the client to take what was sent."""
            super().pause_writing()
            if self._unread is None:
                self._unread = self.loop.call_later(limits.seconds, self._abort)

        def resume_writing(self) -> None:
            """Stop waiting: it was taken."""
            self._taken()
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            """Stop waiting."""
            self._stop()
            self._taken()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._stop()
            self._n_head = 0
            self._patience = self.loop.call_later(limits.header_seconds, self._give_up)

        def _stop(self) -> None:
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None

        def _taken(self) -> None:
            if self._unread is not None:
                self._unread.cancel()
                self._unread = None

        def _give_up(self) -> None:
            if not self.transport.is_closing():
                self.transport.close()

        def _abort(self) -> None:
            self.transport.abort()

    return Protocol


async def _too_many(scope: Scope, receive: Receive, send: Send) -> None:
    """Tell a client to come back when there are fewer connections."""
    detail = "There are too many connections; try again in a moment."
    headers = {"Retry-After": "1", "Connection": "close"}
    await problem_response(503, detail, headers)(scope, receive, send)
