"""Timers: armed and disarmed by steps, fired once by whoever comes first."""

import pytest

from machines.engine import DefinitionError, Refused
from tests.cases import for_each
from tests.engine.builders import NOW, machine, publish, started
from tests.engine.dumps import unchanged
from tests.engine.instances.racing import in_processes, in_threads

from .clockwork import due, lamp, sender

SECOND = 1000


def scheduled(engine, name):
    """What the partition itself has on its list."""
    return engine.client.zcard(engine.keys.partition(name).timers)


def test_a_state_is_left_when_its_time_has_come_and_not_a_moment_before(engine):
    made = started(engine, lamp())
    (timer,) = made.timers
    assert (timer.due, timer.state, timer.event) == (NOW + 10 * SECOND, "On", "after.t2")
    assert engine.tick("lamp", now=NOW + 9_999) == 0
    assert engine.get("lamp", "x").state == "On"
    assert engine.tick("lamp", now=NOW + 10_000) == 1
    off = engine.get("lamp", "x")
    assert (off.state, off.revision, off.entered, off.timers) == ("Off", 2, NOW + 10_000, [])
    assert engine.tick("lamp", now=NOW + 20_000) == 0


def test_the_history_says_that_a_timer_did_it(engine):
    started(engine, lamp())
    engine.tick("lamp", now=NOW + 10_000)
    step = engine.history("lamp", "x")[0]
    assert (step.event, step.actor, step.transitions, step.payload) == ("after.t2", "timer", ["t2"], {})


def test_a_state_that_is_left_takes_its_timer_along(engine):
    started(engine, lamp())
    assert engine.fire("lamp", "x", "hold", now=NOW + 1).timers == []
    assert scheduled(engine, "lamp") == 0
    assert engine.tick("lamp", now=NOW + 10_000) == 0
    assert engine.get("lamp", "x").state == "Held"


def test_a_state_entered_again_starts_its_time_anew(engine):
    started(engine, lamp(again={"target": "On", "reenter": True}))
    assert due(engine.fire("lamp", "x", "again", now=NOW + 4_000)) == [14_000]
    assert engine.tick("lamp", now=NOW + 10_000) == 0
    assert engine.tick("lamp", now=NOW + 14_000) == 1


def test_a_state_that_stays_keeps_its_time(engine):
    started(engine, lamp(stay="On", nothing={"actions": {"log": "'x'"}}))
    for event in ("stay", "nothing"):
        assert due(engine.fire("lamp", "x", event, now=NOW + 4_000)) == [10_000]


def test_a_timer_that_was_disarmed_can_never_fire_though_it_is_on_the_list(engine):
    started(engine, lamp(again={"target": "On", "reenter": True}))
    key = engine.keys.partition("lamp").timers
    ((stale, score),) = engine.client.zrange(key, 0, -1, withscores=True)
    engine.fire("lamp", "x", "again", now=NOW + 1)
    engine.client.zadd(key, {stale: score})
    assert engine.tick("lamp", now=NOW + 10_000) == 0
    assert engine.get("lamp", "x").state == "On"
    assert engine.client.zscore(key, stale) is None, "it is off the list again"


def test_a_time_that_was_moved_forward_on_the_list_alone_does_not_count(engine):
    started(engine, lamp())
    key = engine.keys.partition("lamp").timers
    (member,) = engine.client.zrange(key, 0, -1)
    engine.client.zadd(key, {member: NOW + 1})
    assert engine.tick("lamp", now=NOW + 2) == 0
    assert engine.client.zscore(key, member) == NOW + 10_000
    assert engine.tick("lamp", now=NOW + 10_000) == 1


@for_each("member", ["1.1:x", "a1a7:x", "a1a1:nobody", "a1a1:", "junk", ""])
def test_what_is_no_timer_is_taken_off_the_list(engine, member):
    publish(engine, lamp())
    key = engine.keys.partition("lamp").timers
    engine.client.zadd(key, {member: NOW})
    assert engine.tick("lamp", now=NOW) == 0
    assert engine.client.zcard(key) == 0


