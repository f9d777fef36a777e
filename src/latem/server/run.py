"""Starting the server: uvicorn with the limits that it does not have itself."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from latem.server.app import create_app
from latem.server.settings import Settings
from latem.server.shelf import Source

_KEPT_ALIVE = 15  # seconds that an idle connection stays open
_GRACE = 10  # seconds for requests under way when the server is stopped


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
    listener = _listen(settings)
    with listener:
        app = create_app(models, source, settings)
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        server = _Server(_config(app, settings), ready, f"http://{shown}:{port}/")
        asyncio.run(server.serve(sockets=[listener]))


def _listen(settings: Settings) -> socket.socket:
    """The socket, before the long work of reading models: a port in use is said at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
        http=_limited(settings.limits.header_seconds),
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
        limit_concurrency=settings.limits.connections,
        backlog=256,
        h11_max_incomplete_event_size=64 * 1024,
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


def _limited(seconds: float) -> type[HttpToolsProtocol]:
    """The HTTP protocol, for clients that send the head of a request within some seconds."""

    class Protocol(HttpToolsProtocol):
        """Closes connections that are opened and then say nothing, or next to nothing."""

        _patience: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            """Begin to wait for a request."""
            super().connection_made(transport)
            self._wait()

        def on_message_begin(self) -> None:
            """Begin to wait for the rest of a head."""
            super().on_message_begin()
            self._wait()

        def on_headers_complete(self) -> None:
            """Stop waiting: the head is whole."""
            self._stop()
            super().on_headers_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            """Stop waiting."""
            self._stop()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._stop()
            self._patience = self.loop.call_later(seconds, self._give_up)

        def _stop(self) -> None:
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None

        def _give_up(self) -> None:
            if not self.transport.is_closing():
                self.transport.close()

    return Protocol
