"""A made-up instance on a page: the run so far, the place that is shown, the step that a form asks for, and what the
templates show of it. The page *Try it* and the tab of the Studio differ in where the definition comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from django import forms

from dashboard.instances.event_actions import Route, list_routes
from dashboard.shared.version_view import VersionView
from machines.catalog.editing import runs
from machines.catalog.editing.runs import Run, describe_step
from machines.engine import BadInput, SignalboxError
from machines.engine.simulation.records import SimulatedStep
from machines.instances.forms import TypedForm, parse

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
