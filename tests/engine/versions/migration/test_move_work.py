"""What an instance has pending when it moves: timers, jobs, children, messages, actions."""

from __future__ import annotations

import pytest

from tests.engine.builders import NOW, machine

from ..instance_dump import audit, dump, dump_all

HOUR = 3_600_000


def publish(engine, old, new, *ids, event=None, now=NOW):
    """Publish two versions, and create instances of the first one."""
    engine.publish(machine("thing", old))
    for id in ids:
        engine.create("thing", id, now=now)
        if event:
            engine.fire("thing", id, event, now=now)
    engine.publish(machine("thing", new))
    return engine


def move(engine, **given):
    actor = given.pop("actor", "")
    done = engine.migrate(engine.plan("thing", 2, **given), actor=actor)
    assert done.refused == []
    audit(engine, "thing")
    return done


WAITING = {"Wait": {"after": {"1h": "Late"}}, "Late": {}}


@pytest.mark.parametrize(("policy", "since"), [("entry", NOW), ("now", None)])
def test_other_timers_run_from_the_entry_or_from_now(engine, policy, since):
    publish(engine, WAITING, {"Wait": {"after": {"2h": "Late"}}, "Late": {}}, "i")
    move(engine, timers=policy)
    (timer,) = engine.get("thing", "i").timers
    if since is None:
        assert timer.due > NOW + 2 * HOUR
    else:
        assert timer.due == since + 2 * HOUR


def test_a_timer_that_has_fired_in_this_stay_is_not_armed_again(engine):
    states = {"Wait": {"after": {"1h": {"actions": {"set": {"n": "n + 1"}}}}}, "Late": {}}
    engine.publish(machine("thing", states, context={"n": 0}))
    engine.create("thing", "i", now=NOW)
    engine.tick("thing", now=NOW + HOUR)
    engine.publish(machine("thing", {**states, "More": {}}, context={"n": 0}))
    move(engine)
    assert (engine.get("thing", "i").timers, engine.get("thing", "i").data) == ([], {"n": 1})


def test_timers_of_a_suspended_instance_wait(engine):
    publish(engine, WAITING, {"Wait": {"after": {"1h": "Late", "3h": "Late"}}, "Late": {}}, "i")
    engine.suspend("thing", "i", actor="ann", reason="wait")
    move(engine)
    assert len(engine.get("thing", "i").timers) == 2
    engine.resume("thing", "i", actor="ann", reason="go on", overdue="shift")
    audit(engine, "thing")


def test_a_delayed_event_stays_also_in_a_flat_version(engine):
    old = {"A": {"on": {"go": {"actions": {"send": {"event": "later", "delay": "1h"}}}}}, "B": {}}
    publish(engine, old, {"A": {"on": {"later": "B"}}, "B": {"on": {"back": "A"}}}, "i", event="go")
    move(engine)
    assert [timer.event for timer in engine.get("thing", "i").timers] == ["later"]
    engine.tick("thing", now=NOW + HOUR)
    assert engine.get("thing", "i").configuration == ["B"]
    engine.fire("thing", "i", "back")
    audit(engine, "thing")


BUSY = {
    "Busy": {"invoke": {"id": "pack", "src": "pack", "queue": "pack", "onDone": "Done", "onError": "Failed"}},
    "Done": {},
    "Failed": {},
}


def renamed(id, src="pack"):
    return {
        "Busy": {"invoke": {"id": id, "src": src, "queue": "pack", "onDone": "Done", "onError": "Failed"}},
        "Done": {},
        "Failed": {},
    }


def take(engine):
    (leased,) = engine.take("thing", "pack", "w", lease=60_000)
    return leased


def test_a_running_job_goes_on_and_ends_in_the_new_version(engine):
    publish(engine, BUSY, {**BUSY, "More": {}}, "i")
    job = take(engine)
    move(engine)
    engine.complete(job, {"ok": True})
    assert engine.get("thing", "i").configuration == ["Done"]


def test_a_dead_job_is_retried_under_the_new_name_of_its_invoke(engine):
    states = {"Busy": {"invoke": {"id": "pack", "src": "pack", "queue": "pack", "onDone": "Done"}}, "Done": {}}
    new = {"Busy": {"invoke": {"id": "packing", "src": "pack", "queue": "pack", "onDone": "Done"}}, "Done": {}}
    publish(engine, states, new, "i")
    job = take(engine)
    engine.fail(job, "no", retry=False)
    move(engine)
    assert engine.get("thing", "i").jobs == []
    engine.retry("thing", "i", "packing", actor="ann", reason="again")
    again = take(engine)
    assert again.id == job.id
    engine.complete(again, {})
    assert engine.get("thing", "i").configuration == ["Done"]


@pytest.mark.parametrize("situation", ["ready", "leased", "delayed"])
def test_a_job_stays_where_it_is_under_another_name_of_its_invoke(engine, situation):
    publish(engine, BUSY, renamed("packing"), "i")
    (id,) = engine.get("thing", "i").jobs
    job = take(engine) if situation != "ready" else None
    if situation == "delayed":
        engine.fail(job, "no", retry=True, delay=HOUR)
    move(engine)
    assert engine.get("thing", "i").jobs == [id]
    if situation == "delayed":
        engine.retry("thing", "i", "packing", actor="ann", reason="now")
    job = take(engine) if situation != "leased" else job
    assert job.id == id
    engine.complete(job, {})
    assert engine.get("thing", "i").configuration == ["Done"]


