"""Instances move to another version: where they stand, what happens to their pending work, and the way back."""

from __future__ import annotations

import pytest

from machines.engine import errors
from machines.engine.keys import Partition
from tests.engine.jobs.stored_jobs import read_job

HOUR = 3_600_000
T0 = 1_700_000_000_000

V1 = {
    "id": "order",
    "initial": "Open",
    "context": {"count": 1, "note": "x"},
    "states": {
        "Open": {"on": {"pack": "Packing"}},
        "Packing": {"invoke": {"src": "pack", "onDone": "Sent"}, "after": {"1h": "Late"}, "on": {"drop": "Open"}},
        "Late": {},
        "Sent": {"type": "final"},
    },
}
V2 = {
    "id": "order",
    "initial": "Open",
    "context": {"count": "1", "rank": 5},
    "states": {
        "Open": {"on": {"pack": "Packing"}},
        "Active": {
            "initial": "Packing",
            "after": {"2h": "Late"},
            "states": {
                "Packing": {
                    "invoke": {"src": "pack", "onDone": "Sent"},
                    "after": {"1h": "Late"},
                    "on": {"drop": "Open"},
                },
            },
        },
        "Late": {"invoke": {"src": "call"}},
        "Sent": {"type": "final"},
    },
}


def dump(engine, machine: str, id: str) -> dict:
    """Everything that Redis holds of an instance, but for its revision, its history and the undo record."""
    partition: Partition = engine.keys.partition(machine)
    redis = engine.client
    hash = redis.hgetall(partition.instance(id))
    hash.pop("_version")
    entered = {state: redis.zscore(partition.state(state), id) for state in redis.smembers(partition.states)}
    timers = {m: s for m, s in redis.zrange(partition.timers, 0, -1, withscores=True) if m.endswith(f":{id}")}
    jobs = {job: read_job(redis, partition.job(job)) for job in hash.get("_jobs", "").split()}
    lookups = {
        key: [member for member in redis.zrange(key, 0, -1) if member.endswith(f"\0{id}")]
        for key in redis.scan_iter(f"{partition.root}:by:*".replace("{", "[{]").replace("}", "[}]"))
    }
    held = redis.lrange(partition.held(id), 0, -1)
    return {"hash": hash, "entered": entered, "timers": timers, "jobs": jobs, "lookups": lookups, "held": held}


@pytest.fixture
def order(engine):
    engine.publish(V1)
    for id in ("a", "b", "c"):
        engine.create("order", id, now=T0)
    engine.fire("order", "b", "pack", now=T0 + 1000)
    engine.publish(V2)
    return engine


def test_instances_get_the_new_version_and_keep_their_time_of_entry(order):
    before = order.get("order", "b")
    done = order.migrate(order.plan("order", 2), actor="ann", reason="new rules")
    assert (done.moved, done.refused, done.kept, done.already) == (3, [], 0, 0)
    after = order.get("order", "b")
    assert (after.version, after.configuration, after.entered) == (2, ["Packing"], before.entered)
    assert (after.revision, after.data) == (before.revision + 1, {"count": "1", "rank": 5})


def test_the_same_timer_keeps_its_moment_and_a_new_one_counts_from_the_entry(order):
    order.migrate(order.plan("order", 2))
    due = {timer.state: timer.due for timer in order.get("order", "b").timers}
    assert due == {"Packing": T0 + 1000 + HOUR, "Active": T0 + 1000 + 2 * HOUR}


def test_the_job_of_the_same_invoke_is_kept(order):
    before = order.get("order", "b").jobs
    order.migrate(order.plan("order", 2))
    assert order.get("order", "b").jobs == before


def test_the_step_stands_in_the_history_with_both_versions_and_the_plan(order):
    plan = order.plan("order", 2)
    order.migrate(plan, actor="ann", reason="new rules")
    step = order.history("order", "b")[0]
    assert (step.event, step.actor, step.reason) == ("(migrate)", "ann", "new rules")
    assert step.payload == {"from": 1, "to": 2, "plan": plan.id}


def test_a_second_run_changes_nothing(order):
    plan = order.plan("order", 2)
    order.migrate(plan)
    before = {id: order.get("order", id) for id in "abc"}
    done = order.migrate(plan)
    assert (done.moved, done.already) == (0, 3)
    assert {id: order.get("order", id) for id in "abc"} == before


