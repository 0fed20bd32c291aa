"""Replays recorded histories on a version: what it would have done differently, in colours on both diagrams."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from dashboard.shared.addresses.numbers import parse_number
from dashboard.shared.diagrams import version_view
from dashboard.shared.diagrams.diagram_overlay import Overlay, find_state_parts, find_transition_parts
from dashboard.shared.figures.version_counts import count_versions
from dashboard.shared.permissions import allows, require
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.rendering import answer_drawing, render_page
from machines.engine import BadInput
from machines.engine.versions import Replay
from machines.engine.versions.records import UNTOLD, StepOutcome
from machines.instances.forms import PageForm

SAMPLE = 200  # instances, unless the form says otherwise
MOST = 1000  # instances of one request
SHOWN = 20  # classes of divergences on the page
LISTED = 32  # states or transitions that one picture marks


class ReplayForm(PageForm):
    version = forms.TypedChoiceField(label="on version", coerce=int)
    sample = forms.IntegerField(label="histories", min_value=1, max_value=MOST, initial=SAMPLE)

    def __init__(self, *args: Any, versions: list[int], **kwargs: Any) -> None:
        super().__init__(*args, auto_id="replay-%s", **kwargs)
        choices: Any = self.fields["version"]
        choices.choices = [(number, f"version {number}") for number in versions]


@require("view")
def show(request: HttpRequest, machine: str) -> HttpResponse:
    """Show the form; with ``?version=2&sample=200&run=1`` the divergences by class. Running takes the right to
    operate."""
    engine = redacted_engine(request)
    live = engine.live(machine)
    versions = count_versions(engine, machine, live)
    numbers = [row.version for row in versions.rows]
    given = {"version": request.GET.get("version") or live.version, "sample": request.GET.get("sample") or SAMPLE}
    form = ReplayForm(given, versions=numbers)
    context: dict[str, Any] = {
        "section": "machines", "machine": machine, "live": live, "versions": versions, "form": form, "now_ms": live.now,
        "may_run": allows(request.user, "operate", machine), "most": MOST,
    }  # fmt: skip
    valid = form.is_valid()
    if valid and request.GET.get("run"):
        version, sample = form.cleaned_data["version"], form.cleaned_data["sample"]
        try:
            context |= _present(machine, version, engine.replay(machine, version, sample=sample))
        except BadInput as error:
            context["mistake"] = f"{error.message} ({error.code})"
    return render_page(request, "signalbox/versions/replay.html", context, status=200 if valid else 400)


def _present(machine: str, version: int, found: Replay) -> dict[str, Any]:
    """Return the context of the divergences. Values of data are not shown."""
    rows = [
        {
            "of": each,
            "expected_url": _make_picture_url(machine, each.version, each.expected),
            "actual_url": _make_picture_url(machine, version, each.actual),
            "url": f"{reverse('signalbox:instance', args=[machine, each.example])}?{urlencode({'at': each.step})}",
        }
        for each in found.divergences[:SHOWN]
    ]
    untold = [(UNTOLD.get(reason, reason), count) for reason, count in found.untold.items() if count]
    return {
        "found": found, "divergences": rows, "left_out": len(found.divergences) - len(rows), "untold": untold,
        "differing": sum(each.count for each in found.divergences), "on": version,
    }  # fmt: skip


def _make_picture_url(machine: str, version: int, outcome: StepOutcome) -> str:
    terms = [("version", str(version)), *(("in", name) for name in outcome.configuration[:LISTED])]
    terms += [("taken", id) for id in outcome.transitions[:LISTED]]
    return f"{reverse('signalbox:version-step', args=[machine])}?{urlencode(terms)}"


@require("view")
def picture(request: HttpRequest, machine: str) -> HttpResponse:
    """Answer the diagram of ``?version=`` with the states ``in`` and the transitions ``taken`` highlighted."""
    if not (version := parse_number(request.GET.get("version", ""))):
        raise Http404("A version must be a whole number from 1.")
    view, overlay = version_view.load_version(machine, version, who=str(request.user.pk)), Overlay()
    for part in find_state_parts(view, request.GET.getlist("in")[:LISTED]):
        overlay.mark(part, "current")
    for part in find_transition_parts(view, request.GET.getlist("taken")[:LISTED]):
        overlay.mark(part, "taken")
    return answer_drawing(overlay.draw_on(view.svg), cache="private, max-age=86400")
