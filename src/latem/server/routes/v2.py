"""The Open Inference Protocol, version 2, as KServe, Triton and their clients speak it.

Inputs: `features` (numbers, images × features) or `pictures` (BYTES, one file each). Outputs:
`names`, `scores` and `probabilities` of the best classes, `verdicts` and `strangeness`. The
request's parameters may have `classes` (a group, or a list of names as JSON) and `top`.
"""

from __future__ import annotations

import zlib
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json, to_json
from starlette.responses import Response

from latem.core.messages import shortened
from latem.core.version import __version__
from latem.models.answering import Asked
from latem.models.answers import Answer
from latem.server.guard import COUNT, byte_count
from latem.server.naming import checked_features, encoded, named, question
from latem.server.problems import NO_OBJECT, ProblemError, documented, media_type, wrong_type
from latem.server.routes.predict import form_options
from latem.server.routes.shared import (
    answer,
    served_model,
    session_of,
    state_of,
)
from latem.server.shelf import Served
from latem.server.tensors import BYTES, read_tensor, written

router = APIRouter(prefix="/v2", tags=["open inference protocol"])
_LENGTH = "inference-header-content-length"
_BINARY = "application/octet-stream"
_Model = Annotated[str, Path(max_length=300)]
_Version = Annotated[str, Path(max_length=20)]
_OPTIONS = ("classes", "top", "false_accept_rate", "seen_penalty")
OUTPUTS = {
    "names": BYTES,
    "scores": "FP32",
    "probabilities": "FP32",
    "verdicts": BYTES,
    "strangeness": "FP32",
}


class Tensor(BaseModel):
    """An input."""

    name: str = Field(max_length=100)
    shape: list[int] = Field(max_length=8)
    datatype: str = Field(max_length=20)
    parameters: dict[str, Any] = Field(default_factory=dict)
    data: list[Any] | None = None


class Wanted(BaseModel):
    """An output that is asked for."""

    name: str = Field(max_length=100)
    parameters: dict[str, Any] = Field(default_factory=dict)


class InferRequest(BaseModel):
    """A request for inference."""

    model_config = ConfigDict(extra="ignore")

    id: str | None = Field(default=None, max_length=1000)
    parameters: dict[str, Any] = Field(default_factory=dict)
    inputs: list[Tensor] = Field(min_length=1, max_length=8)
    outputs: list[Wanted] = Field(default_factory=list, max_length=20)


@router.get("", operation_id="v2_server", responses=documented())
async def server(request: Request) -> Response:
    """What this server is."""
    return answer({"name": "latem", "version": __version__, "extensions": ["binary_tensor_data"]})


@router.get("/health/live", operation_id="v2_live", responses=documented())
async def live(request: Request) -> Response:
    """Whether the server runs."""
    return answer({"live": True})


@router.get("/health/ready", operation_id="v2_ready", responses=documented())
async def ready(request: Request) -> Response:
    """Whether all models can be asked."""
    return answer({"ready": True})


@router.get("/models/{model}", operation_id="v2_model", responses=documented(404))
async def metadata(request: Request, model: _Model) -> Response:
    """What a model takes and gives."""
    return _metadata(_served(request, model))


@router.get(
    "/models/{model}/versions/{version}",
    operation_id="v2_model_version",
    responses=documented(404),
)
async def version_metadata(request: Request, model: _Model, version: _Version) -> Response:
    """What a version of a model takes and gives."""
    return _metadata(_served(request, model, version))


def _metadata(served: Served) -> Response:
    width = int(served.model.n_features_in_)
    inputs = [{"name": "features", "datatype": "FP32", "shape": [-1, width]}]
    if not served.why_no_pictures:
        inputs.append({"name": "pictures", "datatype": BYTES, "shape": [-1]})
    outputs = [
        {"name": name, "datatype": kind, "shape": [-1] if name in _PER_IMAGE else [-1, -1]}
        for name, kind in OUTPUTS.items()
    ]
    return answer(
        {
            "name": served.name,
            "versions": [str(served.version)],
            "platform": f"latem_{served.facts['kind'].lower()}",
            "inputs": inputs,
            "outputs": outputs,
        }
    )


