"""A region that a version added has no place on the way back: the other regions decide."""

from __future__ import annotations

import pytest

from machines.engine import BadInput, PlanError
from tests.engine.builders import NOW, door, machine

from ..letters import LETTER, letters, to_second


def work(*regions):
    states = {
        name: {"initial": f"{name}1", "states": {f"{name}1": {"on": {"go": f"{name}2"}}, f"{name}2": {}}}
        for name in regions
    }
    return machine("thing", {"Work": {"type": "parallel", "states": states}})


@pytest.fixture
def plan(engine):
    engine.publish(work("a", "b"))
    engine.create("thing", "x", now=NOW)
    engine.publish(work("a", "b", "c"))
    return engine.plan("thing", 2)


def test_an_instance_goes_back_after_a_step_in_the_new_region(engine, plan):
    assert engine.migrate(plan).moved == 1
    assert set(engine.fire("thing", "x", "go").configuration) == {"a2", "b2", "c2"}
    result = engine.migrate(plan.inverse())
    assert (result.moved, result.refused) == (1, [])
    back = engine.get("thing", "x")
    assert (back.version, set(back.configuration)) == (1, {"a2", "b2"})
    assert plan.inverse().inverse().sources[0].states == plan.sources[0].states


def test_a_plan_in_that_direction_names_the_state_around(engine, plan):
    hints = {one.path: one.hint for one in engine.plan("thing", 1).findings if one.code == "SB607"}
    assert len(hints) == 2
    assert all("map it to" in hint and "Work" in hint and "the state around it" in hint for hint in hints.values())


def test_no_plan_leads_to_a_withdrawn_version(engine):
    engine.publish(door(description="1"))
    engine.publish(door(description="2"))
    made = engine.plan("door", 1)
    engine.withdraw_version("door", 1)
    for call in (lambda: engine.plan("door", 1), lambda: engine.check_plan(made), lambda: engine.migrate(made)):
        with pytest.raises(PlanError, match="withdrawn") as caught:
            call()
        assert caught.value.code == "SB612"


@pytest.mark.parametrize("name", ["dry_run", "migrate", "check_plan", "mover", "classify"])
@pytest.mark.parametrize("plan", [None, {}], ids=["none", "dict"])
def test_what_is_no_plan_is_refused(engine, name, plan):
    with pytest.raises(PlanError, match=r"MigrationPlan\.from_dict"):
        getattr(engine, name)(plan, *([["x"]] if name == "classify" else []))


def test_what_is_no_version_is_refused(engine):
    engine.publish(door())
    calls = [
        lambda: engine.diff("door", 1, None),
        lambda: engine.plan("door", None),
        lambda: engine.plan("door", 1, from_versions=[None]),
    ]
    for call in calls:
        with pytest.raises(BadInput, match="version is a whole number of at least 1"):
            call()
    with pytest.raises(PlanError, match="is empty"):
        engine.plan("door", 1, from_versions=[])


def test_effects_speak_of_the_data(engine):
    letters(engine, 1)
    properties = {"note": {"type": "integer"}, "rank": {"default": 1}, "cents": {"type": "integer", "default": 0}}
    engine.publish(LETTER | {"context": {"type": "object", "properties": properties}})
    plan = engine.plan("letter", 2, data={"cents": "stamps * 100", "note": "5"})
    (each,) = engine.dry_run(plan).classes
    assert sorted(each.effects) == ["cents is computed", "note is computed", "rank is new", "stamps is dropped"]


def test_pending_has_only_what_there_is(engine):
    ids = letters(engine, 2)
    engine.fire("letter", ids[0], "post")
    for each in engine.dry_run(to_second(engine)).classes:
        assert set(each.pending) == ({"timers"} if each.configuration == ("posted",) else set())
