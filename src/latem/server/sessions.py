"""What the server remembers for a client: classes it invented, pictures it showed, albums.

Nothing of it is written to disk. A session has a random name that travels in a cookie (or, for
clients without cookies, in the header Latem-Session), and is forgotten when it was idle for long
or others need its place.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from latem.embeddings.table import ClassEmbeddings
from latem.server.problems import ProblemError
from latem.server.settings import Limits

COOKIE, HEADER = "latem_session", "latem-session"
_N_IMAGES = 64  # pictures whose features are kept for explanations
_OVERHEAD = 2048  # bytes that anything kept takes besides its numbers


@dataclass(frozen=True, eq=False)
class Invented:
    """A class that was described in a session.

    Attributes
    ----------
    table : ClassEmbeddings of one row
    described : str
    row : DataFrame
        As a spreadsheet has it.
    model : str
        Name of the model whose traits it has.
    number : int
        That no other class ever has.
    """

    table: ClassEmbeddings
    described: str
    row: Any
    model: str
    number: int = field(default_factory=itertools.count().__next__)

    @property
    def n_bytes(self) -> int:
        """Memory that it takes, about."""
        return 2 * self.table.vectors.nbytes + _OVERHEAD


@dataclass(eq=False)
class Album:
    """Pictures that were sent to be named together.

    Attributes
    ----------
    model : str
    pictures : list of str
        Names of the files.
    errors : list of str
        Why each cannot be read; empty if it can.
    features : list of ndarray
        Of those that can.
    answers : Answers or None
        What was answered last.
    """

    model: str
    pictures: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    features: list[np.ndarray] = field(default_factory=list)
    answers: Any = None

    @property
    def n_bytes(self) -> int:
        """Memory that it takes, about."""
        return sum(one.nbytes for one in self.features) + _OVERHEAD * (1 + len(self.pictures))


class Session:
    """What is remembered for one client."""

    def __init__(self, name: str, limits: Limits):
        self.name, self._limits = name, limits
        self.signed_in = False
        self.used = time.monotonic()
        self.classes: dict[str, Invented] = {}
        self.albums: dict[str, Album] = {}
        self.images: OrderedDict[str, np.ndarray] = OrderedDict()

    @property
    def n_bytes(self) -> int:
        """Memory that it takes, about."""
        classes = sum(one.n_bytes for one in self.classes.values())
        albums = sum(one.n_bytes for one in self.albums.values())
        images = sum(one.nbytes + _OVERHEAD for one in self.images.values())
        return _OVERHEAD + classes + albums + images

    def check_room(self, n_bytes: int) -> None:
        """Refuse to keep more than one session may."""
        if self.n_bytes + n_bytes > self._limits.session_bytes:
            raise ProblemError(
                413,
                f"This session keeps as much as it may ({self._limits.session_bytes // 2**20} MB): "
                f"delete classes or albums first.",
            )

    def keep_image(self, features: np.ndarray) -> str:
        """A handle for an image's features; the oldest are forgotten."""
        handle = secrets.token_urlsafe(9)
        self.images[handle] = np.array(features)
        while len(self.images) > _N_IMAGES:
            self.images.popitem(last=False)
        return handle

    def image(self, handle: str) -> np.ndarray:
        """Features of an image that was kept."""
        if handle not in self.images:
            raise ProblemError(
                404, "This session does not have this picture any more; send it again."
            )
        return self.images[handle]

    def album(self, name: str) -> Album:
        """An album by its name."""
        if name not in self.albums:
            raise ProblemError(404, "This session has no such album; start a new one.")
        return self.albums[name]


class Sessions:
    """All sessions, the one that was used last at the end.

    Parameters
    ----------
    limits : Limits
    clock : callable
        Seconds that only rise.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic):
        self._limits, self._clock = limits, clock
        self._known: OrderedDict[str, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    @property
    def n_bytes(self) -> int:
        """Memory that all of them take, about."""
        return sum(one.n_bytes for one in self._known.values())

    def find(self, name: str | None) -> Session | None:
        """The session of this name, if there is one that is not too old."""
        self._forget_old()
        session = self._known.get(name or "")
        if session is not None:
            session.used = self._clock()
            self._known.move_to_end(session.name)
        return session

    def start(self) -> Session:
        """A new session."""
        session = Session(secrets.token_urlsafe(32), self._limits)
        session.used = self._clock()
        self._known[session.name] = session
        while len(self._known) > self._limits.sessions:
            self._known.popitem(last=False)
        return session

    def make_room(self, keep: Session) -> None:
        """Forget the sessions that were idle longest until the others fit into memory."""
        total = self.n_bytes
        for name in list(self._known):
            if total <= self._limits.all_session_bytes:
                break
            if name != keep.name:
                total -= self._known.pop(name).n_bytes

    def _forget_old(self) -> None:
        oldest = self._clock() - self._limits.session_seconds
        while self._known and next(iter(self._known.values())).used < oldest:
            self._known.popitem(last=False)
