"""Plays a made-up instance of the text that somebody is writing. Nothing is stored: the page sends the text and the
run, and gets what the tab shows. When the text has changed, the run is played again on the new one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest, JsonResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST

from dashboard.shared.addresses import parse_number
from dashboard.shared.permissions import require
from dashboard.shared.redacted_engine import RedactedEngine, redacted_engine
from dashboard.shared.rendering import answer_json
from dashboard.shared.version_view import VersionView, find_state_parts, find_transition_parts
from machines import diagrams
from machines.catalog import offload
from machines.catalog.editing import runs
from machines.catalog.editing.checking import choose_folds
from machines.catalog.editing.runs import REFUSED, Run, describe_step, write_scenario
from machines.catalog.submissions import GUESS
from machines.engine import BadInput, SignalboxError
from machines.engine.definitions import CompiledDefinition
from machines.engine.simulation.records import SimulatedStep
from machines.people.actor import Actor

from . import checks
from .simulated_runs import SECONDS, Trial

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
            self.records = _simulate(engine, compiled, self.run)
        except BadInput as error:
            number = runs.find_step(error)
            if number is None:
                raise
            self.stopped = error.message.partition(" ")[2]
            self.records = _simulate(engine, compiled, Run(self.run.steps[:number], self.run.data))
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
    index = diagrams.index(outline, folds=choose_folds(outline))
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


def _simulate(engine: RedactedEngine, compiled: CompiledDefinition, run: Run) -> list[SimulatedStep]:
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