def test_an_instance_made_again_under_its_id_is_not_hit_by_the_timers_of_the_old_one(engine):
    started(engine, lamp())
    engine.delete("lamp", "x")
    assert scheduled(engine, "lamp") == 0
    engine.create("lamp", "x", now=NOW + 5_000)
    assert engine.tick("lamp", now=NOW + 10_000) == 0
    assert engine.tick("lamp", now=NOW + 15_000) == 1


def test_what_came_due_during_an_outage_fires_once_afterwards(engine):
    started(engine, lamp())
    assert engine.live("lamp").overdue == 1, "these tests live in the past"
    assert engine.tick("lamp", now=NOW + 3_600_000) == 1
    assert engine.tick("lamp", now=NOW + 3_600_000) == 0
    assert len(engine.history("lamp", "x")) == 2


@pytest.mark.faults
def test_processes_that_tick_at_once_fire_each_timer_exactly_once(engine, redis_url):
    states = {"A": {"entry": {"set": {"n": "n + 1"}}, "after": {"1s": {"target": "A", "reenter": True}}}}
    publish(engine, machine("clock", states, context={"n": 0}), *(f"i{number}" for number in range(150)))
    calls = [("tick", ["clock"], {"now": NOW + turn * SECOND}) for turn in range(1, 6)]
    assert in_processes(engine, redis_url, calls) == {"done": 15}
    engine.tick("clock", now=NOW + 5 * SECOND)
    assert {(i.data["n"], i.revision) for i in engine.find("clock", limit=200)} == {(6, 6)}


def test_threads_that_tick_at_once_fire_each_timer_exactly_once(engine):
    publish(engine, lamp(), *map(str, range(100)))
    fired = in_threads([lambda: engine.tick("lamp", now=NOW + 10_000) for _ in range(4)])
    assert sum(fired) == 100
    assert engine.live("lamp").flow == {"1:t2": 100}


def test_timers_fire_in_the_order_they_are_due(engine):
    sends = [{"send": {"event": f"e{n}", "delay": delay}} for n, delay in enumerate([300, 100, 200])]
    started(engine, sender(*sends))
    engine.fire("sender", "x", "go", now=NOW)
    assert engine.tick("sender", now=NOW + 300) == 3
    assert engine.get("sender", "x").data["got"] == ["e1", "e2", "e0"]


def test_of_timers_due_at_one_moment_the_one_armed_first_fires_first(engine):
    """Twelve of them: their numbers, taken as text, would put the tenth before the second."""
    started(engine, sender(*({"send": {"event": f"e{n}", "delay": 100}} for n in range(12))))
    engine.fire("sender", "x", "go", now=NOW)
    engine.tick("sender", now=NOW + 100)
    assert engine.get("sender", "x").data["got"] == [f"e{n}" for n in range(12)]


def test_the_same_holds_for_timers_of_the_ninth_and_the_tenth_version(engine):
    definition = sender(
        {"send": {"event": "e0", "delay": {"expr": "wait"}}}, wait={"actions": {"set": {"wait": "event.ms"}}}
    )
    definition["states"]["A"]["on"]["other"] = {"actions": {"send": {"event": "e1", "delay": {"expr": "wait"}}}}
    started(engine, definition)
    for n in range(7):
        engine.fire("sender", "x", "wait", {"ms": 100 - n}, now=NOW)
    engine.fire("sender", "x", "go", now=NOW)  # makes version 9, due at 94
    engine.fire("sender", "x", "other", now=NOW)  # version 10, the same
    engine.tick("sender", now=NOW + 94)
    assert engine.get("sender", "x").data["got"] == ["e0", "e1"]


