"""Closes database connections of handler threads, and of the thread that queries for coroutines.

Without Django, and where Django has no settings, there are none, and every function here does nothing.
"""

import sys
import threading
from typing import Any

_users: set[int] = set()  # threads that ever opened one: to ask Django for each job would cost more than a small job


def watch() -> None:
    """Begin to note which threads open a connection."""
    if not _has_django():
        return
    from django.db.backends.signals import connection_created

    connection_created.connect(_note, dispatch_uid="machines.worker")


def tidy() -> None:
    """Close connections that are broken or too old, as Django does around each request."""
    if threading.get_ident() in _users:
        from django.db import close_old_connections

        close_old_connections()


def was_used() -> bool:
    """Tell whether any handler ever opened one."""
    return bool(_users)


async def tidy_for_coroutines(alone: bool) -> None:
    """Close connections in the thread that all coroutines share for their queries. ``alone``: none is at work, so
    nobody is in the middle of reading from one that has merely become old."""
    from asgiref.sync import sync_to_async

    await sync_to_async(tidy if alone else _drop_broken)()


def _drop_broken() -> None:
    from django.db import connections

    for connection in connections.all(initialized_only=True):
        if connection.errors_occurred and not connection.in_atomic_block:
            if connection.is_usable():
                connection.errors_occurred = False
            else:
                connection.close()


def _has_django() -> bool:
    """Tell whether this process has loaded Django's settings. Handlers cannot use the database before."""
    module = sys.modules.get("django.conf")
    return module is not None and module.settings.configured


def _note(**_: Any) -> None:
    _users.add(threading.get_ident())