def test_the_job_of_another_handler_is_withdrawn_and_one_of_its_own_begins(engine):
    publish(engine, BUSY, renamed("wrap", "wrap"), "i")
    (old,) = engine.get("thing", "i").jobs
    move(engine)
    (new,) = engine.get("thing", "i").jobs
    assert new != old
    assert engine.job("thing", new).src == "wrap"
    assert engine.client.exists(engine.keys.partition("thing").job(old)) == 0


def test_work_that_was_done_is_not_asked_for_again(engine):
    old = {"Busy": {"invoke": {"id": "pack", "src": "pack", "queue": "pack"}, "on": {"go": "Done"}}, "Done": {}}
    publish(engine, old, {**old, "More": {}}, "i")
    engine.complete(take(engine), {})
    assert engine.get("thing", "i").jobs == []
    move(engine)
    assert engine.get("thing", "i").jobs == []


CHILD = machine("child", {"Run": {"on": {"stop": "Over"}}, "Over": {"type": "final"}})


def with_child(**more):
    return {"On": {"invoke": {"id": "kid", "src": "machine:child", "onDone": "End"}, **more}, "End": {}}


def test_a_child_stays_and_its_end_arrives(engine):
    engine.publish(CHILD)
    publish(engine, with_child(), with_child(on={"x": "End"}), "i")
    engine.tick()
    child = engine.get("thing", "i").children["kid"]["id"]
    move(engine)
    assert engine.get("thing", "i").children["kid"]["id"] == child
    engine.fire("child", child, "stop")
    engine.tick()
    assert engine.get("thing", "i").configuration == ["End"]


def test_a_child_without_a_place_is_stopped(engine):
    engine.publish(CHILD)
    publish(engine, with_child(), {"On": {}, "End": {}}, "i")
    engine.tick()
    child = engine.get("thing", "i").children["kid"]["id"]
    move(engine)
    engine.tick()
    assert engine.get("thing", "i").children == {}
    assert engine.find_machines(child, ["child"]) == []


def test_a_child_moves_and_answers_its_parent(engine):
    engine.publish(CHILD)
    engine.publish(machine("thing", with_child()))
    engine.create("thing", "i", now=NOW)
    engine.tick()
    child = engine.get("thing", "i").children["kid"]["id"]
    engine.publish(CHILD | {"description": "two"})
    assert engine.migrate(engine.plan("child", 2)).moved == 1
    engine.fire("child", child, "stop")
    engine.tick()
    assert engine.get("thing", "i").configuration == ["End"]


def test_held_messages_stay(engine):
    old = {"A": {"on": {"hello": "B"}}, "B": {}}
    states = {
        "Tell": {"on": {"go": {"actions": {"send": {"event": "hello", "to": {"machine": "thing", "id": "'i'"}}}}}}
    }
    engine.publish(machine("thing", old, accepts={"from": ["teller"]}))
    engine.create("thing", "i", now=NOW)
    engine.publish(machine("thing", {**old, "C": {}}, accepts={"from": ["teller"]}))
    engine.publish(machine("teller", states))
    engine.create("teller", "t")
    engine.suspend("thing", "i", actor="ann", reason="wait")
    engine.fire("teller", "t", "go")
    engine.tick()
    assert dump(engine, "thing", "i")["held"] != []
    move(engine)
    engine.resume("thing", "i", actor="ann", reason="go on")
    assert engine.get("thing", "i").configuration == ["B"]


ACTIONS = {
    "A": {"exit": {"set": {"log": "log + 'exit A '"}}, "on": {"go": "B"}},
    "B": {"entry": {"set": {"log": "log + 'entry B '"}}, "always": {"target": "C", "guard": "log != ''"}},
    "C": {"entry": {"set": {"log": "log + 'entry C'"}}},
}


@pytest.mark.parametrize(
    ("actions", "log", "state"),
    [((), "", "B"), (("exit",), "exit A ", "C"), (("exit", "entry"), "exit A entry B entry C", "C")],
)
def test_actions_run_only_where_the_plan_names_them(engine, actions, log, state):
    engine.publish(machine("thing", {"A": ACTIONS["A"]}, context={"log": ""}, initial="A") | {"states": ACTIONS})
    engine.create("thing", "i")
    engine.publish(machine("thing", ACTIONS, context={"log": ""}, description="2"))
    move(engine, states={"A": "B"}, actions=actions)
    after = engine.get("thing", "i")
    assert after.data == {"log": log} or actions == ("exit",)
    assert actions == ("exit",) or after.configuration == [state]


def test_an_action_that_fails_refuses_the_move(engine):
    engine.publish(machine("thing", {"A": {}}, context={"n": 0}))
    engine.create("thing", "i")
    new = {"A": {}, "B": {"entry": {"set": {"n": "1 / n"}}}}
    engine.publish(machine("thing", new, context={"n": 0}))
    before = dump_all(engine, "thing", "i")
    done = engine.migrate(engine.plan("thing", 2, states={"A": "B"}, actions=["entry"]))
    assert [one.code for one in done.refused] == ["SB617"]
    assert dump_all(engine, "thing", "i") == before


def test_a_unique_key_that_is_held_refuses_the_move(engine):
    work = {"src": "pack", "queue": "pack", "unique": "'only'"}
    publish(
        engine, {"A": {}, "Busy": {"invoke": work}}, {"A": {}, "Busy": {"invoke": work, "on": {"x": "A"}}}, "i", "j"
    )
    engine.force("thing", "j", "Busy", actor="ann", reason="first")
    before = dump_all(engine, "thing", "i")
    done = engine.migrate(engine.plan("thing", 2, states={"A": "Busy"}))
    assert [(one.id, one.code) for one in done.refused] == [("i", "SB617")]
    assert dump_all(engine, "thing", "i") == before
    audit(engine, "thing")
