"""Function calls as any client may send them: other words, other keys, damaged keys."""

from __future__ import annotations

import random
import re
from typing import Any

import redis

from machines.engine import Engine
from machines.engine.connection import library
from tests.docs.engine_reference import read_header
from tests.faults.audit import look

from . import damage, words, world
from .cases import Case, expand
from .kinds import Kind
from .results import Result
from .stage import Stage

FUNCTIONS = {name: read_header(path) for name, path in library.function_paths().items()}
#: what a function may answer, as its header says
STATUSES = {name: set(re.findall(r"\{([A-Z]+)\b", found.fields["Returns"])) for name, found in FUNCTIONS.items()}
#: after these everything is as it was
NOTHING = frozenset(
    ["BADARG", "BADPAYLOAD", "NOMACHINE", "NOINSTANCE", "CONFLICT", "REFUSED", "SUSPENDED", "EXISTS", "LOST"]
)
#: what any function answers where it met damaged keys, or is at fault itself
UNEXPECTED = "it read damaged keys"
LITERAL = "!"  # a key that begins so is sent without the prefix
ASIDE = (b":refused", b":pulse")  # what a call leaves that was refused, or that goes by itself
MOST_WORDS, MOST_LARGE = 6_000, 20  # words of a call, and how many of them are large
MISSING = -2  # what PTTL answers for a key that has gone meanwhile

Random = random.Random


class Fcalls(Kind):
    name = "fcalls"

    def __init__(self) -> None:
        self._world: world.World | None = None

    def draw(self, rng: Random) -> Case:
        calls = [_call(rng) for _ in range(rng.choice([1, 1, 1, 2, 4]))]
        return {"calls": calls, "damage": [damage.draw(rng) for _ in range(rng.choice([0, 0, 0, 1, 2]))]}

    def play(self, stage: Stage, case: Case) -> Result:
        engine, client, result = self._settle(stage), stage.raw, Result()
        prefix = engine.keys.prefix
        for one in case["damage"]:
            damage.do(client, prefix, one)
        before = _contents(client)
        for call in case["calls"]:
            after = self._one(client, prefix, call, result, before, damaged=bool(case["damage"]))
            before = after
        if not case["damage"]:
            self._audit(engine, case, result)
        return result

    def _settle(self, stage: Stage) -> Engine:
        """The world, anew."""
        if self._world is None:
            made = stage.fresh()
            found = world.make(made)
            keys = world.dumped(stage.raw, made.keys.prefix)
            self._world = world.World(made.keys.prefix, keys, found.program, found.source)
        engine = stage.fresh()
        engine.require_library()
        world.restore(stage.raw, engine.keys.prefix, self._world.keys)
        return engine

    def _one(self, client: Any, prefix: str, call: Case, result: Result, before: Any, *, damaged: bool) -> Any:
        name, keys = call["function"], [_key(prefix, key) for key in call["keys"]]
        args = [self._word(arg) for arg in call["args"]]
        status = _answer(client, name, keys, args, result, damaged=damaged or call["keys"] != [world.CALLS[name][0]])
        after = _contents(client)
        changed = _changed(before, after)
        outside = [key for key in changed if not any(key.startswith(given) for given in keys)]
        if outside:
            result.refuse(f"{name} wrote outside the keys it was given: {sorted(outside)[:3]}")
        if status == "REFUSED":  # a refusal is counted, and figures that changed are noted
            changed = {key for key in changed if not key.endswith((b":meta", b":versions"))}
        if changed and (status in NOTHING or "flags" in FUNCTIONS[name].fields):
            result.refuse(f"{name} answered {status} and changed {sorted(changed)[:3]}")
        return after

    def _word(self, arg: Any) -> bytes:
        assert self._world is not None
        if arg in ("$program", "$source"):
            return str(getattr(self._world, arg[1:])).encode()
        return str(expand(arg)).encode("latin-1", "replace")

    def _audit(self, engine: Engine, case: Case, result: Result) -> None:
        """Everything adds up. A published program may be any that Lua can read, so that nothing is known of its states;
        a job that was made ready again is waited for by no instance that has left the state; and who calls a function
        with the root of something else writes what nobody else would."""
        touched = {key for call in case["calls"] for key in call["keys"]}
        called = {call["function"] for call in case["calls"]}
        if any(
            call["keys"] not in ([world.CALLS[call["function"]][0]], [world.B], [world.Y], []) for call in case["calls"]
        ):
            return
        for machine, root in ((world.FLAT, world.B), (world.CHART, world.Y)):
            if root not in touched or "sb_publish" in called:
                continue
            for wrong in look(engine, machine).wrong:
                if "sb_redrive" not in called or "does not wait for it" not in wrong:
                    result.refuse(f"afterwards, {wrong}")


