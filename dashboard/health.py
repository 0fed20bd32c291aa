"""``/healthz``: is this process able to serve? For load balancers and monitors; no login, no details."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from machines.connections import get_engine
from machines.engine.errors import SignalboxError

log = logging.getLogger(__name__)


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    parts = {"redis": _state(_redis), "database": _state(_database)}
    healthy = all(state == "ok" for state in parts.values())
    return JsonResponse({"status": "ok" if healthy else "down", **parts}, status=200 if healthy else 503)


def _state(probe: Callable[[], None]) -> str:
    """``ok`` or a stable code: the text of an error may name hosts, and this page is public."""
    try:
        probe()
    except SignalboxError as error:
        log.warning("healthz: %s", error)
        return error.code
    except DatabaseError as error:
        log.warning("healthz: %s", error)
        return "down"
    return "ok"


def _redis() -> None:
    get_engine().ping()


def _database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