def test_what_has_no_place_is_refused_and_stays_as_it_is(order):
    before = dump(order, "order", "b")
    done = order.migrate(order.plan("order", 2, states={"Packing": None}))
    assert done.moved == 2
    assert [(one.id, one.version, one.state, one.code) for one in done.refused] == [("b", 1, "Packing", "SB610")]
    assert dump(order, "order", "b") == before


def test_what_has_no_place_is_kept_or_suspended_where_the_plan_says_so(order):
    assert order.migrate(order.plan("order", 2, states={"Packing": None}, unmapped="keep")).kept == 1
    assert order.get("order", "b").suspended is None
    order.migrate(order.plan("order", 2, states={"Packing": None}, unmapped="suspend"), actor="ann")
    assert order.get("order", "b").suspended is not None
    assert order.get("order", "b").version == 1


@pytest.mark.parametrize("mapped", [{}, {"Packing": "Late"}, {"Packing": "Open"}, {"Packing": "Active"}])
def test_the_way_back_restores_an_instance_that_took_no_step(order, mapped):
    before = {id: dump(order, "order", id) for id in "abc"}
    plan = order.plan("order", 2, states=mapped)
    assert order.migrate(plan, actor="ann").moved == 3
    done = order.migrate(plan.inverse(), actor="bob")
    assert (done.moved, done.refused) == (3, [])
    assert {id: dump(order, "order", id) for id in "abc"} == before


def test_the_way_back_maps_an_instance_that_took_a_step(order):
    plan = order.plan("order", 2)
    order.migrate(plan)
    order.fire("order", "a", "pack")
    order.migrate(plan.inverse())
    after = order.get("order", "a")
    assert (after.version, after.configuration, len(after.jobs)) == (1, ["Packing"], 1)


def test_a_job_whose_invoke_is_gone_is_withdrawn_and_a_new_one_begins(order):
    order.migrate(order.plan("order", 2, states={"Packing": "Late"}))
    after = order.get("order", "b")
    assert after.configuration == ["Late"]
    assert [order.job("order", job).src for job in after.jobs] == ["call"]
    assert after.timers == []


def test_a_finished_instance_moves_only_to_a_final_state(order):
    order.force("order", "c", "Sent", actor="ann", reason="done", now=T0)
    done = order.migrate(order.plan("order", 2, states={"Sent": "Open"}))
    assert [(one.id, one.code) for one in done.refused] == [("c", "SB615")]
    assert order.migrate(order.plan("order", 2)).moved == 1
    assert order.get("order", "c").configuration == ["Sent"]


PARALLEL = {
    "id": "order",
    "initial": "Both",
    "context": {"count": 1},
    "states": {
        "Both": {
            "type": "parallel",
            "states": {
                "Left": {"initial": "Open", "states": {"Open": {"on": {"pack": "Packing"}}, "Packing": {}}},
                "Right": {"initial": "Unpaid", "states": {"Unpaid": {"on": {"pay": "Paid"}}, "Paid": {}}},
            },
        },
        "Late": {},
        "Sent": {"type": "final"},
    },
}


def test_a_plain_state_becomes_one_region_and_the_other_is_entered_by_default(order):
    order.publish(PARALLEL)
    order.migrate(order.plan("order", 3, from_versions=[1]), actor="ann")
    after = order.get("order", "b")
    assert sorted(after.configuration) == ["Packing", "Unpaid"]
    assert order.client.zscore(order.keys.partition("order").state("Packing"), "b") == T0 + 1000
    plan = order.plan("order", 2, from_versions=[3], states={"Unpaid": "Open", "Paid": "Late"})
    done = order.migrate(plan)
    assert [(one.id, one.code) for one in done.refused] == [("b", "SB611")]
    assert done.moved == 2


def test_a_plan_of_a_version_with_other_content_has_gone_stale(order):
    plan = order.plan("order", 2)
    document = plan.as_dict()
    document["sources"][0]["digest"] = document["sources"][0]["back"]["to_digest"] = "0" * 12
    del document["id"]
    with pytest.raises(errors.PlanError) as caught:
        order.migrate(type(plan).from_dict(document))
    assert caught.value.code == "SB606"
