"""The current request of a thread or coroutine: its id stands in the audit, in the log and on error pages."""

from contextvars import Context, ContextVar, copy_context
from typing import Any

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Its id (``machines.engine.ids``); "" where no request is behind it, as in a worker."""

given_id: ContextVar[str] = ContextVar("given_id", default="")
"""What its sender calls it. Nobody has to tell the truth there: it is written beside ours, and never in its place."""

current_request: ContextVar[Any] = ContextVar("current_request", default=None)
"""The request itself, a ``django.http.HttpRequest``; None where there is none. Where it has ``acting``, an ``Actor``,
that says more of who sent it than ``user``."""


def run_in_own_context() -> Context:
    """Return this context, on behalf of no request: for a task that outlives the one it was begun by."""
    context = copy_context()
    for kept in (request_id, given_id):
        context.run(kept.set, "")
    context.run(current_request.set, None)
    return context
