"""Classes: those the model knows, and those that are invented in a session."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from latem.core.atomic import atomic_path
from latem.core.messages import first_few
from latem.core.slim import needed
from latem.embeddings.table import ClassEmbeddings
from latem.models.class_view import GROUPS
from latem.report.names import label
from latem.server.naming import asking, known_class
from latem.server.problems import ProblemError, documented
from latem.server.routes.shared import (
    ModelName,
    answer,
    own_session,
    served_model,
    session_of,
    state_of,
)
from latem.server.schemas import DescribedClass, NewClass, RetrieveRequest
from latem.server.sessions import Invented, Session
from latem.server.shelf import Served
from latem.workflows.invent import class_row, describe_class, trait_controls

if TYPE_CHECKING:
    import pandas as pd

router = APIRouter(prefix="/api", tags=["classes"])
_DESCRIPTION = frozenset(("like", "set", "most", "least", "text"))
_Name = Annotated[str, Query(min_length=1, max_length=300)]


@router.get("/classes", responses=documented(404), operation_id="list_classes")
async def list_classes(request: Request, model: ModelName = None) -> Response:
    """Every class that may be named, those invented in this session included."""
    served, session = served_model(request, model), session_of(request)
    invented = {} if session is None else session.classes
    new = [_card(name) for name, one in invented.items() if one.model == served.name]
    return answer({"classes": [*served.cards.values(), *new]})


def _card(name: str) -> dict[str, Any]:
    return {
        **{"name": name, "label": label(name), "symbol": "", "picture": None},
        **{"seen": False, "invented": True, "n_images": 0},
    }


@router.get("/traits", responses=documented(404, 409), operation_id="traits")
async def traits(
    request: Request,
    model: ModelName = None,
    like: Annotated[str | None, Query(max_length=300)] = None,
) -> Response:
    """What can be changed about a class, by families, with the values of one class."""
    served = served_model(request, model)
    _check_describes(served)
    name = None if like is None else _described(served, session_of(request), like)
    with asking():
        return answer({"like": like, "families": trait_controls(served.model, name)})


def _check_describes(served: Served) -> None:
    if not served.facts["describes"]:
        raise ProblemError(409, "This model's class table has no named traits to change.")


def _described(served: Served, session: Session | None, name: str) -> Any:
    """A class of the model's own table by its name."""
    found = known_class(served, session, name)
    if isinstance(found, Invented):
        raise ProblemError(
            400, f"{name!r} was invented here; describe a class by one that the model knows."
        )
    return found


def new_class(
    served: Served, session: Session | None, wanted: DescribedClass, name: str
) -> tuple[ClassEmbeddings, str, Any]:
    """A described class as a table of one row, in words, and as a row for a spreadsheet."""
    changed = wanted.like is not None or wanted.set or wanted.most or wanted.least
    if wanted.text is not None:
        if changed:
            raise ProblemError(422, "Give either text, or like with set, most and least.")
        with asking():
            table = served.words.table(served.model, name, wanted.text)
        return table, f"“{wanted.text.strip()}”", table.to_frame()
    _check_describes(served)
    how: dict[str, Any] = {
        "like": None if wanted.like is None else _described(served, session, wanted.like),
        "changes": wanted.set,
        "most": wanted.most,
        "least": wanted.least,
    }
    with asking():
        table, described = describe_class(served.model, name, **how)
        return table, described, class_row(served.model, name, **how)


@router.post("/classes", status_code=201, responses=documented(404, 409), operation_id="add_class")
async def add_class(request: Request, wanted: NewClass) -> Response:
    """Invent a class for this session; it is written to disk only if that is asked for."""
    state, served = state_of(request), served_model(request, wanted.model)
    session = own_session(request)
    name = wanted.name.strip()
    if not name or not name.isprintable():
        raise ProblemError(422, "A class needs a name that can be printed.")
    if name in GROUPS:
        raise ProblemError(409, f"{name!r} means a group of classes; take another name.")
    if name in served.cards or name in session.classes:
        raise ProblemError(409, f"There is a class {name!r} already; take another name.")
    path = state.settings.classes_file
    if wanted.write and path is None:
        raise ProblemError(
            409, "This server writes no classes to disk; start it with --classes-file FILE."
        )
    table, described, row = await state.work.run(new_class, served, session, wanted, name)
    invented = Invented(table, described, row, served.name)
    session.check_room(invented.n_bytes)
    if len(session.classes) >= state.settings.limits.classes:
        raise ProblemError(
            413,
            (f"This session has {len(session.classes)} classes, as many as it may; delete some."),
        )
    if wanted.write and path is not None:
        await state.work.run(_write, path, row)
    session.classes[name] = invented
    state.sessions.make_room(session)
    content = {**_card(name), "described": described, "written": wanted.write}
    return answer(content, 201, {"Latem-Session": session.name})


