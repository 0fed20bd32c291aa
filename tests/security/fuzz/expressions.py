"""Expressions in every place of a definition that takes one, over data up to what an instance may hold."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from machines.engine import Engine
from machines.engine.errors import DefinitionError

from . import trees
from .cases import Case, expand, many, times
from .kinds import Kind
from .results import Result
from .stage import Stage

NOW = 1_700_000_000_000  # ms
MACHINE, ID, EVENT = "fuzzed", "x", "go"
FIELDS: dict[str, Any] = {"n": {"type": "integer", "default": 1}, "s": {"type": "string", "default": "sx"},
                          "l": {"type": "array", "default": [1, 2]}, "m": {"default": [1, 2]}, "u": {"default": "sx"},
                          "o": {"type": "object", "default": {"k1": 1}}, "j": {"type": "string", "default": "[1]"},
                          "out": {}, "i": {"type": "integer"}}  # fmt: skip
WORK = 250_000  # units that a step may take
ROOM = 64_000  # bytes of data, a little below what an instance may hold

Random = random.Random


class Expressions(Kind):
    name = "expressions"

    def draw(self, rng: Random) -> Case:
        place = rng.choice(PLACES)
        return {
            "states": place(rng),
            "data": data(rng),
            "payload": payload(rng),
            "where": {"field": rng.choice("slou"), "among": rng.choice([1, 1, 5])} if rng.random() < 0.2 else None,
        }

    def play(self, stage: Stage, case: Case) -> Result:
        result, engine = Result(), stage.fresh()
        try:
            engine.publish(definition(case))
        except DefinitionError as error:
            code = next(finding.code for finding in error.findings if finding.is_error)
            result.record("publish", code, str(error))
            return result
        data = expand(case["data"])
        if not result.ask("create", lambda: engine.create(MACHINE, ID, data, now=NOW)):
            return result
        _step(result, engine, expand(case["payload"]), certain="random" not in json.dumps(case["states"]))
        if case.get("where"):
            _search(result, engine, data, case["where"])
        return result


def definition(case: Case) -> dict[str, Any]:
    return {
        "id": MACHINE,
        "initial": "A",
        "context": {"type": "object", "properties": FIELDS},
        "states": expand(case["states"]),
    }


def _step(result: Result, engine: Engine, payload: dict[str, Any], *, certain: bool) -> None:
    """What explain says comes true, and what is refused changes nothing."""
    key = engine.keys.partition(MACHINE).instance(ID)
    before = engine.client.hgetall(key)
    seen = result.ask("explain", lambda: engine.explain(MACHINE, ID, EVENT, payload, now=NOW))
    if engine.client.hgetall(key) != before:
        result.refuse("explain changed the instance")
    if seen is not None:
        result.check("explain", repr(seen))
    fired = result.ask("fire", lambda: engine.fire(MACHINE, ID, EVENT, payload, now=NOW))
    if fired is None and engine.client.hgetall(key) != before:
        result.refuse("fire was refused and changed the instance")
    if fired is not None and seen is not None and seen.work > WORK:
        result.refuse(f"a step of {seen.work} units was taken")
    if certain and seen is not None and seen.taken != (fired is not None):
        result.refuse(f"explain says {seen.taken}, fire says {fired is not None}")
    result.ask("get", lambda: engine.get(MACHINE, ID))


def _search(result: Result, engine: Engine, data: dict[str, Any], where: dict[str, Any]) -> None:
    for number in range(where["among"]):
        result.ask("create", lambda number=number: engine.create(MACHINE, f"y{number}", data, now=NOW))
    wanted = {where["field"]: data.get(where["field"], 1)}
    result.ask("find", lambda: engine.find(MACHINE, state="A", where=wanted))
    result.ask("tally", lambda: engine.tally(MACHINE, state="A", where=wanted))


# Data up to the limits


def data(rng: Random) -> Case:
    """One or two large fields, the others small."""
    half = rng.choice([ROOM, ROOM // 2, ROOM // 20])
    made: Case = {"n": rng.choice([0, 1, 3, 2**53 - 1, -1])}
    for name in rng.sample("slou", 2 if half < ROOM else 1):
        made[name] = LARGE[name](rng, half)
    if "l" in made and rng.random() < 0.5 and half < ROOM:
        made["m"] = made["l"]
        made.pop("s", None), made.pop("o", None), made.pop("u", None)
    if not made.keys() & set("slou"):
        made["j"] = times("[" + "0,", half)
    elif half < ROOM // 2 and rng.random() < 0.5:
        made["j"] = rng.choice(["[" * 40 + "]" * 40, '{"a":' * 20 + "1" + "}" * 20, "1e400", "nul", '"\\ud800"'])
    return made


def _text(rng: Random, size: int) -> Any:
    part = rng.choice(["x", "é", "😀", " ", "ab", "0", "x,", '"', "\\", "\n", "a b"])
    return times(part, size // (len(json.dumps(part, ensure_ascii=False).encode()) - 2))


def _list(rng: Random, size: int) -> Any:
    part = rng.choice([0, 1.1, "x", [], {}, None, True, [[1]], {"a": 1}, "xxxxxxxx", 123456789, 1e-7])
    return times([part], min(10_000, size // (len(json.dumps(part)) + 1)))


def _object(rng: Random, size: int) -> Any:
    prefix, value = rng.choice(["k", "kkkkkkkk", "é", "k" * 60]), rng.choice([0, "", [], {"a": 1}])
    return many(prefix, size // (len(prefix.encode()) + len(json.dumps(value)) + 9), value)


LARGE: dict[str, Callable[[Random, int], Any]] = {"s": _text, "u": _text, "l": _list, "o": _object}


def payload(rng: Random) -> Case:
    size = rng.choice([0, 100, ROOM // 3])
    if not size:
        return {}
    made: Case = {"n": rng.choice([0, 1, 9999, -0.5, 1e308])}
    for name in rng.sample("slo", rng.randint(1, 2)):
        made[name] = LARGE[name](rng, size)
    return made


# Places in a definition


def _some(rng: Random) -> str:
    return trees.expression(rng)


def _repeated(rng: Random, count: int) -> list[str]:
    """Several expressions, or one several times: what is dear once is dearer in twenty guards."""
    made = [_some(rng) for _ in range(min(count, 3))]
    return [rng.choice(made) for _ in range(count)]


def _one(transition: Any, **more: Any) -> Case:
    return {"A": {"on": {EVENT: transition}, **more}, "B": {}, "F": {"type": "final"}}


def guards(rng: Random) -> Case:
    count = rng.choice([1, 1, 2, 12, 40])
    return _one([{"target": "B", "guard": text} for text in _repeated(rng, count)])


def actions(rng: Random) -> Case:
    count = rng.choice([1, 1, 3, 20, 60])
    return _one([{"target": rng.choice("AB"), "actions": [_action(rng, text) for text in _repeated(rng, count)]}])


def _action(rng: Random, text: str) -> Any:
    return rng.choice([
        {"set": {rng.choice(["out", "out", "l", "s", "n", "o"]): text}}, {"append": {"l": text}}, {"log": text},
        {"emit": {"type": "e", "data": {"v": text}}}, {"raise": {"event": "r", "data": {"v": text}}},
        {"send": {"event": "r", "data": text, "delay": "1s"}}, {"send": {"event": "r", "delay": {"expr": text}}},
        {"send": {"event": "r", "to": text}}, {"enqueue": {"src": "w", "input": {"v": text}}},
        {"enqueue": {"src": "w", "unique": text}}, {"if": [{"guard": text, "do": [{"set": {"n": "n + 1"}}]}]},
        {"cancel": {"expr": text}}, {"set": {"out": {"a": text, "b": [text, text]}}},
        {"raise": {"event": {"expr": text}}}, {"enqueue": {"src": "w", "priority": text, "delay": {"expr": text}}},
    ])  # fmt: skip


def loops(rng: Random) -> Case:
    """A body that is done for each element of a list."""
    over = rng.choice(["l", "m", "event.l", "range(0, 9999)", "characters(s)", "range(0, 30)", "split(s, 'x')"])
    loop: Any = {"foreach": {"in": over, "item": "out", "index": "i", "do": [_action(rng, _some(rng))]}}
    if rng.random() < 0.3:
        loop = {"foreach": {"in": rng.choice([over, "range(0, 300)"]), "item": "m", "do": [loop]}}
    return _one([{"actions": loop}])


def rounds(rng: Random) -> Case:
    """A step that goes round by itself: eventless transitions, events raised by their own transition."""
    dear = [_action(rng, _some(rng))]
    again: Any = {"target": "A", "guard": "0 < n < 900", "actions": [{"set": {"n": "n + 1"}}, *dear], "reenter": True}
    if rng.random() < 0.5:
        again["guard"] = f"0 < n < 900 and not ({_some(rng)})"
    if rng.random() < 0.5:
        return _one([{"actions": {"set": {"n": "1"}}}], always=[again])
    return {"A": {"on": {EVENT: [{"actions": [{"raise": EVENT}, {"raise": EVENT}, *dear]}]}}}


def entries(rng: Random) -> Case:
    """What happens on the way: exit, entry, timers, work, ends, in a chart."""
    text, other = _some(rng), _some(rng)
    busy = {
        "entry": [_action(rng, text)],
        "exit": [_action(rng, other)],
        "after": {"1s": "B", rng.choice(["n * 1000", other]): "B"},
        "invoke": {
            "src": "w", "input": {"v": text, "w": [text, other]},
            rng.choice(["priority", "unique"]): other, "delay": {"expr": rng.choice(["n", text])},
        },
    }  # fmt: skip
    states = _one([{"target": "C"}])
    states["C"] = {"initial": "D", "states": {"D": busy, "E": {"type": "final", "output": {"v": text}}}, "onDone": "B"}
    return states


def born(rng: Random) -> Case:
    states = _one([{"target": "B"}])
    states["A"]["entry"] = [_action(rng, text) for text in _repeated(rng, rng.choice([1, 5]))]
    return states


PLACES = [guards, guards, guards, actions, actions, loops, rounds, entries, born]
