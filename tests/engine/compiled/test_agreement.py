"""Compiled steps and interpreted ones agree on state, data, indexes, histories, answers and errors."""

from __future__ import annotations

import json

import pytest

from . import twins
from .twins import NOW, ROOT, TEXTS, Twins


def run(pair: Twins, seeds: range) -> None:
    taken = sum(twins.play(pair, seed) for seed in seeds)
    compiled = pair.count_compiled()
    assert compiled > taken / 4, f"of {taken} steps {compiled} ran compiled"


def test_generated_machines_agree(pair):
    run(pair, range(30))


@pytest.mark.hostile
def test_many_generated_machines_agree(pair):
    run(pair, range(1000, 1400))


def machine(**states):
    properties = {"n": {"type": "integer", "default": 0}, "s": {"type": "string", "default": ""}}
    return {"id": "m", "initial": "A", "context": {"type": "object", "properties": properties}, "states": states}


def fire(pair: Twins, event: str, payload: object = None, now: int = NOW) -> object:
    text = "" if payload is None else json.dumps(payload)
    return pair.call("sb_fire", "x", event, text, "", "", "", "", now)


def test_no_name_or_text_of_a_definition_becomes_code(pair):
    """Whatever a literal, a name of a state or of a field holds, it stays a text."""
    tricks = [
        *TEXTS, '"..redis.call("FLUSHALL").."', "]] error('out') --[[", "\\", '\\"', "\r\n", "\u2028", "%s%d%n", "-- x",
        "end end end return redis.call('SET','out','1')", "x" * 5000,
    ]  # fmt: skip
    for number, trick in enumerate(tricks):
        quoted = json.dumps(trick, ensure_ascii=False)
        name = trick if 0 < len(trick.encode()) <= 100 and trick.isprintable() and trick.strip() == trick else "Plain"
        states = {
            "A": {"on": {"go": {"target": name, "guard": f"s != {quoted}", "actions": {"set": {"s": quoted}}}}},
            name: {
                "on": {"go": {"target": "A", "guard": f"s == {quoted}", "actions": {"set": {"s": "''", "n": "n + 1"}}}}
            },
        }
        if not pair.publish(machine(**states)):
            assert trick != "-- x", "most of the tricks are allowed texts"
            continue
        pair.call("sb_create", "x", "{}", "", "", "", "", NOW)
        for turn in range(4 if trick else 1):
            reply = fire(pair, "go", now=NOW + number + turn)
            assert reply[0] == (b"OK" if trick else b"REFUSED"), trick
        pair.compare()
        assert pair.both("EXISTS", "out") == [0, 0]
        assert pair.count_compiled() == (4 if trick else 0)


@pytest.mark.parametrize("key", ["in:B", "h:x", "flow", "by:n"])
def test_a_step_whose_write_fails_writes_nothing(pair, key):
    states = {"A": {"on": {"go": {"target": "B", "actions": {"set": {"n": "n + 1"}}}}}, "B": {"on": {"go": "A"}}}
    assert pair.publish(machine(**states) | {"index": ["n", "instance.actor"]})
    pair.call("sb_create", "x", "{}", "", "", "", "", NOW)
    pair.both("DEL", f"{ROOT}:{key}")
    pair.both("SET", f"{ROOT}:{key}", "foreign")
    pair.compare()
    before = twins.contents(pair.clients[0])
    assert fire(pair, "go")[0] == b"FAULT"
    pair.compare()
    assert twins.contents(pair.clients[0]) == before
    pair.both("DEL", f"{ROOT}:{key}")
    assert fire(pair, "go", now=NOW + 5)[0] == b"OK"
    pair.compare()
    assert pair.count_compiled() == 1


def test_instances_with_other_fields_have_steps_of_their_own(pair):
    """The order of fields in a hash is of the instance; a long text stores it in another order."""
    properties = {f"f{n}": {"type": "string"} for n in range(12)} | {"n": {"type": "integer", "default": 0}}
    on = {"on": {"go": {"target": "A", "reenter": True, "actions": {"set": {"n": "n + 1", "f3": "event.text"}}}}}
    definition = {
        "id": "m",
        "initial": "A",
        "context": {"type": "object", "properties": properties},
        "states": {"A": on},
    }
    assert pair.publish(definition)
    for number in range(12):
        data = {f"f{n}": "y" * (70 if n == number else 3) for n in range(number, 12)}
        pair.call("sb_create", f"i{number}", json.dumps(data), "", "", "", "", NOW)
        for turn, text in enumerate(["", "z" * 80, 'q"']):
            sent = json.dumps({"text": text})
            assert pair.call("sb_fire", f"i{number}", "go", sent, "", "", "ann", "", NOW + turn)[0] == b"OK"
    pair.compare()
    assert pair.count_compiled() == 36


def test_a_republished_definition_has_steps_of_its_own(pair):
    for target in ("B", "C"):
        states = {"A": {"on": {"go": target}}, "B": {"on": {"back": "A"}}, "C": {"on": {"back": "A"}}}
        for engine in pair.engines:
            engine.publish(machine(**states))
        pair.call("sb_create", f"x-{target}", "{}", "", "", "", "", NOW)
        assert pair.call("sb_fire", f"x-{target}", "go", "", "", "", "", "", NOW)[3]["_state"] == target
    assert pair.call("sb_fire", "x-B", "back", "", "", "", "", "", NOW)[3]["_state"] == "A"
    assert pair.call("sb_fire", "x-B", "go", "", "", "", "", "", NOW)[3]["_state"] == "B"
    pair.compare()
