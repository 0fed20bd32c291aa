"""Try a machine: a made-up instance in no store. The address holds the whole run, so going back, sharing and reloading
are the browser's own; without a script nothing is missing."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.safestring import SafeString

from dashboard.pages.instances.events import Route, list_routes
from dashboard.pages.shared.diagram_overlay import Overlay, find_state_parts, find_transition_parts
from dashboard.pages.shared.version_counts import count_versions
from dashboard.shared import version_view
from dashboard.shared.access import require
from dashboard.shared.errors.statuses import status_of
from dashboard.shared.rendering import render_page
from dashboard.shared.version_view import VersionView
from machines.catalog.outlines import stored
from machines.connections import get_engine, get_throttle
from machines.engine import BadInput, SignalboxError
from machines.engine.errors import BadPayload
from machines.engine.simulation.records import SimulatedStep
from machines.forms import TypedForm
from machines.forms.inputs import parse
from machines.studio import runs
from machines.studio.runs import Run
from machines.studio.scenario_text import write_scenario

DIGITS = 9
TRIES, PER = 240, 60  # runs of one person in so many seconds; a long one counts as several
STEPS_PER_TRY = 10
VERDICTS = {"taken": "succeeds", "payload": "depends on the payload", "guard": "blocked: its guard does not hold"}


@dataclass(frozen=True, slots=True)
class StepRow:
    """One input of the run, with its records. ``number``: how many inputs came before and with it."""

    number: int
    records: list[SimulatedStep]
    current: bool
    later: bool

    @property
    def label(self) -> str:
        named = [one.event for one in self.records if one.event]
        return "Created" if self.number == 0 else " · ".join(named) or "time passed"

    @property
    def last(self) -> SimulatedStep:
        return self.records[-1]


@dataclass(frozen=True, slots=True)
class NextEvent:
    """An event that the instance listens for, with the form of its payload."""

    event: str
    verdict: str
    said: str
    form: TypedForm


@dataclass
class Trial:
    """What the page shows of a run. ``at``: the number of inputs up to the place that is shown."""

    machine: str
    plan: VersionView
    run: Run
    at: int
    records: list[SimulatedStep] = field(default_factory=list)
    mistake: str = ""
    status: int = 200
    tried: tuple[str, TypedForm] | None = None
    start: TypedForm | None = None

    @property
    def shown(self) -> list[SimulatedStep]:
        """List the records of the step that is shown."""
        return [one for one in self.records if one.input == self.at - 1]

    @property
    def now(self) -> SimulatedStep | None:
        return self.shown[-1] if self.shown else None

    def address(self, run: Run | None = None, at: int | None = None) -> str:
        run = run or self.run
        terms = {"version": self.plan.version, "run": runs.encode(run)}
        return (
            f"{reverse('signalbox:try', args=[self.machine])}?{urlencode(terms | ({} if at is None else {'at': at}))}"
        )


@require("view")
def show(request: HttpRequest, machine: str) -> HttpResponse:
    """Show the run of the address at ``?at=``, by default at its end. A run that cannot be read is an error."""
    trial = _open(request, machine, request.GET)
    return _page(request, trial)


@require("view")
def step(request: HttpRequest, machine: str) -> HttpResponse:
    """Add a step to a run, in place of those that followed, and lead to the address of the new run."""
    if request.method != "POST":
        return redirect("signalbox:try", machine)
    trial = _open(request, machine, request.POST)
    if trial.mistake:
        return _page(request, trial)
    try:
        run = _continue(request, trial)
        if run is not None:
            if not _may_play(request, run):
                return _page(request, _refuse_for_now(trial))
            _simulate(trial.plan, run)
            return redirect(trial.address(run))
    except (BadInput, BadPayload, forms.ValidationError) as error:
        trial.status = 400
        trial.mistake = (
            f"Nothing happened: {error.message} ({error.code})"
            if isinstance(error, SignalboxError)
            else f"Nothing happened: {' '.join(error.messages)}"
        )
    return _page(request, trial)


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
    return _page(request, trial)


def _open(request: HttpRequest, machine: str, asked: Any) -> Trial:
    """Read version, run and place, and play the run. What makes no sense becomes the page's mistake."""
    version = _number(asked.get("version", ""), "version") or get_engine().live(machine).version
    plan = version_view.load_version(machine, version, who=str(request.user.pk))
    trial = Trial(machine, plan, Run(), 0)
    try:
        if text := asked.get("run", ""):
            trial.run = runs.decode(text)
        if not _may_play(request, trial.run):
            return _refuse_for_now(trial)
        trial.records = _simulate(plan, trial.run)
    except (BadInput, BadPayload) as error:
        trial.mistake = f"The run does not fit version {version}: {error.message} ({error.code})"
        trial.status, trial.run = status_of(type(error)), Run()
        trial.records = _simulate(plan, trial.run)
    most = len(trial.run.steps)
    at = _number(asked.get("at", ""), "at")
    trial.at = most if at is None else min(at, most)
    return trial


def _number(text: str, name: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS):
        raise Http404(f"{name} is a whole number.")
    return int(text)


