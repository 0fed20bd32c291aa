"""Suspending an instance: nothing moves it until it is resumed, and then nothing of what came meanwhile is lost."""

import pytest

from machines.engine import BadInput, Conflict, Refused, SignalboxError, Suspended, UnknownInstance
from tests.engine.builders import NOW, door, errand, machine, publish, started
from tests.engine.dumps import unchanged

WHO = {"actor": "alice", "reason": "under inspection"}


def timed():
    """Ten seconds to B, and an event that is sent to itself after five."""
    entry = {"send": {"event": "half", "delay": "5s"}}
    states = {
        "A": {"entry": entry, "after": {"10s": "B"}, "on": {"half": {"actions": {"set": {"n": "n + 1"}}}}},
        "B": {},
    }
    return machine("timed", states, context={"n": 0})


def noter(**more):
    """Notes each event it gets from others."""
    on = {"note": {"actions": {"append": {"got": "event.n"}}}, "end": "Z"}
    states = {"A": {"on": on | more}, "Z": {"type": "final"}}
    return machine("noter", states, context={"got": []}, accepts={"from": ["teller", "ender"]})


def teller(event="note"):
    """``tell`` sends a number to the noter x."""
    send = {"event": event, "to": {"machine": "noter", "id": "'x'"}, "data": {"n": "event.n"}, "id": "s1"}
    lost = {"actions": {"append": {"lost": "event.message"}}}
    states = {"A": {"on": {"tell": {"actions": {"send": send}}, "error.communication": lost}}}
    return machine("teller", states, context={"lost": []})


def hold(engine, name, now=NOW, id="x"):
    return engine.suspend(name, id, now=now, **WHO)


def go_on(engine, name, now=NOW, id="x", **more):
    return engine.resume(name, id, now=now, **WHO, **more)


def due(instance):
    return [timer.due - NOW for timer in instance.timers]


def test_it_says_since_when_and_takes_no_event(engine):
    started(engine, door())
    held = hold(engine, "door", now=NOW + 5)
    assert (held.suspended, held.state, held.revision) == (NOW + 5, "Shut", 2)
    with unchanged(engine):
        for call in (engine.fire, engine.explain):
            with pytest.raises(Suspended) as caught:
                call("door", "x", "open")
            assert (caught.value.code, caught.value.since) == ("SB432", NOW + 5)
        (outcome,) = engine.fire_many([("door", "x", "open")])
        assert isinstance(outcome, Suspended)
    after = go_on(engine, "door", now=NOW + 9)
    assert (after.suspended, after.revision) == (None, 3)
    assert engine.fire("door", "x", "open").state == "Open"


def test_both_stand_in_the_history_with_who_and_why(engine):
    started(engine, door())
    hold(engine, "door")
    go_on(engine, "door")
    steps = engine.history("door", "x", limit=2)
    assert [(step.event, step.actor, step.reason) for step in steps] == [
        ("(resume)", "alice", "under inspection"),
        ("(suspend)", "alice", "under inspection"),
    ]


@pytest.mark.parametrize("call", ["suspend", "resume"])
def test_a_reason_is_needed(engine, call):
    started(engine, door())
    with unchanged(engine), pytest.raises(BadInput, match="reason"):
        getattr(engine, call)("door", "x", actor="alice", reason=" ")


def test_twice_is_as_good_as_once(engine):
    started(engine, door())
    first = hold(engine, "door")
    with unchanged(engine):
        assert hold(engine, "door", now=NOW + 9).suspended == first.suspended
    go_on(engine, "door")
    with unchanged(engine):
        go_on(engine, "door")


def test_it_is_told_when_somebody_was_faster(engine):
    started(engine, door())
    with pytest.raises(Conflict):
        engine.suspend("door", "x", expect=7, **WHO)
    hold(engine, "door")
    with pytest.raises(Conflict):
        engine.resume("door", "x", expect=1, **WHO)


def test_what_is_over_or_not_there_cannot_be_suspended(engine):
    started(engine, noter())
    engine.fire("noter", "x", "end")
    with unchanged(engine), pytest.raises(BadInput, match="final"):
        hold(engine, "noter")
    with pytest.raises(UnknownInstance):
        hold(engine, "noter", id="nobody")


def test_an_unknown_policy_is_refused(engine):
    started(engine, door())
    with pytest.raises(BadInput, match="fire, shift"):
        go_on(engine, "door", overdue="forget")


def test_where_a_key_of_another_type_is_in_the_way_nothing_is_changed(engine):
    started(engine, timed())
    key = engine.keys.partition("timed").late
    engine.client.set(key, "foreign")
    with unchanged(engine), pytest.raises(SignalboxError):
        hold(engine, "timed")
    engine.client.delete(key)
    hold(engine, "timed")
    held = engine.keys.partition("timed").held("x")
    engine.client.set(held, "foreign")
    with unchanged(engine), pytest.raises(SignalboxError):
        go_on(engine, "timed")


# Timers


