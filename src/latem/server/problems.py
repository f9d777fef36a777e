"""Errors as RFC 9457 problem details, with a whole sentence that can be shown to a person.

The same object has the member `error` of the Open Inference Protocol, so that its clients show the
sentence, too.
"""

from __future__ import annotations

import http
import re
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

from latem.core.messages import shortened

_ALTERNATIVE = re.compile(r"literal\[.*|list\[.*|constrained-str|float|str")
_UNREAD = "There was an error parsing the body"  # as FastAPI says it
_LONGEST_NUMBER = 128  # bits of a number that is told; Python refuses to write much longer ones
MEDIA_TYPE = "application/problem+json"
JSON = "application/json"
NO_OBJECT = "The body must be an object in JSON."


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


def media_type(request: Request) -> str:
    """Kind of a request's body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def wrong_type(request: Request, allowed: str) -> ProblemError:
    """The problem with a body of another kind than is allowed."""
    given = shortened(media_type(request)) or "one without a Content-Type"
    return ProblemError(415, f"The body must be {allowed}, not {given}.")


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
    found: dict[str, list[str]] = {}
    given: dict[str, str] = {}
    for one in error.errors()[:6]:
        place = ".".join(_place(one["loc"])) or "the body"
        found.setdefault(place, []).append(one["msg"])
        if one["type"] not in ("missing", "extra_forbidden"):
            given.setdefault(place, _given(one["input"]))
    parts = [
        f"{place}: {', or: '.join(told)}{given.get(place, '')}" for place, told in found.items()
    ]
    return "; ".join(parts[:3]) + "."


def _place(parts: tuple[int | str, ...]) -> list[str]:
    """Where a field is, without the names that pydantic gives to alternatives."""
    names = [str(part) for part in parts if part not in ("body", "query", "path")]
    return [name for i, name in enumerate(names) if not (i and _ALTERNATIVE.fullmatch(name))]


def _given(value: Any) -> str:
    """The rest of a sentence that tells a value, if it is short."""
    plain = value is None or isinstance(value, str | float)
    plain |= isinstance(value, int) and value.bit_length() <= _LONGEST_NUMBER
    return f", not {shortened(repr(value))}" if plain else ""


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
        if error.status_code == 405:
            detail = (
                f"{request.method} cannot be done at this address; see /api/openapi.json for what "
                f"can."
            )
        if error.status_code == 400 and detail == _UNREAD:
            detail = "The body is not JSON in UTF-8, or is nested too deeply."
        return problem_response(error.status_code, detail, error.headers)

    @app.exception_handler(RequestValidationError)
    async def _fields(request: Request, error: RequestValidationError) -> Response:
        if any(one["loc"] == ("body",) for one in error.errors()):  # not its fields: all of it
            if media_type(request) != JSON:
                wrong = wrong_type(request, JSON)
                return problem_response(wrong.status, wrong.detail)
            return problem_response(422, NO_OBJECT)
        return problem_response(422, sentence(error))

    @app.exception_handler(ValidationError)
    async def _model(request: Request, error: ValidationError) -> Response:
        return problem_response(422, sentence(error))
