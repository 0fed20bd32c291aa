"""Messages: one appended, read and acknowledged, against the commands by hand; and told to whoever listens."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from benchmarks.stage import PREFIX, Stage
from machines.engine.pattern_keys import PatternKeys
from machines.patterns import Bus, Stream

PEER = "XADD, XAUTOCLAIM, XREADGROUP, XACK by hand"
LIST = "LPUSH, BRPOPLPUSH, LREM by hand"
OURS = "append, read, ack"
MANY, MANY_PEER = "append, read 100, ack 100", "by hand, read 100, ack 100"
TELL, TELL_PEER = "publish", "PUBLISH by hand"
PEERS = {MANY: MANY_PEER, TELL: TELL_PEER}
AIMS = {LIST: None}
NOTE = (
    "One message through its whole life is an operation: by hand four commands, of which XAUTOCLAIM looks for what "
    "dead readers left; ours three calls, which also keep what is not acknowledged from being trimmed (XADD MAXLEN "
    "drops it). The list recipe has no groups, and no time after which a reader counts as dead. With a "
    "hundred at a time what is left is a function's call for each message against an XADD: that costs the server more "
    "and the client less. Publishing is the same command, with a checked topic and a document."
)
BODY = {"order": 7, "of": "tea"}
KEEP = 10_000
BATCH = 100


Run = Callable[[int], None]


def commands(redis: Any, count: int) -> Run:
    """The usual recipe, ``count`` messages at a time."""
    key, text = f"{PREFIX}byhand", json.dumps(BODY)

    def run(times: int) -> None:
        for start in range(0, times, count):
            for _ in range(min(count, times - start)):
                redis.xadd(key, {"body": text}, maxlen=KEEP, approximate=True)
            redis.xautoclaim(key, "g", "r", 60_000, count=count)
            ((_, found),) = _entries(redis.xreadgroup("g", "r", {key: ">"}, count=count))
            redis.xack(key, "g", *(id for id, fields in found if json.loads(fields["body"])))

    return run


def calls(stream: Stream, count: int) -> Run:
    def run(times: int) -> None:
        for start in range(0, times, count):
            for _ in range(min(count, times - start)):
                stream.append(BODY)
            stream.ack("g", *(message.id for message in stream.read("g", "r", count=count)))

    return run


def listed(redis: Any) -> Run:
    key, held, text = f"{PREFIX}list", f"{PREFIX}list:held", json.dumps(BODY)

    def run(times: int) -> None:
        for _ in range(times):
            redis.lpush(key, text)
            redis.lrem(held, 1, redis.brpoplpush(key, held, 1))

    return run


def contenders(stage: Stage) -> dict[str, Run]:
    redis = stage.engine.client
    redis.xgroup_create(f"{PREFIX}byhand", "g", mkstream=True)
    stream, bus = Stream(redis, "bench", prefix=PREFIX, most=KEEP), Bus(redis, PREFIX)
    stream.group("g")
    channel = PatternKeys(PREFIX).topic("bench").channel

    def publish_by_hand(times: int) -> None:
        for _ in range(times):
            redis.publish(channel, json.dumps(BODY))

    def publish(times: int) -> None:
        for _ in range(times):
            bus.publish("bench", BODY)

    return {
        PEER: commands(redis, 1), LIST: listed(redis), OURS: calls(stream, 1), MANY_PEER: commands(redis, BATCH),
        MANY: calls(stream, BATCH), TELL_PEER: publish_by_hand, TELL: publish,
    }  # fmt: skip


def _entries(told: Any) -> Any:
    """The same by both versions of the protocol."""
    return [(key, parts[0]) for key, parts in told.items()] if isinstance(told, dict) else told