def _answer(client: Any, name: str, keys: list[bytes], args: list[bytes], result: Result, *, damaged: bool) -> str:
    """The status that was answered; what may not be answered is noted."""
    try:
        reply = client.execute_command("FCALL", name, len(keys), *keys, *args)
    except redis.ResponseError as error:
        text = str(error)
        result.record(name, "error", text)
        if name.startswith("sb_") and not damaged and "WRONGTYPE" not in text:
            result.refuse(f"{name} ends with the error {text[:200]}")
        return "error"
    result.check(name, _text(reply))
    if name.startswith("sm_"):
        result.record(name, type(reply).__name__)
        return "OK"
    status = reply[0].decode() if isinstance(reply, list) and reply and isinstance(reply[0], bytes) else repr(reply)
    result.record(name, status)
    told = STATUSES[name] | {"FAULT"} if damaged else STATUSES[name]
    if status not in told or (UNEXPECTED in _text(reply) and not damaged):
        result.refuse(f"{name} answers {_text(reply)[:200] or status}")
    return status


def _text(reply: Any) -> str:
    """The words of a reply that people may get to see."""
    if isinstance(reply, bytes):
        return reply.decode(errors="replace")
    if isinstance(reply, list):
        return "\n".join(_text(part) for part in reply)
    return ""


def _key(prefix: str, key: str) -> bytes:
    made = key[1:] if key.startswith(LITERAL) else prefix + key
    return made.encode("latin-1", "replace")


def _changed(before: dict[bytes, Any], after: dict[bytes, Any]) -> set[bytes]:
    """What is new, gone or different; what has an expiry may go at any moment."""
    gone = {key for key, (_, ttl) in before.items() if key not in after and ttl < 0}
    other = {key for key, (content, _) in after.items() if key not in before or before[key][0] != content}
    return {key for key in gone | other if not key.endswith(ASIDE)}


def _contents(client: Any) -> dict[bytes, Any]:
    """Everything on the server, in an order of its own, each with its expiry in ms."""
    names = list(client.scan_iter(count=1000))
    pipeline = client.pipeline(transaction=False)
    for name in names:
        pipeline.type(name)
    kinds = pipeline.execute()
    for name, kind in zip(names, kinds, strict=True):
        pipeline.pttl(name)
        if kind == b"hash":
            pipeline.hgetall(name)
        elif kind == b"set":
            pipeline.smembers(name)
        else:
            pipeline.dump(name)
    found = pipeline.execute()
    return {name: (found[at * 2 + 1], found[at * 2]) for at, name in enumerate(names) if found[at * 2] != MISSING}


# What is sent


def plain(name: str) -> Case:
    """The call that does what the function is there for."""
    root, given = world.CALLS[name]
    args: list[Any] = [given[0], "$program", "$source", *given[3:]] if name == "sb_publish" else list(given)
    return {"function": name, "keys": [root] if root else [], "args": args}


def _call(rng: Random) -> Case:
    made = plain(rng.choice(sorted(world.CALLS)))
    name, keys, args = made["function"], made["keys"], made["args"]
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        args = rng.choice(CHANGES)(rng, args)
    if rng.random() < 0.12:
        keys = _other_keys(rng, keys)
    large = [at for at, arg in enumerate(args) if isinstance(arg, dict)]
    return {"function": name, "keys": keys, "args": args[: min([MOST_WORDS, *large[MOST_LARGE : MOST_LARGE + 1]])]}