def _may_play(request: HttpRequest, run: Run) -> bool:
    cost = 1 + len(run.steps) // STEPS_PER_TRY
    return get_throttle().take("studio.try", str(request.user.pk), limit=TRIES, per=PER, cost=cost).allowed


def _refuse_for_now(trial: Trial) -> Trial:
    """The page keeps the run, and plays nothing."""
    trial.mistake = "Nothing was played: too many runs in a short time. Load the page again in a minute (SB684)"
    trial.status, trial.records, trial.at = 429, [], len(trial.run.steps)
    return trial


def _simulate(plan: VersionView, run: Run) -> list[SimulatedStep]:
    definition = stored(plan.machine, plan.version, without=("drawing",)).definition
    return get_engine().simulate(definition, run.steps, run.data)


def _continue(request: HttpRequest, trial: Trial) -> Run | None:
    """Make the run with the step that was asked for. None if its form was not filled in right."""
    post, do = request.POST, request.POST.get("do", "")
    if do == "restart":
        trial.start = _start_form(trial, post)
        return Run([], trial.start.values()) if _is_valid(trial, trial.start) else None
    if do == "event":
        name = post.get("event", "")
        form = trial.plan.payload_form(name, None, id_prefix="tried", data=post)
        trial.tried = (name, form)
        if not _is_valid(trial, form):
            return None
        made: dict[str, Any] = {"event": name} | ({"payload": values} if (values := form.values()) else {})
    else:
        made = _make_other(do, post)
    return runs.make([*trial.run.steps[: trial.at], made], trial.run.data)


def _is_valid(trial: Trial, form: TypedForm) -> bool:
    if not form.is_valid():
        trial.status, trial.mistake = 400, "Nothing happened: correct the marked fields."
        return False
    return True


def _make_other(do: str, post: Any) -> dict[str, Any]:
    """Make the input of a form that has no declared fields. Raises BadInput, ValidationError."""
    name, value = post.get("name", ""), post.get("value", "").strip()
    if do == "other":
        return {"event": name.strip()} | ({"payload": parse(value)} if value else {})
    if do == "advance":
        return {"advance": value or "next"}
    if do == "next":
        return {"advance": "next"}
    if do in ("job-done", "child-done"):
        return {do.partition("-")[0]: name, "done": parse(value) if value else None}
    if do in ("job-failed", "child-failed"):
        return {do.partition("-")[0]: name, "failed": value or "failed"}
    raise BadInput("the form names no step that is known", code="SB685")


def _start_form(trial: Trial, data: Any = None) -> TypedForm:
    return TypedForm(trial.plan.outline.data, prefix="data", id_prefix="start", data=data)


def _page(request: HttpRequest, trial: Trial) -> HttpResponse:
    engine, plan, now = get_engine(), trial.plan, trial.now
    live = engine.live(trial.machine)
    context = {
        "section": "machines", "machine": trial.machine, "live": live, "plan": plan, "trial": trial, "now": now,
        "versions": count_versions(engine, trial.machine, live), "drawing": _draw(trial), "rows": _list_rows(trial),
        "routes": _list_routes(trial), "next_events": _list_next(trial), "start": trial.start or _start_form(trial),
        "run": runs.encode(trial.run), "dropped": len(trial.run.steps) - trial.at,
        "changed": {name for one in trial.shown for name in one.changes} if trial.at else (), "link": trial.address(),
        "given": json.dumps(trial.run.data, ensure_ascii=False) if trial.run.data else "",
    }  # fmt: skip
    return render_page(request, "signalbox/studio/try.html", context, status=trial.status)


def _list_rows(trial: Trial) -> list[StepRow]:
    return [
        StepRow(number + 1, list(group), number + 1 == trial.at, number + 1 > trial.at)
        for number, group in groupby(trial.records, key=lambda one: one.input)
    ]


def _list_routes(trial: Trial) -> list[Route]:
    told = [one.explanation for one in trial.shown if one.explanation is not None]
    return [route for one in told for route in list_routes(trial.plan, one, payload_known=True)]


def _list_next(trial: Trial) -> list[NextEvent]:
    """List what is listened for; a name pattern is not an event, the form for any event takes it."""
    if trial.now is None or trial.now.done:
        return []
    found = []
    for number, one in enumerate(trial.now.next):
        name = one["event"]
        form = trial.plan.payload_form(name, trial.now.configuration, id_prefix=f"n{number}")
        if trial.tried and trial.tried[0] == name:
            form = trial.tried[1]
        found.append(NextEvent(name, one["verdict"], VERDICTS.get(one["verdict"], one["verdict"]), form))
    return found


def _draw(trial: Trial) -> SafeString:
    overlay, plan = Overlay(), trial.plan
    for part in find_state_parts(plan, trial.now.configuration if trial.now else ()):
        overlay.mark(part, "current")
    for part in find_transition_parts(plan, [id for one in trial.shown for id in one.transitions]):
        overlay.mark(part, "taken")
    return overlay.draw_on(plan.svg)
