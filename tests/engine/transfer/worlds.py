"""A machine with everything that an export holds, and what can be read of it."""

from __future__ import annotations

import json
from typing import Any

from machines.engine import Engine
from machines.engine.transfer.exporting import Export
from machines.engine.transfer.importing import Import
from tests.engine.builders import NOW, machine


def order() -> dict[str, Any]:
    """Two regions, a timer, a job, a job beside, data, an index, a history state."""
    pay = {
        "initial": "Open",
        "states": {
            "Open": {"on": {"pay": "Paying"}},
            "Paying": {
                "invoke": {
                    "src": "charge",
                    "id": "charge",
                    "onDone": "Paid",
                    "onError": "Failed",
                    "retry": {"attempts": 1},
                },
                "on": {"back": "Open"},
            },
            "Paid": {},
            "Failed": {},
        },
    }
    ship = {
        "initial": "Packing",
        "states": {
            "Packing": {"on": {"note": {"actions": {"set": {"n": "n + 1"}}}}, "after": {"1000d": "Late"}},
            "Late": {},
        },
    }
    work = {
        "type": "parallel",
        "states": {"Pay": pay, "Ship": ship},
        "on": {"hold": "Held", "mail": {"actions": {"enqueue": {"src": "letter"}}}},
    }
    return machine(
        "order",
        {"Work": work, "Held": {"on": {"go": "Work"}}},
        context={
            "type": "object",
            "properties": {"n": {"type": "integer", "default": 0}, "who": {"type": "string"}, "more": {}},
        },
        index=["who", "instance.transition"],
    )


def fill(engine: Engine, count: int = 12) -> list[str]:
    """Create instances that stand at different places; return their ids."""
    engine.publish(order())
    ids = [f"o{number:03}" for number in range(count)]
    for number, id in enumerate(ids):
        engine.create("order", id, {"who": f"é{number % 3}", "more": {"a": [1, {}], "b": []}}, now=NOW + number)
        for _ in range(number % 4):
            engine.fire("order", id, "note", actor="ann", reason="why not", now=NOW + 100)
        if number % 3 == 0:
            engine.fire("order", id, "pay", now=NOW + 200)
        if number % 5 == 0:
            engine.suspend("order", id, actor="ann", reason="wait", now=NOW + 300)
        if number == 1:
            engine.fire("order", id, "mail", now=NOW + 300)
    engine.enqueue("order", "sweep", {"x": 1}, unique="nightly", delay=300_000_000_000, now=NOW)
    for job in engine.take("order", "charge", "w1", count=2, now=NOW + 400):  # the first is of a suspended instance
        engine.fail(job, "no money", kind="Poor", now=NOW + 500)
    engine.pause("order", "letter", actor="ann", reason="no stamps", now=NOW)
    engine.limit("order", "charge", concurrency=16, rate="10/s", actor="ann", reason="slow")
    engine.limit("order", "charge", group="acme", concurrency=3, rate="5/s burst 20", actor="ann", reason="slow")
    engine.pause("order", "charge", group="idle", actor="ann", reason="asked")
    return ids


def describe(engine: Engine, ids: list[str]) -> dict[str, Any]:
    """Everything about the machine but the numbers of its jobs."""
    found: dict[str, Any] = {}
    for id in ids:
        instance = engine.get("order", id)
        steps = [(s.revision, s.event, s.actor, s.reason, s.at, s.changes) for s in engine.history("order", id)]
        jobs = [(w.invoke, w.queue, w.src, w.place) for w in engine.waits("order", id)]
        found[id] = (
            instance.configuration, instance.data, instance.revision, instance.version, instance.entered,
            instance.created, instance.actor, instance.suspended, instance.timers, steps, jobs,
        )  # fmt: skip
    live = engine.live("order")
    found["counts"], found["flow"], found["queues"] = live.counts, live.flow, live.queues
    found["who"] = [i.id for i in engine.find("order", where={"who": "é1"})]
    stats = engine.stats("order")
    found["stats"] = {
        name: (s.depth, s.died, s.taken, s.rate, s.concurrency, bool(s.paused)) for name, s in stats.items()
    }
    found["groups"] = _list_group_limits(engine)
    found["errors"] = sorted(i.id for i in engine.find("order", error="Poor"))
    return found


def _list_group_limits(engine: Engine) -> list[dict[str, Any]]:
    """List what groups of the queue have of their own: the same on each partition."""
    found: list[dict[str, Any]] = []
    for partition in engine._catalog.partitions("order"):
        stored = {str(g): json.loads(own) for g, own in engine.client.hgetall(partition.limits("charge")).items()}
        own = {g: (row.get("concurrency"), row.get("rate"), "paused" in row) for g, row in stored.items()}
        if own not in found:
            found.append(own)
    return found


def export(engine: Engine, path, machine: str = "order") -> Export:
    found = Export(engine.client, engine.keys, machine, path)
    found.run()
    return found


def read(engine: Engine, path, **options: Any):
    return Import(engine.client, engine.keys, path, **options).run()
