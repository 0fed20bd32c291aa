"""Suggestions of the palette: machines, queues, instances, jobs, saved views, places and actions, in one answer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

from django.http import HttpRequest, JsonResponse
from django.urls import reverse

from dashboard.models import SavedView
from dashboard.shared.addresses.navigation import list_navigation_links
from dashboard.shared.permissions import allows, require
from dashboard.shared.redacted_engine import redacted_engine
from machines.connections import get_throttle
from machines.engine.limits import MAX_INSTANCE_ID
from machines.people.limits import spend_if_available

from .search import Hit, search

MOST = 20  # rows of one answer
MOST_OF_A_KIND = 8
LIMIT, PER = 60, 10  # requests of one person in so many seconds: typing fast needs ten
ORDER = ("instance", "job", "machine", "place", "queue", "view", "action")


@require("view")
def suggest(request: HttpRequest) -> JsonResponse:
    """Answer ``?q=`` with ``rows`` of kind, name, of and url, the best first; without ``q``, places and actions."""
    turn = spend_if_available(get_throttle().count, "suggestions", str(request.user.pk), limit=LIMIT, per=PER)
    if not turn.allowed:
        seconds = max(1, math.ceil(turn.retry_after))
        return JsonResponse({"rows": []}, status=429, headers={"Retry-After": str(seconds)})
    asked = " ".join(request.GET.get("q", "")[:MAX_INSTANCE_ID].replace("\0", "").split())
    rows = [{"kind": hit.kind, "name": hit.name, "of": hit.of, "url": hit.url} for hit in _collect(request, asked)]
    return JsonResponse({"query": asked, "rows": rows}, headers={"Cache-Control": "no-store"})


def _collect(request: HttpRequest, asked: str) -> list[Hit]:
    wanted = asked.lower()
    hits = [*(search(request, asked) if asked else ()), *_list_own_hits(request, wanted)]
    hits.sort(key=lambda hit: _rank(hit, wanted))
    taken: dict[str, int] = {}
    kept = []
    for hit in hits:
        taken[hit.kind] = taken.get(hit.kind, 0) + 1
        if taken[hit.kind] <= MOST_OF_A_KIND:
            kept.append(hit)
    return kept[:MOST]


def _list_own_hits(request: HttpRequest, wanted: str) -> Iterator[Hit]:
    """Yield the places, saved views and actions whose name contains the text."""
    user = request.user
    for place in list_navigation_links(user):
        if wanted in place.label.lower():
            yield Hit("place", place.label, place.url)
    for view in islice(SavedView.shown_to(user, name__icontains=wanted), MOST_OF_A_KIND):
        yield Hit("view", view.name, view.address, view.machine)
    for name in sorted(redacted_engine(request).machines()):
        label = f"New instance of {name}"
        if wanted in label.lower() and allows(user, "fire", name):
            yield Hit("action", label, f"{reverse('signalbox:machine', args=[name])}#create")


def _rank(hit: Hit, wanted: str) -> tuple[bool, bool, int, str]:
    name = hit.name.lower()
    order = name if wanted else ""  # without a text, places stand as in the bar
    return (not (hit.exact or name == wanted), not name.startswith(wanted), ORDER.index(hit.kind), order)
