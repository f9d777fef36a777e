"""What routes have in common: the state, the session, bodies, answers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from pydantic_core import from_json, to_json
from python_multipart.exceptions import FormParserError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import Response

from latem.server.naming import State
from latem.server.problems import JSON, NO_OBJECT, ProblemError, media_type, wrong_type
from latem.server.sessions import Session
from latem.server.shelf import Served

ModelName = Annotated[str | None, Query(max_length=300, description="Which model; the first one.")]


def state_of(request: Request) -> State:
    """What the routes share."""
    return request.app.state.latem


def session_of(request: Request) -> Session | None:
    """The client's session, if it has one."""
    return request.scope.get("session")


def own_session(request: Request) -> Session:
    """The client's session; a new one if it has none, which the answer then tells it."""
    session = session_of(request)
    if session is None:
        session = request.scope["session"] = state_of(request).sessions.start()
        request.scope["new_session"] = session
    return session


def served_model(request: Request, name: str | None) -> Served:
    """A model by its name, or the first."""
    return state_of(request).shelf.get(name)


def answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Plain data as JSON."""
    return Response(to_json(content, inf_nan_mode="null"), status, headers, JSON)


async def json_body(request: Request, allowed: str = JSON) -> dict[str, Any]:
    """A request's body, an object in JSON; `allowed` says which kinds of bodies there may be."""
    if media_type(request) != JSON:
        raise wrong_type(request, allowed)
    try:
        found = from_json(await request.body())
    except ValueError as error:
        raise ProblemError(422, f"The body is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise ProblemError(422, NO_OBJECT)
    return found


async def uploads(request: Request, largest: int) -> tuple[list[tuple[str, bytes]], dict[str, str]]:
    """Names and contents of the pictures of a form, and its other fields."""
    limits = state_of(request).settings.limits
    try:
        form = await request.form(
            max_files=largest + 1, max_fields=20, max_part_size=limits.upload_bytes
        )
    except HTTPException as error:  # what Starlette makes of a form that it cannot read
        if error.status_code != 400:
            raise
        if "Too many files" in error.detail:
            raise ProblemError(413, _too_many(largest)) from None
        raise ProblemError(400, f"The form cannot be read: {error.detail}") from None
    except FormParserError as error:  # older versions of Starlette let it through
        raise ProblemError(400, f"The form cannot be read: {error}.") from None
    try:
        pictures: list[tuple[str, bytes]] = []
        fields: dict[str, str] = {}
        for key, value in form.multi_items():
            if key == "pictures" and isinstance(value, UploadFile):
                name = (value.filename or f"picture {len(pictures) + 1}")[:300]
                pictures.append((name, await value.read()))
            elif key == "pictures" or isinstance(value, UploadFile):
                raise ProblemError(422, "Send files in the field pictures, and only there.")
            else:
                fields[key] = value
    finally:
        await form.close()
    if not pictures:
        raise ProblemError(422, "The form has no files in its field pictures.")
    if len(pictures) > largest:
        raise ProblemError(413, _too_many(largest))
    return pictures, fields


def _too_many(largest: int) -> str:
    return f"At most {largest} pictures can be sent at a time."
