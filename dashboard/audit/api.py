"""The audit: who did what, with which outcome."""

from typing import Any

from django.http import HttpRequest
from ninja import Query
from pydantic import ConfigDict, Field

from dashboard.api.framework import request_terms
from dashboard.api.framework.operation import Group, actor_of
from dashboard.api.framework.schemas import Mistaken, Out, Page
from machines.models import AuditEntry

from . import filter as audit_filter

group = Group("audit", "Who did what, and the result.", right="audit")


class EntryOut(Out.derive(
    AuditEntry, "id at actor action machine instance queue target reason source request outcome"
)):  # fmt: skip
    """request: the X-Request-Id of the answer to the client; empty where none asked
    outcome: done, refused or failed
    """

    detail: dict[str, Any] = Field(validation_alias="facts")


class Terms(request_terms.LongPaging):
    model_config = ConfigDict(extra="forbid")

    actor: str = ""
    action: str = ""
    outcome: str = ""
    machine: str = ""
    instance: str = ""
    queue: str = ""
    target: str = ""
    request: str = Field("", description="id of a request: all that came of it")
    since: str = Field("", description="from then on: 2026-11-21, or 2026-11-21T08:30, in UTC")
    until: str = Field("", description="before then")


@group.get("/audit", answers=Page[EntryOut])
def list_audit(request: HttpRequest, terms: Query[Terms]) -> dict[str, Any]:
    """List audit entries, newest first.

    List the entries for which all terms hold. An account that may not see every machine gets those of its
    machines.
    """
    asked = audit_filter.AuditFilter(terms.model_dump(exclude={"limit", "cursor"}), actor_of(request).scope("audit"))
    if not asked.is_valid():
        name, texts = next(iter(asked.errors.items()))
        raise Mistaken(f"{name}: {' '.join(texts)}", name)
    entries = asked.entries()
    cursor = request_terms.read_text("audit", terms.cursor)
    rows = list((_find_older(entries, cursor) if cursor else entries)[: terms.limit + 1])
    further = audit_filter.make_cursor(rows[terms.limit - 1]) if len(rows) > terms.limit else None
    return {"items": rows[: terms.limit], "next": request_terms.make_cursor("audit", further)}


def _find_older(entries: Any, cursor: str) -> Any:
    try:
        return audit_filter.older_than(entries, cursor)
    except ValueError:
        raise request_terms.BadCursor from None
