"""Searches everything: instances of any machine by id, archived ones too, machines and queues by name, jobs by id. Also
answers the palette while somebody types.

The search is bounded however much there is: the names of what is published, one command for each machine, and a page of
the index of ids where a definition declares one. A page counts what it leaves out, or says that there is more.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.models import SavedView
from dashboard.shared.addresses import JobId, parse_number
from dashboard.shared.navigation import list_navigation_links
from dashboard.shared.permissions import allows, require
from dashboard.shared.redacted_engine import RedactedEngine, redacted_engine
from dashboard.shared.rendering import render_page
from dashboard.shared.search.instance_filter import IDS
from machines.connections import get_throttle
from machines.engine import ids
from machines.engine.limits import MAX_INSTANCE_ID
from machines.instances.archive.store import get_archive
from machines.people.limits import spend_if_available

MAX_HITS = 20  # of each kind on the page
BY_PREFIX = 20  # machines whose ids are looked through for one page
MAX_PAGE = 10_000
JOB = re.compile(JobId.regex)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Hit:
    """Holds a result. ``of``: its machine; ``exact``: the whole name was typed."""

    kind: str
    name: str
    url: str
    of: str = ""
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Remainder:
    """Says that a page shows only a part of one kind: the results from ``first`` to ``last`` of ``total``.

    ``total`` is None where it is not known; then ``url`` is the list of ``of``, a machine, with all of them. For the
    kind "machine index" it counts the machines whose ids were looked through.
    """

    kind: str
    first: int
    last: int
    total: int | None = None
    of: str = ""
    url: str = ""


@dataclass(slots=True)
class Results:
    """Holds one page of a search. ``page`` counts from 1; ``more``: there is a next page."""

    page: int = 1
    hits: list[Hit] = field(default_factory=list)
    remainders: list[Remainder] = field(default_factory=list)
    more: bool = False

    def cut(self, kind: str, found: Sequence[T], size: int = MAX_HITS) -> Sequence[T]:
        """Return the part of ``found`` that is on this page, and note what is left out."""
        start = (self.page - 1) * size
        part = found[start : start + size]
        if len(found) > size and part:
            self.remainders.append(Remainder(kind, start + 1, start + len(part), len(found)))
        self.more = self.more or len(found) > start + size
        return part


def search(request: HttpRequest, asked: str) -> Iterator[Hit]:
    """Yield the first results of this name on the machines that the person sees."""
    yield from search_page(request, asked).hits


def search_page(request: HttpRequest, asked: str, page: int = 1) -> Results:
    """Return a page of what has this name on the machines that the person sees: at most ``MAX_HITS`` of each kind."""
    engine, found = redacted_engine(request), Results(page)
    names = sorted(engine.machines())
    for name in found.cut("instance", engine.find_machines(asked, names)):
        found.hits.append(Hit("instance", asked, reverse("signalbox:instance", args=[name, asked]), name, exact=True))
    here = {hit.of for hit in found.hits}
    archived = [name for name in get_archive().find_machines(asked, names) if name not in here]
    for name in found.cut("archived instance", archived):
        address = reverse("signalbox:instance", args=[name, asked])
        found.hits.append(Hit("archived instance", asked, address, name, exact=True))
    _find_by_prefix(engine, names, asked, found)
    if JOB.fullmatch(asked):
        for name in found.cut("job", engine.find_machines(asked, names, of="job")):
            found.hits.append(Hit("job", asked, reverse("signalbox:job", args=[name, asked]), name, exact=True))
    wanted = asked.lower()
    for name in found.cut("machine", _sort_exact_first([(name,) for name in names if wanted in name.lower()], asked)):
        address = reverse("signalbox:machine", args=name)
        found.hits.append(Hit("machine", name[0], address, exact=name[0] == asked))
    queues = [pair for pair in engine.queue_names(names) if wanted in pair[1].lower()]
    for name, queue in found.cut("queue", _sort_exact_first(queues, asked)):
        address = reverse("signalbox:queue", args=[name, queue])
        found.hits.append(Hit("queue", queue, address, name, exact=queue == asked))
    return found


def _sort_exact_first(names: list[tuple[str, ...]], asked: str) -> list[tuple[str, ...]]:
    return sorted(names, key=lambda name: name[-1] != asked)


def _find_by_prefix(engine: RedactedEngine, machines: list[str], prefix: str, found: Results) -> None:
    """Add instances whose id begins with the prefix, of machines that index their ids."""
    for name in found.cut("machine index", engine.find_indexed(IDS, machines), BY_PREFIX):
        listed = engine.find_ids(name, prefix, MAX_HITS + 1)
        for id in listed[:MAX_HITS]:
            if id != prefix:
                found.hits.append(Hit("instance", id, reverse("signalbox:instance", args=[name, id]), name))
        if len(listed) > MAX_HITS:
            address = f"{reverse('signalbox:machine', args=[name])}?{urlencode({'id': f'{prefix}*'})}#instances"
            found.remainders.append(Remainder("instance", 1, MAX_HITS, of=name, url=address))


AHEAD = 300  # seconds that an id, or the clock it was made by, may be before this process's own


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    """Answer ``?q=``, further pages by ``?page=``. A single exact match is opened at once."""
    asked = request.GET.get("q", "").strip()
    page = _read_page(request)
    found = search_page(request, asked[:MAX_INSTANCE_ID], page) if asked else Results()
    exact = [hit for hit in found.hits if hit.exact]
    if len(exact) == 1 and page == 1 and not request.GET.get("all"):
        return redirect(exact[0].url)
    context = {
        "asked": asked,
        "hits": sorted(found.hits, key=lambda hit: not hit.exact),
        "found": found,
        "made": _decode_id(asked.lower()),
    }
    return render_page(request, "signalbox/overview/search.html", context)


def _read_page(request: HttpRequest) -> int:
    """Read ``?page=``; 1 for what is no page."""
    page = parse_number(request.GET.get("page", "")) or 1
    return page if page <= MAX_PAGE else 1


def _decode_id(text: str) -> ids.Decoded | None:
    """Decode the time of an id; None for a text that only looks like one, as an id of the future does."""
    made = ids.decode(text) if ids.is_id(text) else None
    return made if made and made.at < (time.time() + AHEAD) * 1000 else None


MOST = 20  # rows of one answer
MOST_OF_A_KIND = 8
LIMIT, PER = 60, 10  # requests of one person in so many seconds: typing fast needs ten
ORDER = ("instance", "archived instance", "job", "machine", "place", "queue", "view", "action")


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
