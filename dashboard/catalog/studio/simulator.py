"""Try a machine: a made-up instance in no store. The address holds the whole run, so going back, sharing and reloading
are the browser's own; without a script nothing is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from dashboard.instances.presenters import Route, list_routes
from dashboard.shared import version_view
from dashboard.shared.addresses import parse_number
from dashboard.shared.counts import count_versions
from dashboard.shared.csv_export import Export
from dashboard.shared.errors.statuses import status_of
from dashboard.shared.permissions import require, require_audited
from dashboard.shared.redacted_engine import RedactedEngine, redacted_engine
from dashboard.shared.rendering import answer_json, render_page
from dashboard.shared.version_view import Overlay, VersionView, find_state_parts, find_transition_parts
from machines import diagrams
from machines.catalog import offload
from machines.catalog.editing import runs
from machines.catalog.editing.checking import choose_folds
from machines.catalog.editing.runs import REFUSED, Run, describe_step, write_scenario
from machines.catalog.queries import get_version
from machines.catalog.submissions import GUESS
from machines.connections import get_pattern
from machines.engine import BadInput, SignalboxError
from machines.engine.definitions import CompiledDefinition
from machines.engine.simulation import SimulatedStep
from machines.instances.forms import TypedForm, parse
from machines.patterns import Throttle
from machines.people.actor import Actor
from machines.people.limits import spend_if_available

from . import checks

TRIES, PER = 240, 60  # runs of one person in so many seconds; a long one counts as several
STEPS_PER_TRY = 10


@dataclass
class Trial:
    """``at``: the number of inputs up to the place that is shown. ``records``: of the inputs that were played."""

    machine: str
    view: VersionView
    run: Run
    at: int
    records: list[SimulatedStep] = field(default_factory=list)
    mistake: str = ""
    status: int = 200
    submitted: tuple[str, TypedForm] | None = None
    start: TypedForm | None = None

    @property
    def shown(self) -> list[SimulatedStep]:
        """List the records of the step that is shown, the last of them."""
        return [one for one in self.records if one.input == self.at - 1][-MOST_SHOWN:]

    @property
    def now(self) -> SimulatedStep | None:
        return self.shown[-1] if self.shown else None

    def refuse(self, error: BadInput | forms.ValidationError) -> None:
        """Note why a step cannot be taken."""
        self.status = 400
        said = f"{error.message} ({error.code})" if isinstance(error, SignalboxError) else " ".join(error.messages)
        self.mistake = f"Nothing happened: {said}"

    def proceed(self, post: Any) -> Run | None:
        """Return the run with the step that a form asks for, which replaces the later ones; None if a field is wrong,
        which the form then says. Raises BadInput, ValidationError."""
        do = post.get("do", "")
        if do == "restart":
            self.start = self.start_form(post)
            return Run([], self.start.values()) if self._is_valid(self.start) else None
        if do == "event":
            name = post.get("event", "")
            form = self.view.payload_form(name, None, id_prefix="tried", data=post)
            self.submitted = (name, form)
            if not self._is_valid(form):
                return None
            made: dict[str, Any] = {"event": name} | ({"payload": values} if (values := form.values()) else {})
        else:
            made = _make_input(do, post)
        return runs.make([*self.run.steps[: self.at], made], self.run.data)

    def start_form(self, data: Any = None) -> TypedForm:
        return TypedForm(self.view.outline.data, prefix="data", id_prefix="start", data=data)

    def describe(self) -> dict[str, Any]:
        """Return what the templates show of the trial."""
        return {
            "trial": self, "view": self.view, "now": self.now, "rows": self._list_rows(), "routes": self._list_routes(),
            "next_events": self._list_next(), "start": self.start or self.start_form(), "run": runs.encode(self.run),
            "dropped": len(self.run.steps) - self.at, "sent": self._list_sent(), "senders": self._list_senders(),
            "changed": {name for one in self.shown for name in one.changes} if self.at else (),
            "given": json.dumps(self.run.data, ensure_ascii=False) if self.run.data else "",
            "is_asked": not (self.run.steps or self.run.data)
            and any(field.initial is None for field in self.view.outline.data),
        }  # fmt: skip

    def _is_valid(self, form: TypedForm) -> bool:
        if not form.is_valid():
            self.status, self.mistake = 400, WRONG_FIELDS
            return False
        return True

    def _list_rows(self) -> list[StepRow]:
        rows = [
            StepRow(number, _make_label(number, found := list(group)), found, number == self.at, number > self.at)
            for number, group in groupby(self.records, key=lambda one: one.input + 1)
        ]
        unplayed = self.run.steps[len(rows) - 1 :] if rows else []
        return rows + [StepRow(n, describe_step(one), [], later=True) for n, one in enumerate(unplayed, len(rows))]

    def _list_routes(self) -> list[Route]:
        explanations = [one.explanation for one in self.shown if one.explanation is not None]
        return [route for one in explanations for route in list_routes(self.view, one, payload_known=True)]

    def _list_next(self) -> list[NextEvent]:
        """List what is listened for; a name pattern is not an event, the form for any event takes it."""
        if self.now is None or self.now.done:
            return []
        found = []
        for number, one in enumerate(self.now.next):
            name = one["event"]
            form = self.view.payload_form(name, self.now.configuration, id_prefix=f"n{number}")
            if self.submitted and self.submitted[0] == name:
                form = self.submitted[1]
            found.append(NextEvent(name, one["verdict"], RESULTS.get(one["verdict"], one["verdict"]), form))
        return found

    def _list_sent(self) -> list[SentMessage]:
        """List the messages that left up to the place, the newest first."""
        found = [
            SentMessage(one.input + 1, message)
            for one in self.records
            if one.input < self.at
            for message in one.messages
            if message["kind"] in ("event", "done")
        ]
        return found[::-1]

    def _list_senders(self) -> list[tuple[str, str]]:
        """List the possible senders: children, then instances that were sent something; value and label."""
        if self.now is None or self.now.done:
            return []
        started = {one["invoke"]: one["machine"] for one in self.now.children}
        children = [(f"child {name}", f"child {name} ({machine})") for name, machine in started.items()]
        others = [f"{one.message['machine']}/{one.message['id']}" for one in self._list_sent()]
        return children + [(f"instance {name}", name) for name in dict.fromkeys(others)]


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


@require_audited("view", "export")
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
            name = f"{machine}-run.yaml"
            response["Content-Disposition"] = f'attachment; filename="{name}"'
            Export(request, (), len(trial.records), {"machine": machine}).write(name)
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
        get_pattern(Throttle).take, "studio.try", str(request.user.pk), limit=TRIES, per=PER, cost=cost
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
    taken = [id for one in trial.shown for id in one.transitions]
    overlay.highlight(view, trial.now.configuration if trial.now else (), taken)
    return overlay.draw_on(view.svg)


RESULTS = {"taken": "succeeds", "payload": "depends on the payload", "guard": "blocked: its guard does not hold"}
WRONG_FIELDS = "Nothing happened: correct the marked fields."
SECONDS = 3.0  # that a run may take
MOST_SHOWN = 100  # records of one step: a clock that is wound far fires many timers


@dataclass(frozen=True, slots=True)
class StepRow:
    """One input of the run, with its records. ``number``: how many inputs came before and with it. Without records: it
    was not played."""

    number: int
    label: str
    records: list[SimulatedStep]
    current: bool = False
    later: bool = False

    @property
    def last(self) -> SimulatedStep | None:
        return self.records[-1] if self.records else None


@dataclass(frozen=True, slots=True)
class NextEvent:
    """An event that the instance listens for, with the form of its payload."""

    event: str
    verdict: str
    said: str
    form: TypedForm


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message that left in a step."""

    step: int
    message: Mapping[str, Any]