def test_no_timer_fires_meanwhile_and_none_is_counted(engine):
    started(engine, timed())
    assert due(hold(engine, "timed", now=NOW + 1_000)) == [5_000, 10_000]
    assert (engine.live("timed").timers, engine.live("timed").overdue) == (0, 0)
    assert engine.tick("timed", now=NOW + 60_000) == 0
    assert engine.get("timed", "x").state == "A"


def test_by_default_timers_keep_their_time_and_overdue_ones_fire_at_once_in_order(engine):
    started(engine, timed())
    hold(engine, "timed", now=NOW + 1_000)
    assert due(go_on(engine, "timed", now=NOW + 60_000)) == [5_000, 10_000]
    assert engine.tick("timed", now=NOW + 60_000) == 2
    after = engine.get("timed", "x")
    assert (after.state, after.data["n"], after.timers) == ("B", 1, [])


def test_a_timer_that_is_not_due_yet_fires_at_its_time(engine):
    started(engine, timed())
    hold(engine, "timed", now=NOW + 1_000)
    go_on(engine, "timed", now=NOW + 6_000, overdue="fire")
    assert engine.tick("timed", now=NOW + 9_999) == 1
    assert engine.tick("timed", now=NOW + 10_000) == 1


def test_or_they_are_moved_by_as_long_as_it_was_held(engine):
    started(engine, timed())
    hold(engine, "timed", now=NOW + 4_000)
    assert due(go_on(engine, "timed", now=NOW + 64_000, overdue="shift")) == [65_000, 70_000]
    assert engine.tick("timed", now=NOW + 64_999) == 0
    assert engine.tick("timed", now=NOW + 65_000) == 1
    assert engine.tick("timed", now=NOW + 70_000) == 1
    assert engine.live("timed").timers == 0


def test_a_timer_that_was_overdue_already_stays_as_overdue_as_it_was(engine):
    started(engine, timed())
    hold(engine, "timed", now=NOW + 7_000)
    assert due(go_on(engine, "timed", now=NOW + 8_000, overdue="shift")) == [6_000, 11_000]


def test_a_clock_that_went_backwards_moves_nothing_back(engine):
    started(engine, timed())
    hold(engine, "timed", now=NOW + 4_000)
    assert due(go_on(engine, "timed", now=NOW + 1_000, overdue="shift")) == [5_000, 10_000]


def test_a_timer_of_a_repair_meanwhile_is_moved_by_the_time_it_was_held_itself(engine):
    started(engine, timed())
    hold(engine, "timed", now=NOW)
    forced = engine.force("timed", "x", "A", now=NOW + 30_000, **WHO)
    assert (forced.suspended, due(forced)) == (NOW, [5_000, 40_000]), "an event under way, and the time of A anew"
    assert engine.live("timed").timers == 0
    assert due(go_on(engine, "timed", now=NOW + 31_000, overdue="shift")) == [36_000, 41_000]
    hold(engine, "timed", now=NOW + 32_000)
    assert due(go_on(engine, "timed", now=NOW + 33_000, overdue="shift")) == [37_000, 42_000]


# Repairs


def test_it_may_be_forced_elsewhere_and_stays_suspended(engine):
    started(engine, door())
    hold(engine, "door")
    forced = engine.force("door", "x", "Open", **WHO)
    assert (forced.state, forced.suspended) == ("Open", NOW)
    assert engine.counts("door") == {"Shut": 0, "Open": 1}
    with pytest.raises(Suspended):
        engine.fire("door", "x", "close")


def test_it_may_be_deleted_with_all_that_waits_for_it(engine):
    publish(engine, noter(), "x")
    publish(engine, teller(), "t")
    hold(engine, "noter")
    engine.fire("teller", "t", "tell", {"n": 1})
    assert engine.client.exists(engine.keys.partition("noter").held("x"))
    engine.delete("noter", "x")
    assert not engine.client.exists(engine.keys.partition("noter").held("x"))
    assert engine.tick() == 0


# What comes meanwhile


def test_messages_wait_and_are_applied_in_order(engine):
    publish(engine, noter(), "x")
    publish(engine, teller(), "t")
    hold(engine, "noter")
    for n in range(5):
        engine.fire("teller", "t", "tell", {"n": n})
    assert engine.get("noter", "x").data == {"got": []}
    assert engine.live("teller").mail == 0, "they have arrived"
    after = go_on(engine, "noter", now=NOW + 7)
    assert (after.data["got"], after.revision, after.suspended) == ([0, 1, 2, 3, 4], 8, None)
    assert engine.get("teller", "t").data["lost"] == []
    assert engine.tick() == 0
    assert engine.get("noter", "x").data == {"got": [0, 1, 2, 3, 4]}


def test_a_message_that_fails_then_is_told_to_its_sender_once_and_holds_up_none(engine):
    publish(engine, noter(note={"actions": {"append": {"got": "10 / event.n"}}}), "x")
    publish(engine, teller(), "t")
    hold(engine, "noter")
    for n in (5, 0, 2):
        engine.fire("teller", "t", "tell", {"n": n})
    assert go_on(engine, "noter").data["got"] == [2, 5]
    (lost,) = engine.get("teller", "t").data["lost"]
    assert "division by zero" in lost
    assert engine.tick() == 0
    assert len(engine.get("teller", "t").data["lost"]) == 1


