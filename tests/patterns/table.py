"""The table of ``battery``: one row for each public call of each pattern."""

from __future__ import annotations

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
    Write,
    WriteBuffer,
)
from machines.patterns.bus import AttachedStream
from machines.patterns.cas import Values

from .battery import (
    BODY,
    COUNT,
    FLAG,
    FUNCTION,
    ID,
    INDEX,
    KEY,
    KEYS,
    NAME,
    NAN,
    NOW,
    PARTS,
    PAUSE,
    PERIOD,
    POINTS,
    SECONDS,
    STATE,
    Row,
)

AT = (NOW, 1_800_000_000_000)
KEYED = (KEY, "k")

WRITES = [None, 7, ["x"], [None], [Write("", {"n": 1})], [Write("e", {"n": 1.5})], [Write("e", {"n": True})]]
WRITES += [[Write("e", {"n": 2**53 + 1})], [Write("e", {"": 1})], [Write("e", {}, {"f": float("nan")})]]
WRITES += [[Write("e", {}, {"f": b"x"})], "ab", {"e": 1}, [Write("e", {"n": 1})] * 1001]
COUNTERS = [7, [1], {"": 1}, {7: 1}]
COUNTERS += [{"n": wrong} for wrong in (1.0, 1.5, True, "1", None, 2**53, -(2**63), 2**63, float("inf"))]
FIELDS = [7, [], [1], {"f" * 513: 1}, {"": 1}, {7: 1}]
FIELDS += [{"f": wrong} for wrong in (float("nan"), b"x", {1}, "x" * 70_000)]
MARKS = [7, [1], {"m": "x"}, {"m": (1, "x")}, {"m": (None, 7)}, {"": (None, "x")}, {"m": ("a", "b", "c")}]
MARKS += [{7: (None, "x")}, {"m": (None, "")}, {"m": ("x", "x")}]
BATCH = [None, 7, "b", {}]
SCORES = [None, {}, 7, ["a"], [("a", 1)], dict.fromkeys(map(str, range(1001)), 1), {"": 1}, {7: 1}]
SCORES += [{"a": wrong} for wrong in (float("nan"), "1", True, 2**63)]
MAKING = [*FUNCTION, lambda value: None, lambda value: NAN, lambda value: {1}, lambda value: b"x"]
WRITING = [*FUNCTION, lambda value: None, lambda value: 7, lambda value: {}, lambda value: {"a": 1}, lambda value: b"x"]
HANDLE = [None, "", "x", 7, "0" * 17, "x" * 16, "A" * 16, "a:b", "{a}", "é" * 16]

TAKING = {
    "name": (NAME, "t"),
    "key": KEYED,
    "limit": (COUNT, 5),
    "per": (SECONDS, 60),
    "cost": (COUNT, 1),
    "ahead": (COUNT, 1),
    "now": AT,
}
TOKEN = ([], lambda stage: stage.token)  # any other opens nothing
BY_HANDLE = {"subject": KEYED, "handle": (HANDLE, lambda stage: stage.handle)}

START = ["", "1", "1-1", "x", "+", ">", None, 0, 7, b"0"]
READING = {"group": (KEY, "g"), "reader": KEYED, "count": (COUNT, 5), "block": (PAUSE, 0), "idle": (SECONDS, 60)}

