"""The application, put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from latem.core.version import __version__
from latem.features.pictures import quiet_pillow
from latem.server.guard import Guard, Keeper
from latem.server.measures import Measures
from latem.server.naming import State
from latem.server.problems import Problem, add_handlers
from latem.server.routes import albums, classes, explore, predict, service, v2
from latem.server.schemas import PredictRequest
from latem.server.settings import Settings
from latem.server.shelf import Shelf, Source

STATIC = Path(__file__).parent / "static"


def create_app(
    models: dict[str, Any], source: Source | None = None, settings: Settings | None = None
) -> FastAPI:
    """The server as an ASGI application.

    Parameters
    ----------
    models : dict of name to path of a model file, or to a fitted model
        The first is the one that is asked unless a request names another.
    source : Source, optional
        Dataset and pictures to look at the models with.
    settings : Settings, optional

    Returns
    -------
    FastAPI
    """
    settings = Settings() if settings is None else settings
    measures = Measures()

    def noted(name: str, result: str, version: int) -> None:
        measures.reloads.labels(name, result).inc()
        measures.version.labels(name).set(version)

    shelf = Shelf(models, Source() if source is None else source, noted)
    state = State.of(settings, shelf, measures)
    measuring = ThreadPoolExecutor(1, thread_name_prefix="latem-serve-slow")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        watching = None
        if settings.watch_seconds:
            watching = asyncio.create_task(shelf.watch(settings.watch_seconds))
        for name in shelf.names:
            measuring.submit(shelf.get(name).warm_up)
        with quiet_pillow():
            yield
        if watching is not None:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        state.work.close()
        measuring.shutdown(cancel_futures=True)

    app = FastAPI(
        title="latem",
        version=__version__,
        summary="Name classes you have no pictures of.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.latem = state
    app.state.measuring = measuring
    app.state.keeper = Keeper(settings.token)
    add_handlers(app)
    for part in (predict, classes, explore, albums, v2, service):
        app.include_router(part.router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    _describe(app)
    app.add_middleware(
        Guard,
        settings=settings,
        keeper=app.state.keeper,
        sessions=state.sessions,
        measures=measures,
    )
    return app


def _describe(app: FastAPI) -> None:
    """Add to the OpenAPI document what routes refer to by hand."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        document = made()
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for model in (Problem, PredictRequest, v2.InferRequest):
            found = model.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas.update(found.pop("$defs", {}))
            schemas[model.__name__] = found
        return document

    app.openapi = openapi  # type: ignore[method-assign]