@pytest.mark.parametrize(
    "text", ["settle", "[]", "{}", '{"kind":"event","body":{"from":{"machine":"teller","id":{}},"event":"note"}}']
)
def test_what_is_no_message_keeps_no_other_from_its_instance(engine, text):
    publish(engine, noter(), "x")
    publish(engine, teller(), "t")
    hold(engine, "noter")
    engine.client.rpush(engine.keys.partition("noter").held("x"), text)
    engine.fire("teller", "t", "tell", {"n": 7})
    assert go_on(engine, "noter").data["got"] == [7]


def test_more_than_a_thousand_are_too_many_and_their_senders_are_told(engine):
    many = {"foreach": {"in": "range(0, event.n)", "item": "n", "do": []}}
    send = {"event": "note", "to": {"machine": "noter", "id": "'x'"}, "data": {"n": "n"}}
    many["foreach"]["do"] = [{"send": send}]
    lost = {"actions": {"append": {"lost": "event.message"}}}
    states = {"A": {"on": {"tell": {"actions": many}, "error.communication": lost}}}
    publish(engine, noter(), "x")
    publish(engine, machine("teller", states, context={"lost": [], "n": 0}), "t")
    hold(engine, "noter")
    engine.fire("teller", "t", "tell", {"n": 1000})
    engine.fire("teller", "t", "tell", {"n": 3})
    while engine.tick():
        pass
    assert engine.client.llen(engine.keys.partition("noter").held("x")) == 1000
    lost = engine.get("teller", "t").data["lost"]
    assert len(lost) == 3
    assert "1000 events wait for it already" in lost[0]
    go_on(engine, "noter")
    while engine.tick():
        pass
    assert len(engine.get("noter", "x").data["got"]) == 1000


def test_what_cannot_be_written_then_waits_in_the_outbox_and_is_not_lost(engine):
    publish(engine, noter(), "x")
    publish(engine, teller(), "t")
    hold(engine, "noter")
    for n in range(3):
        engine.fire("teller", "t", "tell", {"n": n})
    partition = engine.keys.partition("noter")
    engine.client.set(partition.flow, "foreign")
    assert go_on(engine, "noter").data["got"] == []
    assert engine.client.xlen(partition.outbox) == 3
    engine.client.delete(partition.flow)
    assert engine.tick() == 3
    assert engine.get("noter", "x").data["got"] == [0, 1, 2]
    assert engine.live("noter").mail == 0


def test_a_job_that_ends_meanwhile_moves_it_when_it_is_resumed(engine):
    started(engine, errand())
    engine.fire("errand", "x", "start")
    (job,) = engine.take("errand", "work", "w")
    hold(engine, "errand")
    engine.complete(job, {"ok": True})
    held = engine.get("errand", "x")
    assert (held.state, held.jobs) == ("Busy", [])
    assert engine.queues("errand")["work"]["leased"] == 0
    assert go_on(engine, "errand").state == "Done"
    assert engine.history("errand", "x")[0].payload == {"result": {"ok": True}}


def test_a_job_that_dies_meanwhile_does_too(engine):
    started(engine, errand())
    engine.fire("errand", "x", "start")
    (job,) = engine.take("errand", "work", "w")
    hold(engine, "errand")
    assert engine.fail(job, "no", retry=False) == "dead"
    assert go_on(engine, "errand").state == "Failed"


def test_a_job_whose_result_is_refused_then_has_failed(engine):
    """While an instance runs, the worker would be told. Here there is nobody left to tell."""
    done = {"target": "Done", "actions": {"set": {"n": "1 / event.result"}}}
    definition = errand(onDone=done)
    started(engine, definition | {"context": {"n": 0}})
    engine.fire("errand", "x", "start")
    (job,) = engine.take("errand", "work", "w")
    hold(engine, "errand")
    engine.complete(job, 0)
    after = go_on(engine, "errand")
    assert (after.state, after.jobs) == ("Failed", [])
    assert "division by zero" in engine.history("errand", "x")[0].payload["message"]


def test_work_it_waits_for_may_be_taken_and_finished_meanwhile(engine):
    started(engine, errand())
    engine.fire("errand", "x", "start")
    hold(engine, "errand")
    assert len(engine.take("errand", "work", "w")) == 1


def test_an_event_that_ends_it_leaves_the_rest_of_what_waits_unheard(engine):
    publish(engine, noter(), "x")
    publish(engine, teller(), "t")
    publish(engine, teller("end") | {"id": "ender"}, "e")
    hold(engine, "noter")
    engine.fire("teller", "t", "tell", {"n": 1})
    engine.fire("ender", "e", "tell", {"n": 1})
    engine.fire("teller", "t", "tell", {"n": 2})
    after = go_on(engine, "noter")
    assert (after.state, after.done, after.data["got"]) == ("Z", True, [1])
    assert engine.get("teller", "t").data["lost"] == []


def test_an_event_refused_while_it_runs_is_refused_after_it_was_held_too(engine):
    started(engine, door())
    hold(engine, "door")
    go_on(engine, "door")
    with pytest.raises(Refused):
        engine.fire("door", "x", "close")
