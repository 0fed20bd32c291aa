"""Who changes a row: a program says it, the method's own arguments do, or the request that is served."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from machines.audit.request_context import current_request
from machines.engine import limits

_acting: ContextVar[tuple[Any, str]] = ContextVar("attached_actor", default=(None, ""))
ARGUMENTS = ("by", "user")
LOGGED = "__django_fsm_log_attr_"
"""Where django-fsm-log keeps ``by`` and ``description`` on a row while a transition runs."""


@contextmanager
def acting_as(user: Any, reason: str = "") -> Iterator[None]:
    """Name a user, or a program, for the transitions of a block, and a reason for those that give none."""
    outer = _acting.set((user, reason))
    try:
        yield
    finally:
        _acting.reset(outer)


def find_actor(row: Any, arguments: Mapping[str, Any]) -> str:
    """Return the name of who makes a transition; "" where nobody said it."""
    given = [arguments.get(name) for name in ARGUMENTS]
    request = current_request.get()
    for user in (*given, getattr(row, LOGGED + "by", None), _acting.get()[0], getattr(request, "user", None)):
        if name := _name(user):
            return name[: limits.MAX_ACTOR]
    return ""


def find_reason(row: Any, arguments: Mapping[str, Any]) -> str:
    given = arguments.get("description") or getattr(row, LOGGED + "description", None) or _acting.get()[1]
    return given[: limits.MAX_REASON] if isinstance(given, str) else ""


def _name(user: Any) -> str:
    if isinstance(user, str):
        return user
    if user is None or not getattr(user, "is_authenticated", False):
        return ""
    return str(user.get_username())
