"""For each pattern: itself with something in it, and what the rows of ``table`` ask for."""

from __future__ import annotations

from types import SimpleNamespace

from machines.patterns import (
    Blocks,
    Bus,
    Cardinality,
    HeldLock,
    Lock,
    Locks,
    Records,
    Scoreboard,
    Sessions,
    Snowflakes,
    Stream,
    Subscription,
    Throttle,
    WriteBuffer,
)
from machines.patterns.bus import AttachedStream
from machines.patterns.cas import Values


def sessions(redis, prefix):
    made = Sessions(redis, "s", prefix=prefix, max_bytes=64)
    session = made.create("ann", {"n": 1})
    return SimpleNamespace(made=made, token=session.token, handle=session.handle)


def write_buffer(redis, prefix):
    made = WriteBuffer(redis, "w", prefix=prefix)
    made.add("e", counters={"n": 1})
    return SimpleNamespace(made=made, batch=made.claim(lease=3600))


def throttle(redis, prefix):
    made = Throttle(redis, prefix)
    made.take("t", "k", limit=5, per=3600)
    return SimpleNamespace(made=made)


def snowflakes(redis, prefix):
    return SimpleNamespace(made=Snowflakes(redis, "i", prefix=prefix))


def blocks(redis, prefix):
    return SimpleNamespace(made=Blocks(redis, "b", prefix=prefix))


def cardinality(redis, prefix):
    made = Cardinality(redis, "c", prefix=prefix)
    made.add("ann")
    return SimpleNamespace(made=made)


def scoreboard(redis, prefix):
    made = Scoreboard(redis, "s", prefix=prefix, period="day", keep=3)
    made.add("ann", 5)
    return SimpleNamespace(made=made)


def locks(redis, prefix):
    made = Locks(redis, prefix)
    free, held = made.lock("free"), made.lock("held", ttl=3600).acquire()
    return SimpleNamespace(made=made, lock=free, held=held)


def bus(redis, prefix):
    made = Bus(redis, prefix)
    return SimpleNamespace(made=made, subscription=made.subscribe("t"))


def stream(redis, prefix):
    made = Stream(redis, "s", prefix=prefix)
    made.group("g")
    return SimpleNamespace(made=made, id=made.append({"n": 1}), root=made.keys.root)


def attached(redis, prefix):
    stage = stream(redis, prefix)
    stage.made = AttachedStream(redis, stage.root, prefix=prefix, most=9)
    return stage


def records(redis, prefix):
    made = Records(redis, "r", prefix=prefix)
    made.put("k", 1, expect=0)
    return SimpleNamespace(made=made)


def values(redis, prefix):
    return SimpleNamespace(made=Values(redis, "other:"), key=f"{prefix}v")


STAGES = {
    Bus: bus,
    Subscription: bus,
    Stream: stream,
    AttachedStream: attached,
    Locks: locks,
    Lock: locks,
    HeldLock: locks,
    Records: records,
    Values: values,
    Sessions: sessions,
    WriteBuffer: write_buffer,
    Throttle: throttle,
    Snowflakes: snowflakes,
    Blocks: blocks,
    Cardinality: cardinality,
    Scoreboard: scoreboard,
}
