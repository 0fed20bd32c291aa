"""One random life, lived by a stored instance and by a simulated one."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Mapping
from typing import Any

from machines.engine import Engine, SignalboxError, SimulatedStep
from machines.engine.definitions import compile_definition
from tests.engine.builders import NOW
from tests.engine.jobs.stored_jobs import read_job
from tests.engine.versions.fleets import VALUES

ID = "p"
MOST_TIMERS = 200
JOB_FIELDS = ("invoke", "src", "queue", "input")


class Life:
    """Drives a stored instance by ``sb_fire``, ``sb_tick``, ``sb_complete`` and ``sb_fail``, and notes the
    inputs that a simulation needs to do the same, with what there was after each."""

    def __init__(self, engine: Engine, definition: Mapping[str, Any], seed: int) -> None:
        self.engine, self.name, self.now = engine, str(definition["id"]), NOW
        self.random = random.Random(seed)
        program = compile_definition(dict(definition)).program
        self.events = [name for name in program.get("known", ()) if not name.endswith("*")] or ["none"]
        self.payloads, self.queues = program.get("events", {}), program.get("queues", [])
        self.part = engine.keys.partition(self.name)
        self.inputs: list[Any] = []
        self.is_over = False
        self.seen: list[dict[str, Any]] = []

    def call(self, function: str, *words: Any) -> Any:
        return self.engine._caller.call(function, self.part.root, *words)

    def live(self, steps: int) -> bool:
        """Create the instance and let it live; False where it cannot begin."""
        self.engine.client.hset(self.part.definition(1), "secret", "")
        if self.call("sb_create", ID, "", "", "", "", "", self.now)[0] != "OK":
            return False
        self.note()
        while len(self.inputs) < steps and not self.is_over:
            self.random.choice([self.fire, self.fire, self.fire, self.wait, self.wait_long, self.work])()
        return True

    def fire(self) -> None:
        event = self.random.choice(self.events)
        payload = self.payload(event)
        self.call("sb_fire", ID, event, json.dumps(payload), "", "", "", "", self.now)
        self.inputs.append((event, payload))
        self.note()

    def payload(self, event: str) -> dict[str, Any]:
        declared = self.payloads.get(event)
        if declared is None:
            return self.random.choice([{}, {}, {"x": 1}, {"x": 2}])
        return {
            name: self.random.choice(VALUES[self.random.choice(field["types"])]) for name, field in declared.items()
        }

    def wait(self) -> None:
        self.advance(self.random.choice([0, 3, 700, 1500]))

    def wait_long(self) -> None:
        timers = self.engine.get(self.name, ID).timers
        if timers:
            self.advance(max(0, min(timer.due for timer in timers) - self.now))

    def advance(self, ms: int) -> None:
        """Let the clock stop at each timer that is due. A life in which very many are due ends before that."""
        till, count = self.now + ms, 0
        while (due := self.find_due()) is not None and due <= till:
            self.now, count = max(due, self.now), count + 1
            if count > MOST_TIMERS:
                self.is_over = True
                return
            self.call("sb_tick", self.now, 1)
        self.now = till
        self.inputs.append({"advance": ms})
        self.note()

    def find_due(self) -> int | None:
        rows = []
        for key in (self.part.timers, self.part.late):
            rows += self.engine.client.zrange(key, 0, 0, withscores=True)
        return min((int(score) for _, score in rows), default=None)

    def work(self) -> None:
        """Take the jobs that are ready, and end one that the instance waits for."""
        held = []
        for queue in self.queues:
            held += self.engine.take(self.name, queue, "w", count=20, now=self.now)
        awaited = self.engine.get(self.name, ID).jobs
        open_jobs = [job for job in held if job.id in awaited]
        chosen = self.random.choice(open_jobs) if open_jobs else None
        if chosen:
            self.end(chosen)
        for job in held:
            if job is not chosen:
                with contextlib.suppress(SignalboxError):
                    self.engine.hand_back(job, now=self.now)

    def end(self, job: Any) -> None:
        invoke = read_job(self.engine.client, self.part.job(job.id)).get("invoke")
        if self.random.random() < 0.6:
            result = self.random.choice([None, {"token": "T1"}, 3])
            try:
                self.engine.complete(job, result, now=self.now)
            except SignalboxError:
                self.engine.hand_back(job, now=self.now)
            self.inputs.append({"job": _text(invoke), "done": result})
        else:
            self.engine.fail(job, "no", kind="E", retry=False, now=self.now)
            self.inputs.append({"job": _text(invoke), "failed": "no", "kind": "E"})
        self.note()

    def note(self) -> None:
        one = self.engine.get(self.name, ID)
        rows = [read_job(self.engine.client, self.part.job(job)) for job in one.jobs]
        self.seen.append(
            {
                "configuration": one.configuration,
                "data": present(one.data),
                "revision": one.revision,
                "timers": sorted((timer.due, timer.id, timer.event, timer.state) for timer in one.timers),
                "children": one.children,
                "jobs": sorted(
                    tuple(row.get(name, "") for name in ("invoke", "src", "queue", "input")) for row in rows
                ),
                "history": len(self.engine.history(self.name, ID)),
                "messages": self.engine.client.xlen(self.part.outbox),
                "log": len(self.log()),
                "done": one.done,
            }
        )

    def log(self) -> list[tuple[str, str, Any]]:
        rows = [{_text(k): _text(v) for k, v in row.items()} for _, row in self.engine.client.xrange(self.part.log)]
        return [(row["kind"], row["name"], json.loads(row["data"])) for row in rows if row["kind"] in ("emit", "log")]

    def outbox(self) -> list[tuple[Any, ...]]:
        rows = [{_text(k): _text(v) for k, v in row.items()} for _, row in self.engine.client.xrange(self.part.outbox)]
        bodies = [(row["kind"], row["machine"], row["id"], json.loads(row["body"])) for row in rows]
        return [
            (kind, machine, id, body.get("event"), json.loads(body.get("data", "null")))
            for kind, machine, id, body in bodies
        ]


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value or ""


def present(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in values.items() if value is not None}


def compare(life: Life, inputs: list[Any], found: list[SimulatedStep]) -> int:
    """Compare what a simulation did with what was stored; return how many steps agree."""
    after = {record.input: record for record in found}
    steps = [record for record in found if record.taken]
    for number, wanted in enumerate(life.seen):
        upto = [record for record in found if record.input < number]
        last = after[number - 1]
        jobs = sorted((j["invoke"], j["src"], j["queue"], _input(j["input"])) for j in last.jobs)
        got = {
            "configuration": last.configuration,
            "data": present(last.data),
            "revision": last.revision,
            "timers": sorted((timer.due, timer.id, timer.event, timer.state) for timer in last.timers),
            "children": {child["invoke"]: {n: child[n] for n in ("machine", "id")} for child in last.children},
            "jobs": jobs,
            "history": sum(record.taken for record in upto),
            "messages": sum(len(record.messages) for record in upto),
            "log": sum(len(record.log) for record in upto),
            "done": last.done,
        }
        differing = {name: (got[name], value) for name, value in wanted.items() if got[name] != value}
        assert not differing, (number, inputs[max(0, number - 2) : number], differing)
    assert [(row["kind"], row["name"], row["data"]) for record in found for row in record.log] == life.log()
    sent = [message for record in found for message in record.messages]
    rows = [(m["kind"], m["machine"], m["id"], m.get("event"), m["data"]) for m in sent]
    assert rows == life.outbox()
    for record, entry in zip(steps, reversed(life.engine.history(life.name, ID)), strict=True):
        assert (record.event, record.configuration, record.transitions, record.at, record.revision) == (
            entry.event, entry.configuration, entry.transitions, entry.at, entry.revision
        )  # fmt: skip
        assert present(record.changes) == present(entry.changes)
    return len(steps)


def _input(value: Any) -> str:
    return "" if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
