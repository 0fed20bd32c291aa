"""Orders of a shop as a web service: FastAPI with AsyncEngine.

    pip install signalbox fastapi uvicorn
    uvicorn --app-dir examples/fastapi app:app

REDIS_URL and SIGNALBOX_PREFIX name the server and the keys; any Signalbox dashboard on them shows the orders.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, Depends, FastAPI, Header, Request, Response
from fastapi.responses import JSONResponse

from machines.engine import AsyncEngine, errors

MACHINE = "order"
DEFINITION = json.loads(Path(__file__).with_name("order.json").read_text(encoding="utf-8"))
STATUSES: tuple[tuple[type[errors.SignalboxError], int], ...] = (
    (errors.LookupFailed, 404),
    (errors.NotAllowed, 403),
    (errors.NeedsApproval, 403),
    (errors.InstanceExists, 409),
    (errors.Conflict, 409),
    (errors.Suspended, 409),
    (errors.Refused, 422),
    (errors.BadInput, 422),
    (errors.EngineUnavailable, 503),
)
"""The status of an answer to each error; 500 for all others."""


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Hold one engine for the life of the application, and publish the machine: the same content is the same
    version."""
    url = os.environ.get("REDIS_URL", "redis://localhost")
    async with AsyncEngine.from_url(url, prefix=os.environ.get("SIGNALBOX_PREFIX", "sb:")) as engine:
        await engine.publish(DEFINITION)
        app.state.engine = engine
        yield


app = FastAPI(title="Orders", lifespan=lifespan)


def get_engine(request: Request) -> AsyncEngine:
    engine: AsyncEngine = request.app.state.engine
    return engine


Engine = Annotated[AsyncEngine, Depends(get_engine)]
Key = Annotated[str | None, Header(alias="Idempotency-Key")]
Revision = Annotated[int | None, Header(alias="If-Match")]


@app.exception_handler(errors.SignalboxError)
async def answer_problem(_: Request, error: errors.SignalboxError) -> Response:
    """Answer an error of the engine as a problem document (RFC 9457) with its code and facts."""
    status = next((status for kind, status in STATUSES if isinstance(error, kind)), 500)
    headers = {"Retry-After": "1"} if status == 503 else {}
    problem = {"type": "about:blank", "title": type(error).__name__, "status": status, "detail": str(error)}
    return JSONResponse(
        problem | error.facts(), status_code=status, headers=headers, media_type="application/problem+json"
    )


@app.post("/orders", status_code=201)
async def create_order(engine: Engine, data: Annotated[dict[str, Any], Body()], key: Key = None) -> dict[str, Any]:
    """Create an order. The same Idempotency-Key again answers the same order."""
    return (await engine.create(MACHINE, data=data, key=key)).as_dict()


@app.get("/orders/{id}")
async def read_order(engine: Engine, id: str) -> dict[str, Any]:
    return (await engine.get(MACHINE, id)).as_dict()


@app.post("/orders/{id}/events/{event}")
async def fire_event(
    engine: Engine,
    id: str,
    event: str,
    payload: Annotated[dict[str, Any] | None, Body()] = None,
    key: Key = None,
    revision: Revision = None,
) -> dict[str, Any]:
    """Fire an event; with If-Match only at this revision of the order."""
    return (await engine.fire(MACHINE, id, event, payload, expect=revision, key=key)).as_dict()


@app.post("/orders/{id}/explain/{event}")
async def explain_event(
    engine: Engine, id: str, event: str, payload: Annotated[dict[str, Any] | None, Body()] = None
) -> dict[str, Any]:
    """Say what an event would do now, and why; nothing changes."""
    return (await engine.explain(MACHINE, id, event, payload)).as_dict()
