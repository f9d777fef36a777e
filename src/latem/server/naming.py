"""From requests to answers: which classes are meant, images in batches, answers as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from latem.core.messages import near_name
from latem.embeddings.table_checks import as_python
from latem.features.chunks import prepared
from latem.features.pictures import too_large
from latem.inspection.explain import explain_predictions
from latem.models.answering import Asked
from latem.models.answers import Answer
from latem.models.class_view import GROUPS
from latem.report.names import label
from latem.server.measures import Measures
from latem.server.problems import Busy, ProblemError
from latem.server.schemas import Options
from latem.server.sessions import Invented, Session, Sessions
from latem.server.settings import Settings
from latem.server.shelf import Served, Shelf
from latem.server.work import Batcher, Room, Work

_N_TOGETHER = 512  # feature vectors that are scored together
_QUICK = 0.004  # seconds that may pass before other requests are looked after
_N_PIXELS = 32  # pictures that are encoded together


@dataclass(frozen=True, eq=False)
class State:
    """All that the routes share."""

    settings: Settings
    shelf: Shelf
    sessions: Sessions
    measures: Measures
    work: Work
    scoring: Batcher
    encoding: Batcher
    pictures: Room

    @classmethod
    def of(cls, settings: Settings, shelf: Shelf, measures: Measures) -> State:
        """The state of a server that has not been asked anything."""
        limits = settings.limits
        work = Work(settings.n_threads, limits.waiting, limits.seconds)
        return cls(
            settings,
            shelf,
            Sessions(limits),
            measures,
            work,
            Batcher(work, _N_TOGETHER, measures.batch.labels("features").observe, quick=_QUICK),
            Batcher(work, _N_PIXELS, measures.batch.labels("pictures").observe),
            Room(limits.all_pictures),
        )


@contextmanager
def asking() -> Iterator[None]:
    """What the library refuses is the client's to mend."""
    try:
        yield
    except (ValueError, TypeError, OverflowError) as error:
        raise ProblemError(400, str(error)) from None


# -- which classes are meant ----------------------------------------------------------------------


def known_class(served: Served, session: Session | None, name: str) -> Any:
    """A class by its name: as the model knows it, or as it was invented in the session."""
    if name in served.cards:
        return served.cards[name]["name"]
    invented = None if session is None else session.classes.get(name)
    if invented is not None and invented.model == served.name:
        return invented
    known = [*served.cards, *(() if session is None else session.classes)]
    hint = near_name(name, known) or " GET /api/classes lists them."
    raise ProblemError(400, f"There is no class {name!r}.{hint}")


def candidates(served: Served, session: Session | None, wanted: Any) -> tuple[Any, Any]:
    """Meaning of a `classes` field: what it is kept by, and what models take."""
    if isinstance(wanted, str):
        return wanted, wanted
    key: list[Any] = []
    parts: list[Any] = []
    for name in dict.fromkeys(wanted):
        if name in GROUPS and name not in served.cards:
            found: Any = name
        else:
            found = known_class(served, session, name)
        parts.append(found.table if isinstance(found, Invented) else found)
        key.append(("invented", found.number) if isinstance(found, Invented) else found)
    return tuple(key), parts


def question(served: Served, session: Session | None, options: Options) -> tuple[Any, Asked]:
    """What is asked of a model, kept for the next request that asks the same."""
    key, classes = candidates(served, session, options.classes)
    key = (key, options.top, options.seen_penalty, options.false_accept_rate)

    def make() -> Asked:
        with asking():
            return Asked(
                served.model, classes, options.top, options.seen_penalty, options.false_accept_rate
            )

    return (served.name, served.version, key), served.asked(key, make)


def among(wanted: Any, asked: Asked) -> str:
    """Which classes may be the answer, for a heading."""
    n, n_seen = len(asked.names), int(asked.seen.sum())
    if wanted in ("seen", "unseen"):
        return f"among the {n} {wanted} classes"
    if wanted == "all":
        return f"among all {n} classes, {n_seen} seen and {n - n_seen} unseen"
    return f"among {n} classes"


# -- images ---------------------------------------------------------------------------------------


