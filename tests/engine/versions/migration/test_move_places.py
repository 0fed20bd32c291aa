"""Where instances stand after a move: flat, nested, parallel, history states, and final ones."""

from __future__ import annotations

import pytest

from tests.engine.builders import NOW, fields, machine

from ..instance_dump import audit, dump_all

FLAT = machine("thing", {"A": {"on": {"go": "B", "end": "End"}}, "B": {"on": {"back": "A"}}, "End": {"type": "final"}})
NESTED = machine(
    "thing",
    {
        "Work": {
            "initial": "A",
            "states": {"A": {"on": {"go": "B"}}, "B": {"on": {"back": "A"}}, "past": {"type": "history"}},
            "on": {"rest": "Rest"},
        },
        "Rest": {"on": {"work": "past"}},
        "End": {"type": "final"},
    },
)
REGIONS = machine(
    "thing",
    {
        "Both": {
            "type": "parallel",
            "states": {
                "Left": {"initial": "A", "states": {"A": {"on": {"go": "B"}}, "B": {"on": {"back": "A"}}}},
                "Right": {"initial": "X", "states": {"X": {"on": {"turn": "Y"}}, "Y": {}}},
            },
        },
        "Rest": {},
        "End": {"type": "final"},
    },
)


@pytest.fixture
def versions(engine):
    """Version 1 is flat, 2 nested, 3 parallel; an instance of each in B, since a second."""
    for number, definition in enumerate([FLAT, NESTED, REGIONS], start=1):
        engine.publish(definition)
        engine.create("thing", f"b{number}", version=number, now=NOW)
        engine.fire("thing", f"b{number}", "go", now=NOW + 1000)
    return engine


@pytest.mark.parametrize(
    ("old", "new", "states", "leaves"),
    [
        (1, 2, {}, ["B"]),
        (2, 1, {"Rest": "A"}, ["B"]),
        (1, 3, {}, ["B", "X"]),
        (3, 1, {"Left": None, "A": "A", "B": "B", "X": "B", "Y": "B", "Rest": "A"}, ["B"]),
        (2, 3, {}, ["B", "X"]),
        (3, 2, {"X": "Work", "Y": "Work"}, ["B"]),
        (1, 2, {"B": "Work"}, ["A"]),
        (1, 3, {"B": ["A", "Y"]}, ["A", "Y"]),
        (1, 3, {"B": "Both"}, ["A", "X"]),
        (2, 3, {"B": "Rest"}, ["Rest"]),
    ],
)
def test_places(versions, old, new, states, leaves):
    id = f"b{old}"
    plan = versions.plan("thing", new, from_versions=[old], states=states)
    assert versions.migrate(plan, actor="ann").refused == []
    after = versions.get("thing", id)
    assert (after.version, sorted(after.configuration)) == (new, sorted(leaves))
    audit(versions, "thing")
    versions.fire("thing", id, "back" if "B" in leaves else "go") if "Rest" not in leaves else None
    audit(versions, "thing")


def test_leaves_that_map_keep_their_time_and_regions_without_one_begin_now(versions):
    versions.migrate(versions.plan("thing", 3, from_versions=[1]))
    keys = versions.keys.partition("thing")
    assert versions.client.zscore(keys.state("B"), "b1") == NOW + 1000
    assert versions.client.zscore(keys.state("X"), "b1") > NOW + 1000


def test_states_that_exclude_each_other(versions):
    before = dump_all(versions, "thing", "b3")
    plan = versions.plan("thing", 1, from_versions=[3], states={"X": "A", "Y": "A", "Rest": "A"})
    (refused,) = versions.migrate(plan).refused
    assert (refused.id, refused.code, refused.version) == ("b3", "SB611", 3)
    assert dump_all(versions, "thing", "b3") == before


def test_a_history_state_remembers_what_has_a_place(versions):
    versions.fire("thing", "b2", "rest")
    other = machine("thing", {**NESTED["states"]})
    other["states"] = {
        "Work": {
            "initial": "A",
            "states": {"A": {}, "C": {}, "past": {"type": "history"}},
            "on": {"rest": "Rest"},
        },
        "Rest": {"on": {"work": "past"}},
        "End": {"type": "final"},
    }
    versions.publish(other)
    versions.create("thing", "lost", version=2)
    versions.fire("thing", "lost", "go")
    versions.fire("thing", "lost", "rest")
    versions.migrate(versions.plan("thing", 4, from_versions=[2], states={"B": "C"}))
    versions.fire("thing", "b2", "work")
    assert versions.get("thing", "b2").configuration == ["C"]


def test_a_history_state_forgets_what_has_none(versions):
    versions.fire("thing", "b2", "rest")
    plan = versions.plan("thing", 1, from_versions=[2], states={"Rest": "A"})
    versions.migrate(plan)
    assert not any(
        name.startswith("_h:") for name in versions.client.hgetall(versions.keys.partition("thing").instance("b2"))
    )


