"""The Patterns page: each pattern as it is now, and forms that act on it."""

from __future__ import annotations

from functools import partial

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.text import capfirst

from dashboard.shared.errors.redis_outage import Panels
from dashboard.shared.errors.statuses import OVER_PACE
from dashboard.shared.permissions import anywhere, require
from dashboard.shared.rendering import render_page
from machines.connections import get_throttle
from machines.engine import EngineUnavailable, SignalboxError
from machines.engine.connection import routing
from machines.engine.connection.client import FAILURES
from machines.statistics.ages import format_age

from .patterns import SECTIONS, Section, View
from .patterns.section import connect

ACTS, PER = 20, 10  # acts of one person at once, and the seconds they come back in
MOST_KEYS = 8
LONGEST = 500  # characters of a message

Key = tuple[str, str, str]
"""The name of a key, its kind, and how long it stays: "" until it is deleted."""


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    panels = Panels()
    found = {name: panels.read(name, partial(_read, request, section), None) for name, section in SECTIONS.items()}
    parts = [(section, found[name], panels.away.get(name)) for name, section in SECTIONS.items()]
    context = {"section": "patterns", "parts": parts, "may_act": anywhere(request.user, "fire")}
    return render_page(request, "signalbox/patterns/page.html", context)


@require("fire")
def act(request: HttpRequest, section: str, act: str) -> HttpResponse:
    do = getattr(SECTIONS.get(section), f"do_{act}", None)
    if do is None:
        raise Http404(f"The Patterns page has no act {act} of {section}.")
    if request.method == "POST":  # and not a reload of the address
        verdict = get_throttle().take("demo.acts", str(request.user.pk), limit=ACTS, per=PER)
        if not verdict.allowed:
            limit = f"{ACTS} acts at once are allowed here, then one every {PER / ACTS:g} s"
            messages.error(request, f"Not done: {limit} ({OVER_PACE})")
        else:
            try:
                messages.success(request, capfirst(do(request, request.POST)[:LONGEST]))
            except EngineUnavailable:
                raise
            except SignalboxError as error:
                messages.error(request, f"Not done: {str(error)[:LONGEST]} ({error.code})")
    return redirect(f"{reverse('signalbox:patterns')}#{section}")


def _read(request: HttpRequest, section: Section) -> tuple[View, list[Key]]:
    view = section.show(request)
    return view, _find_keys(view.keys[:MOST_KEYS])


def _find_keys(names: list[str]) -> list[Key]:
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
