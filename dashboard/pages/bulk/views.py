"""Bulks: the form that starts one on everything a list shows, and the page of one with its verdicts and outcomes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.pages.machines.instance_list import Listing
from dashboard.pages.shared.form_keys import key_of_content, make_key
from dashboard.pages.shared.permission_gate import lever
from dashboard.pages.shared.redacted_engine import redacted_engine
from dashboard.shared import version_view
from dashboard.shared.access import allows, demand, require
from dashboard.shared.rendering import page
from dashboard.shared.state_counts import track_of
from dashboard.shared.version_view import Plan
from machines.bulk import Bulk, Order, Row
from machines.bulk.bulk import LIVE
from machines.bulk.execution import OUTCOMES
from machines.bulk.preview import VERDICTS
from machines.connections import get_engine
from machines.engine import Instance, errors
from machines.services import Actor, approvals
from machines.services import bulks as services
from machines.services.reading import redactor_of

from .forms import NewBulk, deeds

SIZE = 100  # instances on a page
LOOKED = 5_000  # instances one page looks at for those with one verdict
FROM = {  # lever -> the states in which it is there
    "run": ("previewed",),
    "pause": ("running",),
    "resume": ("paused",),
    "retry": ("failed",),
    "stop": LIVE,
    "rate": LIVE,
    "again": ("done", "stopped", "failed"),
}


@lever("operate", "bulk.start")
def new(request: HttpRequest, machine: str) -> HttpResponse:
    """The form; a POST makes the bulk, whose dry run begins at once."""
    engine = get_engine()
    live = engine.live(machine)
    plan = version_view.plan(machine, live.version)
    listing = Listing.asked(request, track_of(plan, live))
    action, event = _chosen(request, plan)
    asked = NewBulk(plan, action, event, request.POST if request.method == "POST" else None)
    if request.method != "POST":
        redacted_engine(request, machine).find(
            machine, **_filter(listing), limit=1
        )  # what cannot be found is said before work
        return _form(request, plan, listing, asked)
    if not asked.is_valid():
        return _form(request, plan, listing, asked, status=400)
    try:
        bulk = _started(request, listing, asked)
    except errors.BadInput as error:
        asked.blame(error)
        return _form(request, plan, listing, asked, status=400)
    return redirect("bulk", bulk.id)


def _chosen(request: HttpRequest, plan: Plan) -> tuple[str, str]:
    """What is to be done, and the event if it is to fire one; "" for nothing yet."""
    action, event = request.GET.get("do", ""), request.GET.get("event", "")
    if action not in ("", "fire", *deeds(plan)):
        raise Http404("Unknown action.")
    if action != "fire":
        return action, ""
    demand(request.user, "fire", plan.machine)
    if event not in plan.event_names([]):
        raise Http404(f"Machine {plan.machine} has no event {event[:100]}.")
    return action, event


def _started(request: HttpRequest, listing: Listing, asked: NewBulk) -> Bulk:
    found = _filter(listing)
    return services.start(Actor.of(request), listing.machine, filter=found, id=id_of(request), **asked.terms())


def _filter(listing: Listing) -> dict[str, Any]:
    return {name: term for name, term in listing.terms.items() if term is not None}


def id_of(request: HttpRequest) -> str | None:
    """One form sent twice makes one bulk; None where it has no key."""
    key = key_of_content(request.POST.get("key", ""), request.POST)
    return (
        hashlib.sha256(f"{request.user.pk}:{request.get_full_path()}:{key}".encode()).hexdigest()[:16] if key else None
    )


def _form(request: HttpRequest, plan: Plan, listing: Listing, asked: NewBulk, *, status: int = 200) -> HttpResponse:
    context = {
        "section": "machines",
        "plan": plan,
        "listing": listing,
        "asked": asked,
        "found": _filter(listing),
        "choices": list(_choices(request, plan, asked)),
        "address": request.get_full_path(),
    }
    return page(request, "pages/bulk_new.html", context, status=status)


def _choices(request: HttpRequest, plan: Plan, asked: NewBulk) -> Any:
    """What can be done: label, address, whether it is chosen."""
    terms = {name: text for name, text in request.GET.items() if name not in ("do", "event")}
    base = reverse("bulk-new", args=[plan.machine])
    if allows(request.user, "fire", plan.machine):
        for name in plan.event_names([]):
            yield f"fire {name}", f"{base}?{urlencode(terms | {'do': 'fire', 'event': name})}", asked.event == name
    for name in deeds(plan):
        yield name, f"{base}?{urlencode(terms | {'do': name})}", asked.action == name


@require("view")
def show(request: HttpRequest, id: str) -> HttpResponse:
    return bulk_page(request, id)


def seen(request: HttpRequest, id: str) -> tuple[Bulk, Instance, Order]:
    """The bulk, as it is, and its order; 403 where its machine is none of this person's, 404 where it has no order."""
    return Bulk(get_engine(), id), *services.get(Actor.of(request), id)


