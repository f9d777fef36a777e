"""The server itself: what it is, signing in, the page, and what it has counted."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from latem.core.slim import needed
from latem.core.version import __version__
from latem.server.measures import MEDIA_TYPE
from latem.server.problems import ProblemError, documented
from latem.server.routes.shared import answer, own_session, session_of, state_of
from latem.server.schemas import SignIn

router = APIRouter(tags=["server"])
TEMPLATES = Path(__file__).parent.parent / "templates"


@router.get("/api/about", operation_id="about", responses=documented())
async def about(request: Request) -> Response:
    """What is served, and how much may be asked at a time."""
    state = state_of(request)
    inside = request.app.state.keeper.may_enter(request.headers, session_of(request))
    limits = state.settings.limits
    content: dict[str, Any] = {
        "version": __version__,
        "models": [],
        "dataset": None,
        "limits": {
            "upload_bytes": limits.upload_bytes,
            "pictures_per_request": limits.pictures,
            "album_pictures": limits.album_pictures,
        },
        "token_needed": state.settings.token is not None,
        "signed_in": inside,
        "may_write": state.settings.classes_file is not None,
    }
    if inside:
        first = state.shelf.get()
        content["models"] = await state.work.run(
            lambda: [state.shelf.get(name).facts for name in state.shelf.names]
        )
        content["dataset"] = await state.work.run(lambda: first.explorer.about)
    return answer(content)


@router.post("/api/session", status_code=204, operation_id="sign_in", responses=documented())
async def sign_in(request: Request, given: SignIn) -> Response:
    """Show the token once; the session then remembers it."""
    if state_of(request).settings.token is None:
        return Response(status_code=204)
    if not request.app.state.keeper.is_token(given.token):
        raise ProblemError(401, "This is not the token.", {"WWW-Authenticate": "Bearer"})
    own_session(request).signed_in = True
    return Response(status_code=204)


@router.get("/metrics", operation_id="metrics", response_class=Response, responses={
    **documented(),
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Counters."},
})  # fmt: skip
async def metrics(request: Request) -> Response:
    """Counters for Prometheus."""
    state = state_of(request)
    state.measures.sessions.set(len(state.sessions))
    state.measures.session_bytes.set(state.sessions.n_bytes)
    state.measures.waiting.set(state.work.n_open)
    return Response(state.measures.text(), headers={"Content-Type": MEDIA_TYPE})


@router.get("/", include_in_schema=False)
async def page(request: Request) -> Response:
    """The explorer."""
    return HTMLResponse(_page(), headers={"Cache-Control": "no-cache"})


@cache
def _page() -> str:
    jinja2 = needed("jinja2", "Pages")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("explorer.html.j2").render(version=__version__)
