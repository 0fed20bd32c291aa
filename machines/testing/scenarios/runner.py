"""Runs scenarios, each on keys of its own, in virtual time, and compares what ``then`` asserts with what happened."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from machines.engine import Engine, Instance, Job, Permit, Refused, SignalboxError
from machines.engine.definitions import CompiledDefinition, Outline, TransitionOutline
from machines.engine.messages.delivery import Delivery
from machines.engine.messages.outbox import OutboxPage
from machines.testing.assertions import format_value, list_active
from machines.testing.job_runner import Impossible, list_open, take_job
from machines.testing.kit import Signalbox, open_engine

from .document import (
    FAILED,
    Scenario,
    ScenarioFile,
    Step,
    Then,
    When,
    describe,
    expand,
    find_target,
    list_names,
    read_time,
)

Definitions = Mapping[str, CompiledDefinition]
Find = Callable[[str], CompiledDefinition | None]
Finish = Callable[[Signalbox], None]
FIRST_ID = "1"
MOST_STEPS = 1000  # of a history, read after each step


@dataclass(frozen=True, slots=True)
class Failure:
    """How a scenario failed. ``message``: the first line; ``text``: all, with the explanation and the history."""

    message: str
    text: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """How a scenario ended. ``failure``: None where it passed; ``seconds``: how long it took."""

    file: Path | None
    scenario: Scenario
    failure: Failure | None
    seconds: float

    @property
    def passed(self) -> bool:
        return self.failure is None


def run_files(
    url: str, files: Iterable[ScenarioFile], definitions: Definitions, finish: Finish | None = None
) -> Iterator[Result]:
    """Run the scenarios of files, one after the other. ``finish`` is called after each, before its keys are removed.
    Raises KeyError for a machine without a definition."""
    for file in files:
        for scenario in file.scenarios:
            begun = time.perf_counter()
            with open_sandbox(url, definitions, file.machine) as sandbox:
                failure = run_scenario(sandbox, scenario, definitions[file.machine].outline)
                if finish is not None:
                    finish(sandbox.kit)
            yield Result(file.path, scenario, failure, time.perf_counter() - begun)


@contextlib.contextmanager
def open_sandbox(url: str, definitions: Definitions, machine: str) -> Iterator[Sandbox]:
    """Publish a machine, and those that it talks to, on keys that are removed afterwards."""
    with open_engine(url) as engine:
        for compiled in find_involved(machine, definitions.get).values():
            engine.publish(compiled)
        yield Sandbox(Signalbox(engine, url, [Path.cwd()]))


def find_involved(machine: str, find: Find) -> dict[str, CompiledDefinition]:
    """Find the definition of a machine, and of those that it sends to or invokes, directly or not."""
    found: dict[str, CompiledDefinition] = {}
    waiting = [machine]
    while waiting:
        name = waiting.pop()
        if name not in found and (compiled := find(name)) is not None:
            found[name] = compiled
            waiting += [one.machine for one in compiled.recipients]
    return found


def run_scenario(sandbox: Sandbox, scenario: Scenario, outline: Outline) -> Failure | None:
    """Run one scenario; return how it failed, or None."""
    try:
        happened = sandbox.start(scenario.machine, scenario.given)
    except (SignalboxError, Impossible, AssertionError) as error:
        code = f"{error.code} " if isinstance(error, SignalboxError) else ""
        message = f"the start that is given does not succeed: {code}{error}"
        return Failure(message.splitlines()[0], message, scenario.line)
    for number, step in enumerate(scenario.steps, 1):
        if failure := _run_step(sandbox, step, number, happened, outline):
            return failure
    return None


def _run_step(sandbox: Sandbox, step: Step, number: int, happened: StepResult, outline: Outline) -> Failure | None:
    what = f"step {number}" + (f" (line {step.line})" if step.line else "")
    what += f", {describe(step.when)}" if step.when is not None else ""
    try:
        if step.when is not None:
            latest = sandbox.perform(step.when)
            happened.error, happened.transitions, happened.sent = latest.error, latest.transitions, latest.sent
        problems = find_problems(sandbox, step.then, happened, outline)
    except (Impossible, AssertionError, SignalboxError) as error:
        problems = [str(error)]
    if not problems:
        return None
    message = f"{what}: {problems[0].splitlines()[0]}"
    lines = [f"{what}: {problems[0]}", *(f"  and {one}" for one in problems[1:]), *explain(happened)]
    lines.append(sandbox.kit.describe(sandbox.machine, sandbox.id))
    return Failure(message, "\n".join(lines), step.line)


def find_problems(sandbox: Sandbox, then: Then | None, happened: StepResult, outline: Outline) -> list[str]:
    """Compare the instance and the last step with all that a step expects."""
    if happened.error is not None and "refused" not in (then or {}):
        return [f"it was refused: {happened.error.code} {happened.error}"]
    if then is None:
        return []
    instance = sandbox.read()
    is_done = then.get("done", instance.done)
    what = f"it is in {instance.state}, which is "
    return [
        *_compare_refusal(then, happened),
        *_compare_states(instance, then, outline),
        *_compare_data(instance, then.get("data")),
        *([] if is_done == instance.done else [f"{what}{'not ' if is_done else ''}its end"]),
        *_compare_names(
            "jobs that wait", then.get("jobs"), [job.src for job in sandbox.list_waiting(sandbox.machine, sandbox.id)]
        ),
        *_compare_messages(then.get("messages"), happened.sent),
        *_compare_transitions(then.get("transitions"), happened.transitions, outline),
    ]


def _compare_refusal(then: Then, happened: StepResult) -> list[str]:
    if "refused" not in then:
        return []
    if happened.error is None:
        return ["it should be refused, and was taken"]
    text, code, refused = str(happened.error), happened.error.code, expand(then["refused"], "why")
    if refused.get("code", code) != code:
        return [f"it should be refused as {refused['code']}, and was as {code}: {text}"]
    if refused.get("why", "") not in text:
        return [f"it was refused, but not because of {refused['why']!r}: {text}"]
    return []


def _compare_states(instance: Instance, then: Then, outline: Outline) -> list[str]:
    active = list_active(instance.configuration, outline)
    missing = [state for state in list_names(then.get("state")) if state not in active]
    return [f"it is in {instance.state}, not in {' and '.join(missing)}"] if missing else []


def _compare_data(instance: Instance, expected: dict[str, Any] | None) -> list[str]:
    wrong = []
    for name, value in (expected or {}).items():
        if instance.data.get(name) != value:
            found = format_value(instance.data[name]) if name in instance.data else "nothing"
            wrong.append(f"{name} is {found}, not {format_value(value)}")
    return wrong


def _compare_names(what: str, expected: Iterable[str] | None, found: list[str]) -> list[str]:
    if expected is None or Counter(expected) == Counter(found):
        return []
    return [f"{what}: {', '.join(found) or 'none'}; expected {', '.join(expected) or 'none'}"]


def _compare_messages(expected: list[Any] | None, sent: list[Sent]) -> list[str]:
    """Pair each expected message with one that was sent; no order is asserted."""
    if expected is None:
        return []
    left = list(sent)
    missing = []
    for message in (expand(one, "event") for one in expected):
        match = next((one for one in left if _is_match(message, one)), None)
        if match is None:
            missing.append(f"{message['event']} to {message['to']}" if "to" in message else message["event"])
        else:
            left.remove(match)
    lines = [f"no message {one} was sent" for one in missing]
    return lines + [f"a message {one} was sent, with {format_value(one.payload)}" for one in left]


def _is_match(message: dict[str, Any], sent: Sent) -> bool:
    fields = sent.payload if isinstance(sent.payload, dict) else {}
    wanted = message.get("payload", {}).items()
    return (message["event"], message.get("to", "")) == (sent.event, sent.to) and all(
        name in fields and fields[name] == value for name, value in wanted
    )


def _compare_transitions(expected: list[str] | None, taken: list[str], outline: Outline) -> list[str]:
    if expected is None:
        return []
    known = {one.id: one for state in outline.states for one in state.transitions}
    if len(expected) == len(taken) and all(
        text in (id, describe_transition(known[id]) if id in known else id)
        for text, id in zip(expected, taken, strict=True)
    ):
        return []
    shown = [describe_transition(known[id]) if id in known else id for id in taken]
    return [f"transitions taken: {', '.join(shown) or 'none'}; expected {', '.join(expected) or 'none'}"]


def describe_transition(transition: TransitionOutline) -> str:
    """Name a transition as scenarios do: ``Waiting -> Active``; one that stays ends where it began."""
    targets = transition.targets or ((transition.target,) if transition.target else (transition.source,))
    return f"{transition.source} -> {', '.join(targets)}"


def explain(happened: StepResult) -> list[str]:
    """List why each candidate of a refused event was not taken; empty for another error."""
    if not isinstance(happened.error, Refused):
        return []
    return [f"  {candidate}" for candidate in happened.error.candidates]


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that an instance sent to ``to``, a machine, or emitted, then ``to`` is empty."""

    event: str
    to: str
    payload: Any

    def __str__(self) -> str:
        return f"{self.event} to {self.to}" if self.to else self.event


