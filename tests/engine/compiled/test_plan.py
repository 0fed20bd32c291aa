"""A write that the plan of a step gets is written by interpreted and compiled steps alike, and taken back by both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import twins
from .twins import NOW, ROOT, Twins

BEFORE = "{\nname = 'flow',\n"
WRITE = """{
name = 'trace',
when = 'step.moved',
source = 'call("HSET", ${step.program.root .. ":trace"}, id, revision .. " " .. ${given.event})',
undo = function(step, id) call('HDEL', step.program.root .. ':trace', id) end,
},
"""
INNER = {"initial": "B1", "states": {"B1": {}}}
STATES = {"A": {"on": {"go": "B", "stay": {"actions": {"set": {"n": "n + 1"}}}}}, "B": {"on": {"go": "A"}}}
KINDS = {"flat": STATES, "chart": STATES | {"B": STATES["B"] | INNER}}


def add_write(text: str) -> str:
    """Return the library with one write more in the plan."""
    assert text.count(BEFORE) == 1
    return text.replace(BEFORE, WRITE + BEFORE)


@pytest.fixture
def grown(pair) -> Iterator[Twins]:
    pair.load(add_write(twins.counting_library()), add_write(twins.interpreted_library()))
    yield pair
    pair.load()


def fire(pair: Twins, event: str, now: int) -> object:
    return pair.call("sb_fire", "x", event, "", "", "", "", "", now)


@pytest.mark.parametrize("states", KINDS.values(), ids=KINDS)
def test_a_write_is_added_in_one_place(grown, states):
    context = {"type": "object", "properties": {"n": {"type": "integer", "default": 0}}}
    assert grown.publish({"id": "m", "initial": "A", "context": context, "states": states})
    grown.call("sb_create", "x", "{}", "", "", "", "", NOW)
    trace = f"{ROOT}:trace"
    assert grown.both("HGET", trace, "x") == [b"1 (create)"] * 2
    assert fire(grown, "stay", NOW)[0] == b"OK"
    assert grown.both("HGET", trace, "x") == [b"1 (create)"] * 2, "its condition does not hold"
    assert fire(grown, "go", NOW)[0] == b"OK"
    assert grown.both("HGET", trace, "x") == [b"3 go"] * 2
    grown.compare()
    assert (grown.count_compiled(), grown.count_interpreted()) == (2, 0)
    flow = f"{ROOT}:flow"
    for client in grown.clients:
        client.delete(flow)
        client.set(flow, "foreign")
    assert fire(grown, "go", NOW)[0] == b"FAULT"
    assert grown.both("HEXISTS", trace, "x") == [0, 0], "it is taken back when a later write fails"
    grown.compare()
