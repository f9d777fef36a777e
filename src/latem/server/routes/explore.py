"""The dataset beside the model: its images and pictures, galleries, and how good the model is."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from latem.report.pictures import small_picture
from latem.server.naming import asking
from latem.server.problems import ProblemError, documented
from latem.server.routes.shared import ModelName, answer, served_model, state_of
from latem.server.schemas import Among

router = APIRouter(prefix="/api", tags=["dataset"])
_SIZES = Literal["160", "320", "640"]
_DAY = "private, max-age=86400"


@router.get("/images", responses=documented(404), operation_id="images")
async def images(
    request: Request,
    model: ModelName = None,
    among: Among = "unseen",
    name: Annotated[str | None, Query(max_length=300, description="Of this class only.")] = None,
    offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 60,
) -> Response:
    """Images of the dataset, some at a time."""
    served = served_model(request, model)
    wanted = None if name is None else served.cards.get(name, {"name": name})["name"]
    rows = served.explorer.rows(among, wanted)
    shown = [served.explorer.image(row) for row in rows[offset : offset + limit].tolist()]
    return answer({"n": len(rows), "images": shown})


@router.get(
    "/pictures/{row}",
    responses={
        **documented(404),
        200: {
            "content": {"image/jpeg": {"schema": {"type": "string", "format": "binary"}}},
            "description": "A JPEG file.",
        },
    },
    response_class=Response,
    operation_id="picture",
)
async def picture(
    request: Request,
    row: Annotated[int, Path(ge=0, le=2**53)],
    size: Annotated[_SIZES, Query(description="Pixels of the longer side, at most.")] = "320",
) -> Response:
    """The picture of an image of the dataset, made small."""
    state = state_of(request)
    explorer = state.shelf.get().explorer
    n = 0 if explorer.dataset is None else len(explorer.dataset.features)
    path = None
    if explorer.pictures is not None and row < n:
        path = explorer.pictures.path(row)
    if path is None:
        raise ProblemError(404, f"There is no picture of row {row}.")
    content = await state.work.run(small_picture, path, int(size))
    if content is None:
        raise ProblemError(404, f"The picture of row {row} cannot be read.")
    return Response(content, 200, {"Cache-Control": _DAY}, "image/jpeg")


@router.get("/gallery", responses=documented(404, 409), operation_id="gallery")
async def gallery(
    request: Request,
    model: ModelName = None,
    by: Literal["class", "trait", "map"] = "class",
    n: Annotated[int, Query(ge=1, le=50)] = 8,
) -> Response:
    """What the model has learned: the images that fit a class, a trait or a map best."""
    served = served_model(request, model)
    try:
        with asking():
            found = await state_of(request).work.run(served.explorer.gallery, by, n)
    except ProblemError as error:
        if error.status == 400:
            raise ProblemError(409, error.detail) from None
        raise
    return answer(found)


@router.get("/scores", responses=documented(404), operation_id="scores")
async def scores(request: Request, model: ModelName = None) -> Response:
    """How good the model is on the unseen classes of the dataset; measured once, when asked."""
    served = served_model(request, model)
    if served.scores is None:
        served.scores = {"status": "computing", "why": "", "result": None}
        request.app.state.measuring.submit(served.measure)
    return answer(served.scores)
