"""One machine: its diagram with live counts, its queues, its instances by state, and the form for a new one."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import condition

from dashboard.access import allows, require
from dashboard.pages import painting, plans
from dashboard.pages.creation import Creation
from dashboard.pages.listing import Listing
from dashboard.pages.modes import MODES, mode_of
from dashboard.pages.rendering import page
from dashboard.pages.tracks import track_of
from machines.connections import get_engine
from machines.diagrams import standalone

MONTH = 30 * 86400  # seconds: a published version never changes


@require("view")
def show(request: HttpRequest, machine: str) -> HttpResponse:
    if wanted := request.GET.get("id"):
        return redirect("instance", machine, wanted)
    return machine_page(request, machine)


def machine_page(
    request: HttpRequest, machine: str, *, creation: Creation | None = None, status: int = 200
) -> HttpResponse:
    """The page; ``creation`` is a filled form that was not accepted."""
    engine = get_engine()
    live = engine.live(machine)
    plan = plans.plan(machine, live.version, folded=wants_top(request))
    track = track_of(plan, live)
    listing = Listing.asked(request, track)
    mode = mode_of(listing.mode)
    creation = creation or (Creation.blank(plan) if allows(request.user, "fire") else None)
    context = {
        "section": "machines",
        "plan": plan,
        "track": track,
        "listing": listing,
        "live": live,
        "has_timers": live.timers > 0 or any(t.delay for state in plan.outline.states for t in state.transitions),
        "tabs": track.tabs(listing.state),
        "instances": listing.read(engine),
        "creation": creation,
        "now_ms": live.now,
        "mode": mode,
        "modes": MODES.values(),
        "drawing": painting.of_machine(plan, live, listing.state, mode),
    }
    return page(request, "pages/machine.html", context, status=status)


@require("view")
def instances(request: HttpRequest, machine: str) -> HttpResponse:
    """The list alone: what the script puts in place of the old one when counts change."""
    engine = get_engine()
    live = engine.live(machine)
    plan = plans.plan(machine, live.version, folded=wants_top(request))
    listing = Listing.asked(request, track_of(plan, live))
    context = {"listing": listing, "instances": listing.read(engine), "now_ms": live.now}
    return page(request, "parts/instances.html", context)


def wants_top(request: HttpRequest) -> bool:
    """``?view=top``: the diagram is to show the top level alone."""
    return request.GET.get("view") == "top"


@require("view")
def diagram(request: HttpRequest, machine: str) -> HttpResponse:
    """The bare drawing of one version, to download or to embed. ``?version=N``, else the current one; ``&view=top``."""
    plan = plans.plan(machine, _version(request, machine), folded=wants_top(request))
    return _drawing(request, plan)


def _version(request: HttpRequest, machine: str) -> int:
    asked = request.GET.get("version", "")
    if not asked:
        return get_engine().live(machine).version
    if not asked.isascii() or not asked.isdigit() or len(asked) > 9:
        raise Http404("A version is a whole number.")
    return int(asked)


def _drawing(request: HttpRequest, plan: plans.Plan) -> HttpResponse:
    def etag(*_: Any) -> str:
        return f'"{plan.machine}-{plan.version}-{plan.fingerprint}"'

    @condition(etag_func=etag)
    def answer(request: HttpRequest) -> HttpResponse:
        response = HttpResponse(standalone(plan.svg), content_type="image/svg+xml; charset=utf-8")
        # The drawing brings its own style; nothing in it may run or load anything.
        response["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
        response["Cache-Control"] = f"private, max-age={MONTH if request.GET.get('version') else 0}"
        return response

    return answer(request)
