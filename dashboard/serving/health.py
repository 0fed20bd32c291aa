"""Health checks for load balancers, orchestrators and monitors. They need no login and show no details.

``/healthz``  is this process alive, and do Redis and the database answer it? Restart it when it does not answer at all.
``/readyz``   can it serve now? Send it no visitors on a 503: a dependency is away, its migrations are not applied, the
              functions library cannot be loaded, the live view has lost Redis, or it was told to stop.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from django.db import DatabaseError, close_old_connections, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.live.hub import hub
from machines.connections import get_engine
from machines.engine.errors import SignalboxError

from . import shutdown

log = logging.getLogger(__name__)
DOWN = "down"

_migrated = False  # what was applied once stays so for as long as this code runs


class NotReady(Exception):
    """``str()`` is what the answer says of the part."""


@never_cache
@require_safe
async def healthz(request: HttpRequest) -> JsonResponse:
    """Answered on the event loop: it tells that this process is alive also while all of its threads are busy."""
    return _answered(await _looks.states(), "ok")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    parts = {
        "redis": _redis, "database": _database, "migrations": _migrations, "library": _library, "live": _live,
        "process": _staying,
    }  # fmt: skip
    return _answer(parts, "ready", request)


def _answer(parts: Mapping[str, Callable[[], None]], well: str, request: HttpRequest) -> JsonResponse:
    return _answered({name: _state(probe, request.path) for name, probe in parts.items()}, well)


def _answered(states: Mapping[str, str], well: str) -> JsonResponse:
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
    if shutdown.is_set():
        raise NotReady("stopping")


class HealthChecks:
    """Checks Redis and the database in one thread; concurrent requests share the answer.

    Nobody waits longer than ``PATIENCE`` for it while the last one is not older than ``FRESH``. Both in seconds.
    """

    PATIENCE, FRESH = 0.05, 2.0

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="health")
        self._lock = threading.Lock()
        self._under_way: Future[dict[str, str]] | None = None
        self._last: tuple[float, dict[str, str]] = (0.0, {})

    async def states(self) -> dict[str, str]:
        at, last = self._last
        look = asyncio.wrap_future(self._begun())
        spare = last and time.monotonic() - at < self.FRESH
        done, _ = await asyncio.wait([look], timeout=self.PATIENCE if spare else None)
        return look.result() if done else last

    def _begun(self) -> Future[dict[str, str]]:
        with self._lock:
            if self._under_way is None or self._under_way.done():
                self._under_way = self._thread.submit(self._look)
            return self._under_way

    def _look(self) -> dict[str, str]:
        close_old_connections()
        try:
            states = {"redis": _state(_redis, "/healthz"), "database": _state(_database, "/healthz")}
        finally:
            close_old_connections()
        self._last = (time.monotonic(), states)
        return states


_looks = HealthChecks()
