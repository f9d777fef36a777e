"""Errors as RFC 9457 problem details, with a whole sentence that can be shown to a person.

The same object has the member `error` of the Open Inference Protocol, so that its clients show the
sentence, too.
"""

from __future__ import annotations

import http
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = Field(description="A sentence that says what to do.")
    error: str = Field(description="The same, for clients of the Open Inference Protocol.")


class ProblemError(Exception):
    """A request cannot be answered.

    Parameters
    ----------
    status : int
    detail : str
    headers : mapping, optional
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None):
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


class Busy(ProblemError):
    """More is asked than can be done now."""

    def __init__(self, detail: str = "The server has too much to do; try again in a moment."):
        super().__init__(503, detail, {"Retry-After": "1"})


def problem_response(
    status: int, detail: str, headers: Mapping[str, str] | None = None
) -> Response:
    """The answer to a request that cannot be done."""
    title = http.HTTPStatus(status).phrase
    found = Problem(title=title, status=status, detail=detail, error=detail)
    return Response(to_json(found), status, dict(headers or {}), MEDIA_TYPE)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Problems that a route may answer with, for its OpenAPI description."""
    usual = (400, 401, 403, 408, 413, 415, 422, 500, 503)
    return {
        status: {
            "description": http.HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in sorted({*usual, *statuses})
    }


def sentence(error: ValidationError | RequestValidationError) -> str:
    """What is wrong with a request's fields, in one sentence."""
    parts = []
    for one in error.errors()[:3]:
        place = ".".join(str(part) for part in one["loc"] if part not in ("body", "query", "path"))
        parts.append(f"{place or 'the body'}: {one['msg']}")
    return "; ".join(parts) + "."


def add_handlers(app: FastAPI) -> None:
    """Let every error of an application become a problem."""

    @app.exception_handler(ProblemError)
    async def _problem(request: Request, error: ProblemError) -> Response:
        return problem_response(error.status, error.detail, error.headers)

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        detail = str(error.detail)
        if error.status_code == 404 and detail == http.HTTPStatus(404).phrase:
            detail = "There is nothing at this address; see /api/openapi.json for what there is."
        return problem_response(error.status_code, detail, error.headers)

    @app.exception_handler(RequestValidationError)
    async def _fields(request: Request, error: RequestValidationError) -> Response:
        return problem_response(422, sentence(error))

    @app.exception_handler(ValidationError)
    async def _model(request: Request, error: ValidationError) -> Response:
        return problem_response(422, sentence(error))
