"""Database connections of the threads that run handlers."""

from __future__ import annotations

import threading
from typing import Any

from django.db import close_old_connections
from django.db.backends.signals import connection_created

_users: set[int] = set()  # threads that ever opened one: to ask Django for each job would cost more than a small job


def watch() -> None:
    connection_created.connect(_note, dispatch_uid="machines.worker")


def tidy() -> None:
    """As Django does around each request: what is broken or too old is closed."""
    if threading.get_ident() in _users:
        close_old_connections()


def _note(**_: Any) -> None:
    _users.add(threading.get_ident())
