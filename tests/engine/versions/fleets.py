"""Fleets of instances that live a random life: events, timers, jobs, messages, suspensions and repairs, by a seed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from machines.engine import Engine, Fire, SignalboxError
from machines.engine.definitions import compile_definition
from tests.engine.builders import NOW

STEP_MS = 700
VALUES: Mapping[str, Sequence[Any]] = {
    "string": ["", "a", "MTOB1J", "NBCSports", "längere Wörter\nund Zeilen", '"quoted"'],
    "integer": [0, 1, 2, 5, 1000, -3],
    "number": [0, 0.5, 1, 2.25, 1e9],
    "boolean": [True, False],
    "array": [[], [1, "a"], [{"x": None}]],
    "object": [{}, {"a": 1, "b": [True]}],
    "null": [None],
    "any": [None, 1, "a", [1], {"a": {}}],
}


class Fleet:
    """Instances of one machine. ``now`` moves on with each round; nothing but ``seed`` decides what happens."""

    def __init__(self, engine: Engine, definition: Mapping[str, Any], seed: int, *, now: int = NOW) -> None:
        self.engine, self.name, self.now = engine, str(definition["id"]), now
        self.random = random.Random(seed)
        self.ids: list[str] = []
        self.learn(definition)

    def learn(self, definition: Mapping[str, Any]) -> None:
        """Take events, states and queues from a definition."""
        program = compile_definition(dict(definition)).program
        self.events = [name for name in program.get("known", ()) if not name.endswith("*")] or ["none"]
        self.payloads = program.get("events", {})
        self.leaves = [state["name"] for state in program["states"] if "kind" not in state]
        self.fields = {field["name"]: field.get("types", [field["type"]]) for field in program.get("data", ())}
        self.queues = program.get("queues", [])

    def create(self, count: int, prefix: str = "f", *, names: Sequence[str] = (), data: bool = True) -> None:
        """Create instances, those with ``names`` first, some with ``data``, which is left out where it is refused."""
        for number in range(count):
            id = names[number] if number < len(names) else f"{prefix}{len(self.ids)}"
            given = {name: self.value(types) for name, types in self.fields.items() if self.random.random() < 0.2}
            try:
                self.engine.create(self.name, id, given if data else {}, now=self.now)
            except SignalboxError:
                try:
                    self.engine.create(self.name, id, now=self.now)
                except SignalboxError:
                    continue
            self.ids.append(id)

    def value(self, types: Sequence[str]) -> Any:
        return self.random.choice(VALUES[self.random.choice(types)])

    def payload(self, event: str) -> dict[str, Any]:
        declared = self.payloads.get(event)
        if declared is None:
            return self.random.choice([{}, {}, {"x": 1}, {"x": 2}])
        return {name: self.value(field["types"]) for name, field in declared.items() if name}

    def live(self, rounds: int, *, repairs: bool = True) -> None:
        """Let some rounds pass; in each, most instances get an event, and timers and workers do their work."""
        for _ in range(rounds):
            self.now += self.random.choice([7, STEP_MS, STEP_MS, 5 * STEP_MS])
            chosen = [id for id in self.ids if self.random.random() < 0.7]
            events = [self.random.choice(self.events) for _ in chosen]
            self.engine.fire_many(
                [Fire(self.name, id, e, self.payload(e), now=self.now) for id, e in zip(chosen, events, strict=True)]
            )
            if repairs:
                self.repair()
            self.work()
            self.tick()

    def tick(self) -> None:
        try:
            self.engine.tick(self.name, now=self.now)
        except SignalboxError:
            return

    def repair(self) -> None:
        """Suspend, resume, force and edit a few."""
        for id in self.random.sample(self.ids, min(3, len(self.ids))):
            try:
                self.repair_one(id, {"actor": "ann", "reason": "a test", "now": self.now})
            except SignalboxError:
                continue

    def repair_one(self, id: str, common: Mapping[str, Any]) -> None:
        match self.random.choice(["suspend", "resume", "force", "reset", "edit"]):
            case "suspend":
                self.engine.suspend(self.name, id, **common)
            case "resume":
                self.engine.resume(self.name, id, overdue=self.random.choice(["fire", "shift"]), **common)
            case "force":
                self.engine.force(self.name, id, self.random.choice(self.leaves), **common)
            case "reset":
                self.engine.reset(self.name, id, **common)
            case _:
                self.edit(id, common)

    def edit(self, id: str, common: Mapping[str, Any]) -> None:
        if self.fields:
            name = self.random.choice([*self.fields])
            self.engine.edit(self.name, id, {name: self.value(self.fields[name])}, **common)

    def work(self) -> None:
        """Take jobs: most are completed, some fail, some are left running."""
        for queue in self.queues:
            for job in self.engine.take(self.name, queue, "worker", count=20, lease=10_000_000, now=self.now):
                chance = self.random.random()
                try:
                    if chance < 0.5:
                        self.engine.complete(job, self.random.choice([None, {"token": "T1"}, 3]), now=self.now)
                    elif chance < 0.7:
                        self.engine.fail(job, "no", retry=False, now=self.now)
                    elif chance < 0.85:
                        self.engine.hand_back(job, now=self.now)
                except SignalboxError:
                    continue

    def count_steps(self) -> int:
        """Return the number of recorded steps."""
        found = self.engine.get_many(self.name, self.ids)
        return sum(one.revision for one in found if not isinstance(one, SignalboxError))
