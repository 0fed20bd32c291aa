"""Machines that write to each other, and what of it is under way."""

from __future__ import annotations

import time
from typing import Any

from machines.engine import Engine
from tests.engine.builders import machine


def noter(name: str = "noter", **on: Any) -> dict[str, Any]:
    """Notes the numbers it is sent, in the order they come."""
    note = {"actions": {"append": {"got": "event.n"}}}
    return machine(name, {"A": {"on": {"note": note} | on}}, context={"got": []}, accepts={"from": ["*"]})


def teller(name: str = "teller", *, to: str = "noter", event: str = "note") -> dict[str, Any]:
    """``tell`` sends ``n`` to the noter ``id``; ``burst`` sends the numbers below ``n``. It keeps what comes back."""
    target = {"machine": to, "id": "event.id"}
    one = {"send": {"event": event, "to": target, "data": {"n": "event.n"}, "id": "s1"}}
    each = {"send": {"event": event, "to": target, "data": {"n": "n"}}}
    lost = {"actions": [{"append": {"lost": "event.message"}}, {"append": {"ids": "trigger.sendid"}}]}
    on = {
        "tell": {"actions": one},
        "burst": {"actions": {"foreach": {"in": "range(0, event.n)", "item": "n", "do": [each]}}},
        "error.communication": lost,
    }
    return machine(name, {"A": {"on": on}}, context={"lost": [], "ids": [], "n": 0})


def told(engine: Engine, id: str = "x", name: str = "noter") -> list[Any]:
    found: list[Any] = engine.get(name, id).data["got"]
    return found


def post(engine: Engine, id: str, n: int, *, sender: str = "t", name: str = "teller", event: str = "tell") -> None:
    """The step alone: its messages stay in the outbox until somebody delivers them."""
    root = engine.keys.partition(name).root
    payload = f'{{"id":"{id}","n":{n}}}'
    reply = engine.client.fcall("sb_fire", 1, root, sender, event, payload, "", "", "", "", "")
    assert reply[0] == "OK", reply


def waiting(engine: Engine, name: str = "teller") -> int:
    """Messages in the outbox of a machine with one partition."""
    return int(engine.client.xlen(engine.keys.partition(name).outbox))


def remembered(engine: Engine, source: str = "teller", name: str = "noter") -> int:
    """Ids a partition keeps of another one's outbox."""
    return int(engine.client.zcard(engine.keys.partition(name).seen(engine.keys.partition(source).root)))


def in_minutes(minutes: float) -> int:
    """ms: the clock of messages is the server's own."""
    return int((time.time() + minutes * 60) * 1000)


def corrupt(engine: Engine, id: str, name: str = "noter") -> None:
    """No step of the instance can be made any more, until ``mend``."""
    engine.client.hset(engine.keys.partition(name).instance(id), "_state", "Nowhere")


def mend(engine: Engine, id: str, name: str = "noter", state: str = "A") -> None:
    engine.client.hset(engine.keys.partition(name).instance(id), "_state", state)


def deaf(**options: Any) -> dict[str, Any]:
    """A teller that does not listen for what comes back: a send that fails refuses its step."""
    definition = teller("deaf", **options)
    del definition["states"]["A"]["on"]["error.communication"]
    return definition


def lost(engine: Engine, id: str = "t", name: str = "teller") -> list[str]:
    """What the teller heard of messages that failed."""
    found: list[str] = engine.get(name, id).data["lost"]
    return found


def oldest(engine: Engine, count: int = 1) -> list[str]:
    """The oldest messages of the teller's outbox, as sb_deliver takes them: id, kind, instance and body of each."""
    reply = engine.client.fcall_ro("sb_outbox", 1, engine.keys.partition("teller").root, count, "")
    words = iter(reply[3:])
    rows = zip(*[words] * 5, strict=True)
    return [word for id, kind, _, instance, body in rows for word in (id, kind, instance, body)]


def deliver(engine: Engine, *messages: str, floor: str = "") -> list[Any]:
    """Hand messages of the teller's outbox to the noters' partition, and nothing else."""
    root, source = (engine.keys.partition(name).root for name in ("noter", "teller"))
    reply: list[Any] = engine.client.fcall("sb_deliver", 1, root, source, floor or messages[0], "", "", *messages)
    return reply


def wipe(engine: Engine, name: str, *, machines: bool = True) -> None:
    """Every key of a machine, and its name among the others."""
    for key in engine.client.scan_iter(match=f"{engine.keys.partition(name).root}*", count=1000):
        engine.client.delete(key)
    if machines:
        engine.client.hdel(engine.keys.machines, name)


def fill_outbox(engine: Engine, name: str) -> str:
    """Fill the outbox of a machine with messages of no kind, up to its limit. Return its key."""
    outbox = engine.keys.partition(name).outbox
    for _ in range(100):
        pipeline = engine.client.pipeline(transaction=False)
        for _ in range(1000):
            pipeline.xadd(outbox, {"kind": "x"})
        pipeline.execute()
    return outbox