ROWS = [
    Row(Sessions, "__init__", {"name": (NAME, "s"), "ttl": (SECONDS, 60), "sliding": (FLAG, True),
        "lifetime": (SECONDS, 60), "max_bytes": (COUNT, 99), "most": (COUNT, 9), "drop": (FLAG, True),
        "partitions": (COUNT, 2)}, silent=True),
    Row(Sessions, "create", {"subject": KEYED, "state": (STATE, {}), "ttl": (SECONDS, 60), "now": AT}),
    Row(Sessions, "get", {"token": TOKEN, "now": (NOW, None)}),
    Row(Sessions, "put", {"token": TOKEN, "state": (STATE, {}), "expect": (INDEX, None), "now": (NOW, None)}),
    Row(Sessions, "rotate", {"token": TOKEN, "grace": (PAUSE, 60), "now": (NOW, None)}),
    Row(Sessions, "rotate_handle", {**BY_HANDLE, "grace": (PAUSE, 1), "now": (NOW, None)}),
    Row(Sessions, "revoke", {"token": TOKEN, "now": (NOW, None)}),
    Row(Sessions, "revoke_handle", {**BY_HANDLE, "now": (NOW, None)}),
    Row(Sessions, "revoke_all", {"subject": KEYED, "but": (HANDLE[1:], None), "now": (NOW, None)}),
    Row(Sessions, "of", {"subject": KEYED, "now": (NOW, None)}),
    Row(Sessions, "of_each", {"subjects": (KEYS, ["k"]), "now": (NOW, None)}),
    Row(WriteBuffer, "__init__", {"name": (NAME, "w"), "partitions": (COUNT, 2), "most": (COUNT, 9)}, silent=True),
    Row(WriteBuffer, "add", {"entity": KEYED, "counters": (COUNTERS, {"n": 1}), "fields": (FIELDS, {"f": 1}),
        "now": AT}),
    Row(WriteBuffer, "add_many", {"writes": (WRITES, [Write("e", {"n": 1})]), "marks": (MARKS, {"m": (None, "1")}),
        "part": (INDEX, 0), "now": AT}),
    Row(WriteBuffer, "marks", {"names": (KEYS[1:], ["m"]), "part": (INDEX, 0)}),
    Row(WriteBuffer, "claim", {"limit": (COUNT, 5), "lease": (SECONDS, 60), "gather": (PAUSE, 0), "part": (INDEX, 0),
        "now": (NOW, None)}),
    Row(WriteBuffer, "settle", {"batch": (BATCH, lambda stage: stage.batch)}),
    Row(WriteBuffer, "give_back", {"batch": (BATCH, lambda stage: stage.batch), "now": (NOW, None)}),
    Row(WriteBuffer, "flush", {"hand": (FUNCTION, lambda stage: print), "limit": (COUNT, 5), "lease": (SECONDS, 60),
        "gather": (PAUSE, 0)}),
    Row(WriteBuffer, "size"),
    Row(WriteBuffer, "stats", {"now": AT}),
    Row(Bus, "__init__", silent=True),
    Row(Bus, "publish", {"topic": (NAME, "t"), "message": (BODY, 1)}),
    Row(Bus, "subscribe", {"*topics": (NAME, "t")}, silent=True),
    Row(Subscription, "get", {"timeout": (PAUSE, 0)}, lambda stage: stage.subscription, silent=True),
    Row(Subscription, "close", {}, lambda stage: stage.subscription, silent=True),
    Row(Stream, "__init__", {"topic": (NAME, "s"), "most": (COUNT, 9), "tries": (INDEX, 3)}, silent=True),
    Row(Stream, "append", {"message": (BODY, 1)}),
    Row(Stream, "group", {"name": KEYED, "start": (START, "$")}),
    Row(Stream, "forget_group", {"name": KEYED}),
    Row(Stream, "read", READING),
    Row(Stream, "ack", {"group": (KEY, "g"), "*ids": (ID, lambda stage: stage.id)}),
    Row(Stream, "give_back", {"group": (KEY, "g"), "reader": KEYED, "*ids": (ID, lambda stage: stage.id)}),
    Row(Stream, "lag"),
    Row(Stream, "dead", {"count": (COUNT, 5)}),
    Row(
        AttachedStream, "__init__",
        {"root": ([None, 7, ""], lambda stage: stage.root), "most": (COUNT, 9)}, silent=True,
    ),
    Row(AttachedStream, "append", {"message": ([1], 1)}, silent=True),
    Row(AttachedStream, "begin", {"name": (KEY, "other"), "start": (["", "1", "x", None, 7, b"0"], "$"),
        "position": (INDEX, None), "anew": (FLAG, False)}),
    Row(AttachedStream, "take", {"group": (KEY, "g"), "reader": KEYED, "count": (COUNT, 5), "idle": (SECONDS, 60)}),
    Row(AttachedStream, "stands", {"group": (KEY, "g")}),
    Row(Locks, "__init__", silent=True),
    Row(Locks, "lock", {"name": (NAME, "l"), "ttl": (SECONDS, 60), "owner": (["", *KEY[2:]], "me")}, silent=True),
    Row(Locks, "peek", {"name": (NAME, "l"), "now": AT}),
    Row(Locks, "peeks", {"names": ([None, "ab", 7, [7], ["a:b"]], ["l"])}),
    Row(Lock, "acquire", {"wait": (PAUSE, 0), "now": (NOW, None)}, lambda stage: stage.lock),
    Row(HeldLock, "renew", {"now": (NOW, None)}, lambda stage: stage.held),
    Row(HeldLock, "release", {"now": (NOW, None)}, lambda stage: stage.held),
    Row(HeldLock, "check", {}, lambda stage: stage.held, silent=True),
    Row(HeldLock, "renewing", {}, lambda stage: stage.held, silent=True),
    Row(HeldLock, "wait", {"seconds": (PAUSE, 0)}, lambda stage: stage.held, silent=True),
    Row(Records, "__init__", {"name": (NAME, "r"), "ttl": (SECONDS, 60)}, silent=True),
    Row(Records, "get", {"key": KEYED}),
    Row(Records, "put", {"key": KEYED, "value": (BODY[:-1], 1), "expect": (INDEX, None), "now": AT}),
    Row(Records, "delete", {"key": KEYED, "expect": (INDEX, None), "now": AT}),
    Row(Records, "update", {"key": KEYED, "function": (MAKING, lambda stage: lambda value: 2), "retries": (INDEX, 1),
        "now": AT}),
    Row(Values, "__init__", silent=True),
    Row(Values, "update", {"key": ([*KEY, "other:x", "sb:{m:0}:i:x"], lambda stage: stage.key),
        "function": (WRITING, lambda stage: lambda value: "x"), "retries": (INDEX, 1)}),
    Row(Throttle, "__init__", silent=True),
    Row(Throttle, "take", TAKING),
    Row(Throttle, "count", TAKING),
    Row(Throttle, "take_all", {"limits": ([], [("t", "k", 5)]), "per": TAKING["per"]}),
    Row(Throttle, "look", {name: TAKING[name] for name in ("name", "key", "limit", "per", "now")} | {
        "window": (FLAG, True)}),
    Row(Throttle, "forget", {"name": (NAME, "t"), "key": KEYED}),
    Row(Snowflakes, "__init__", {"name": (NAME, "i"), "lease": (SECONDS, 5), "now": (FUNCTION[1:], None)}, silent=True),
    Row(Snowflakes, "next"),
    Row(Snowflakes, "many", {"n": (COUNT, 2)}),
    Row(Snowflakes, "close", silent=True),
    Row(Blocks, "__init__", {"name": (NAME, "b"), "size": (COUNT, 5)}, silent=True),
    Row(Blocks, "next"),
    Row(Blocks, "next_text"),
    Row(Blocks, "many", {"n": (COUNT, 2)}),
    Row(Cardinality, "__init__", {"name": (NAME, "c"), "exact": (INDEX, 5), "keep": (COUNT, 5)}, silent=True),
    Row(Cardinality, "add", {"*members": KEYED, "part": (KEY[1:], ""), "now": AT}),
    Row(Cardinality, "count", {"period": ([None, *PERIOD], "day"), "parts": (PARTS, [""]), "at": AT}),
    Row(Cardinality, "series", {"period": ([None, *PERIOD], "day"), "n": (COUNT, 2), "parts": (PARTS, [""]), "at": AT}),
    Row(Scoreboard, "__init__", {"name": (NAME, "s"), "most": (COUNT, 9), "half_life": (SECONDS, None),
        "period": (PERIOD, "day"), "keep": (INDEX, 2)}, silent=True),
    Row(Scoreboard, "add", {"member": KEYED, "points": (POINTS, 1.5), "now": AT}),
    Row(Scoreboard, "add_many", {"points": (SCORES, {"a": 1}), "now": AT}),
    Row(Scoreboard, "set", {"member": KEYED, "score": (POINTS, 1.5), "now": AT}),
    Row(Scoreboard, "set_many", {"scores": (SCORES, {"a": 1}), "now": AT}),
    Row(Scoreboard, "remove", {"*members": KEYED, "now": AT}),
    Row(Scoreboard, "reset", {"now": AT}),
    Row(Scoreboard, "top", {"n": (COUNT, 5), "span": (COUNT, 2), "at": AT}),
    Row(Scoreboard, "place", {"member": KEYED, "span": (COUNT, 2), "at": AT}),
    Row(Scoreboard, "around", {"member": KEYED, "n": (INDEX, 2), "span": (COUNT, 2), "at": AT}),
]  # fmt: skip

