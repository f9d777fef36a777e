"""Albums: many pictures of one session, named one by one or together, corrected by hand."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from latem.server.naming import Writer, among, asking, encoded, known_class, question
from latem.server.problems import ProblemError, documented, media_type, wrong_type
from latem.server.routes.predict import FORM
from latem.server.routes.shared import (
    answer,
    own_session,
    served_model,
    session_of,
    state_of,
    uploads,
)
from latem.server.schemas import AlbumRequest, NamesRequest, Options
from latem.server.sessions import Album, Invented, Session
from latem.workflows.name_album import named_one_by_one, named_together

router = APIRouter(prefix="/api/albums", tags=["albums"])
_Album = Annotated[str, Path(max_length=64)]
_N_ALBUMS = 8  # in one session
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            FORM: {
                "schema": {
                    "type": "object",
                    "required": ["pictures"],
                    "properties": {
                        "pictures": {
                            "type": "array",
                            "items": {"type": "string", "format": "binary"},
                        }
                    },
                }
            }
        },
    }
}


def _album(request: Request, name: str) -> tuple[Session, Album]:
    session = session_of(request)
    if session is None:
        raise ProblemError(404, "There is no session, so there is no album; start one.")
    return session, session.album(name)


@router.post("", status_code=201, responses=documented(404, 409), operation_id="start_album")
async def start(request: Request, wanted: AlbumRequest) -> Response:
    """Start an album in this session; only its features are kept, not its pictures."""
    served = served_model(request, wanted.model)
    if served.why_no_pictures:
        raise ProblemError(409, served.why_no_pictures)
    session = own_session(request)
    if len(session.albums) >= _N_ALBUMS:
        raise ProblemError(409, f"This session has {_N_ALBUMS} albums; delete one first.")
    name = secrets.token_urlsafe(9)
    session.albums[name] = Album(served.name)
    limit = state_of(request).settings.limits.album_pictures
    content = {"album": name, "limit": limit}
    return answer(content, 201, {"Latem-Session": session.name})


@router.post(
    "/{album}/pictures",
    responses=documented(404, 409),
    openapi_extra=_BODY,
    operation_id="add_pictures",
)
async def add(request: Request, album: _Album) -> Response:
    """Add pictures, a few at a time."""
    state = state_of(request)
    session, found = _album(request, album)
    if media_type(request) != FORM:
        raise wrong_type(request, FORM)
    pictures, _ = await uploads(request, state.settings.limits.pictures)
    limit = state.settings.limits.album_pictures
    if len(found.pictures) + len(pictures) > limit:
        raise ProblemError(413, f"An album holds at most {limit} pictures.")
    served = served_model(request, found.model)
    session.check_room(len(pictures) * 4 * int(served.model.n_features_in_))
    X = await encoded(state, served, [content for _, content in pictures])
    added = []
    for (name, _), image in zip(pictures, X, strict=True):
        error = image if isinstance(image, str) else ""
        added.append({"number": len(found.pictures), "picture": name, "error": error or None})
        found.pictures.append(name)
        found.errors.append(error)
        if not isinstance(image, str):
            found.features.append(image)
    state.sessions.make_room(session)
    state.measures.images.labels(served.name, "album").inc(len(added))
    return answer({"n": len(found.pictures), "added": added})


@router.post("/{album}/names", responses=documented(404, 409), operation_id="name_album")
async def names(request: Request, album: _Album, wanted: NamesRequest) -> Response:
    """Name the pictures of an album, one by one or together (transductive)."""
    state = state_of(request)
    session, found = _album(request, album)
    served = served_model(request, found.model)
    options = Options(model=found.model, classes=wanted.classes, top=wanted.top)
    _, asked = question(served, session, options)
    labels = {}
    for number, label in wanted.labels.items():
        if int(number) >= len(found.pictures) or found.errors[int(number)]:
            raise ProblemError(
                400,
                (f"The album has no picture {number} that could be read, so it can have no label."),
            )
        one = known_class(served, session, label)
        labels[int(number)] = label if isinstance(one, Invented) else one
    given = (asked, found.features, found.pictures, found.errors, labels)

    def name() -> Any:
        with asking():
            if wanted.together:
                return named_together(*given, wanted.expected_share)
            return named_one_by_one(*given)

    answers = await state.work.run(name)
    found.answers = answers
    writer = Writer(served, session)
    told = [
        {**writer.answer(one, one.picture), "number": number} for number, one in enumerate(answers)
    ]
    return answer(
        {
            "among": among(wanted.classes, asked),
            "together": wanted.together,
            "n_changed": getattr(answers, "n_changed", 0),
            "answers": told,
        }
    )


@router.get(
    "/{album}/answers.csv",
    responses={
        **documented(404, 409),
        200: {"content": {"text/csv": {"schema": {"type": "string"}}}, "description": "A table."},
    },
    response_class=Response,
    operation_id="album_table",
)
async def table(request: Request, album: _Album) -> Response:
    """What was answered last, as `latem predict --out answers.csv` writes it."""
    _, found = _album(request, album)
    if found.answers is None:
        raise ProblemError(409, "The album has not been named yet; name it first.")
    headers = {"Content-Disposition": 'attachment; filename="answers.csv"'}
    return Response(found.answers.to_csv(), 200, headers, "text/csv")


@router.delete("/{album}", status_code=204, responses=documented(404), operation_id="delete_album")
async def delete(request: Request, album: _Album) -> Response:
    """Forget an album."""
    session, _ = _album(request, album)
    del session.albums[album]
    return Response(status_code=204)
