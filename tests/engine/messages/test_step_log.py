"""Steps in the logs of partitions, for programs that copy states elsewhere."""

from __future__ import annotations

import pytest

from machines.engine import BadInput, Engine, UnknownMachine
from machines.engine.keys import Partition
from machines.engine.messages.emitted import LogEntry, read_entry

FLAT = {
    "id": "door",
    "initial": "shut",
    "states": {"shut": {"after": {"1s": "open"}, "on": {"push": "open"}}, "open": {}},
}
CHART = {
    "id": "yard",
    "initial": "on",
    "states": {
        "on": {
            "type": "parallel",
            "states": {
                "left": {"initial": "a", "states": {"a": {"on": {"go": "b"}}, "b": {}}},
                "right": {"initial": "c", "states": {"c": {}}},
            },
        },
    },
}


def steps(engine: Engine, machine: str) -> list[LogEntry]:
    log = Partition(engine.emitted_logs().root((machine, 0))).log
    return [entry for entry in (read_entry(*one) for one in engine.client.xrange(log)) if entry.kind == "step"]


@pytest.fixture
def logged(engine: Engine) -> Engine:
    for definition in (FLAT, CHART):
        engine.publish(definition)
        engine.emitted_logs().log_steps(definition["id"], seconds=100)
    return engine


def test_steps_are_logged_only_where_somebody_asked(engine):
    engine.publish(FLAT)
    engine.create("door", "x")
    assert steps(engine, "door") == []
    assert engine.emitted_logs().log_steps("door", seconds=100) == [("door", 0)]
    assert engine.emitted_logs().log_steps("door", seconds=100) == []
    engine.fire("door", "x", "push")
    assert engine.emitted_logs().log_steps("door", seconds=0) == []
    engine.create("door", "y")
    assert [(entry.instance, entry.revision) for entry in steps(engine, "door")] == [("x", 2)]


def test_an_entry_has_event_revision_and_the_leaf_states(logged):
    logged.create("yard", "x")
    logged.fire("yard", "x", "go")
    logged.force("yard", "x", "a", actor="ann", reason="test")
    assert [(entry.name, entry.state, entry.revision) for entry in steps(logged, "yard")] == [
        ("(create)", "a, c", 1), ("go", "b, c", 2), ("(force)", "a, c", 3),
    ]  # fmt: skip
    assert logged.get("yard", "x").state == "a, c"


def test_the_steps_of_a_batch_are_logged_each(logged):
    for id in "abc":
        logged.create("door", id)
    logged.tick("door", now=logged.get("door", "c").created + 5000)
    found = [entry for entry in steps(logged, "door") if entry.revision == 2]
    assert sorted((entry.instance, entry.state) for entry in found) == [("a", "open"), ("b", "open"), ("c", "open")]


def test_a_refused_event_is_no_step(logged):
    logged.create("yard", "x")
    logged.fire_many([("yard", "x", "go"), ("yard", "x", "go")])
    assert [entry.revision for entry in steps(logged, "yard")] == [1, 2]


def test_bad_input_is_named(logged):
    with pytest.raises(BadInput, match="30 days|2592000000"):
        logged.emitted_logs().log_steps("door", seconds=31 * 86_400)
    with pytest.raises(UnknownMachine):
        logged.emitted_logs().log_steps("nothing", seconds=1)