LONG_NAME = ["x" * 129]
TOO_MUCH = {"limit": [None, 1_000_001], "per": [None, 30 * 86_400 + 1]}
BEYOND = {
    "Sessions.__init__": {"ttl": [None, 2**53, 366 * 86_400 + 1], "lifetime": [366 * 86_400 + 1],
                          "partitions": [65, None], "max_bytes": [1, None, 2**20 + 1], "most": [1001]},
    "Sessions.create": {"ttl": [2**53], "state": [{"a": "x" * 99}]},
    "Sessions.put": {"expect": [2**53], "state": [None, {"a": "x" * 99}]},
    "Sessions.rotate": {"grace": [None, 3601]},
    "Sessions.rotate_handle": {"grace": [None, 3601]},
    "WriteBuffer.__init__": {"partitions": [65], "most": [10_000_001]},
    "WriteBuffer.add": {"counters": [dict.fromkeys(map(str, range(20_001)), 1)]},
    "WriteBuffer.add_many": {"part": [1]},
    "WriteBuffer.claim": {"limit": [None, 1001], "lease": [None, 86_401], "gather": [None, 86_401], "part": [1]},
    "Subscription.get": {"timeout": [None, 3601]},
    "Stream.__init__": {"most": [1_000_001]},
    "Stream.group": {"name": LONG_NAME},
    "Stream.forget_group": {"name": LONG_NAME},
    "Stream.read": {"group": LONG_NAME, "reader": LONG_NAME, "count": [None, 501], "block": [None, 3601],
                    "idle": [None, 30 * 86_400 + 1]},
    "Stream.ack": {"group": LONG_NAME},
    "Stream.give_back": {"group": LONG_NAME, "reader": LONG_NAME},
    "Stream.dead": {"count": [None, 1001]},
    "Locks.lock": {"ttl": [0.05, 86_401], "owner": ["x" * 151]},
    "Lock.acquire": {"wait": [None, 2**53]},
    "HeldLock.wait": {"seconds": [None, 2**53]},
    "Records.__init__": {"ttl": [2**53]},
    "Records.put": {"expect": [2**53], "value": [{"a": object()}, "x" * 2**20]},
    "Records.delete": {"expect": [2**53]},
    "Records.update": {"retries": [None, 10_001]},
    "Values.update": {"retries": [None, 10_001]},
    "Throttle.take": TOO_MUCH | {"cost": [None, 6], "ahead": [None, 6]},
    "Throttle.count": TOO_MUCH | {"cost": [None, 6], "ahead": [None, 6]},
    "Throttle.take_all": {"per": TOO_MUCH["per"]},
    "Throttle.look": TOO_MUCH,
    "Snowflakes.__init__": {"lease": [None, 0.09, 3601], "clock": [None, 5]},
    "Snowflakes.many": {"n": [None, 1_000_001]},
    "Blocks.__init__": {"size": [None, 1_000_001]},
    "Blocks.many": {"n": [None, 1_000_001]},
    "Cardinality.__init__": {"exact": [None, 10_001], "keep": [None, 401]},
    "Cardinality.count": {"period": [True]},
    "Cardinality.series": {"n": [42]},
    "Scoreboard.__init__": {"most": [10_001], "half_life": [366 * 86_400 + 1], "period": ["month"], "keep": [401]},
    "Scoreboard.top": {"n": [None, 1001], "span": [None, 5]},
    "Scoreboard.around": {"n": [None, 501], "span": [None]},
    "Scoreboard.place": {"span": [None]},
}  # fmt: skip
"""Further values of an argument that make no sense: beyond its bounds, or None where others take it."""