_ANOTHER = "; start the server with another --classes-file."


def _write(path: Any, row: pd.DataFrame) -> None:
    """Add a class to the server's file, or replace the one of its name."""
    pd = needed("pandas", "Files of classes")
    with asking():
        if path.is_file():
            try:
                known = pd.read_csv(path, index_col=0, dtype=object, keep_default_na=False)
            except ValueError:  # of pandas, or of the encoding
                raise ProblemError(409, f"{path.name} is no table of classes{_ANOTHER}") from None
            if list(known.columns) != list(row.columns):
                raise ProblemError(
                    409, f"{path.name} has other columns than this model's classes{_ANOTHER}"
                )
            row = pd.concat([known.drop(index=row.index, errors="ignore"), row])
        with atomic_path(path) as temporary:
            row.to_csv(temporary, index_label="class")


@router.delete("/classes", status_code=204, responses=documented(404), operation_id="delete_class")
async def delete_class(request: Request, name: _Name, model: ModelName = None) -> Response:
    """Forget a class that was invented in this session."""
    served_model(request, model)
    session = session_of(request)
    if session is None or session.classes.pop(name, None) is None:
        raise ProblemError(404, f"This session has invented no class {name!r}.")
    return Response(status_code=204)


@router.get(
    "/classes/table",
    responses={
        **documented(404),
        200: {"content": {"text/csv": {"schema": {"type": "string"}}}, "description": "A table."},
    },
    response_class=Response,
    operation_id="classes_table",
)
async def classes_table(
    request: Request,
    name: Annotated[list[str] | None, Query(max_length=1000)] = None,
    model: ModelName = None,
) -> Response:
    """Classes that were invented in this session, as `latem predict --classes` reads them."""
    served, session = served_model(request, model), session_of(request)
    own = {} if session is None else session.classes
    known = {key: one for key, one in own.items() if one.model == served.name}
    missing = [one for one in name or () if one not in known]
    if missing or not known:
        which = first_few(missing) if missing else "any class"
        raise ProblemError(404, f"This session has not invented {which} for model {served.name!r}.")
    rows = [known[one].row for one in dict.fromkeys(name or known)]
    pd = needed("pandas", "Files of classes")
    text = io.StringIO()
    pd.concat(rows).to_csv(text, index_label="class", lineterminator="\n")
    headers = {"Content-Disposition": 'attachment; filename="classes.csv"'}
    return Response(text.getvalue(), 200, headers, "text/csv")


@router.post("/retrieve", responses=documented(404, 409), operation_id="retrieve")
async def retrieve(request: Request, wanted: RetrieveRequest) -> Response:
    """The pictures of the dataset that fit a class best, which may just have been described."""
    state, served = state_of(request), served_model(request, wanted.model)
    session = session_of(request)
    if wanted.name is not None and (
        wanted.model_fields_set & {"like", "set", "most", "least", "text"}
    ):
        raise ProblemError(422, "Give either class, or a description.")

    def look() -> tuple[str, list[dict[str, Any]]]:
        if wanted.name is not None:
            found = known_class(served, session, wanted.name)
            new = isinstance(found, Invented)
            described = found.described if new else str(found)
            thing = found.table if new else found
        else:
            thing, described, _ = new_class(served, session, wanted, "new class")
        with asking():
            return described, served.explorer.find(thing, wanted.k, wanted.among)

    described, images = await state.work.run(look)
    n = len(served.explorer.rows(wanted.among))
    return answer({"n": n, "described": described, "images": images})
