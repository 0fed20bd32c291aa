"""Health checks for load balancers, orchestrators and monitors. They need no login and show no details.

``/healthz``  is this process alive, and do Redis and the database answer it? Restart it when it does not answer at all.
``/readyz``   can it serve now? Send it no visitors on a 503: a store that it needs is away, its migrations are not
              applied, the functions library cannot be loaded, the live view has lost Redis, or it is stopping.

A cluster of which some shards answer is ``partial``: the site shows those, so it is alive and ready. ``missing`` then
names the slots of the others. ``run`` is the command that loads the library, where this account may not.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, close_old_connections, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django_redis.exceptions import ConnectionInterrupted

from dashboard.live.hub import hub
from machines.connections import get_engine
from machines.engine import Engine
from machines.engine.connection.client import FAILURES, Client, probe_shards
from machines.engine.connection.library_loader import COMMAND
from machines.engine.connection.server_permissions import find_denial
from machines.engine.errors import EngineFault, EngineUnavailable, LibraryNotLoaded, NotPermitted, SignalboxError

from . import shutdown

log = logging.getLogger(__name__)
OK, DOWN, PARTIAL = "ok", "down", "partial"
ANY_KEY = "signalbox.readyz"  # of the cache; nothing writes it
States = dict[str, Any]

_migrated = False  # what was applied once stays so for as long as this code runs


class NotReady(Exception):
    """``str()`` is what the answer says of the part."""


class Partial(Exception):
    """Some shards of a cluster do not answer. ``missing``: their slots."""

    def __init__(self, missing: list[str]) -> None:
        super().__init__(missing)
        self.missing = missing


@never_cache
@require_safe
async def healthz(request: HttpRequest) -> JsonResponse:
    """Answer on the event loop, which shows that this process is alive even while all of its threads are busy.

    ``?process`` asks for this alone: 200, even while Redis and the database are away. Their outage is no reason to
    restart a process.
    """
    if "process" in request.GET:
        return _make_response({"process": OK}, OK)
    return _make_response(await _looks.states(), OK)


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    parts = {
        "redis": _check_redis, "cache": _check_cache, "sessions": _check_sessions, "database": _check_database,
        "migrations": _check_migrations, "library": _check_library, "live": _check_live, "process": _check_staying,
    }  # fmt: skip
    states: States = {}
    for name, probe in parts.items():
        states |= _find_state(name, probe, request.path)
    return _make_response(states, "ready")


def _make_response(states: States, well: str) -> JsonResponse:
    words = {state for name, state in states.items() if name != "missing"}
    if LibraryNotLoaded.code in words:
        states["run"] = COMMAND
    status = DOWN if words - {OK, PARTIAL} else PARTIAL if PARTIAL in words else well
    return JsonResponse({"status": status, **states}, status=503 if status == DOWN else 200)


def _find_state(name: str, probe: Callable[[], None], path: str) -> States:
    """Return the part with its state, and the ``missing`` slots of the engine's cluster where there are any."""
    try:
        return {name: _find_word(probe, path)}
    except Partial as state:
        log.warning("%s: %s has no answer for the slots %s", path, name, ", ".join(state.missing))
        return {name: PARTIAL} | ({"missing": state.missing} if name == "redis" else {})


def _find_word(probe: Callable[[], None], path: str) -> str:
    """Return ``ok`` or a stable word: the text of an error may name hosts, and this page is public."""
    try:
        probe()
    except SignalboxError as error:
        log.warning("%s: %s", path, error)
        return error.code
    except (DatabaseError, *FAILURES, ConnectionInterrupted) as error:
        denied = find_denial(error)
        log.warning("%s: %s", path, denied or error)
        return denied.code if denied is not None else DOWN
    except NotReady as state:
        return str(state)
    return OK


def _check_redis() -> None:
    engine = get_engine().at_once()
    _look_at(engine.client)
    _require_rights(engine)


def _require_rights(engine: Engine) -> None:
    """Raise NotPermitted where the account lacks a command that a step needs. A library that is missing, or of another
    release, is the part ``library``."""
    try:
        missing = engine.missing_commands()
    except NotPermitted:
        raise
    except EngineFault:
        return
    if missing:
        raise NotPermitted(missing)


def _check_cache() -> None:
    """Ask each shard of a cache on django-redis, and any cache for a key: an account of other keys is refused there."""
    if hasattr(cache, "client"):
        _look_at(cache.client.get_client())
    try:
        cache.get(ANY_KEY)
    except Exception as error:  # of whatever client a project uses
        if (denied := find_denial(error)) is not None:
            raise denied from error
        log.warning("/readyz: %s", error)
        raise NotReady(DOWN) from error


def _check_sessions() -> None:
    """Ask their own store: the cache or the database. Sessions in files and cookies have none."""
    kind = settings.SESSION_ENGINE.rpartition(".")[2]
    if kind in ("db", "cached_db"):
        _check_database()
    elif kind not in ("file", "signed_cookies"):
        _check_cache()


def _look_at(client: Client) -> None:
    """Raise EngineUnavailable where no shard answers, Partial where some do not."""
    found = probe_shards(client)
    missing = [shard.slots for shard in found if not shard.answers]
    if len(missing) == len(found):
        raise EngineUnavailable("Redis does not answer")
    if missing:
        raise Partial(missing)


def _check_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _check_migrations() -> None:
    global _migrated
    if _migrated:
        return
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise NotReady("pending")
    _migrated = True


def _check_library() -> None:
    get_engine().require_library()


def _check_live() -> None:
    if (denied := hub.denial()) is not None:
        raise denied
    if not hub.well():
        raise NotReady("stale")


def _check_staying() -> None:
    if shutdown.is_set():
        raise NotReady("stopping")


class HealthChecks:
    """Checks Redis and the database in one thread; concurrent requests share the answer.

    No request waits longer than ``MAX_WAIT`` for it while the last one is not older than ``FRESH``. Both in seconds.
    """

    MAX_WAIT, FRESH = 0.05, 2.0

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="health")
        self._lock = threading.Lock()
        self._under_way: Future[States] | None = None
        self._last: tuple[float, States] = (0.0, {})

    async def states(self) -> States:
        at, last = self._last
        look = asyncio.wrap_future(self._begin())
        spare = last and time.monotonic() - at < self.FRESH
        done, _ = await asyncio.wait([look], timeout=self.MAX_WAIT if spare else None)
        return look.result() if done else last

    def _begin(self) -> Future[States]:
        with self._lock:
            if self._under_way is None or self._under_way.done():
                self._under_way = self._thread.submit(self._look)
            return self._under_way

    def _look(self) -> States:
        close_old_connections()
        try:
            states = _find_state("redis", _check_redis, "/healthz") | _find_state(
                "database", _check_database, "/healthz"
            )
        finally:
            close_old_connections()
        self._last = (time.monotonic(), states)
        return states


_looks = HealthChecks()
