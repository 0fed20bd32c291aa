"""The Patterns page: each pattern as it is now, and a button that does one small thing with it."""

from collections.abc import Sequence
from functools import partial
from random import Random

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.shared.errors.redis_outage import Panels
from dashboard.shared.errors.statuses import OVER_PACE
from dashboard.shared.permissions import require
from dashboard.shared.rendering import render_page
from machines.connections import get_pattern
from machines.engine import EngineUnavailable
from machines.engine.connection import routing
from machines.engine.connection.client import FAILURES
from machines.insight.statistics.ages import format_age
from machines.patterns import Throttle
from machines.people.permissions import anywhere

from .patterns import SECTIONS, Section, View, connect

ACTS, PER = 20, 10  # acts of one person at once, and the seconds they come back in

Key = tuple[str, str, str]
"""The name of a key, its kind, and how long it stays: "" until it is deleted."""


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    panels = Panels()
    found = {name: panels.read(name, partial(_read, section), None) for name, section in SECTIONS.items()}
    parts = [(section, found[name], panels.away.get(name)) for name, section in SECTIONS.items()]
    context = {"parts": parts, "may_act": anywhere(request.user, "fire")}
    return render_page(request, "signalbox/patterns/page.html", context)


@require("fire")
def act(request: HttpRequest, section: str) -> HttpResponse:
    if section not in SECTIONS:
        raise Http404(f"The Patterns page has no section {section}.")
    if request.method == "POST":  # and not a reload of the address
        if get_pattern(Throttle).take("demo.acts", str(request.user.pk), limit=ACTS, per=PER).allowed:
            SECTIONS[section].move(Random())
            messages.success(request, f"{SECTIONS[section].title}: one call was made")
        else:
            limit = f"{ACTS} acts at once are allowed here, then one every {PER / ACTS:g} s"
            messages.error(request, f"Not done: {limit} ({OVER_PACE})")
    return redirect(f"{reverse('signalbox:patterns')}#{section}")


def _read(section: Section) -> tuple[View, list[Key]]:
    view = section.show()
    return view, _find_keys(view.keys)


def _find_keys(names: Sequence[str]) -> list[Key]:
    """Return the keys among these that exist, in one round trip."""
    try:
        found = routing.send(connect()[0], [(name, (word, name)) for name in names for word in ("TYPE", "PTTL")])
    except FAILURES as error:
        raise EngineUnavailable(f"Redis does not answer: {error}") from error
    return [
        (name, kind, format_age(ttl / 1000) if ttl >= 0 else "")
        for name, kind, ttl in zip(names, found[::2], found[1::2], strict=True)
        if isinstance(kind, str) and isinstance(ttl, int) and kind != "none"
    ]