@dataclass(slots=True)
class StepResult:
    """What a step did. ``error``: how the engine refused it; ``transitions``: ids, in order; ``sent``: messages."""

    error: SignalboxError | None = None
    transitions: list[str] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)


class Sandbox:
    """The machines of one scenario. ``kit``: on keys that no other test uses, with the machines published."""

    def __init__(self, kit: Signalbox) -> None:
        self.kit = kit
        self.engine: Engine = kit.engine
        self.machine, self.id = "", ""
        self._outbox = _WatchedDelivery(self.engine)
        self.engine._delivery = self._outbox
        self._revision = 0
        self._log_end = "0-0"

    def start(self, machine: str, given: dict[str, Any]) -> StepResult:
        """Create the instance, and do what is given to happen first. Raises SignalboxError, Impossible."""
        if "time" in given:
            self.kit.start_clock(read_time(given["time"]))
        self.machine, self.id = machine, given.get("id", FIRST_ID)
        self._revision = 0
        self.engine.create(machine, self.id, given.get("data"))
        self.kit.advance(0)
        happened = self._look()
        for when in given.get("events", ()):
            happened = self.perform(when)
            if happened.error is not None:
                raise happened.error
        return happened

    def clear(self) -> None:
        """Remove all instances and jobs, so that another one can begin in their place."""
        for machine in self.engine.machines():
            for instance in list(self.engine.find(machine, limit=100)):
                self.engine.delete(machine, instance.id, reason="another run")
        for job in self.list_waiting():
            self.engine.withdraw(job.machine, job.id, actor="", reason="another run")

    def perform(self, when: When) -> StepResult:
        """Do one thing, and all that becomes due with it. Raises Impossible, and AssertionError for a timer that
        fails."""
        error: SignalboxError | None = None
        try:
            if "event" in when:
                self._fire(when)
            elif "job" in when:
                self._end_job(when)
        except SignalboxError as raised:
            error = raised
        self.kit.advance(when.get("after", 0))
        happened = self._look()
        happened.error = error
        return happened

    def read(self) -> Instance:
        return self.engine.get(self.machine, self.id)

    def list_waiting(self, machine: str = "", id: str = "") -> list[Job]:
        """List the jobs that wait or run, of one instance or of all."""
        return [job for job in list_open(self.engine, machine) if not id or job.instance == id]

    def find_instances(self, machine: str) -> list[Instance]:
        """List the instances of another machine that have not ended."""
        if machine not in self.engine.machines():
            return []
        return [one for one in self.engine.find(machine, limit=100) if not one.done]

    # Events and jobs

    def _fire(self, when: When) -> None:
        machine, id = self._find_instance(find_target(when))
        permit = Permit(frozenset(when["groups"])) if "groups" in when else None
        self.engine.fire(machine, id, when["event"], when.get("payload"), actor=when.get("actor", ""), permit=permit)

    def _find_instance(self, machine: str) -> tuple[str, str]:
        if machine in ("", self.machine):
            return self.machine, self.id
        found = self.find_instances(machine)
        if len(found) != 1:
            known = ", ".join(sorted(self.engine.machines()))
            many = f"{len(found)} instances of {machine} have not ended" if found else ""
            raise Impossible(many or f"no instance of {machine!r} is running; machines here: {known}")
        return machine, found[0].id

    def _end_job(self, when: When) -> None:
        job = take_job(self.engine, self.kit.now, when["job"], find_target(when), (self.machine, self.id))
        if "done" in when:
            self.engine.complete(job, when["done"])
        else:
            failed = expand(when["failed"], "error")
            kind, retry = failed.get("kind", ""), failed.get("retry", False)
            self.engine.fail(job, failed.get("error", FAILED), kind=kind, retry=retry)

    # Observation

    def _look(self) -> StepResult:
        """Read what happened to the instance since the last time."""
        steps = self.engine.history(self.machine, self.id, limit=MOST_STEPS)
        new = [step for step in reversed(steps) if step.revision > self._revision]
        self._revision = max([self._revision, *(step.revision for step in steps)])
        return StepResult(
            None, [id for step in new for id in step.transitions], [*self._read_emitted(), *self._read_sent()]
        )

    def _read_emitted(self) -> list[Sent]:
        found = []
        for number in range(self.engine.count_partitions(self.machine)):
            log = self.engine.keys.partition(self.machine, number).log
            for id, entry in self.engine.client.xrange(log, min=f"({self._log_end}"):
                self._log_end = id
                if entry.get("kind") == "emit" and entry.get("instance") == self.id:
                    found.append(Sent(entry["name"], "", json.loads(entry.get("data") or "null")))
        return found

    def _read_sent(self) -> list[Sent]:
        sent, self._outbox.messages = self._outbox.messages, {}
        found = []
        for machine, body in sent.values():
            sender = body.get("from") or {}
            if (sender.get("machine"), sender.get("id")) == (self.machine, self.id):
                data = body.get("data")
                found.append(Sent(body.get("event", ""), machine, json.loads(data) if isinstance(data, str) else data))
        return found


class _WatchedDelivery(Delivery):
    """Delivers messages, and keeps the events among them that it read. ``messages``: id -> machine and body."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine._caller, engine._catalog)
        self.messages: dict[str, tuple[str, dict[str, Any]]] = {}

    def _read(self, *words: Any) -> tuple[list[OutboxPage], int, list[str]]:
        found = super()._read(*words)
        for page in found[0]:
            for message in (one for batch in page.batches.values() for one in batch):
                if message.kind == "event":
                    self.messages[f"{page.source} {message.id}"] = (message.machine, json.loads(message.body))
        return found
