"""One instance of a machine on keys of its own, and what a scenario can do to it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from machines.engine import Engine, Instance, Job, Permit, SignalboxError
from machines.engine.messages.delivery import Delivery
from machines.engine.messages.outbox import OutboxPage
from machines.testing.job_ends import Impossible, list_open, take_job
from machines.testing.kit import Signalbox

from .document import Given, When

FIRST_ID = "1"
MOST_STEPS = 1000  # of a history, read after each step


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that an instance sent to ``to``, a machine, or emitted, then ``to`` is empty."""

    event: str
    to: str
    payload: Any

    def __str__(self) -> str:
        return f"{self.event} to {self.to}" if self.to else self.event


@dataclass(slots=True)
class Happened:
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

    def start(self, machine: str, given: Given, id: str = "") -> Happened:
        """Create the instance, and do what is given to happen first. Raises SignalboxError, Impossible."""
        if given.time is not None:
            self.kit.start_clock(given.time)
        self.machine, self.id = machine, id or given.id or FIRST_ID
        self._revision = 0
        self.engine.create(machine, self.id, given.data)
        self.kit.advance(0)
        happened = self._look()
        for when in given.events:
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

    def perform(self, when: When) -> Happened:
        """Do one thing, and all that becomes due with it. Raises Impossible, and AssertionError for a timer that
        fails."""
        error: SignalboxError | None = None
        try:
            if when.kind == "event":
                self._fire(when)
            elif when.kind == "job":
                self._end_job(when)
        except SignalboxError as raised:
            error = raised
        self.kit.advance(when.delay / 1000)
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
        machine, id = self._find_target(when)
        permit = None if when.groups is None else Permit(frozenset(when.groups))
        self.engine.fire(machine, id, when.name, when.payload, actor=when.actor, permit=permit)

    def _find_target(self, when: When) -> tuple[str, str]:
        if when.machine in ("", self.machine):
            return self.machine, self.id
        found = self.find_instances(when.machine)
        if len(found) != 1:
            known = ", ".join(sorted(self.engine.machines()))
            many = f"{len(found)} instances of {when.machine} have not ended" if found else ""
            raise Impossible(many or f"no instance of {when.machine!r} is running; machines here: {known}")
        return when.machine, found[0].id

    def _end_job(self, when: When) -> None:
        job = take_job(self.engine, self.kit.now, when.name, when.machine, (self.machine, self.id))
        if when.outcome == "done":
            self.engine.complete(job, when.result)
        else:
            self.engine.fail(job, when.error, kind=when.error_kind, retry=when.retry)

    # Observation

    def _look(self) -> Happened:
        """Read what happened to the instance since the last time."""
        steps = self.engine.history(self.machine, self.id, limit=MOST_STEPS)
        new = [step for step in reversed(steps) if step.revision > self._revision]
        self._revision = max([self._revision, *(step.revision for step in steps)])
        return Happened(
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
