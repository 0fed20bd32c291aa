"""Do once in a process what each connection and each client of a test would do again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import redis.utils
from django.conf import settings

from dashboard.serving.event_loop_views import StaticFiles

_scans: dict[tuple[Any, ...], tuple[dict[str, Any], dict[str, Any]]] = {}


def share() -> None:
    """Share the version of redis-py, which it reads for each connection, and the scan of static files, which the
    middleware of each client makes."""
    redis.utils.get_lib_version = functools.cache(redis.utils.get_lib_version)
    for name in ("add_files", "add_files_from_finders"):
        setattr(StaticFiles, name, _scan_once(getattr(StaticFiles, name)))


def _scan_once(scan: Callable[..., None]) -> Callable[..., None]:
    """``scan`` for the first middleware with these folders; a file that changes later is scanned by itself."""

    @functools.wraps(scan)
    def scanned(files: StaticFiles, *given: Any, **named: Any) -> None:
        folders = (*map(str, settings.STATICFILES_DIRS), str(settings.STATIC_ROOT), *settings.STATICFILES_FINDERS)
        asked = (scan.__name__, folders, settings.STATIC_URL, files.autorefresh, *map(str, given), str(named))
        if asked not in _scans:
            scan(files, *given, **named)
            _scans[asked] = (dict(files.files), dict(files._scanned))
        found, stamps = _scans[asked]
        files.files.update(found)
        files._scanned.update(stamps)

    return scanned
