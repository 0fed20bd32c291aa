"""Keys that somebody else wrote to: other fields, other members, another type, nothing at all."""

from __future__ import annotations

import random
from typing import Any

import redis

from . import words, world
from .cases import expand

Damage = list[Any]  # a command and its words; the key is without the prefix
Random = random.Random

BOX, YARD = world.B, world.Y
HASHES = [
    *(f"{BOX}:i:{id}" for id in "aaabbbcdefz"), *(f"{YARD}:i:{id}" for id in "pppq"),
    *(f"{BOX}:job:0-{number}" for number in (1, 1, 2, 3, 4, 5, 6)),
    *(f"{BOX}:{name}" for name in ("meta", "meta", "def:1", "def:1", "flow", "q:work:rules", "qs:work")),
    f"{BOX}:wrong", f"{BOX}:refused", f"{BOX}:floors", f"{YARD}:meta", f"{YARD}:def:1",
    "machines", "lock:{p}:last",
    "record:{p}:r:k", "ids:{p}:holders", "ids:{p}:guard", "buffer:{p:0}:marks", "buffer:{p:0}:e:page",
    f"buffer:{{p:0}}:b:{world.NOW}-2", "sm",
]  # fmt: skip
ZSETS = [
    *(f"{BOX}:{name}" for name in ("in:Idle", "in:Busy", "q:work", "q:work:leased", "q:work:delayed", "q:work:dead")),
    *(f"{BOX}:{name}" for name in ("timers", "late", "by:t", "by:n", "by:instance.id", "seen:x")),
    *(f"{YARD}:{name}" for name in ("timers", "timers", "late", "in:wait")), "session:{p:0}:of:ann", "ids:{p}:nodes",
    "buffer:{p:0}:pending", "buffer:{p:0}:claims", "board:{p}:scores:19675",
]  # fmt: skip
STRINGS = [
    f"{BOX}:u:post:b", f"{BOX}:k:1:a:key", f"{BOX}:w:0-1", "layout", "lock:{p}:holder", "record:{p}:last",
    f"session:{{p:0}}:s:{world.HANDLE}", "block:{p}:next", "buffer:{p:0}:held", "buffer:{p:0}:seq", "board:{p}:epoch",
    "distinct:{p}:sketch:19675:part", "pace:{p:k}",
]  # fmt: skip
STREAMS = [f"{YARD}:out", f"{BOX}:out", f"{BOX}:log", "stream:{p}:log", "stream:{p}:dead"]
LISTS = [f"{BOX}:h:a", f"{BOX}:h:b", f"{BOX}:q:work:bell", f"{BOX}:bell", f"{BOX}:held:f", f"{YARD}:held:q"]
SETS = [f"{BOX}:states", f"{BOX}:queues", "distinct:{p}:set:19675:part"]
PLACES = [
    *((key, "hash") for key in HASHES), *((key, "zset") for key in ZSETS), *((key, "string") for key in STRINGS),
    *((key, "stream") for key in STREAMS), *((key, "list") for key in LISTS), *((key, "set") for key in SETS),
]  # fmt: skip
FIELDS = [
    "_version", "_state", "_def", "_entered", "_jobs", "_timers", "_children", "_parent", "_suspended", "_created",
    "_actor", "n", "t", "l", "x", "place", "queue", "token", "plain", "attempt", "attempts", "instance", "invoke",
    "unique", "lease", "timeout", "taken", "started", "created", "due", "deadline", "priority", "backoff", "stop",
    "log", "progress", "input", "current", "newest", "instances", "jobs", "by", "partitions", "sensitive", "def:1",
    "program", "source", "digest", "secret", "paused", "concurrency", "rate", "tat", "declared_rate",
    "declared_concurrency", "enqueued", "body", "kind", "machine", "id", "map", "initial", "reason", "token",
    "fence", "since", "until", "owner", "value", "generation", "run", "floor", "longest", "0", "1", "_", "c:hits",
    "f:f", "takes", "count", "_done", "_h:was",
]  # fmt: skip
SCORES = ["0", "-1e300", "inf", "-inf", "1.5", "1e17"]
#: how something of that type comes into being
PLANTS = {
    "string": ["set", "x"], "list": ["rpush", "x"], "set": ["sadd", "x"], "hash": ["hset", "x", "x"],
    "zset": ["zadd", "1", "x"], "stream": ["xadd", "*", "x", "x"],
}  # fmt: skip


def draw(rng: Random) -> Damage:
    key, kind = rng.choice(PLACES)
    if rng.random() < 0.2:
        return ["plant", key, rng.choice(sorted(PLANTS))]
    value, field, member = words.word(rng), rng.choice(FIELDS), rng.choice(["a", "b", "0-1", "0-3"])
    ways: dict[str, list[Damage]] = {
        "hash": [["hset", key, field, value], ["hdel", key, field], ["hset", key, value, "x"]],
        "zset": [["zadd", key, rng.choice(SCORES), rng.choice([member, value])], ["zrem", key, member]],
        "list": [["rpush", key, value], ["lset", key, "0", value]],
        "string": [["set", key, value]],
        "stream": [["xadd", key, "*", field, value], ["xtrim", key, "MAXLEN", "0"]],
        "set": [["sadd", key, value]],
    }
    return rng.choice([*ways[kind], ["del", key]])


def do(client: Any, prefix: str, damage: Damage) -> None:
    """What cannot be done, to a key that is not there or of another type, is no damage."""
    command, key, *rest = damage
    name = (prefix + key).encode("latin-1", "replace")
    if command == "plant":
        client.delete(name)
        command, *rest = PLANTS[rest[0]]
    try:
        client.execute_command(command, name, *(str(expand(word)).encode("latin-1", "replace") for word in rest))
    except redis.ResponseError:
        return
