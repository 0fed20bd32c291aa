"""Queues: the figures of all, and the jobs of one, place by place and page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.urls import reverse

from dashboard.pages.shared import charts
from dashboard.pages.shared.redacted_engine import redacted_engine
from dashboard.shared.access import allows, require, scope_of
from dashboard.shared.errors.pages import bad_request
from dashboard.shared.queue_depths import PLACES, Figures
from dashboard.shared.rendering import page
from machines.connections import get_engine
from machines.statistics import recent_times

from . import presenters as acts
from .presenters import Act, QueueActs, Turned

SIZE = 50  # jobs on a page


@dataclass(frozen=True, slots=True)
class Spot:
    """Where somebody is in a queue's jobs: ``number`` counts pages from 1, ``total`` jobs."""

    machine: str
    queue: str
    place: str
    number: int = 1
    total: int = 0

    @property
    def offset(self) -> int:
        return (self.number - 1) * SIZE

    @property
    def last(self) -> int:
        return max(1, -(-self.total // SIZE))

    @property
    def first_row(self) -> int:
        return self.offset + 1

    @property
    def back(self) -> tuple[tuple[str, str], ...]:
        """As hidden fields of a form."""
        return (("place", self.place), ("page", str(self.number)))

    def url(self, number: int | None = None) -> str:
        terms = {"place": self.place} | ({} if (number or self.number) == 1 else {"page": number or self.number})
        return f"{reverse('queue', args=[self.machine, self.queue])}?{urlencode(terms)}"

    @property
    def newer(self) -> str:
        return self.url(self.number - 1) if self.number > 1 else ""

    @property
    def older(self) -> str:
        return self.url(self.number + 1) if self.number < self.last else ""


@require("view")
def show_all(request: HttpRequest) -> HttpResponse:
    engine, scope, operated = get_engine(), scope_of(request.user), scope_of(request.user, "operate")
    names = sorted(name for name in engine.machines() if name in scope)
    recent = recent_times(names)
    found = [
        Figures(name, stats, recent.get(name, {}).get(stats.queue, {}))
        for name in names
        for stats in engine.stats(name).values()
    ]
    context = {
        "section": "queues",
        "queues": found,
        "paused": sum(1 for one in found if one.paused),
        "dead": sum(one.stats.depth["dead"] for one in found),
        "sheets": [],
    }
    if operated:
        back, own = (("back", "queues"),), [one for one in found if one.machine in operated]
        context["sheets"] = [(one, QueueActs(one, back, f"q{n}").everything()) for n, one in enumerate(own, start=1)]
    return page(request, "pages/queues.html", context)


@require("view")
def show(request: HttpRequest, machine: str, queue: str) -> HttpResponse:
    return queue_page(request, figures_of(machine, queue), request.GET)


def queue_page(request: HttpRequest, figures: Figures, asked: QueryDict, turned: Turned | None = None) -> HttpResponse:
    """The page as it is now; ``asked`` has ``place`` and ``page``. ``turned`` says on top what was just not done."""
    spot = spot_of(figures, asked)
    if spot is None:
        return bad_request(request)
    jobs = redacted_engine(request, spot.machine).jobs(
        spot.machine, spot.queue, place=spot.place, limit=SIZE, offset=spot.offset
    )
    may = allows(request.user, "operate", spot.machine)
    context = {
        "section": "queues",
        "figures": figures,
        "spot": spot,
        "rows": [(job, acts.of_job(job, spot.back) if may else []) for job in jobs],
        "last_row": spot.offset + len(jobs),
        "charts": charts.of_queue(request, spot.machine, spot.queue),
        "turned": turned,
    }
    return page(
        request, "pages/queue.html", context | (_acts(figures, spot) if may else {}),
        status=turned.status if turned else 200,
    )  # fmt: skip


def figures_of(machine: str, queue: str) -> Figures:
    """Raises Http404 where the machine has no such queue."""
    stats = get_engine().stats(machine).get(queue)
    if stats is None:
        raise Http404(f"Machine {machine} has no queue {queue}.")
    return Figures(machine, stats, recent_times([machine]).get(machine, {}).get(queue, {}))


def spot_of(figures: Figures, asked: QueryDict) -> Spot | None:
    """None for a page number that is none. One past the end is the last page: jobs leave while people look."""
    depth = figures.stats.depth
    place = asked.get("place") or _worst(figures)
    if place not in PLACES:
        raise Http404(f"Unknown job state {place[:40]}; use {', '.join(PLACES)}.")
    number = asked.get("page") or "1"
    if not (number.isascii() and number.isdigit() and 0 < len(number) <= 12 and int(number) > 0):
        return None
    spot = Spot(figures.machine, figures.queue, place, total=depth[place])
    return Spot(spot.machine, spot.queue, place, min(int(number), spot.last), spot.total)


def _acts(figures: Figures, spot: Spot) -> dict[str, Any]:
    own = QueueActs(figures, spot.back)
    levers: Sequence[Act] = [own.resume() if figures.paused else own.pause(), own.limit()]
    return {"levers": levers, "place_acts": own.of_place(spot.place)}


def _worst(figures: Figures) -> str:
    """Where to look first: what is dead, else what is there."""
    return next((place for place in ("dead", "ready", "leased", "delayed") if figures.stats.depth[place]), "ready")