def _other_keys(rng: Random, keys: list[str]) -> list[str]:
    roots = [root for root, _ in world.CALLS.values() if root]
    return rng.choice([
        [], keys * 2, [rng.choice(roots)], [LITERAL], ["{box:1}"], ["{none:0}"], ["{box:0}:meta"], ["box"],
        ["{box:0}:i:a"], [LITERAL + "\x00"], ["\xff{box:0}"], [f"{{box:0}}{rng.choice(words.HOSTILE)}"],
        [*keys, rng.choice(roots)], ["other"], ["{box:0}:q:work"], ["{box:x}"], ["}{"],
    ])  # fmt: skip


def _replaced(rng: Random, args: list[Any]) -> list[Any]:
    at = rng.randrange(len(args) + 1)
    return [*args[:at], words.word(rng), *args[at + 1 :]]


def _json(rng: Random, args: list[Any]) -> list[Any]:
    """Other JSON in place of JSON, or of anything."""
    places = [at for at, arg in enumerate(args) if isinstance(arg, str) and arg[:1] in ("{", "[", "$")] or [len(args)]
    at = rng.choice(places)
    made = words.json_text(rng)
    if rng.random() < 0.4:
        made = rng.choice(SEARCHES).replace("?", words.json_text(rng, 1))
    return [*args[:at], made.encode().decode("latin-1"), *args[at + 1 :]]


#: the shapes that searches, messages and programs have, with one part that is any JSON
SEARCHES = [
    '{"where":?}', '{"where":[?]}', '{"where":[{"field":?}]}', '{"where":[{"field":"n","ge":?}]}', '{"states":?}',
    '{"where":[{"field":"l","eq":?}]}', '{"where":[{"field":"t","prefix":?}]}', '{"states":[?],"where":[]}',
    '{"where":[{"field":"instance.error","prefix":?}]}', '{"where":[{"field":"instance.version","eq":?}]}',
    '{"states":["Idle"],"lead":?}', '{"states":["Idle"],"lead":{"field":"t","eq":?}}',
    '{"states":["Idle"],"before":?}', '{"states":["Idle"],"where":[],"named":?}', '{"field":"t","eq":?}',
    '{"field":?,"ge":1}', '{"field":"n","ge":?,"lt":?}', '[{"field":"t","eq":?}]', '[?]', '[{"field":?}]',
    '{"event":?,"data":{}}', '{"event":"tell","data":?}', '{"n":?}', '{"t":?}', '{"l":?}', '{"x":?}', '[1,?,?]',
    '[?,"0","a"]', '{"machine":?,"id":?}', '{"format":1,"states":?,"machine":"box"}',
    '{"format":1,"machine":"box","states":[{"name":?}],"initial":1}', '{"map":?,"current":"a"}',
    '{"map":{"a":?},"initial":"a"}', '{"groups":?}', '{"groups":[?],"approved":?}',
    '{"groups":[],"approved":{"action":?,"by":?}}', '{"from":?,"event":"tell","data":{}}',
    '{"approved":{"action":"delete","by":"bob","definition":?,"transitions":[?]}}',
    '{"from":{"machine":"yard","id":?},"event":"tell"}', '{"data":?,"invoke":"kid"}',
]  # fmt: skip


def _dropped(rng: Random, args: list[Any]) -> list[Any]:
    at = rng.randrange(len(args) + 1)
    return rng.choice([args[:at], args[:at] + args[at + 1 :]])


def _added(rng: Random, args: list[Any]) -> list[Any]:
    at = rng.randrange(len(args) + 1)
    return [*args[:at], *(words.word(rng) for _ in range(rng.choice([1, 2, 5]))), *args[at:]]


def _many(rng: Random, args: list[Any]) -> list[Any]:
    """The end of it again and again; what is cut off afterwards is not made."""
    if len(args) >= MOST_WORDS:
        return args
    at = rng.randrange(len(args) + 1)
    return (args + args[at:] * rng.choice([1, 10, 400, 1500]))[:MOST_WORDS]


def _stranger(rng: Random, args: list[Any]) -> list[Any]:
    """Words of another function."""
    return list(world.CALLS[rng.choice(sorted(world.CALLS))][1])


def _swapped(rng: Random, args: list[Any]) -> list[Any]:
    return rng.sample(args, len(args))


CHANGES = [_replaced, _replaced, _replaced, _json, _json, _dropped, _added, _many, _stranger, _swapped]