@router.get("/models/{model}/ready", operation_id="v2_model_ready", responses=documented(404))
async def model_ready(request: Request, model: _Model) -> Response:
    """Whether a model can be asked."""
    return answer({"name": _served(request, model).name, "ready": True})


@router.get(
    "/models/{model}/versions/{version}/ready",
    operation_id="v2_version_ready",
    responses=documented(404),
)
async def version_ready(request: Request, model: _Model, version: _Version) -> Response:
    """Whether a version of a model can be asked."""
    return answer({"name": _served(request, model, version).name, "ready": True})


_PER_IMAGE = ("verdicts", "strangeness")
_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/InferRequest"}}},
    }
}


@router.post(
    "/models/{model}/infer",
    operation_id="v2_infer",
    responses=documented(404, 409),
    openapi_extra=_BODY,
)
async def infer(request: Request, model: _Model) -> Response:
    """Name images."""
    return await _infer(request, _served(request, model))


@router.post(
    "/models/{model}/versions/{version}/infer",
    operation_id="v2_version_infer",
    responses=documented(404, 409),
    openapi_extra=_BODY,
)
async def version_infer(request: Request, model: _Model, version: _Version) -> Response:
    """Name images by a version of a model."""
    return await _infer(request, _served(request, model, version))


async def _infer(request: Request, served: Served) -> Response:
    state = state_of(request)
    wanted, tail = await _read(request)
    tensors = _tensors(wanted, tail)
    options = form_options(
        {key: _text(wanted.parameters[key]) for key in _OPTIONS if key in wanted.parameters}
    )
    key, asked = question(served, session_of(request), options)
    X = await _images(request, served, tensors)
    answers = await named(state, key, asked, X)
    state.measures.images.labels(served.name, "v2").inc(len(X))
    return _written(served, wanted, _columns(asked, answers))


def _served(request: Request, model: str, version: str = "") -> Served:
    served = served_model(request, model)
    if version and version != str(served.version):
        raise ProblemError(404, f"Model {model!r} is served in version {served.version}.")
    return served


async def _read(request: Request) -> tuple[InferRequest, bytes]:
    """The JSON part of a request, and the bytes behind it."""
    if media_type(request) not in ("application/json", _BINARY, ""):
        raise wrong_type(request, "application/json, or that with tensors behind")
    body = _plain(await request.body(), request)
    length = request.headers.get(_LENGTH)
    head, tail = body, b""
    if length is not None:
        n = byte_count(length)
        if n is None or n > len(body):
            raise ProblemError(400, "Inference-Header-Content-Length does not fit the body.")
        head, tail = body[:n], body[n:]
    limit = state_of(request).settings.limits.json_bytes
    if len(head) > limit:
        raise ProblemError(413, f"At most {limit} bytes of JSON may be sent at a time.")
    try:
        content = from_json(head)
    except ValueError as error:
        raise ProblemError(422, f"The body is not JSON: {error}.") from None
    if not isinstance(content, dict):
        raise ProblemError(422, NO_OBJECT)
    return InferRequest.model_validate(content), tail


def _plain(body: bytes, request: Request) -> bytes:
    """A body without the compression that clients may use."""
    how = request.headers.get("content-encoding", "identity").lower()
    limit = state_of(request).settings.limits.upload_bytes
    if how == "identity":
        return body
    if how not in ("gzip", "deflate"):
        raise ProblemError(
            415, (f"Content-Encoding must be gzip, deflate or identity, not {shortened(how)!r}.")
        )
    reader = zlib.decompressobj(zlib.MAX_WBITS | 16 if how == "gzip" else zlib.MAX_WBITS)
    try:
        plain = reader.decompress(body, limit + 1)
    except zlib.error:
        raise ProblemError(400, f"The body is not {how}.") from None
    if len(plain) > limit:
        raise ProblemError(413, f"The body holds more than {limit} bytes.")
    if not reader.eof:
        raise ProblemError(400, f"The body is cut short: its {how} has no end.")
    request.scope[COUNT](len(plain))
    return plain