@pytest.mark.parametrize(
    ("delay", "ms"),
    [
        (1500, 1500),
        ("2s", 2000),
        ("1.5s", 1500),
        ("250ms", 250),
        ("2m", 120_000),
        ("1h", 3_600_000),
        ("1d", 86_400_000),
        ({"expr": "wait"}, 700),
        ({"expr": "'0.7s'"}, 700),
        ({"expr": "wait * 1.0011"}, 701),
    ],
)
def test_a_delay_is_a_number_of_ms_a_text_with_a_unit_or_an_expression(engine, delay, ms):
    started(engine, sender({"send": {"event": "e0", "delay": delay}}), data={"wait": 700})
    assert due(engine.fire("sender", "x", "go", now=NOW)) == [ms]


@pytest.mark.parametrize("delay", ["-1", "'soon'", "'1 week'", "True", "1e300", "[]", "366 * 11 * 86400000", "'-1s'"])
def test_a_delay_that_is_none_refuses_the_step(engine, delay):
    started(engine, sender({"send": {"event": "e0", "delay": {"expr": delay}}}, {"set": {"handle": "'changed'"}}))
    with unchanged(engine), pytest.raises(Refused, match="a delay is a number of ms or text"):
        engine.fire("sender", "x", "go", now=NOW)


@for_each("delay", [-1, "soon", 1e300, "11000d"])
def test_a_delay_that_is_written_down_wrongly_is_found_when_it_is_published(engine, delay):
    with pytest.raises(DefinitionError):
        engine.publish(sender({"send": {"event": "e0", "delay": delay}}))


@pytest.mark.parametrize("delay", [0, "0s", {"expr": "0"}])
def test_no_delay_is_no_timer(engine, delay):
    started(engine, sender({"send": {"event": "e3", "delay": delay}}))
    sent = engine.fire("sender", "x", "go", now=NOW)
    assert (sent.timers, sent.data["got"]) == ([], ["e3"])


def test_after_takes_an_expression_that_sees_the_data(engine):
    states = {"A": {"after": {"wait * 2": "B"}}, "B": {}}
    made = started(engine, machine("slow", states, context={"wait": 50}), data={"wait": 300})
    assert due(made) == [600]


def test_after_nothing_at_all_fires_with_the_next_tick(engine):
    started(engine, machine("quick", {"A": {"after": {"0": "B"}}, "B": {}}))
    assert engine.tick("quick", now=NOW) == 1
    assert engine.get("quick", "x").state == "B"


def test_several_delays_of_one_state_each_have_their_time(engine):
    states = {"A": {"after": {"1s": {"actions": {"set": {"n": "n + 1"}}}, "2s": "B"}}, "B": {}}
    started(engine, machine("two", states, context={"n": 0}))
    engine.tick("two", now=NOW + 1_000)
    assert engine.get("two", "x").data == {"n": 1}
    engine.tick("two", now=NOW + 2_000)
    assert engine.get("two", "x").state == "B"


def test_of_several_candidates_the_first_open_one_is_taken_when_the_time_comes(engine):
    after = {"1s": [{"target": "B", "guard": "rich"}, {"target": "C"}]}
    states = {"A": {"after": after, "on": {"win": {"actions": {"set": {"rich": "True"}}}}}, "B": {}, "C": {}}
    publish(engine, machine("choice", states, context={"rich": False}), "x", "y")
    engine.fire("choice", "x", "win", now=NOW)
    engine.tick("choice", now=NOW + 1_000)
    assert [engine.get("choice", id).state for id in "xy"] == ["B", "C"]


def test_a_timer_whose_guard_does_not_hold_is_over(engine):
    states = {"A": {"after": {"1s": {"target": "B", "guard": "rich"}}, "on": {"out": "B"}}, "B": {}}
    started(engine, machine("poor", states, context={"rich": False}))
    assert engine.tick("poor", now=NOW + 1_000) == 1
    after = engine.get("poor", "x")
    assert (after.state, after.revision, after.timers) == ("A", 1, [])
    assert scheduled(engine, "poor") == 0


