"""Splits items into the pages that they are stored in: JSON lists of bounded size."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from machines.engine.errors import BadPayload

PAGE_ITEMS = 1_000
PAGE_BYTES = 256 * 1024
MAX_ITEM = 1024 * 1024  # bytes of JSON
MAX_PART = 16 * 1024 * 1024  # bytes of JSON: what a map or a reduce gives is sent in one command
GROUP = 20  # items encoded at once: as many are held beside the page

_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode  # ASCII: any text comes back as it was


@dataclass(frozen=True, slots=True)
class Page:
    """``text`` is a JSON list of ``count`` items."""

    text: str
    count: int


def split_pages(items: Iterable[Any]) -> Iterator[Page]:
    """Yield all items, in order. Holds no more than one page and the few items after it. Raises BadPayload."""
    held: list[str] = []
    count = size = 0
    for text, few in _pieces(items):
        if held and (count + few > PAGE_ITEMS or size + len(text) > PAGE_BYTES):
            yield _page(held, count)
            held, count, size = [], 0, 0
        held.append(text)
        count += few
        size += len(text) + 1
    if held:
        yield _page(held, count)


def encode(what: str, value: object, most: int = MAX_PART) -> str:
    """Encode ``value`` as JSON of at most so many bytes. Raises BadPayload."""
    try:
        text = _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadPayload(f"{what} is not JSON: {error}") from error
    if len(text) > most:
        raise BadPayload(f"{what} has {len(text)} bytes of JSON; {most} are allowed", code="SB411")
    return text


def _pieces(items: Iterable[Any]) -> Iterator[tuple[str, int]]:
    """Yield a few items at a time, without brackets around them, and how many; large ones one by one."""
    source = iter(items)
    seen = 0
    while group := list(islice(source, GROUP)):
        text = _group(group)
        if text is not None and len(text) <= PAGE_BYTES:
            yield text, len(group)
        else:
            for number, item in enumerate(group, seen):
                yield encode(f"item {number}", item, MAX_ITEM), 1
        seen += len(group)


def _group(group: list[Any]) -> str | None:
    """Encode a group; None where there is an item that cannot be encoded."""
    try:
        return _encode(group)[1:-1]
    except (TypeError, ValueError, RecursionError):
        return None


def _page(held: list[str], count: int) -> Page:
    return Page(f"[{','.join(held)}]", count)
