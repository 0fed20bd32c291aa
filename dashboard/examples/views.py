"""The Patterns page: every pattern as it is now, and forms that poke it.

What a form did is told in its own section: with a script the section alone is answered and put in place, without one
the page is shown again, and what came of it waits in the session for that.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from functools import partial

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString

from dashboard.shared.access import anywhere, require
from dashboard.shared.errors.pages import render_error
from dashboard.shared.errors.panels import Panels
from dashboard.shared.errors.statuses import OVER_PACE, status_of
from dashboard.shared.rendering import render_page
from dashboard.shared.times.times import format_age
from machines.connections import get_engine, get_throttle
from machines.engine import EngineUnavailable, SignalboxError
from machines.engine.connection import routing
from machines.engine.connection.client import FAILURES

from .patterns import MOST_KEYS, Section, sections

ACTS, PER = 20, 10  # acts of one person at once, and the seconds they come back in
TOLD = "patterns.told"  # in the session, until the page is shown
MOST_TOLD = 500  # characters
ALONE = "X-Section"  # a script asks for the section without the page around it


@dataclass(frozen=True, slots=True)
class Told:
    """What came of an act. ``code``: of the error, "" where there was none."""

    section: str
    text: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Key:
    """``left``: how long it stays, "" for one that does until it is deleted."""

    name: str
    kind: str
    left: str


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    told = _told(request)
    panels = Panels()
    parts = [
        (one, panels.read(one.name, partial(_rendered, request, one, told), SafeString()))
        for one in sections().values()
    ]
    parts = [(one, part or _render_away(request, one, panels.away[one.name])) for one, part in parts]
    context = {"section": "patterns", "parts": parts, "may_act": anywhere(request.user, "fire")}
    return render_page(request, "signalbox/patterns/page.html", context)


@require("view")
def section(request: HttpRequest, section: str) -> HttpResponse:
    return _alone(request, _known(section))


@require("fire")
def act(request: HttpRequest, section: str, act: str) -> HttpResponse:
    found = _known(section)
    if act not in found.acts:
        raise Http404(f"{found.title} has no act called {act}.")
    if request.method != "POST":  # a reload of the address
        return redirect(_place(found))
    verdict = get_throttle().take("demo.acts", str(request.user.pk), limit=ACTS, per=PER)
    if not verdict.allowed:
        return _too_many(request, found, verdict.retry_after)
    return _answer(request, found, *_done(request, found, act))


def _done(request: HttpRequest, section: Section, act: str) -> tuple[Told, int]:
    """What the act says, and the status that goes with it. Whether Redis was there is not an act's to tell."""
    try:
        return Told(section.name, section.acts[act](request, request.POST)[:MOST_TOLD]), 200
    except EngineUnavailable:
        raise
    except SignalboxError as error:
        return Told(section.name, str(error)[:MOST_TOLD], error.code), status_of(type(error))


def _answer(request: HttpRequest, section: Section, told: Told, status: int) -> HttpResponse:
    if ALONE in request.headers:
        return _alone(request, section, told, status)
    request.session[TOLD] = asdict(told)
    return redirect(_place(section))


def _too_many(request: HttpRequest, section: Section, wait: float) -> HttpResponse:
    seconds = math.ceil(wait)
    message = f"{ACTS} acts at once are allowed here, and then one every {PER / ACTS:g} s. Nothing was done."
    if ALONE in request.headers:
        response = _alone(request, section, Told(section.name, message, OVER_PACE), 429)
    else:
        back = {"url": _place(section), "text": "Back to the patterns"}
        response = render_error(request, 429, title="Too fast", code=OVER_PACE, message=message, back=back)
    response["Retry-After"] = str(seconds)
    return response


def _known(name: str) -> Section:
    found = sections().get(name)
    if found is None:
        raise Http404(f"There is no pattern called {name}.")
    return found


def _place(section: Section) -> str:
    return f"{reverse('signalbox:patterns')}#{section.name}"


def _told(request: HttpRequest) -> Told | None:
    """Told once."""
    kept = request.session.pop(TOLD, None) if TOLD in request.session else None
    return Told(**kept) if kept else None


def _alone(request: HttpRequest, section: Section, told: Told | None = None, status: int = 200) -> HttpResponse:
    response = HttpResponse(_rendered(request, section, told), status=status)
    response["Cache-Control"] = "no-store"
    return response


def _render_away(request: HttpRequest, section: Section, node: str) -> SafeString:
    return render_to_string("signalbox/patterns/away.html", {"section": section, "node": node}, request)


def _rendered(request: HttpRequest, section: Section, told: Told | None) -> SafeString:
    shown = section.show(request)
    context = shown | {
        "section": section,
        "told": told if told and told.section == section.name else None,
        "may_act": anywhere(request.user, "fire"),
        "standing": _standing(shown.get("keys", [])),
        "now_ms": shown.get("now_ms", int(time.time() * 1000)),
    }
    return render_to_string("signalbox/patterns/section.html", context, request)


def _standing(names: list[str]) -> list[Key]:
    """The keys among these that are there, in one round trip."""
    wanted = names[:MOST_KEYS]
    if not wanted:
        return []
    try:
        found = routing.send(
            get_engine().client, [(name, (word, name)) for name in wanted for word in ("TYPE", "PTTL")]
        )
    except FAILURES as error:
        raise EngineUnavailable(f"Redis does not answer: {error}") from error
    answers = zip(wanted, found[::2], found[1::2], strict=True)
    rows = [
        (name, kind, ttl) for name, kind, ttl in answers if not isinstance(kind, Exception) and isinstance(ttl, int)
    ]
    return [Key(name, kind, format_age(ttl / 1000) if ttl >= 0 else "") for name, kind, ttl in rows if kind != "none"]
