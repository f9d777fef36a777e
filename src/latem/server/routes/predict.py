"""Naming images: pictures, rows of the dataset, feature vectors; and why."""

from __future__ import annotations

from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from pydantic_core import from_json
from starlette.responses import Response

from latem.models.answers import Answer
from latem.server.naming import (
    Writer,
    among,
    candidates,
    checked_features,
    encoded,
    explanation,
    known_class,
    named,
    question,
)
from latem.server.problems import JSON, ProblemError, documented, media_type
from latem.server.routes.shared import (
    answer,
    json_body,
    own_session,
    served_model,
    session_of,
    state_of,
    uploads,
)
from latem.server.schemas import (
    ExplainRequest,
    Image,
    NeighboursRequest,
    Options,
    PredictRequest,
    PredictResponse,
)
from latem.server.sessions import Invented
from latem.server.shelf import Served

router = APIRouter(prefix="/api", tags=["images"])
FORM = "multipart/form-data"
_PICTURES = {
    "type": "object",
    "required": ["pictures"],
    "properties": {
        "pictures": {"type": "array", "items": {"type": "string", "format": "binary"}},
        "model": {"type": "string"},
        "classes": {"type": "string", "description": "A group, or a list of names as JSON."},
        "top": {"type": "integer", "minimum": 1, "maximum": 50},
        "explain": {"type": "boolean"},
        "keep": {"type": "boolean"},
        "false_accept_rate": {"type": "number", "minimum": 0, "maximum": 1},
        "seen_penalty": {"type": "number"},
    },
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": {"$ref": "#/components/schemas/PredictRequest"}},
            FORM: {"schema": _PICTURES},
        },
    }
}


@router.post(
    "/predict",
    response_model=PredictResponse,
    responses=documented(404, 409),
    openapi_extra=_BODY,
    operation_id="predict",
)
async def predict(request: Request) -> Response:
    """Name images among the classes of a model, with probabilities and "none of these"."""
    if media_type(request) == FORM:
        return await _pictures(request)
    data = await json_body(request, f"{JSON} or {FORM}")
    features = data.pop("features", None)
    options = PredictRequest.model_validate(data)
    served = served_model(request, options.model)
    limits = state_of(request).settings.limits
    rows = options.rows if options.row is None else [options.row]
    if (features is None) == (rows is None) or (options.row is not None and options.rows):
        raise ProblemError(422, "Give one of row, rows and features.")
    if rows is not None:
        if not rows or len(rows) > limits.rows:
            raise ProblemError(422, f"Give 1 to {limits.rows} rows.")
        X = np.stack([_row(served, row) for row in rows])
        names = [f"row {row}" for row in rows]
    else:
        X = checked_features(served, features, limits.rows)
        names = [f"image {i}" for i in range(len(X))]
    return await _answered(request, served, options, names, list(X), "features")


async def _pictures(request: Request) -> Response:
    state = state_of(request)
    pictures, fields = await uploads(request, state.settings.limits.pictures)
    options = form_options(fields)
    served = served_model(request, options.model)
    X = await encoded(state, served, [content for _, content in pictures])
    return await _answered(request, served, options, [name for name, _ in pictures], X, "pictures")


def form_options(fields: dict[str, str]) -> Options:
    """Options of a form, whose fields are texts."""
    found: dict[str, Any] = dict(fields)
    classes = found.get("classes")
    if classes is not None and classes.lstrip().startswith("["):
        try:
            found["classes"] = from_json(classes)
        except ValueError as error:
            raise ProblemError(422, f"classes is no list in JSON: {error}.") from None
    return Options.model_validate(found)


