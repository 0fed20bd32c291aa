"""Closes database connections of handler threads, and of the thread that queries for coroutines."""

from __future__ import annotations

import threading
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.db import connections as all_connections
from django.db.backends.signals import connection_created

_users: set[int] = set()  # threads that ever opened one: to ask Django for each job would cost more than a small job


def watch() -> None:
    connection_created.connect(_note, dispatch_uid="machines.worker")


def tidy() -> None:
    """As Django does around each request: what is broken or too old is closed."""
    if threading.get_ident() in _users:
        close_old_connections()


def used() -> bool:
    """Whether any handler ever opened one."""
    return bool(_users)


async def tidy_for_coroutines(alone: bool) -> None:
    """The same in the thread that all coroutines share for their queries. ``alone``: none is at work, so nobody is in
    the middle of reading from one that has merely become old."""
    await sync_to_async(tidy if alone else _drop_broken)()


def _drop_broken() -> None:
    for connection in all_connections.all(initialized_only=True):
        if connection.errors_occurred and not connection.in_atomic_block:
            if connection.is_usable():
                connection.errors_occurred = False
            else:
                connection.close()


def _note(**_: Any) -> None:
    _users.add(threading.get_ident())
