"""Reads all that a search finds, one page after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .page_merge import Page

if TYPE_CHECKING:
    from machines.engine.engine import Engine


def find_pages(engine: Engine, machine: str, **terms: Any) -> Iterator[Page]:
    """Find instances by the terms of ``Engine.find``; yield every page, at least one."""
    page = engine.find(machine, **terms)
    yield page
    while page.cursor is not None:
        page = engine.find(machine, cursor=page.cursor, **terms)
        yield page