async def _answered(
    request: Request,
    served: Served,
    options: Options,
    names: list[str],
    images: list[np.ndarray | str],
    kind: str,
) -> Response:
    state = state_of(request)
    limit = state.settings.limits.pictures
    if options.explain and len(images) > limit:
        raise ProblemError(413, f"At most {limit} images can be explained at a time.")
    session = own_session(request) if options.keep else session_of(request)
    key, asked = question(served, session, options)
    X = [one for one in images if not isinstance(one, str)]
    found = iter(await named(state, key, asked, np.stack(X)) if X else ())
    writer = Writer(served, session)
    answers = []
    for name, image in zip(names, images, strict=True):
        if isinstance(image, str):
            answers.append({"picture": name, "error": image})
            continue
        told = writer.answer(next(found), name)
        if options.explain and len(asked.names) > 1 and served.facts["explains"]:
            told["explanation"] = await state.work.run(
                explanation, served, image, asked.classes, asked.penalty
            )
        if options.keep and session is not None:
            session.check_room(image.nbytes)
            told["image"] = session.keep_image(image)
            state.sessions.make_room(session)
        answers.append(told)
    state.measures.images.labels(served.name, kind).inc(len(answers))
    return answer(
        {
            "model": served.name,
            "version": served.version,
            "among": among(options.classes, asked),
            "temperature": getattr(served.model, "temperature_", None),
            "false_accept_rate": asked.rate,
            "answers": answers,
        }
    )


def _row(served: Served, row: int) -> np.ndarray:
    try:
        return served.explorer.features(row)
    except ValueError as error:
        raise ProblemError(400, str(error)) from None


def one_image(request: Request, served: Served, wanted: Image) -> np.ndarray:
    """Features of the image that a request is about."""
    given = [one is not None for one in (wanted.row, wanted.image, wanted.features)]
    if sum(given) != 1:
        raise ProblemError(422, "Give one of row, image and features.")
    if wanted.row is not None:
        return _row(served, wanted.row)
    if wanted.features is not None:
        return checked_features(served, [wanted.features], 1)[0]
    session = session_of(request)
    if session is None:
        raise ProblemError(404, "There is no session, so no picture was kept; send it with keep.")
    found = session.image(str(wanted.image))
    if len(found) != served.model.n_features_in_:
        raise ProblemError(400, "The picture was kept for another model; send it again.")
    return found


@router.post("/explain", responses=documented(404, 409), operation_id="explain")
async def explain(request: Request, wanted: ExplainRequest) -> Response:
    """Why an image is named as it is: what each trait adds to the lead over another class."""
    served = served_model(request, wanted.model)
    session = session_of(request)
    if not served.facts["explains"]:
        raise ProblemError(
            409, f"The answers of {served.facts['kind']} are no sums, so they cannot be explained."
        )
    x = one_image(request, served, wanted)
    options = Options(model=wanted.model, classes=wanted.classes)
    _, asked = question(served, session, options)
    classes, against = asked.classes, None
    if wanted.against is not None:
        found = known_class(served, session, wanted.against)
        against = wanted.against if isinstance(found, Invented) else found
    if wanted.of is not None:
        other = wanted.against
        if other is None:
            best: list[Answer] = await state_of(request).work.run(asked.answers, x[None], [""])
            other = next((str(n) for n in best[0].names if str(n) != wanted.of), None)
        if other is None or other == wanted.of:
            raise ProblemError(400, "An explanation compares two classes; name another one.")
        _, classes = candidates(served, session, [wanted.of, other])
        against = None
    found = await state_of(request).work.run(
        explanation, served, x, classes, asked.penalty, against, wanted.n
    )
    return answer(found)


@router.post("/neighbours", responses=documented(404, 409), operation_id="neighbours")
async def neighbours(request: Request, wanted: NeighboursRequest) -> Response:
    """The training pictures that are most like an image."""
    served = served_model(request, wanted.model)
    x = one_image(request, served, wanted)

    def look() -> list[dict[str, Any]]:
        return served.explorer.neighbours(x, wanted.n, besides=wanted.row)

    found = await state_of(request).work.run(look)
    return answer({"of": "training pictures", "neighbours": found})
