"""A step never depends on the compiler: what exceeds a limit of Lua is interpreted, counted, and not compiled again."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from machines.engine.connection import library

from . import charts, twins
from .definitions import Writer
from .twins import LEVELS, LOCALS, NOW, REGISTERS, Twins

PLAIN = 33  # fields with a default: with the engine's own, an instance has 40 fields at most


def machine(*, plain: int = 0, absent: int = 0, **states: Any) -> dict[str, Any]:
    """``plain`` fields with a default, ``p0``..., and ``absent`` ones without, ``a0``..."""
    properties: dict[str, Any] = {f"p{n}": {"type": "integer", "default": 0} for n in range(plain)}
    properties["note"] = {"type": "string"}
    properties |= {f"a{n}": {"type": "integer"} for n in range(absent)}
    return {
        "id": "m",
        "initial": next(iter(states)),
        "context": {"type": "object", "properties": properties},
        "states": states,
    }


def literals(plain: int = 0, absent: int = 0) -> list[dict[str, Any]]:
    return [{"set": {f"p{n}": str(n + 1)}} for n in range(plain)] + [{"set": {f"a{n}": "7"}} for n in range(absent)]


def values(plain: int = 0, absent: int = 0) -> list[dict[str, Any]]:
    names = [f"p{n}" for n in range(plain)] + [f"a{n}" for n in range(absent)]
    return [{"set": {name: f"event.{name}"}} for name in names]


PAYLOAD = json.dumps({f"{letter}{n}": n for letter in "pa" for n in range(120)})


def add_up(count: int) -> str:
    """An expression that adds up this many fields of the event, nested as little as possible."""

    def add(first: int, end: int) -> str:
        middle = (first + end) // 2
        return f"event.p{first}" if end - first == 1 else f"({add(first, middle)} + {add(middle, end)})"

    return add(0, count)


@pytest.fixture
def pair(pair):
    pair.load()
    pair.read_failures()
    return pair


def moving(actions: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"A": {"on": {"go": {"target": "B", "actions": actions, **more}}}, "B": {"on": {"go": "A"}}}


def working(**invoke: Any) -> dict[str, Any]:
    return {"A": {"invoke": {"id": "w", "src": "work", **invoke}, "on": {"go": "B"}}, "B": {"on": {"go": "A"}}}


def create(pair: Twins, *ids: str, data: str = "{}") -> None:
    for id in ids:
        pair.call("sb_create", id, data, "", "", "", "", NOW)


# Each takes the same step with the same machine, again and again, and answers what the servers answered.


def fire(pair: Twins, id: str = "x") -> Any:
    return pair.call("sb_fire", id, "go", PAYLOAD, "", "", "ann", "", NOW)


def tick(pair: Twins, id: str = "") -> Any:
    return pair.call("sb_tick", NOW + 10_000, 100)


def take(pair: Twins) -> list[tuple[bytes, bytes]]:
    reply = pair.call("sb_take", "work", "w", 9, "", NOW, "n")
    return [(reply[at], reply[at + 2]) for at in range(3, len(reply), 6)]


def complete(pair: Twins, id: str = "") -> Any:
    """End the jobs of all instances in one call."""
    return pair.call("sb_complete", NOW + 9, "short", *(word for job in take(pair) for word in (*job, "")))


def fail(pair: Twins, id: str = "") -> Any:
    return [pair.call("sb_fail", *job, "no", "Broken", "", "0", NOW) for job in take(pair)]


def test_many_fields_without_defaults_are_set_to_literals(pair):
    """What answered SB510 for ever: a step and its job."""
    states = working(onDone={"target": "B", "actions": literals(absent=73)})
    states["A"]["on"] = moving(literals(absent=73))["A"]["on"]
    assert pair.publish(machine(absent=73, **states))
    create(pair, "x", "y", "z")
    assert fire(pair)[3]["_state"] == "B"
    assert complete(pair)[1:] == [b"t2", b"t2"]
    pair.compare()
    assert (pair.count_compiled(), pair.read_failures()) == (3, [])


WIDE = {"plain": PLAIN, "absent": 67}
DONE, ERROR = ({name: {"target": "B", "actions": literals(**WIDE)}} for name in ("onDone", "onError"))
NESTED = {"P": {"initial": "A", "states": moving(literals(**WIDE))}}
LONG = {"P": {"initial": "A", "states": moving(values(PLAIN, 47))}}
TIMED = {"A": {"after": {"5s": {"target": "B", "actions": literals(**WIDE)}}}, "B": {"on": {"go": "A"}}}
GUARDED = moving(literals(absent=100), guard=f"{add_up(30)} == {sum(range(30))}")
TALKATIVE = {"A": {"on": {"go": {"target": "B", "guard": f"False if event.p0 == 0 else {add_up(110)} > 3"}}}, "B": {}}
CASES = {
    "a step: locals": (fire, machine(plain=PLAIN, absent=47, **moving(values(PLAIN, 47))), LOCALS),
    "a step: registers": (fire, machine(**WIDE, **moving(literals(**WIDE))), REGISTERS),
    "a step and its guard": (fire, machine(absent=100, **GUARDED), REGISTERS),
    "a refusal: nesting": (fire, machine(**TALKATIVE), LEVELS),
    "ends of jobs in a batch": (complete, machine(**WIDE, **working(**DONE)), REGISTERS),
    "the end of a job without attempts left": (fail, machine(**WIDE, **working(**ERROR)), REGISTERS),
    "a step of a chart: locals": (fire, machine(plain=PLAIN, absent=47, **LONG), LOCALS),
    "a step of a chart: registers": (fire, machine(**WIDE, **NESTED), REGISTERS),
    "a timer": (tick, machine(**WIDE, **TIMED), REGISTERS),
}


@pytest.mark.parametrize(("step", "definition", "limit"), CASES.values(), ids=CASES)
def test_what_exceeds_a_limit_of_lua_is_interpreted(pair, step, definition, limit):
    """It is counted, and not compiled again, for other instances neither."""
    assert pair.publish(definition)
    create(pair, "x", "y")
    assert step(pair)
    pair.compare()
    failures = pair.read_failures()
    assert len(failures) == 1
    assert limit in failures[0]
    create(pair, "z", data='{"note": "this one has other fields"}')
    for id in "yz":
        step(pair, id)
    pair.compare()
    assert pair.read_failures() == []
    assert [engine.live("m").compile_failures for engine in pair.engines] == [1, 0]


def test_a_step_is_compiled_but_for_transitions_that_are_too_long(pair):
    """Writing one takes the server's time: a hundred changes of data at most, and 120 kB for a step."""
    actions = {"few": literals(absent=3), "many": literals(absent=101), "long": [{"set": {"note": f"'{'x' * 2000}'"}}]}
    sorts = ["few", *["long"] * 60, "many", "few"]
    on = {"go": [{"guard": f"event.p0 == {n}", "actions": actions[sort]} for n, sort in enumerate(sorts[:20])]}
    on["hop"] = [{"guard": f"event.p0 == {n}", "actions": actions[sort]} for n, sort in enumerate(["many", "few"])]
    assert pair.publish(machine(absent=101, A={"on": on}))
    for id, (event, number, compiled) in enumerate([("go", 0, 1), ("go", 19, 0), ("hop", 0, 0), ("hop", 1, 1)]):
        create(pair, str(id))
        pair.call("sb_fire", id, event, json.dumps({"p0": number}), "", "", "", "", NOW)
        assert pair.count_compiled() == compiled, (event, number)
    pair.compare()
    assert pair.read_failures() == []


