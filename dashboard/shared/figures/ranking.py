"""Orders what a page cannot show at once: trouble first, then by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.core.paginator import Page

from .queue_depths import Depth


def rank_depths(depths: Sequence[Depth], fits: int) -> list[Depth]:
    """Order queues as they are where ``fits`` suffices; else those with dead jobs first, then those that wait."""
    return list(depths) if len(depths) <= fits else sorted(depths, key=_weigh_depth)


def name_topic(kind: str, page: Page[Any], machines: Iterable[str]) -> str:
    """Return the live topic of a page: of all machines, or of ``machines``, those on this page of several."""
    return kind if page.paginator.num_pages == 1 else f"{kind}:{','.join(sorted(set(machines)))}"


def _weigh_depth(depth: Depth) -> tuple[int, int, str]:
    return -depth.dead, -depth.ready, depth.route
