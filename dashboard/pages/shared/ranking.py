"""Orders what a page cannot show at once: trouble first, then by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.core.paginator import Page

from dashboard.shared.queue_depths import Depth
from machines.engine import Live


def rank_machines(lives: Mapping[str, Live], fits: int) -> list[str]:
    """Order machines by name where ``fits`` suffices; else those in trouble come first, by how much there is."""
    if len(lives) <= fits:
        return sorted(lives)
    return sorted(lives, key=lambda name: (-_count_trouble(lives[name]), name))


def rank_depths(depths: Sequence[Depth], fits: int) -> list[Depth]:
    """Order queues as they are where ``fits`` suffices; else those with dead jobs first, then those that wait."""
    return list(depths) if len(depths) <= fits else sorted(depths, key=_weigh_depth)


def name_topic(kind: str, page: Page[Any], machines: Iterable[str]) -> str:
    """Return the live topic of a page: of all machines, or of ``machines``, those on this page of several."""
    return kind if page.paginator.num_pages == 1 else f"{kind}:{','.join(sorted(set(machines)))}"


def _count_trouble(live: Live) -> int:
    dead = sum(places.get("dead", 0) for places in live.queues.values())
    return dead + sum(live.breaches.values()) + live.late + live.overdue


def _weigh_depth(depth: Depth) -> tuple[int, int, str]:
    return -depth.dead, -depth.ready, depth.route
