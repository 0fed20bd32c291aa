"""Try a machine: a made-up instance in no store. The address holds the whole run, so going back, sharing and reloading
are the browser's own; without a script nothing is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.safestring import SafeString

from dashboard.shared import version_view
from dashboard.shared.addresses import parse_number
from dashboard.shared.counts import count_versions
from dashboard.shared.errors.statuses import status_of
from dashboard.shared.permissions import require
from dashboard.shared.redacted_engine import RedactedEngine, redacted_engine
from dashboard.shared.rendering import render_page
from dashboard.shared.version_view import Overlay, VersionView, find_state_parts, find_transition_parts
from machines.catalog.editing import runs
from machines.catalog.editing.runs import Run, write_scenario
from machines.catalog.queries import get_version
from machines.connections import get_throttle
from machines.engine import BadInput
from machines.engine.simulation.records import SimulatedStep
from machines.people.limits import spend_if_available

from .simulated_runs import SECONDS, Trial

TRIES, PER = 240, 60  # runs of one person in so many seconds; a long one counts as several
STEPS_PER_TRY = 10


@dataclass
class VersionTrial(Trial):
    """A run on a published version."""

    def address(self, run: Run) -> str:
        terms = {"version": self.view.version, "run": runs.encode(run)}
        return f"{reverse('signalbox:try', args=[self.machine])}?{urlencode(terms)}"


@require("view")
def show(request: HttpRequest, machine: str) -> HttpResponse:
    """Show the run of the address at ``?at=``, by default at its end. A run that cannot be read is an error."""
    trial = _open(request, machine, request.GET)
    return _render_page(request, trial)


@require("view")
def step(request: HttpRequest, machine: str) -> HttpResponse:
    """Add a step to a run, which replaces the later ones, and redirect to the new run."""
    if request.method != "POST":
        return redirect("signalbox:try", machine)
    trial = _open(request, machine, request.POST)
    if trial.mistake:
        return _render_page(request, trial)
    try:
        run = trial.proceed(request.POST)
        if run is not None:
            if not _may_play(request, run):
                return _render_page(request, _refuse_for_now(trial))
            _simulate(redacted_engine(request), trial.view, run)
            return redirect(trial.address(run))
    except (BadInput, forms.ValidationError) as error:
        trial.refuse(error)
    return _render_page(request, trial)


@require("view")
def scenario(request: HttpRequest, machine: str) -> HttpResponse:
    """Answer the run of the address as a scenario file."""
    trial = _open(request, machine, request.GET)
    if not trial.mistake:
        try:
            text = write_scenario(machine, trial.run, trial.records)
        except BadInput as error:
            trial.mistake, trial.status = f"No file was written: {error.message} ({error.code})", 400
        else:
            response = HttpResponse(text, content_type="application/yaml; charset=utf-8")
            response["Content-Disposition"] = f'attachment; filename="{machine}-run.yaml"'
            return response
    return _render_page(request, trial)


def _open(request: HttpRequest, machine: str, asked: Any) -> VersionTrial:
    """Read version, run and place, and play the run. What makes no sense becomes the page's mistake."""
    engine = redacted_engine(request)
    version = _number(asked.get("version", ""), "version") or engine.live(machine).version
    view = version_view.load_version(machine, version, who=str(request.user.pk))
    trial = VersionTrial(machine, view, Run(), 0)
    try:
        if text := asked.get("run", ""):
            trial.run = runs.decode(text)
        if not _may_play(request, trial.run):
            return _refuse_for_now(trial)
        trial.records = _simulate(engine, view, trial.run)
    except BadInput as error:
        trial.mistake = f"The run does not fit version {version}: {error.message} ({error.code})"
        trial.status, trial.run = status_of(type(error)), Run()
        trial.records = _simulate(engine, view, trial.run)
    most = len(trial.run.steps)
    at = _number(asked.get("at", ""), "at")
    trial.at = most if at is None else min(at, most)
    return trial


def _number(text: str, name: str) -> int | None:
    if not text:
        return None
    if (number := parse_number(text)) is None:
        raise Http404(f"{name} is a whole number.")
    return number


def _may_play(request: HttpRequest, run: Run) -> bool:
    cost = 1 + len(run.steps) // STEPS_PER_TRY
    return spend_if_available(
        get_throttle().take, "studio.try", str(request.user.pk), limit=TRIES, per=PER, cost=cost
    ).allowed


def _refuse_for_now(trial: VersionTrial) -> VersionTrial:
    """Refuse the trial for now: the page keeps the run, and plays nothing."""
    trial.mistake = "Nothing was played: too many runs in a short time. Load the page again in a minute (SB684)"
    trial.status, trial.records, trial.at = 429, [], len(trial.run.steps)
    return trial


def _simulate(engine: RedactedEngine, view: VersionView, run: Run) -> list[SimulatedStep]:
    definition = get_version(view.machine, view.version, without=("drawing",)).definition
    return engine.simulate(definition, run.steps, run.data, seconds=SECONDS)


def _render_page(request: HttpRequest, trial: VersionTrial) -> HttpResponse:
    engine = redacted_engine(request)
    live = engine.live(trial.machine)
    context = {
        "section": "machines", "machine": trial.machine, "live": live, "drawing": _draw(trial),
        "versions": count_versions(engine, trial.machine, live), "link": trial.address(trial.run),
        "step_address": reverse("signalbox:try-step", args=[trial.machine]),
    }  # fmt: skip
    return render_page(request, "signalbox/studio/try.html", context | trial.describe(), status=trial.status)


def _draw(trial: VersionTrial) -> SafeString:
    overlay, view = Overlay(), trial.view
    for part in find_state_parts(view, trial.now.configuration if trial.now else ()):
        overlay.mark(part, "current")
    for part in find_transition_parts(view, [id for one in trial.shown for id in one.transitions]):
        overlay.mark(part, "taken")
    return overlay.draw_on(view.svg)
