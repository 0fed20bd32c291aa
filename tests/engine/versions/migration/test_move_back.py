"""The way back restores an instance that took no step since, byte for byte; any other goes back by the map."""

from __future__ import annotations

import pytest

from tests.engine.builders import NOW, machine
from tests.engine.jobs.stored_jobs import read_job

from ..instance_dump import audit, dump, dump_all, place

HOUR = 3_600_000
BUSY = {"src": "pack", "queue": "pack", "onDone": "Done", "retry": {"attempts": 5}}
OLD = machine(
    "thing",
    {
        "A": {"on": {"go": "Busy"}},
        "Busy": {"invoke": BUSY, "after": {"1h": "A", "2h": "Done"}, "on": {"stop": "A"}},
        "Done": {"type": "final"},
    },
    context={"n": 3, "t": "x", "flag": True},
)
NEW = machine(
    "thing",
    {
        "A": {"on": {"go": "Both"}},
        "Both": {
            "type": "parallel",
            "states": {
                "Left": {"initial": "Busy", "states": {"Busy": {"invoke": {**BUSY, "src": "wrap"}}, "Idle": {}}},
                "Right": {"initial": "X", "states": {"X": {"after": {"5h": "Y"}}, "Y": {}}},
            },
        },
        "Done": {"type": "final"},
    },
    context={"n": "", "extra": 9},
)


@pytest.fixture
def both(engine):
    engine.publish(OLD)
    engine.create("thing", "idle", now=NOW)
    for id in ("busy", "running", "late", "end", "held"):
        engine.create("thing", id, {"t": f"the {id}"}, actor="eve", now=NOW)
        engine.fire("thing", id, "go", actor="eve", now=NOW + 5)
    engine.force("thing", "end", "Done", actor="eve", reason="over", now=NOW + 9)
    engine.suspend("thing", "held", actor="eve", reason="wait", now=NOW + 9)
    engine.publish(NEW)
    return engine


def read(engine, jobs=()):
    return {id: dump(engine, "thing", id, *jobs) for id in ("idle", "busy", "running", "late", "end", "held")}


@pytest.mark.parametrize("given", [{}, {"timers": "now"}, {"removed": "keep"}, {"states": {"Busy": "A"}}])
@pytest.mark.parametrize("actor", ["", "ann"])
def test_back_is_byte_for_byte(both, given, actor):
    waiting = [job for id in ("busy", "running", "late", "held") for job in both.get("thing", id).jobs]
    before = read(both, waiting)
    plan = both.plan("thing", 2, **given)
    assert both.migrate(plan, actor=actor).moved == 6
    audit(both, "thing")
    done = both.migrate(plan.inverse(), actor="bob", reason="a mistake")
    assert (done.moved, done.refused) == (6, [])
    assert read(both, waiting) == before
    audit(both, "thing")
    steps = both.history("thing", "busy")
    assert [step.event for step in steps[:2]] == ["(migrate)", "(migrate)"]
    assert (steps[0].version, steps[1].version, steps[2].version) == (1, 2, 1)


def test_a_withdrawn_job_comes_back_with_its_attempts(both):
    jobs = both.take("thing", "pack", "w", count=10, now=NOW + 10)
    for job in jobs:
        both.fail(job, "no", delay=HOUR, now=NOW + 11)
    (job,) = both.get("thing", "busy").jobs
    before = read_job(both.client, both.keys.partition("thing").job(job)), place(both, "thing", job)
    plan = both.plan("thing", 2)
    both.migrate(plan)
    assert both.client.exists(both.keys.partition("thing").job(job)) == 0
    both.migrate(plan.inverse())
    assert both.get("thing", "busy").jobs == [job]
    assert (read_job(both.client, both.keys.partition("thing").job(job)), place(both, "thing", job)) == before
    audit(both, "thing")


def test_a_running_job_that_comes_back_is_ready_and_its_old_token_is_void(both):
    running = {job.instance: job for job in both.take("thing", "pack", "w", count=10, now=NOW + 10)}
    plan = both.plan("thing", 2)
    both.migrate(plan)
    both.migrate(plan.inverse())
    assert both.get("thing", "busy").jobs == [running["busy"].id]
    assert list(place(both, "thing", running["busy"].id)) == ["ready"]
    with pytest.raises(Exception, match="no longer"):
        both.complete(running["busy"], {})


def test_an_instance_that_took_a_step_goes_back_by_the_map(both):
    plan = both.plan("thing", 2)
    both.migrate(plan)
    for id in ("idle", "busy"):
        both.edit("thing", id, {"extra": 10}, actor="ann", reason="other")
    done = both.migrate(plan.inverse())
    assert [(one.id, one.code) for one in done.refused] == [("busy", "SB610")]  # its second region has no place
    after = both.get("thing", "idle")
    assert (after.version, after.configuration, after.data["n"]) == (1, ["A"], 3)
    audit(both, "thing")


def test_a_job_that_ended_without_a_step_is_not_asked_for_again(engine):
    quiet = {"Busy": {"invoke": {"src": "pack", "queue": "pack"}}, "A": {}}
    engine.publish(machine("thing", quiet))
    engine.create("thing", "i", now=NOW)
    engine.publish(machine("thing", quiet, context={"n": 1}))
    plan = engine.plan("thing", 2)
    engine.migrate(plan)
    (job,) = engine.take("thing", "pack", "w")
    engine.complete(job, {})
    engine.migrate(plan.inverse())
    assert engine.get("thing", "i").jobs == []
    audit(engine, "thing")


def test_a_plan_that_keeps_no_records_goes_back_by_the_map(both):
    plan = both.plan("thing", 2, keep_undo="0")
    both.migrate(plan, actor="ann")
    assert both.client.keys("*undo:*") == []
    assert {one.code for one in both.migrate(plan.inverse()).refused} == {"SB610"}
    assert both.get("thing", "idle").version == 1
    audit(both, "thing")


def test_the_inverse_of_the_inverse_moves_again(both):
    plan = both.plan("thing", 2)
    both.migrate(plan)
    both.migrate(plan.inverse())
    assert both.migrate(plan.inverse().inverse()).moved == 6
    assert both.get("thing", "busy").version == 2
    audit(both, "thing")


def test_a_unique_key_that_was_taken_meanwhile_refuses_the_way_back(engine):
    work = {"src": "pack", "queue": "pack", "unique": "'only'"}
    engine.publish(machine("thing", {"Busy": {"invoke": work}, "A": {}}))
    engine.create("thing", "i")
    engine.publish(machine("thing", {"Idle": {}, "A": {"on": {"go": "Other"}}, "Other": {"invoke": work}}))
    plan = engine.plan("thing", 2, states={"Busy": "Idle"})
    engine.migrate(plan)
    engine.create("thing", "j")
    engine.force("thing", "j", "Other", actor="ann", reason="take it")
    before = dump_all(engine, "thing", "i")
    done = engine.migrate(plan.inverse())
    assert ("i", "SB617") in [(one.id, one.code) for one in done.refused]
    assert dump_all(engine, "thing", "i") == before