def test_a_living_instance_ends_in_a_final_state(versions):
    versions.migrate(versions.plan("thing", 2, from_versions=[1], states={"B": "End"}))
    after = versions.get("thing", "b1")
    assert (after.configuration, after.done) == (["End"], True)
    audit(versions, "thing")


@pytest.mark.parametrize("new", [2, 3])
def test_a_finished_instance(versions, new):
    versions.create("thing", "e", version=1)
    versions.fire("thing", "e", "end")
    versions.migrate(versions.plan("thing", new, from_versions=[1]))
    after = versions.get("thing", "e")
    assert (after.version, after.configuration, after.done) == (new, ["End"], True)
    versions.migrate(
        versions.plan(
            "thing", 1, from_versions=[new], states={"Rest": "A"} | ({"X": "B", "Y": "B"} if new == 3 else {})
        )
    )
    after = versions.get("thing", "e")
    assert (after.version, after.done) == (1, True)
    audit(versions, "thing")


def test_a_finished_instance_never_lives_again(versions):
    versions.create("thing", "e", version=1)
    versions.fire("thing", "e", "end")
    before = dump_all(versions, "thing", "e")
    plan = versions.plan("thing", 2, from_versions=[1], states={"End": "Rest"})
    assert [(one.id, one.code) for one in versions.migrate(plan).refused] == [("e", "SB615")]
    assert dump_all(versions, "thing", "e") == before


def test_an_instance_that_moved_on_is_judged_by_what_it_is_now(versions):
    plan = versions.plan("thing", 2, from_versions=[1], states={"B": None})
    assert [one.id for one in versions.migrate(plan).refused] == ["b1"]
    versions.fire("thing", "b1", "back")
    assert versions.migrate(plan).moved == 1


def test_suspended_instances_move_and_stay_suspended_or_are_refused(versions):
    versions.suspend("thing", "b1", actor="ann", reason="wait")
    plan = versions.plan("thing", 2, from_versions=[1], suspended="refuse")
    assert [(one.id, one.code) for one in versions.migrate(plan).refused] == [("b1", "SB616")]
    versions.migrate(versions.plan("thing", 2, from_versions=[1]))
    assert versions.get("thing", "b1").suspended is not None
    versions.resume("thing", "b1", actor="ann", reason="go on")
    versions.fire("thing", "b1", "back")
    audit(versions, "thing")


def test_pinned_instances_stay(versions):
    versions.pin_instance("thing", "b1", actor="ann", reason="a contract")
    assert [one.id for one in versions.migrate(versions.plan("thing", 2, from_versions=[1])).refused] == ["b1"]
    assert versions.get("thing", "b1").version == 1


def test_searches_find_the_instance_in_its_new_place(engine):
    states = {"A": {"on": {"go": "B"}}, "B": {}}
    engine.publish(machine("thing", states, context=fields(n="integer", t="string"), index=["n", "instance.version"]))
    engine.create("thing", "i", {"n": 7, "t": "x"})
    engine.publish(
        machine("thing", states, context=fields(n="string", t="string"), index=["n", "t", "instance.version"])
    )
    engine.reindex("thing")
    plan = engine.plan("thing", 2)
    engine.migrate(plan)
    assert [one.id for one in engine.find("thing", where={"n": "7"})] == ["i"]
    assert [one.id for one in engine.find("thing", version=2)] == ["i"]
    assert list(engine.find("thing", version=1)) == []
    engine.migrate(plan.inverse())
    assert [one.id for one in engine.find("thing", where={"n": 7})] == ["i"]
    audit(engine, "thing")


def test_the_history_names_the_version_of_each_step(versions):
    versions.migrate(versions.plan("thing", 2, from_versions=[1]))
    versions.fire("thing", "b1", "back")
    versions.migrate(versions.plan("thing", 3, from_versions=[2]))
    steps = versions.history("thing", "b1")
    assert [(step.event, step.version) for step in steps] == [
        ("(migrate)", 3), ("back", 2), ("(migrate)", 2), ("go", 1), ("(create)", 1),
    ]  # fmt: skip
    assert [step.version for step in versions.history("thing", "b1", before=5, limit=1)] == [2]
    assert [step.version for step in versions.history("thing", "b1", before=3, limit=2)] == [1, 1]
    assert [step.version for step in versions.inspect("thing", "b1").steps] == [3, 2, 2, 1, 1]


def test_flow_counters_stay_those_of_their_version(versions):
    before = versions.live("thing").flow
    versions.migrate(versions.plan("thing", 3, from_versions=[1, 2]))
    assert versions.live("thing").flow == before


def test_deletion_takes_the_undo_record_along(versions):
    versions.migrate(versions.plan("thing", 3, from_versions=[1]), actor="ann")
    keys = versions.keys.partition("thing")
    assert versions.client.exists(keys.undo("b1"))
    versions.delete("thing", "b1", actor="ann", reason="over")
    assert not versions.client.exists(keys.undo("b1"))
