"""Queues: depths of all, and the jobs of one, place by place."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from dashboard.access import require
from dashboard.pages.depths import PLACES, Depth, depths_of
from dashboard.pages.rendering import page
from machines.connections import get_engine

LIMIT = 100  # jobs on a page


@require("view")
def show_all(request: HttpRequest) -> HttpResponse:
    return page(request, "pages/queues.html", {"section": "queues", "depths": _all_depths()})


@require("view")
def show(request: HttpRequest, machine: str, queue: str) -> HttpResponse:
    engine = get_engine()
    depth = next((depth for depth in depths_of(machine, engine.queues(machine)) if depth.queue == queue), None)
    if depth is None:
        raise Http404(f"Machine {machine} has no queue {queue}.")
    place = request.GET.get("place") or _fullest(depth)
    if place not in PLACES:
        raise Http404(f"Jobs are {', '.join(PLACES)}; nothing is {place[:40]}.")
    context = {
        "section": "queues",
        "depth": depth,
        "place": place,
        "jobs": engine.jobs(machine, queue, place=place, limit=LIMIT),
        "limit": LIMIT,
    }
    return page(request, "pages/queue.html", context)


def _all_depths() -> list[Depth]:
    engine = get_engine()
    return [depth for machine in sorted(engine.machines()) for depth in depths_of(machine, engine.queues(machine))]


def _fullest(depth: Depth) -> str:
    """Where to look first: what is dead, else what is there."""
    return next((place for place in ("dead", "ready", "leased", "delayed") if getattr(depth, place)), "ready")