def checked_features(served: Served, features: Any, limit: int) -> np.ndarray:
    """Feature vectors of a request, of shape (n_images, n_features)."""
    try:
        found = np.array(features)
    except ValueError:
        raise ProblemError(400, "features must be vectors of the same length.") from None
    width = served.model.n_features_in_
    if found.dtype.kind not in "fiu" or found.ndim != 2 or not len(found):
        raise ProblemError(400, "features must be a list of vectors of numbers, one per image.")
    if found.shape[1] != width:
        raise ProblemError(
            400,
            f"Model {served.name!r} takes {width} features per image, not {found.shape[1]}.",
        )
    if len(found) > limit:
        raise ProblemError(413, f"At most {limit} images can be named at a time.")
    with np.errstate(over="ignore"):
        found = np.ascontiguousarray(found, np.float32)
    if not np.isfinite(found).all():
        raise ProblemError(400, "features must be finite numbers that fit into float32.")
    return found


async def encoded(
    state: State, served: Served, contents: Sequence[bytes]
) -> list[np.ndarray | str]:
    """Features of pictures, or why each cannot be read."""
    if not state.pictures.take(len(contents)):
        raise Busy()
    try:
        return await _encoded(state, served, contents)
    finally:
        state.pictures.leave(len(contents))


async def _encoded(
    state: State, served: Served, contents: Sequence[bytes]
) -> list[np.ndarray | str]:
    encoder = served.encoder if "encoder" in vars(served) else await _load_encoder(state, served)
    pixels: list[np.ndarray | str] = [
        await state.work.run(_decoded, encoder, content, state.settings.limits.pixels)
        for content in contents
    ]
    readable = [one for one in pixels if not isinstance(one, str)]
    if not readable:
        return list(pixels)

    def encode(batch: list[np.ndarray]) -> list[np.ndarray]:
        return list(encoder.encode_batch(np.stack(batch)))

    found = iter(await state.encoding.run((served.name, served.version), encode, readable))
    return [one if isinstance(one, str) else next(found) for one in pixels]


async def _load_encoder(state: State, served: Served) -> Any:
    return await state.work.run(lambda: served.encoder)


def _decoded(encoder: Any, content: bytes, pixels: int) -> np.ndarray | str:
    return too_large(content, pixels) or prepared(encoder, content)


async def named(state: State, key: Any, asked: Asked, X: np.ndarray) -> list[Answer]:
    """Answers to images, scored together with those of other requests."""

    def score(rows: list[np.ndarray]) -> list[Answer]:
        with asking():
            return asked.answers(np.stack(rows), [""] * len(rows))

    return await state.scoring.run(key, score, list(X))


# -- answers as plain data ------------------------------------------------------------------------


class Writer:
    """Writes answers about images as plain data.

    Parameters
    ----------
    served : Served
    session : Session or None
    """

    def __init__(self, served: Served, session: Session | None):
        self._cards = served.cards
        self._invented = {} if session is None else session.classes

    def card(self, name: Any) -> dict[str, Any]:
        """How a class is shown."""
        card = self._cards.get(str(name))
        if card is None:
            return {"label": label(name), "symbol": "", "picture": None, "seen": False,
                    "invented": str(name) in self._invented}  # fmt: skip
        return {key: card[key] for key in ("label", "symbol", "picture", "seen", "invented")}

    def answer(self, answer: Answer, picture: str) -> dict[str, Any]:
        """An answer about a picture of this name."""
        if answer.error:
            return {"picture": picture, "error": answer.error}
        found = answer.to_dict()
        found["picture"] = picture
        for one in found["classes"]:
            one.update(self.card(one["class"]))
        return found


def explanation(
    served: Served,
    X: np.ndarray,
    classes: Any,
    penalty: float,
    against: Any = None,
    n: int = 10,
) -> dict[str, Any]:
    """Why one image is named as it is, as plain data."""
    with asking():
        (why,) = explain_predictions(
            served.model, X[None], classes, against=against, seen_penalty=penalty
        )
    found = why.to_dict(n)
    named, other = (as_python(one) for one in (why.named, why.runner_up))
    return {
        **found,
        "labels": {"named": label(named), "runner_up": label(other)},
        "n_maps": served.facts["n_maps"],
        "text": why.text(n),
    }