def bulk_page(request: HttpRequest, id: str, *, mistake: str = "", slip: str = "", status: int = 200) -> HttpResponse:
    """``mistake``: what is wrong with the form to do it again; ``slip``: with that of its pace."""
    bulk, now, order = seen(request, id)
    actor, start = Actor.of(request), _start(request)
    found = listed(bulk, now, request, start)
    done = now.data["tried"] if now.data["stage"] == "running" else now.data["checked"]
    context = {
        "section": "machines",
        "bulk": now,
        "order": order,
        "listed": replace(found, rows=services.shown(actor, order.machine, found.rows)),
        "error": redactor_of(actor, order.machine).message(now.data.get("error") or ""),
        "levers": levers(now) if services.may(actor, order) else [],
        "rate": bulk.rate(),
        "second": now.state == "previewed" and services.needs_second(actor, order),
        "waiting": approvals.waiting().filter(bulk=id).first(),
        "verdicts": _counts(now.data["verdicts"], VERDICTS),
        "outcomes": _counts(now.data["outcomes"], OUTCOMES) if now.data["stage"] == "running" else [],
        "reached": done,
        "mistake": mistake,
        "slip": slip,
        "key": make_key(),
        "own": request.get_full_path(),
    }
    return page(request, "pages/bulk.html", context, status=status)


@dataclass(frozen=True, slots=True)
class Listed:
    """Some instances of a bulk, from ``start`` to before ``stop``; ``word`` narrows them to one verdict or outcome."""

    rows: list[Row]
    start: int
    stop: int
    found: int
    kind: str = ""
    word: str = ""

    @property
    def further(self) -> str:
        """The query of the next page, or ""."""
        if self.stop >= self.found:
            return ""
        return urlencode(({self.kind: self.word} if self.word else {}) | {"from": self.stop})


def listed(bulk: Bulk, now: Instance, request: HttpRequest, start: int) -> Listed:
    """A page of them. With ``?verdict=`` or ``?outcome=`` at most so many are looked at: a page may come back short."""
    asked = ((kind, request.GET.get(kind, "")) for kind in ("outcome", "verdict"))
    kind, word = next((one for one in asked if one[1]), ("", ""))
    rows: list[Row] = []
    stop = start
    looks = (LOOKED // SIZE if word else 1) if now.data["selection"] else 0
    for _ in range(looks):
        page = bulk.rows(stop, SIZE)
        stop += len(page)
        rows += [row for row in page if not word or ((note := getattr(row, kind)) and note.word == word)]
        if len(page) < SIZE or len(rows) >= SIZE:
            break
    return Listed(rows, start, stop, now.data["found"], kind, word[:20])


def levers(bulk: Instance) -> list[str]:
    """Those that there are now, for a person who may pull them."""
    names = [name for name, states in FROM.items() if bulk.state in states and not bulk.suspended]
    left = any(bulk.data["outcomes"].get(word) for word in ("refused", "changed", "failed"))
    return [name for name in names if name != "again" or left]


def _counts(held: dict[str, int], words: tuple[str, ...]) -> list[tuple[str, int]]:
    return [(word, held.get(word, 0)) for word in words]


def _start(request: HttpRequest) -> int:
    asked = request.GET.get("from", "0")
    if not (asked.isascii() and asked.isdigit() and len(asked) <= 9):
        raise Http404("Unknown page of this bulk action.")
    return int(asked)
