"""Requires a permission for a view that changes something, and audits refusals."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse

from machines.audit.entries import REFUSED, record, source_of
from machines.people.permissions import Forbidden

from .access import View, require

Action = str | Callable[[HttpRequest], str]


def require_audited(
    right: str, action: Action, *, globally: bool | None = None, **columns: str
) -> Callable[[View], View]:
    """Require a right as ``dashboard.shared.access.require`` does, and audit a POST without it as refused.

    ``action``: the action in the audit, or a function that reads it from the request. ``columns``: column of the audit
    -> the argument of the address that belongs there.
    """

    def decorate(view: View) -> View:
        guarded = require(right, globally=globally)(view)

        @wraps(guarded)
        def record_refusals(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            try:
                return guarded(request, *args, **kwargs)
            except Forbidden as error:
                if request.method == "POST":
                    about = {"machine": error.machine} | {column: str(kwargs[name]) for column, name in columns.items()}
                    record_refusal(request, action if isinstance(action, str) else action(request), error, **about)
                raise

        return record_refusals

    return decorate


def record_refusal(request: HttpRequest, action: str, error: Forbidden, **about: str) -> None:
    """Record a refusal in the audit. ``about``: as ``machines.audit.entries.record`` takes it."""
    record(
        request.user, action, reason=request.POST.get("reason", ""), source=source_of(request), outcome=REFUSED,
        detail={"error": error.message, "code": error.code}, **about,
    )  # fmt: skip
