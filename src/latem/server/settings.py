"""What a server may be asked to do: where it listens, who may come in, and how much is too much."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from pathlib import Path

INSTALL = "pip install 'latem[serve]'"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SHORTEST_TOKEN = 16
TOKEN_VARIABLE = "LATEM_TOKEN"


@dataclass(frozen=True)
class Limits:
    """Bounds of what one client, and all of them together, can use.

    Attributes
    ----------
    upload_bytes : int
        Of one request's body.
    json_bytes : int
        Of one request's body, or its part, that is JSON: it takes many times as much when read.
    all_upload_bytes : int
        Of all requests that are being answered.
    pictures : int
        In one request; also images that one request may have explained.
    all_pictures : int
        Of all requests that are being answered.
    pixels : int
        Of one picture; more are refused before it is decoded.
    rows : int
        Feature vectors in one request.
    classes : int
        That one session may invent.
    seconds : float
        For the answer to one request, reading its body included, and for the client to take it.
    header_seconds : float
        Until a client has sent the head of its request.
    waiting : int
        Pieces of work that may wait for a free thread; further requests are told to come back.
    connections : int
        Open at the same time.
    sessions : int
        Kept at the same time; the one that was idle longest goes first.
    session_seconds : float
        After which an idle session is forgotten.
    session_bytes, all_session_bytes : int
        Memory for what one session, and all of them, keep.
    album_pictures : int
        In one album.
    """

    upload_bytes: int = 64 * 2**20
    json_bytes: int = 16 * 2**20
    all_upload_bytes: int = 512 * 2**20
    pictures: int = 32
    all_pictures: int = 1024
    pixels: int = 50_000_000
    rows: int = 4096
    classes: int = 20_000
    seconds: float = 30.0
    header_seconds: float = 10.0
    waiting: int = 128
    connections: int = 512
    sessions: int = 1000
    session_seconds: float = 3600.0
    session_bytes: int = 64 * 2**20
    all_session_bytes: int = 512 * 2**20
    album_pictures: int = 5000


@dataclass(frozen=True)
class Settings:
    """How a server is started.

    Attributes
    ----------
    host, port : str, int
    token : str or None
        What clients must know; needed unless only this machine can connect.
    allowed_hosts : tuple of str
        Further names that clients may call the server by.
    classes_file : path or None
        Where invented classes are written if a client asks for it; None refuses.
    limits : Limits
    watch_seconds : float
        How often model files are looked at; 0 never.
    n_threads : int
        Threads that work for requests.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] = ()
    classes_file: Path | None = None
    limits: Limits = Limits()
    watch_seconds: float = 1.0
    n_threads: int = max(2, min(os.cpu_count() or 2, 8))

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token) < _SHORTEST_TOKEN:
            raise ValueError(
                f"The token is too short to be safe: take at least {_SHORTEST_TOKEN} characters, "
                f"such as python -c 'import secrets; print(secrets.token_urlsafe())' prints."
            )
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise ValueError("The token must be printable ASCII: it travels in a header.")
        if self.token is None and not is_loopback(self.host):
            raise ValueError(
                f"On {self.host} other machines can reach this server, so it needs a token: set "
                f"{TOKEN_VARIABLE}, or give --token-file. On 127.0.0.1 it needs none."
            )

    @property
    def hosts(self) -> frozenset[str] | None:
        """Names that a request may be addressed to; None if any may, because a token protects."""
        if self.token is not None and not self.allowed_hosts:
            return None
        return frozenset(name.lower() for name in (*LOOPBACK, self.host, *self.allowed_hosts))


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
