"""The door: who may come in, how much may be sent, how long it may take, what browsers are told.

Plain ASGI around the whole application, so that nothing can be reached another way. Requests that
change something are refused if they come from a page of another host; a request that is addressed
to an unknown host name is refused as well, so that a page cannot reach a local server by giving its
own name the local address.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from latem.core.messages import shortened
from latem.server.measures import Measures
from latem.server.problems import problem_response
from latem.server.sessions import COOKIE, HEADER, Session, Sessions
from latem.server.settings import Settings
from latem.server.work import Room

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
}
_RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
_OPEN = ("/", "/api/about", "/api/session", "/v2/health/live", "/v2/health/ready")
_OPEN_FOLDER = "/static/"
_log = logging.getLogger(__name__)
_GONE = 499  # counted for clients that went away before they were answered
COUNT = "latem.count"  # where a request keeps what notes the bytes that it holds
_N_DIGITS = 18  # of a number of bytes
_SAFE = ("GET", "HEAD", "OPTIONS")


class Keeper:
    """Knows the token.

    Parameters
    ----------
    token : str or None
    """

    def __init__(self, token: str | None):
        self._token = None if token is None else token.encode()

    def may_enter(self, headers: Headers, session: Session | None) -> bool:
        """Whether a client has shown the token, now or when it signed in."""
        if self._token is None or (session is not None and session.signed_in):
            return True
        kind, _, given = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.is_token(given.strip())

    def is_token(self, given: str) -> bool:
        """Whether this is the token, found out in the same time for any other text."""
        return self._token is not None and hmac.compare_digest(given.encode(), self._token)


class Guard:
    """ASGI middleware.

    Parameters
    ----------
    app : ASGI application
    settings : Settings
    keeper : Keeper
    sessions : Sessions
    measures : Measures
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        keeper: Keeper,
        sessions: Sessions,
        measures: Measures,
    ):
        self.app, self.settings, self.keeper = app, settings, keeper
        self.sessions, self.measures = sessions, measures
        self._room = Room(settings.limits.all_upload_bytes)
        self._counted: dict[tuple[str, int], tuple[Any, Any]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        start = time.perf_counter()
        answer = _Answer(send, scope)
        headers = Headers(scope=scope)
        session = self.sessions.find(_session_name(headers))
        scope["session"] = session
        refusal = self._refusal(scope, headers, session)
        if refusal is not None:
            status, detail = refusal
            more = {"WWW-Authenticate": "Bearer"} if status == 401 else {"Connection": "close"}
            await problem_response(status, detail, more)(scope, receive, answer.send)
        else:
            await self._let_in(scope, receive, answer, self._largest(scope, headers))
        route = getattr(scope.get("route"), "path", "other")
        requests, seconds = self._counters(route, answer.status)
        requests.inc()
        seconds.observe(time.perf_counter() - start)

    def _counters(self, route: str, status: int) -> tuple[Any, Any]:
        """Counters of a route and a status, looked up once."""
        key = route, status
        if key not in self._counted:
            requests = self.measures.requests.labels(route, str(status))
            self._counted[key] = requests, self.measures.seconds.labels(route)
        return self._counted[key]

    async def _let_in(self, scope: Scope, receive: Receive, answer: _Answer, limit: int) -> None:
        body = _Body(receive, limit, self.settings.limits.seconds, self._room)
        scope[COUNT] = body.count
        try:
            await self.app(scope, body.receive, answer.send)
        except ClientDisconnect:
            answer.status = _GONE
        except Exception:
            _log.exception("an unexpected error on %r", scope["path"])
            if not answer.started:
                detail = "Something went wrong in the server; its log tells what."
                await problem_response(500, detail)(scope, receive, answer.send)
        finally:
            self._room.leave(body.n_bytes)

    def _largest(self, scope: Scope, headers: Headers) -> int:
        """Bytes that a request's body may have."""
        kind = headers.get("content-type", "")
        with_files = kind.lower().startswith("multipart/") or scope["path"].startswith("/v2/")
        limits = self.settings.limits
        return limits.upload_bytes if with_files else min(limits.json_bytes, limits.upload_bytes)

    def _refusal(
        self, scope: Scope, headers: Headers, session: Session | None
    ) -> tuple[int, str] | None:
        """Status and sentence for a request that may not come in."""
        hosts = self.settings.hosts
        host = headers.get("host", "")
        if hosts is not None and _host_name(host) not in hosts:
            return 403, (
                f"This server does not answer to the host name {shortened(host)!r}; start it with "
                f"--allowed-host NAME to let it."
            )
        origin = headers.get("origin")
        if scope["method"] not in _SAFE and origin is not None and not _same_host(origin, host):
            return 403, (
                f"Pages of other hosts, such as {shortened(origin)!r}, may not use this server; "
                f"open its own page."
            )
        length = byte_count(headers.get("content-length", "0"))
        limit = self._largest(scope, headers)
        if length is None:
            return 400, "Content-Length must be a number of bytes."
        if length > limit:
            return 413, f"At most {limit} bytes may be sent at a time, not {length}."
        path = scope["path"]
        if path in _OPEN or path.startswith(_OPEN_FOLDER):
            return None
        if self.keeper.may_enter(headers, session):
            return None
        return 401, "A token is needed: sign in, or send it as 'Authorization: Bearer …'."


class _Answer:
    """Notes the status of an answer, and adds what browsers must be told."""

    def __init__(self, send: Send, scope: Scope):
        self._send, self._scope = send, scope
        self.status, self.started = 500, False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.started = message["status"], True
            message.setdefault("headers", [])
            message["headers"] = [*message["headers"], *_RAW_HEADERS]
            headers = MutableHeaders(raw=message["headers"])
            if "cache-control" not in headers:
                headers["Cache-Control"] = "no-store"
            new = self._scope.get("new_session")
            if new is not None:
                headers.append(
                    "Set-Cookie", f"{COOKIE}={new.name}; Path=/; HttpOnly; SameSite=Strict"
                )
        try:
            await self._send(message)
        except RuntimeError as error:
            if "closed" not in str(error):
                raise
            raise ClientDisconnect from None  # uvloop's word for a connection that was aborted


class _Body:
    """A request's body, as long as it is not too long and does not take too long."""

    def __init__(self, receive: Receive, limit: int, seconds: float, room: Room):
        self._receive, self._limit, self._room = receive, limit, room
        self._until = time.monotonic() + seconds
        self._seconds = seconds
        self.n_bytes = 0
        self._whole = False

    async def receive(self) -> Message:
        if self._whole:  # what follows is the end of the connection, which may take its time
            return await self._receive()
        message = await self._in_time()
        if message["type"] == "http.request":
            self.count(len(message.get("body", b"")))
            self._whole = not message.get("more_body", False)
            if self.n_bytes > self._limit:
                detail = f"At most {self._limit} bytes may be sent at a time."
                raise HTTPException(413, detail, {"Connection": "close"})
        return message

    async def _in_time(self) -> Message:
        """The next part; `asyncio.wait_for` would start a task for each."""
        task: Any = asyncio.current_task()
        over = False

        def give_up() -> None:
            nonlocal over
            over = True
            task.cancel()

        left = max(self._until - time.monotonic(), 0.001)
        timer = asyncio.get_running_loop().call_later(left, give_up)
        try:
            return await self._receive()
        except asyncio.CancelledError:
            if not over:
                raise
            detail = f"The request was not sent within {self._seconds:g} seconds."
            raise HTTPException(408, detail, {"Connection": "close"}) from None
        finally:
            timer.cancel()

    def count(self, n: int) -> None:
        """Note that the request holds some more bytes."""
        if not self._room.take(n):
            detail = "The server has too much to read; try again in a moment."
            raise HTTPException(503, detail, {"Retry-After": "1", "Connection": "close"})
        self.n_bytes += n


def byte_count(text: str) -> int | None:
    """A number of bytes from a header; None if it is none, or one that nobody can mean.

    >>> byte_count("512"), byte_count("-1"), byte_count("²"), byte_count("9" * 5000)
    (512, None, None, None)
    """
    usual = text.isascii() and text.isdigit() and len(text) <= _N_DIGITS
    return int(text) if usual else None


def _session_name(headers: Headers) -> str | None:
    given = headers.get(HEADER)
    if given is not None or "cookie" not in headers:
        return given
    try:
        cookie = SimpleCookie(headers["cookie"]).get(COOKIE)
    except CookieError:
        return None
    return None if cookie is None else cookie.value


def _host_name(host: str) -> str:
    """Name in a Host header, without the port.

    >>> _host_name("localhost:8000"), _host_name("[::1]:8000"), _host_name("127.0.0.1")
    ('localhost', '::1', '127.0.0.1')
    """
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _same_host(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False
