"""For load balancers, orchestrators and monitors: no login, and no details in the answer.

``/healthz``  is this process alive, and do Redis and the database answer it? Restart it when it does not answer at all.
``/readyz``   can it serve now? Send it no visitors on a 503: a dependency is away, its migrations are not applied, the
              functions library cannot be loaded, the live view has lost Redis, or it was told to stop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.live import hub
from dashboard.serving import leaving
from machines.connections import get_engine
from machines.engine.errors import SignalboxError

log = logging.getLogger(__name__)
DOWN = "down"

_migrated = False  # what was applied once stays so for as long as this code runs


class NotReady(Exception):
    """``str()`` is what the answer says of the part."""


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    return _answer({"redis": _redis, "database": _database}, "ok", request)


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    parts = {
        "redis": _redis, "database": _database, "migrations": _migrations, "library": _library, "live": _live,
        "process": _staying,
    }  # fmt: skip
    return _answer(parts, "ready", request)


def _answer(parts: Mapping[str, Callable[[], None]], well: str, request: HttpRequest) -> JsonResponse:
    states = {name: _state(probe, request.path) for name, probe in parts.items()}
    good = all(state == "ok" for state in states.values())
    return JsonResponse({"status": well if good else DOWN, **states}, status=200 if good else 503)


def _state(probe: Callable[[], None], path: str) -> str:
    """``ok`` or a stable word: the text of an error may name hosts, and this page is public."""
    try:
        probe()
    except SignalboxError as error:
        log.warning("%s: %s", path, error)
        return error.code
    except DatabaseError as error:
        log.warning("%s: %s", path, error)
        return DOWN
    except NotReady as state:
        return str(state)
    return "ok"


def _redis() -> None:
    get_engine().ping()


def _database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _migrations() -> None:
    global _migrated
    if _migrated:
        return
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise NotReady("pending")
    _migrated = True


def _library() -> None:
    get_engine().require_library()


def _live() -> None:
    if not hub.well():
        raise NotReady("stale")


def _staying() -> None:
    if leaving.is_set():
        raise NotReady("stopping")