def test_compound_states_and_regions_have_timers_of_their_own(engine):
    region = {"initial": "a", "states": {"a": {"after": {"1s": "b"}}, "b": {}}}
    both = {"type": "parallel", "states": {"L": region, "R": region}, "after": {"3s": "Done"}}
    started(engine, machine("pair", {"Both": both, "Done": {}}))
    assert engine.live("pair").timers == 3
    assert engine.tick("pair", now=NOW + 1_000) == 2
    assert engine.get("pair", "x").configuration == ["Both.L.b", "Both.R.b"]
    assert engine.tick("pair", now=NOW + 3_000) == 1
    assert engine.get("pair", "x").state == "Done"


def test_a_wildcard_does_not_swallow_a_timer(engine):
    started(engine, machine("any", {"A": {"on": {"*": {"actions": {"log": "'x'"}}}, "after": {"1s": "B"}}, "B": {}}))
    engine.tick("any", now=NOW + 1_000)
    assert engine.get("any", "x").state == "B"


def test_cancel_takes_the_delayed_event_of_that_id_away_and_no_other(engine):
    sends = [{"send": {"event": f"e{n}", "delay": 100, "id": f"s{n}"}} for n in range(2)]
    started(engine, sender(*sends, stop={"actions": {"cancel": "s0"}}))
    assert [timer.sendid for timer in engine.fire("sender", "x", "go", now=NOW).timers] == ["s0", "s1"]
    assert [timer.sendid for timer in engine.fire("sender", "x", "stop", now=NOW).timers] == ["s1"]
    engine.tick("sender", now=NOW + 100)
    assert engine.get("sender", "x").data["got"] == ["e1"]


def test_cancel_of_no_id_leaves_delayed_events_without_an_id(engine):
    started(engine, sender({"send": {"event": "e0", "delay": 100}}, {"cancel": {"expr": "''"}}))
    engine.fire("sender", "x", "go", now=NOW)
    assert scheduled(engine, "sender") == 1


def test_cancel_finds_what_the_same_step_sent_and_says_nothing_when_there_is_nothing(engine):
    send = {"send": {"event": "e0", "delay": 100, "idlocation": "handle"}}
    started(engine, sender(send, {"cancel": {"expr": "handle"}}, {"cancel": "nothing"}))
    sent = engine.fire("sender", "x", "go", now=NOW)
    assert sent.timers == []
    assert sent.data["handle"].startswith("send.")
    assert scheduled(engine, "sender") == 0


def test_a_delayed_event_survives_the_state_that_sent_it(engine):
    states = {
        "A": {"exit": {"send": {"event": "late", "delay": 100}}, "on": {"go": "B"}},
        "B": {"on": {"late": "C"}},
        "C": {},
    }
    started(engine, machine("late", states))
    engine.fire("late", "x", "go", now=NOW)
    engine.tick("late", now=NOW + 100)
    assert engine.get("late", "x").state == "C"


def test_a_delayed_event_nobody_listens_to_is_over(engine):
    started(engine, sender({"send": {"event": "whatever", "delay": 100}}))
    engine.fire("sender", "x", "go", now=NOW)
    assert engine.tick("sender", now=NOW + 100) == 1
    after = engine.get("sender", "x")
    assert (after.timers, after.revision) == ([], 2)


def test_a_delayed_event_carries_its_data_as_they_were_when_it_was_sent(engine):
    send = {"send": {"event": "note", "delay": 100, "data": {"was": "wait"}}}
    definition = sender(send, {"set": {"wait": "9"}}, note={"actions": {"append": {"got": "event.was"}}})
    started(engine, definition, data={"wait": 4})
    engine.fire("sender", "x", "go", now=NOW)
    engine.tick("sender", now=NOW + 100)
    assert engine.get("sender", "x").data["got"] == [4]
    assert engine.history("sender", "x")[0].payload == {"was": 4}


def test_a_finished_instance_has_no_timers_left(engine):
    states = {"A": {"entry": {"send": {"event": "e", "delay": 100}}, "after": {"1s": "A"}, "on": {"end": "Z"}}}
    started(engine, machine("ends", states | {"Z": {"type": "final"}}))
    assert engine.fire("ends", "x", "end", now=NOW).timers == []
    assert scheduled(engine, "ends") == 0
