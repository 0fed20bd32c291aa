"""Reads terms that many operations have: cursors of lists, If-Match, and filters of instances.

A cursor is opaque to clients and valid only for the list that it came from.
"""

import base64
import binascii
import json
import re
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel, ConfigDict, Field

from dashboard.shared.list_pages import cut_page
from dashboard.shared.redacted_engine import RedactedEngine
from dashboard.shared.search import instance_filter
from machines.audit.redaction import redactor_if
from machines.catalog.queries import outline_of
from machines.engine import Instance, UnknownMachine
from machines.models import Draft
from machines.patterns import Session
from machines.people.actor import Actor

MAX_CURSOR = 2000  # characters


class BadCursor(Exception):
    """A cursor that this list did not give."""

    def __init__(self) -> None:
        super().__init__("invalid cursor: use the value of next, or omit it")


def make_cursor(kind: str, place: str | int | None) -> str | None:
    """Return a cursor. ``kind``: the list; ``place``: where its next page begins, None after the last."""
    if place is None:
        return None
    text = json.dumps([kind, place], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_text(kind: str, cursor: str | None) -> str | None:
    """Return the text that a cursor holds, or None if there is no cursor. Raises BadCursor."""
    place = _read_place(kind, cursor)
    if place is not None and not isinstance(place, str):
        raise BadCursor
    return place


def read_number(kind: str, cursor: str | None) -> int | None:
    """Return the number that a cursor holds, or None if there is no cursor. Raises BadCursor."""
    place = _read_place(kind, cursor)
    if place is not None and (not isinstance(place, int) or isinstance(place, bool) or place < 0):
        raise BadCursor
    return place


class Paging(BaseModel):
    """Which page of a list is asked for."""

    limit: int = Field(50, ge=1, le=500)
    cursor: str | None = Field(None, description="`next` of the page before")

    def read_page(self, kind: str, found: QuerySet[Any]) -> dict[str, Any]:
        """Return the page of the rows of a table, newest first, as ``Page`` has it. Raises BadCursor."""
        rows, further = cut_page(found, read_number(kind, self.cursor), self.limit)
        return {"items": rows, "next": make_cursor(kind, further)}

    def read_offset(self, kind: str) -> int:
        """Return how many rows the pages before had. Raises BadCursor."""
        return read_number(kind, self.cursor) or 0

    def cut(self, kind: str, found: Sequence[Any]) -> dict[str, Any]:
        """Return the page that ``found`` begins with. ``found``: the rows after those of the pages before, at least one
        more than the page holds where there are more. Raises BadCursor."""
        further = self.read_offset(kind) + self.limit if len(found) > self.limit else None
        return {"items": found[: self.limit], "next": make_cursor(kind, further)}


class LongPaging(Paging):
    limit: int = Field(100, ge=1, le=500)


def _read_place(kind: str, cursor: str | None) -> object:
    if cursor is None:
        return None
    if len(cursor) > MAX_CURSOR:
        raise BadCursor
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        found, place = json.loads(raw)
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise BadCursor from None
    if found != kind or place is None:
        raise BadCursor
    return place  # type: ignore[no-any-return]


TAG = re.compile(r'"?([0-9]{1,15})"?', re.ASCII)


class BadTag(Exception):
    """If-Match names no revision."""

    def __init__(self) -> None:
        super().__init__('If-Match takes one number, as ETag gave it: "7"')


def read_expected(request: HttpRequest) -> int | None:
    """Return the revision that the caller saw; None if any revision will do. Raises BadTag."""
    header = request.headers.get("If-Match", "*").strip()
    if header == "*":
        return None
    found = TAG.fullmatch(header)
    if found is None:
        raise BadTag
    return int(found[1])


Tagged = TypeVar("Tagged", Instance, Session, Draft)


def set_etag(response: HttpResponse, found: Tagged) -> Tagged:
    """Write the revision of what is answered into the ETag."""
    response["ETag"] = f'"{found.revision}"'
    return found


class Filter(BaseModel):
    """What is to be found. All that is given has to hold."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    state: str = Field("", description="active state; a compound one stands for all below it")
    older: str = Field("", description="at least so long in its state, such as `15m`")
    version: str = Field("", description="of the definition it runs")
    tag: str = Field("", description="some active state carries it")
    actor: str = Field("", description="the last actor; `ann*` for names that begin so")
    error: str = Field("", description="what holds it up: `any`, or the kind of an exception")
    id: str = Field("", description="ids that begin so")
    edge: str = Field("", description="the transition that led to its state, `3:t4` for t4 of version 3")
    created: str = Field(
        "", description="`24h`: within the last 24 hours; `>2026-01-31`, `<2026-01-31`, or a range with `..`"
    )
    suspended: str = Field("", description="`yes` or `no`")
    text: str = Field("", description='words that stand in the id, a tag, an error or the data: `Acme "two words"`')
    data: str = Field("", description="conditions on data fields, all of which hold: `amount>100 to:Rome`")
    query: str = Field("", description="the same filter as a line: `Acme state:Waiting age>1h data.amount>100`")
    by: str = Field("", description="an indexed data field, with `is`")
    is_: str = Field("", alias="is", description="its value, a beginning like `ATV-*`, or a range like `5..10`")


class Terms(Filter, Paging):
    """The same, and how it is listed."""

    order: Literal["oldest", "newest"] = Field("oldest", description="by the time they entered their state")


def read_filter(actor: Actor, machine: str, terms: Filter) -> dict[str, Any]:
    """Return the terms as ``services.instances.find`` takes them. Raises BadInput, UnknownMachine."""
    machines = RedactedEngine(actor).machines()
    current = machines.get(machine)
    if current is None:
        raise UnknownMachine(machine, known=sorted(machines))
    hidden = redactor_if(actor.may("reveal", machine), machine).fields
    given = {
        name: text
        for name, text in terms.model_dump(by_alias=True).items()
        if name in (*instance_filter.NAMES, "query")
    }
    return instance_filter.parse_terms(given, outline_of(machine, current), hidden)