def _make_label(number: int, records: list[SimulatedStep]) -> str:
    named = [one.event for one in records if one.event]
    return "Created" if number == 0 else " · ".join(named) or "time passed"


def _make_input(do: str, post: Any) -> dict[str, Any]:
    """Make the input of a form that has no declared fields. Raises BadInput, ValidationError."""
    name, value = post.get("name", "").strip(), post.get("value", "").strip()
    if do == "other":
        return {"event": name} | ({"payload": parse(value)} if value else {})
    if do == "advance":
        return {"advance": value or "next"}
    if do == "next":
        return {"advance": "next"}
    if do in ("job-done", "child-done"):
        return {do.partition("-")[0]: name, "done": parse(value) if value else None}
    if do in ("job-failed", "child-failed"):
        return {do.partition("-")[0]: name, "failed": value or "failed"}
    if do == "message":
        return _make_message(post.get("sender", "").strip(), name, parse(value) if value else {})
    raise BadInput("the form names no step that is known", code="SB685")


def _make_message(sender: str, event: str, payload: Any) -> dict[str, Any]:
    """Make a message. ``sender``: "child" and its invoke, or "instance" and its machine and id."""
    kind, _, name = sender.partition(" ")
    if kind == "child":
        return {"child": name, "event": event, "payload": payload}
    machine, _, id = name.partition("/")
    return {"message": event, "payload": payload, "from": {"machine": machine, "id": id}}


CPU = 6.0  # seconds of processor time to read the text
MOST = 128 * 1024  # bytes of a text
MOST_BODY = MOST + 128 * 1024  # with the run, and what a form has
COST = 2  # checks, of the pace that a person has
MOST_CHANGES = 5  # steps that are named which go another way now
BETWEEN = "|"  # outcomes of the steps, as the page sends them back