def _tensors(wanted: InferRequest, tail: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    place = 0
    for one in wanted.inputs:
        size = one.parameters.get("binary_data_size")
        raw = None
        if size is not None:
            if isinstance(size, bool) or not isinstance(size, int) or size < 0:
                raise ProblemError(
                    400, f"binary_data_size must be a number of bytes, not {size!r:.40}."
                )
            raw = tail[place : place + size]
            if len(raw) != size:
                left = f"but only {len(raw)} bytes are left"
                raise ProblemError(400, f"Tensor {one.name!r} says it has {size} bytes, {left}.")
            place += size
        if one.name in found:
            raise ProblemError(400, f"Input {one.name!r} is given twice.")
        found[one.name] = read_tensor(one.name, one.datatype, one.shape, one.data, raw)
    if place != len(tail):
        raise ProblemError(400, "There are bytes behind the last tensor.")
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else to_json(value).decode()


async def _images(request: Request, served: Served, tensors: dict[str, Any]) -> np.ndarray:
    state = state_of(request)
    if set(tensors) == {"features"} and isinstance(tensors["features"], np.ndarray):
        X = tensors["features"]
        return checked_features(served, X[None] if X.ndim == 1 else X, state.settings.limits.rows)
    if set(tensors) != {"pictures"} or not isinstance(tensors["pictures"], list):
        raise ProblemError(400, "Give one input: features (numbers) or pictures (BYTES).")
    limit = state.settings.limits.pictures
    n = len(tensors["pictures"])
    if not 1 <= n <= limit:
        raise ProblemError(413 if n else 422, f"Send 1 to {limit} pictures at a time, not {n}.")
    found = await encoded(state, served, tensors["pictures"])
    for number, one in enumerate(found):
        if isinstance(one, str):
            raise ProblemError(400, f"Picture {number} cannot be read: {one}.")
    return np.stack(found)


def _columns(asked: Asked, answers: list[Answer]) -> dict[str, np.ndarray]:
    """Outputs by name; what the model cannot tell is left out."""
    columns: dict[str, Any] = {
        "names": np.array([[str(name) for name in one.names] for one in answers], object),
        "scores": np.array([one.scores for one in answers], np.float32),
    }
    if answers[0].probabilities is not None:
        columns["probabilities"] = np.array([one.probabilities for one in answers], np.float32)
    if asked.rate is not None:
        columns["verdicts"] = np.array([one.verdict for one in answers], object)
        columns["strangeness"] = np.array([one.strangeness for one in answers], np.float32)
    return columns


def _written(served: Served, wanted: InferRequest, columns: dict[str, np.ndarray]) -> Response:
    asked_for = {one.name: one.parameters for one in wanted.outputs}
    odd = [name for name in asked_for if name not in columns]
    if odd:
        raise ProblemError(
            400, f"There is no output {odd[0]!r}; this model gives {', '.join(columns)}."
        )
    all_binary = bool(wanted.parameters.get("binary_data_output", False))
    outputs, tail = [], b""
    for name in asked_for or columns:
        values, kind = columns[name], OUTPUTS[name]
        told: dict[str, Any] = {"name": name, "datatype": kind, "shape": list(values.shape)}
        if asked_for.get(name, {}).get("binary_data", all_binary):
            raw = written(values, kind)
            told["parameters"] = {"binary_data_size": len(raw)}
            tail += raw
        else:
            told["data"] = values.ravel().tolist()
        outputs.append(told)
    content: dict[str, Any] = {"model_name": served.name, "model_version": str(served.version)}
    if wanted.id is not None:
        content["id"] = wanted.id
    head = to_json({**content, "outputs": outputs}, inf_nan_mode="null")
    if not tail:
        return Response(head, media_type="application/json")
    headers = {"Inference-Header-Content-Length": str(len(head))}
    return Response(head + tail, 200, headers, _BINARY)
