"""Encodes and decodes the cursors of lists. A cursor is opaque to clients and valid only for the list that it came
from.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from django.db.models import QuerySet

from dashboard.shared.list_pages import cut_page

MAX_CURSOR = 2000  # characters


class BadCursor(Exception):
    """A cursor that this list did not give."""

    def __init__(self) -> None:
        super().__init__("invalid cursor: use the value of next, or omit it")


def give(kind: str, place: str | int | None) -> str | None:
    """Return a cursor. ``kind``: the list; ``place``: where its next page begins, None after the last."""
    if place is None:
        return None
    text = json.dumps([kind, place], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def text(kind: str, cursor: str | None) -> str | None:
    """Return the text that a cursor holds, or None if there is no cursor. Raises BadCursor."""
    place = _place(kind, cursor)
    if place is not None and not isinstance(place, str):
        raise BadCursor
    return place


def number(kind: str, cursor: str | None) -> int | None:
    """Return the number that a cursor holds, or None if there is no cursor. Raises BadCursor."""
    place = _place(kind, cursor)
    if place is not None and (not isinstance(place, int) or isinstance(place, bool) or place < 0):
        raise BadCursor
    return place


def read_page(kind: str, found: QuerySet[Any], limit: int, cursor: str | None) -> dict[str, Any]:
    """Return a page of the rows of a table, newest first, as ``Listed`` has it. Raises BadCursor."""
    rows, further = cut_page(found, number(kind, cursor), limit)
    return {"items": rows, "next": give(kind, further)}


def _place(kind: str, cursor: str | None) -> object:
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