@dataclass
class DraftTrial(Trial):
    """``before``: the outcome of each step when it was taken; ``stopped``: why the next step is not possible."""

    before: str = ""
    stopped: str = ""

    @property
    def changes(self) -> list[str]:
        """Say which steps are not possible on this text, and which were taken on an earlier one and are refused now."""
        outcomes, found = self.list_outcomes(), []
        for number, (was, now) in enumerate(zip(self.before.split(BETWEEN), outcomes, strict=False)):
            if was not in ("", *REFUSED) and now in REFUSED:
                found.append(f"Step {number + 1}, {describe_step(self.run.steps[number])}, is {now} now")
        found = [*found[:MOST_CHANGES], f"{len(found) - MOST_CHANGES} more"] if len(found) > MOST_CHANGES else found
        return found + ([self._describe_stop(len(outcomes))] if self.stopped else [])

    def _describe_stop(self, number: int) -> str:
        rest = len(self.run.steps) - number - 1
        after = f"; it and the {rest} after it are not played" if rest else ""
        return f"Step {number + 1}, {describe_step(self.run.steps[number])}, is not possible: {self.stopped}{after}"

    def list_outcomes(self) -> list[str]:
        """List the last outcome of each step that was played."""
        by_input = {one.input: one.outcome for one in self.records if one.input >= 0}
        return list(by_input.values())

    def play(self, engine: RedactedEngine, compiled: CompiledDefinition) -> None:
        """Play the run as far as it goes. Raises BadInput for data that does not fit, and a run that takes too long."""
        try:
            self.records = _simulate_draft(engine, compiled, self.run)
        except BadInput as error:
            number = runs.find_step(error)
            if number is None:
                raise
            self.stopped = error.message.partition(" ")[2]
            self.records = _simulate_draft(engine, compiled, Run(self.run.steps[:number], self.run.data))
        played = max((one.input + 1 for one in self.records), default=0)
        self.at = min(self.at, played)


@require("view")
@require_POST
def play(request: HttpRequest, machine: str) -> JsonResponse:
    return _answer(request, machine)


@require("publish")
@require_POST
def play_new(request: HttpRequest) -> JsonResponse:
    return _answer(request, "")


def _answer(request: HttpRequest, machine: str) -> JsonResponse:
    """Answer ``html`` and the parts of the diagram that are ``current`` and ``taken``, or ``unread``: why nothing is
    played."""
    if refused := checks.admit(request, MOST_BODY, what="played", cost=COST):
        return refused
    post = request.POST
    text, format = post.get("text", "").replace("\r\n", "\n"), checks.read_format(post.get("format", GUESS))
    if len(text.encode(errors="replace")) > MOST:
        return answer_json({"unread": f"A text of at most {MOST:,} bytes is played here: publish a larger one."})
    who = Actor.of(request).id
    try:
        with offload.pool.turn(f"{who}:try" if who else ""):
            read = offload.read_submission(offload.run("read", text, who="", cpu=CPU, format=format, whole=True))
            if read.compiled is None:
                return answer_json({"unread": "Correct the errors under Findings first."})
            return answer_json(_show(request, _play(redacted_engine(request), machine, read.compiled, post)))
    except SignalboxError as error:
        return checks.refuse_error(error)


def _play(engine: RedactedEngine, machine: str, compiled: CompiledDefinition, post: Any) -> DraftTrial:
    """Play the run of a form, with the step that it asks for."""
    name = str(compiled.program["machine"])
    outline = compiled.outline
    index = diagrams.index(outline, folds=choose_folds(outline), merged=False)
    view = VersionView(name, 0, outline, "", index, "")
    trial = DraftTrial(machine or name, view, Run(), 0, before=post.get("before", ""))
    try:
        trial.run = runs.decode(post["run"]) if post.get("run") else Run()
        trial.at = _read_place(post.get("at", ""), len(trial.run.steps))
        if post.get("do") and (run := trial.proceed(post)) is not None:
            runs.encode(run)  # one that is too long for the page is refused
            made = DraftTrial(trial.machine, view, run, len(run.steps))
            made.play(engine, compiled)
            if not made.stopped:
                return made
            trial.mistake = f"Nothing happened: {made.stopped}"
        trial.play(engine, compiled)
    except (BadInput, forms.ValidationError) as error:
        trial.refuse(error)
        if not trial.records:
            _play_again(engine, trial, compiled)
    return trial


def _play_again(engine: RedactedEngine, trial: DraftTrial, compiled: CompiledDefinition) -> None:
    """Show the run as it was, after a step that was refused. One whose data fits no more stays, and is not played."""
    try:
        trial.play(engine, compiled)
    except BadInput as error:
        trial.refuse(error)


def _simulate_draft(engine: RedactedEngine, compiled: CompiledDefinition, run: Run) -> list[SimulatedStep]:
    return engine.simulate(compiled, run.steps, run.data, seconds=SECONDS)


def _read_place(text: str, most: int) -> int:
    place = parse_number(text, len(str(most)))
    return most if place is None else min(place, most)


def _show(request: HttpRequest, trial: DraftTrial) -> dict[str, Any]:
    described = trial.describe()
    described |= {"changes": trial.changes, "outcomes": trial.before or BETWEEN.join(trial.list_outcomes())}
    if not trial.stopped and trial.records:
        try:
            described["scenario"] = write_scenario(trial.machine, trial.run, trial.records)
        except BadInput as error:
            described["no_scenario"] = error.message
    html = render_to_string("signalbox/studio/_trial.html", described | {"machine": trial.machine}, request)
    return {
        "html": html,
        "current": find_state_parts(trial.view, trial.now.configuration if trial.now else ()),
        "taken": find_transition_parts(trial.view, [id for one in trial.shown for id in one.transitions]),
    }