def test_a_failure_is_remembered_when_compiled_steps_are_dropped(pair):
    """Which happens at 2,000 of all programs; here at two."""
    pair.load(twins.counting_library().replace("local MAX_COMPILED = 2000", "local MAX_COMPILED = 2"))
    assert pair.publish(machine(**WIDE, **moving(literals(**WIDE))))
    create(pair, *"abcd")
    for id in "abcd":
        assert fire(pair, id)[0] == fire(pair, id)[0] == b"OK"
        assert fire(pair, id)[0] == b"OK"
    pair.compare()
    assert len(pair.read_failures()) == 1


LOAD = "local chunk, why = loadstring(head .. source, '=written source')\n"
BEGINS = "string.sub(source, 1, {}) == 'return function(f{}'"
FAILURES = {
    "all but the test of an instance's fields": BEGINS.format(18, ","),
    "the test of an instance's fields": BEGINS.format(18, ")"),
    "every second": "#source % 2 == 0 and " + BEGINS.format(17, ""),
}


@pytest.mark.hostile
@pytest.mark.parametrize("fails", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("kind", [Writer, charts.Writer])
def test_generated_machines_agree_where_sources_cannot_be_loaded(pair, kind, fails):
    """Whatever the limit, and whatever was compiled: a step, its refusal, an explanation, a batch, the end of a job."""
    text = twins.counting_library()
    assert text.count(LOAD) == 1
    pair.load(text.replace(LOAD, LOAD + f"if {fails} then chunk, why = nil, 'it fails in this test' end\n"))
    for seed in range(10):
        twins.play(pair, kind(seed))
    failures = pair.read_failures()
    assert len(failures) > 10
    assert set(failures) == {"it fails in this test"}


def test_no_source_can_reach_the_limits_of_a_single_function():
    """60 upvalues, 2^18 constants and jumps over 2^17 instructions: each takes at least a byte of the source."""
    text = library.text()
    lists = re.findall(r"(?:\.names|\bNAMES|\bown) = \{(.*?)\}\n(?=\S)", text, re.DOTALL)
    names = {name for given in lists for name in re.findall(r"\{ '(\w+)', ", given)}
    assert names >= {"tonumber", "call", "leave_jobs", "steps", "arm_timer", "encode"}, "of all lists"
    assert len(names) <= 60
    (size,) = re.findall(r"local MAX_SOURCE = (\d+) -- bytes", text)
    assert int(size) < 2**17
