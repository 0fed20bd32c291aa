"""Messages from instance to instance: applied once each, in order, whoever delivers them and however often."""

import pytest
import redis

from machines.engine import Engine, EngineUnavailable, Refused
from machines.engine.keys import partition_of
from tests.engine.builders import machine, publish
from tests.engine.dumps import keys_left, unchanged
from tests.engine.mailing import (
    corrupt,
    in_minutes,
    mend,
    noter,
    post,
    remembered,
    teller,
    told,
    waiting,
)
from tests.engine.proxies import Relay
from tests.engine.racing import in_processes, in_threads


@pytest.fixture
def pair(engine):
    """A teller ``t`` and the noters ``x`` and ``y``."""
    publish(engine, noter(), "x", "y")
    publish(engine, teller(), "t")
    return engine


def deaf(**options):
    """A teller that does not listen for what comes back: a send that fails refuses its step."""
    definition = teller("deaf", **options)
    del definition["states"]["A"]["on"]["error.communication"]
    return definition


def lost(engine, id="t", name="teller"):
    return engine.get(name, id).data["lost"]


# The way of a message


def test_it_arrives_with_the_call_that_sent_it(pair):
    assert pair.fire("teller", "t", "tell", {"id": "x", "n": 7}).version == 2
    assert (told(pair), waiting(pair)) == ([7], 0)


def test_its_step_says_who_sent_it_and_what(pair):
    pair.fire("teller", "t", "tell", {"id": "x", "n": 7})
    step = pair.history("noter", "x")[0]
    assert (step.event, step.actor, step.payload) == ("note", "teller/t", {"n": 7})


def test_it_knows_where_it_came_from(engine):
    facts = {"actions": {"append": {"got": "[trigger.type, trigger.origin, trigger.sendid]"}}}
    publish(engine, noter(note=facts), "x")
    publish(engine, teller(), "t")
    engine.fire("teller", "t", "tell", {"id": "x", "n": 7})
    assert told(engine) == [["external", "#_scxml_teller/t", "s1"]]


def test_whoever_ticks_delivers_what_was_left(pair):
    post(pair, "x", 7)
    assert (told(pair), waiting(pair), pair.live("teller").mail) == ([], 1, 1)
    assert pair.tick("teller") == 1
    assert (told(pair), waiting(pair)) == ([7], 0)
    assert pair.tick() == 0


def test_an_answer_can_be_answered(engine):
    states = {
        "A": {
            "on": {"hit": {"actions": {"send": {"event": "hit", "to": "trigger.origin", "data": {"n": "event.n + 1"}}}}}
        }
    }
    on = {
        "hit": {
            "guard": "event.n < 6",
            "actions": [{"append": {"got": "event.n"}}, states["A"]["on"]["hit"]["actions"]],
        }
    }
    publish(engine, noter("left", **on), "l")
    publish(engine, machine("right", states), "r")
    start = {"actions": {"send": {"event": "hit", "to": {"machine": "left", "id": "'l'"}, "data": {"n": "0"}}}}
    publish(engine, machine("umpire", {"A": {"on": {"go": start}}}), "u")
    states_of_umpire = engine.fire("umpire", "u", "go")
    assert states_of_umpire.version == 2
    assert told(engine, "l", "left") == [0], "the umpire has no ear for it"


def test_two_that_answer_each_other_for_ever_hold_up_nobody(engine):
    """A call that fires carries on for a few rounds, a tick for some more; the rest is for the next."""
    send = {"event": "hit", "to": {"machine": "pong", "id": "event.to"}, "data": {"to": "instance.id"}}
    on = {"hit": {"actions": [{"set": {"n": "n + 1"}}, {"send": send}]}}
    publish(engine, machine("pong", {"A": {"on": on}}, context={"n": 0}), "a", "b")
    engine.fire("pong", "a", "hit", {"to": "b"})
    first = engine.get("pong", "a").data["n"] + engine.get("pong", "b").data["n"]
    assert first < 20
    engine.tick("pong")
    assert first < engine.get("pong", "a").data["n"] + engine.get("pong", "b").data["n"] < 200
    assert waiting(engine, "pong") == 1


def test_a_step_that_is_refused_sends_nothing(engine):
    publish(engine, noter(), "x")
    send = {"send": {"event": "note", "to": {"machine": "noter", "id": "'x'"}}}
    publish(
        engine,
        machine("bad", {"A": {"on": {"go": {"actions": [send, {"set": {"n": "1 / n"}}]}}}}, context={"n": 0}),
        "b",
    )
    with unchanged(engine), pytest.raises(Refused):
        engine.fire("bad", "b", "go")


def test_many_at_once_arrive_in_order(pair):
    pair.fire("teller", "t", "burst", {"id": "x", "n": 500})
    assert len(told(pair)) < 500, "the caller has other things to do than to carry all of them"
    while pair.tick():
        pass
    assert (told(pair), waiting(pair)) == (list(range(500)), 0)


def test_one_that_nobody_listens_to_is_over(pair):
    publish(pair, teller("mumbler", event="whatever"), "m")
    pair.fire("mumbler", "m", "tell", {"id": "x", "n": 1})
    assert (waiting(pair, "mumbler"), lost(pair, "m", "mumbler")) == (0, [])


def test_one_to_itself_by_name_needs_no_post(engine):
    send = {"event": "note", "to": {"machine": "noter", "id": "instance.id"}, "data": {"n": "1"}}
    publish(engine, noter(go={"actions": {"send": send}}), "x")
    assert engine.fire("noter", "x", "go").data["got"] == [1]
    assert waiting(engine, "noter") == 0


def test_a_delayed_one_leaves_when_its_time_has_come(engine):
    publish(engine, noter(), "x")
    send = {"event": "note", "to": {"machine": "noter", "id": "'x'"}, "data": {"n": "1"}, "delay": "5s"}
    now = in_minutes(0)
    publish(engine, machine("slow", {"A": {"entry": {"send": send}}}), "s", now=now)
    assert engine.tick(now=now + 4_999) == 0
    assert engine.tick(now=now + 5_000) == 2, "the timer, and the message"
    assert told(engine) == [1]


def test_a_message_takes_the_callers_clock_along(engine):
    """What a receiver begins by it happens at the moment the test, or the simulation, is in."""
    publish(engine, machine("sleeper", {"A": {"on": {"note": "B"}}, "B": {"after": {"1s": "A"}}}), "x")
    publish(engine, teller(to="sleeper"), "t")
    engine.fire("teller", "t", "tell", {"id": "x", "n": 1}, now=5_000)
    (timer,) = engine.get("sleeper", "x").timers
    assert timer.due == 6_000


# What comes back


def test_nobody_there_is_told_to_the_sender_once(pair):
    pair.fire("teller", "t", "tell", {"id": "nobody", "n": 1})
    assert lost(pair) == ["there is no instance nobody"]
    assert pair.get("teller", "t").data["ids"] == ["s1"]
    assert (pair.tick(), len(lost(pair)), waiting(pair)) == (0, 1, 0)


def test_an_unknown_machine_is_told_to_the_sender_once(engine):
    publish(engine, teller(to="ghost"), "t")
    engine.fire("teller", "t", "tell", {"id": "x", "n": 1})
    assert lost(engine) == ["no machine 'ghost' is published"]
    assert (engine.tick(), len(lost(engine)), waiting(engine)) == (0, 1, 0)


def test_what_the_receiver_cannot_take_is_told_to_the_sender(engine):
    publish(engine, noter() | {"events": {"note": {"payload": {"n": {"type": "string"}}}}}, "x")
    publish(engine, teller(), "t")
    engine.fire("teller", "t", "tell", {"id": "x", "n": 1})
    assert lost(engine) == ["field 'n' of event 'note' takes string, not number"]


def test_a_step_of_the_receiver_that_fails_is_told_to_the_sender(engine):
    publish(engine, noter(note={"actions": {"append": {"got": "1 / event.n"}}}), "x")
    publish(engine, teller(), "t")
    engine.fire("teller", "t", "tell", {"id": "x", "n": 0})
    assert lost(engine) == ["division by zero"]
    assert told(engine) == []


def test_a_sender_without_an_ear_for_it_finds_it_in_the_log(engine):
    publish(engine, teller(to="ghost"), "t")
    publish(engine, deaf(to="ghost"), "d")
    engine.fire("deaf", "d", "tell", {"id": "x", "n": 1})
    ((_, entry),) = engine.client.xrange(engine.keys.partition("deaf").log)
    assert (entry["kind"], entry["name"], entry["instance"]) == ("message", "undelivered", "d")
    assert "ghost" in entry["data"]
    assert (engine.get("deaf", "d").version, waiting(engine, "deaf")) == (2, 0)


def test_a_sender_that_is_gone_is_told_nothing(pair):
    post(pair, "nobody", 1)
    pair.delete("teller", "t")
    assert pair.tick() == 1
    assert waiting(pair) == 0


def test_a_sender_that_cannot_take_even_that_is_told_once_and_no_more(engine):
    definition = teller(to="ghost")
    definition["states"]["A"]["on"]["error.communication"] = {"actions": {"set": {"n": "1 / n"}}}
    publish(engine, definition, "t")
    engine.fire("teller", "t", "tell", {"id": "x", "n": 1})
    assert [step.event for step in engine.history("teller", "t")] == ["error.communication", "tell", "(create)"]
    assert (lost(engine), waiting(engine), engine.tick()) == ([], 0, 0)


def test_a_suspended_sender_is_told_when_it_goes_on(pair):
    post(pair, "nobody", 1)
    pair.suspend("teller", "t", actor="a", reason="r")
    pair.tick()
    assert lost(pair) == []
    assert pair.resume("teller", "t", actor="a", reason="r").data["lost"] == ["there is no instance nobody"]


def test_a_sender_that_cannot_be_written_is_told_when_it_can(pair):
    """The answer to a message that failed is a message itself then."""
    post(pair, "nobody", 1)
    corrupt(pair, "t", "teller")
    pair.tick()
    assert waiting(pair) == 1
    mend(pair, "t", "teller")
    pair.tick()
    assert (lost(pair), waiting(pair)) == (["there is no instance nobody"], 0)


def test_a_deleted_instances_last_words_are_delivered(pair):
    post(pair, "x", 7)
    pair.delete("teller", "t")
    pair.tick()
    assert told(pair) == [7]


def test_a_deleted_receiver_is_nobody(pair):
    post(pair, "x", 7)
    pair.delete("noter", "x")
    pair.tick()
    assert lost(pair) == ["there is no instance x"]


def test_an_instance_made_after_the_message_was_sent_gets_it(pair):
    post(pair, "late", 7)
    pair.create("noter", "late")
    pair.tick()
    assert (told(pair, "late"), lost(pair)) == ([7], [])


def test_what_failed_stays_failed_though_it_comes_again(pair):
    """Of two that deliver, one may come before the instance is there and one after: both have to say the same."""
    post(pair, "late", 7)
    args = _first(pair)
    assert _deliver(pair, *args)[2:] == ["failed", "there is no instance late"]
    pair.create("noter", "late")
    assert _deliver(pair, *args)[2] == "failed"
    pair.tick()
    assert (told(pair, "late"), len(lost(pair))) == ([], 1)


BAD_ADDRESSES = [
    {"machine": "two words", "id": "x"},
    {"machine": "", "id": "x"},
    {"machine": "m" * 65, "id": "x"},
    {"machine": "noter", "id": ""},
    {"machine": "noter", "id": "  "},
    {"machine": "noter", "id": "a\nb"},
    {"machine": "noter", "id": "x" * 201},
    {"machine": "noter", "id": 1},
    {"machine": "noter"},
    "nowhere",
    "#_scxml_no ter/x",
    7,
]


@pytest.mark.parametrize("to", BAD_ADDRESSES)
def test_an_address_that_can_be_nobodys_refuses_the_step(engine, to):
    publish(engine, noter(), "x")
    publish(
        engine, machine("lost", {"A": {"on": {"go": {"actions": {"send": {"event": "note", "to": "event.to"}}}}}}), "l"
    )
    with unchanged(engine), pytest.raises(Refused):
        engine.fire("lost", "l", "go", {"to": to})
    engine.fire("lost", "l", "go", {"to": {"machine": "noter", "id": "x"}})
    assert len(told(engine)) == 1


@pytest.mark.parametrize("name", ["", "two words", "x" * 401, "a\nb", "after.t1", 7])
def test_a_computed_name_that_no_event_has_refuses_the_step(engine, name):
    send = {"event": {"expr": "event.name"}, "to": {"machine": "noter", "id": "'x'"}}
    publish(engine, machine("odd", {"A": {"on": {"go": {"actions": {"send": send}}}}}), "o")
    with unchanged(engine), pytest.raises(Refused):
        engine.fire("odd", "o", "go", {"name": name})


# Once, whatever happens


def _first(engine, count=1):
    """The oldest messages of the teller's outbox, as sb_deliver takes them."""
    reply = engine.client.fcall_ro("sb_outbox", 1, engine.keys.partition("teller").root, count, "")
    words = iter(reply[3:])
    rows = zip(*[words] * 5, strict=True)
    return [word for id, kind, _, instance, body in rows for word in (id, kind, instance, body)]


def _deliver(engine, *messages, floor=None, final=""):
    root, source = (engine.keys.partition(name).root for name in ("noter", "teller"))
    return engine.client.fcall("sb_deliver", 1, root, source, floor or messages[0], "", final, *messages)


def test_a_message_delivered_twice_is_applied_once(pair):
    post(pair, "x", 7)
    first = _first(pair)
    assert _deliver(pair, *first)[2] == "applied"
    assert _deliver(pair, *first)[2] == "again"
    pair.tick()
    assert (told(pair), waiting(pair)) == ([7], 0)


def test_one_that_comes_again_after_it_was_settled_is_not_applied_either(pair):
    post(pair, "x", 7)
    stale = _first(pair)
    pair.tick()
    for n in (8, 9):
        post(pair, "x", n)
        pair.tick()
    assert _deliver(pair, *stale)[2] == "again"
    assert told(pair) == [7, 8, 9]


def test_one_held_for_a_suspended_instance_is_held_once(pair):
    post(pair, "x", 7)
    first = _first(pair)
    pair.suspend("noter", "x", actor="a", reason="r")
    assert [_deliver(pair, *first)[2] for _ in range(2)] == ["held", "again"]
    pair.tick()
    assert pair.resume("noter", "x", actor="a", reason="r").data["got"] == [7]


def test_answers_lost_on_the_way_make_no_second_delivery(redis_url, pair):
    relay = Relay(redis_url)
    far = Engine.from_url(relay.url, prefix=pair.keys.prefix, socket_timeout=0.5)
    far.tick()
    for n in range(5):
        post(pair, "x", n)
        relay.break_next()
        with pytest.raises(EngineUnavailable):
            far.drive(["teller"])
        relay.mend()
    far.tick()
    assert (told(pair), waiting(pair)) == (list(range(5)), 0)
    far.client.close()
    relay.close()


def test_processes_that_deliver_at_once_apply_each_message_once_and_in_order(pair, redis_url):
    for n in range(30):
        post(pair, "xy"[n % 2], n)
        post(pair, "nobody", n)
    assert in_processes(pair, redis_url, [("tick", ["teller"], {})] * 3) == {"done": 9}
    assert (told(pair, "x"), told(pair, "y")) == (list(range(0, 30, 2)), list(range(1, 30, 2)))
    assert (len(lost(pair)), waiting(pair)) == (30, 0)


def test_senders_and_deliverers_that_race_lose_nothing_and_keep_the_order(pair):
    for id in ("u", "v"):
        pair.create("teller", id)

    def send(sender):
        return lambda: [pair.fire("teller", sender, "tell", {"id": "x", "n": ord(sender) * 100 + n}) for n in range(40)]

    in_threads([*map(send, "tuv"), lambda: [pair.tick() for _ in range(20)]])
    while pair.tick():
        pass
    got = told(pair)
    assert len(got) == 120
    for sender in "tuv":
        assert [n for n in got if n // 100 == ord(sender)] == [ord(sender) * 100 + n for n in range(40)]


# What cannot be delivered


def test_a_message_that_cannot_be_written_waits_and_is_applied_when_it_can(pair):
    corrupt(pair, "x")
    pair.fire("teller", "t", "tell", {"id": "x", "n": 1})
    assert (waiting(pair), lost(pair)) == (1, [])
    mend(pair, "x")
    assert pair.tick() == 1
    assert told(pair) == [1]


def test_it_keeps_those_for_the_same_instance_waiting_and_no_others(pair):
    corrupt(pair, "x")
    for n in range(3):
        post(pair, "x", n)
        post(pair, "y", n)
    pair.tick()
    assert (told(pair, "y"), waiting(pair)) == ([0, 1, 2], 3)
    mend(pair, "x")
    pair.tick()
    assert (told(pair, "x"), waiting(pair)) == ([0, 1, 2], 0)


def test_more_of_them_than_one_look_reads_are_passed_over(pair):
    corrupt(pair, "x")
    pair.fire("teller", "t", "burst", {"id": "x", "n": 450})
    post(pair, "y", 7)
    pair.drive(["teller"])
    assert (told(pair, "y"), waiting(pair)) == ([7], 450)
    assert pair.fire("teller", "t", "tell", {"id": "y", "n": 8}).version
    assert told(pair, "y") == [7, 8], "also by who fires"
    mend(pair, "x")
    while pair.tick():
        pass
    assert told(pair, "x") == list(range(450))


def test_a_call_that_took_long_is_followed_by_another_and_the_order_is_kept(engine):
    """Each message costs several ms; one that waits is at the head."""
    loop = {"foreach": {"in": "range(0, 6000)", "item": "i", "do": []}}
    slow = noter("noter", note={"actions": [loop, {"append": {"got": "event.n"}}]})
    publish(engine, slow | {"context": {"got": [], "i": 0}}, "x", "y")
    publish(engine, teller(), "t")
    corrupt(engine, "y")
    post(engine, "y", 0)
    for n in range(12):
        post(engine, "x", n)
    args = _first(engine, 13)
    assert len(_deliver(engine, *args[4:], floor=args[0])) < 2 + 2 * 12, "it answers for as many as it came to"
    engine.drive(["teller"])
    assert (told(engine), waiting(engine)) == (list(range(12)), 1)


def test_what_could_not_be_settled_is_looked_at_again_before_what_came_later(engine, monkeypatch):
    """Else its receiver would forget how it ended, and its sender never hear of it."""
    send = {"event": "note", "to": "event.to", "data": {"n": "1"}}
    heard = {"actions": {"append": {"lost": "event.message"}}}
    on = {"go": {"actions": {"send": send}}, "error.communication": heard}
    publish(engine, machine("teller", {"A": {"on": on}}, context={"lost": []}), "t")
    publish(engine, noter("stuck"), "x")
    publish(engine, noter(), "y")
    corrupt(engine, "x", "stuck")
    many, broken = engine._caller.many, [True]

    def without_settling(calls):
        if broken[0] and calls and calls[0][0] == "sb_settle":
            return [redis.ConnectionError("gone")] * len(calls)
        return many(calls)

    monkeypatch.setattr(engine._caller, "many", without_settling)
    for name, id in [("stuck", "x"), ("noter", "nobody")]:
        engine.fire("teller", "t", "go", {"to": {"machine": name, "id": id}})
    broken[0] = False
    for _ in range(2):
        engine.fire("teller", "t", "go", {"to": {"machine": "noter", "id": "y"}})
    engine.tick()
    assert (told(engine, "y"), len(lost(engine)), waiting(engine)) == ([1, 1], 1, 1)


def test_it_is_tried_again_after_a_pause_that_grows(pair, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(pair._delivery, "_clock", lambda: clock[0])
    corrupt(pair, "x")
    post(pair, "x", 1)
    assert pair.drive(["teller"]).moved == 0
    mend(pair, "x")
    clock[0] += 0.2
    assert pair.drive(["teller"]).moved == 0, "its pause is not over"
    corrupt(pair, "x")
    clock[0] += 0.1
    assert pair.drive(["teller"]).moved == 0, "tried, in vain"
    mend(pair, "x")
    clock[0] += 0.4
    assert pair.drive(["teller"]).moved == 0, "the second pause is longer"
    clock[0] += 0.2
    assert pair.drive(["teller"]).moved == 1


def test_who_fires_leaves_it_to_others_for_a_while(pair, monkeypatch):
    """A partition that does not answer costs seconds, which whoever fires does not have."""
    clock = [1000.0]
    monkeypatch.setattr(pair._delivery, "_clock", lambda: clock[0])
    corrupt(pair, "x")
    pair.fire("teller", "t", "tell", {"id": "x", "n": 1})
    mend(pair, "x")
    clock[0] += 30
    pair.fire("teller", "t", "tell", {"id": "y", "n": 1})
    assert (told(pair, "x"), told(pair, "y")) == ([], [1])
    clock[0] += 31
    pair.fire("teller", "t", "tell", {"id": "y", "n": 2})
    assert told(pair, "x") == [1]


def test_after_ten_minutes_it_has_failed_and_what_waited_behind_it_goes_on(pair):
    corrupt(pair, "x")
    post(pair, "x", 1)
    post(pair, "y", 2)
    pair.tick(now=in_minutes(9))
    assert (waiting(pair), lost(pair)) == (1, [])
    pair.tick(now=in_minutes(11))
    assert waiting(pair) == 0
    assert lost(pair) == ["instance x is in Nowhere, which its definition does not have"]
    mend(pair, "x")
    assert (pair.tick(), told(pair)) == (0, [])


def test_what_is_no_message_is_thrown_away(pair):
    pair.client.xadd(pair.keys.partition("teller").outbox, {"junk": "1"})
    noise = {"kind": "event", "machine": "noter", "id": "x", "body": "no JSON"}
    pair.client.xadd(pair.keys.partition("teller").outbox, noise)
    post(pair, "x", 7)
    pair.tick()
    assert (told(pair), waiting(pair)) == ([7], 0)


def test_a_kind_of_a_later_release_waits_for_it(pair):
    later = {"kind": "ballad", "machine": "noter", "id": "x", "body": '{"from":{"machine":"teller","id":"t"}}'}
    pair.client.xadd(pair.keys.partition("teller").outbox, later)
    post(pair, "y", 7)
    post(pair, "x", 8)
    pair.tick()
    assert (told(pair, "y"), waiting(pair)) == ([7], 2)
    assert told(pair, "x") == [], "what came after it comes after it"


def test_a_full_outbox_takes_no_more_and_says_so(pair):
    """Nothing can be delivered, and senders must not fill the memory."""
    outbox = pair.keys.partition("teller").outbox
    for _ in range(100):
        pipeline = pair.client.pipeline(transaction=False)
        for _ in range(1000):
            pipeline.xadd(outbox, {"kind": "x"})
        pipeline.execute()
    pair.fire("teller", "t", "tell", {"id": "x", "n": 1})
    assert lost(pair) == ["100000 messages wait to be delivered: no more are taken"]
    publish(pair, deaf(), "d")
    pair.client.rename(outbox, pair.keys.partition("deaf").outbox)
    with unchanged(pair), pytest.raises(Refused, match="100000 messages wait to be delivered"):
        pair.fire("deaf", "d", "tell", {"id": "x", "n": 1})
    pair.client.xtrim(pair.keys.partition("deaf").outbox, maxlen=0, approximate=False)
    pair.fire("deaf", "d", "tell", {"id": "x", "n": 1})
    assert told(pair) == [1]


# What is remembered


def test_what_a_receiver_remembers_does_not_grow_with_what_it_got(pair):
    for n in range(300):
        pair.fire("teller", "t", "tell", {"id": "x", "n": n})
    assert remembered(pair) <= 2
    pair.fire("teller", "t", "burst", {"id": "y", "n": 500})
    while pair.tick():
        pass
    pair.fire("teller", "t", "tell", {"id": "x", "n": 1})
    assert remembered(pair) <= 2
    assert pair.client.hlen(pair.keys.partition("noter").floors) == 1


def test_a_message_that_waits_elsewhere_does_not_make_it_grow(pair):
    publish(pair, noter("other"), "x")
    publish(pair, machine("both", teller()["states"], context={"lost": [], "ids": [], "n": 0}), "b")
    corrupt(pair, "x", "other")
    far = {"event": "note", "to": {"machine": "other", "id": "'x'"}, "data": {"n": "1"}}
    near = {"event": "note", "to": {"machine": "noter", "id": "'x'"}, "data": {"n": "1"}}
    states = {"A": {"on": {"far": {"actions": {"send": far}}, "near": {"actions": {"send": near}}}}}
    publish(pair, machine("poster", states), "p")
    pair.fire("poster", "p", "far")
    for _ in range(50):
        pair.fire("poster", "p", "near")
    assert len(told(pair)) == 50
    assert remembered(pair, "poster") <= 2
    assert waiting(pair, "poster") == 1


def test_a_message_that_waits_where_others_arrive_is_given_up_before_too_much_is_remembered(pair):
    corrupt(pair, "x")
    post(pair, "x", 1)
    pair.tick()
    seen = pair.keys.partition("noter").seen(pair.keys.partition("teller").root)
    later = in_minutes(5)
    pair.client.zadd(seen, {f"{later}-{n}": later for n in range(10_000)})
    pair.tick()
    assert waiting(pair) == 0
    assert len(lost(pair)) == 1


def test_of_a_pair_that_is_gone_nothing_is_left_but_a_line_of_memory(engine):
    publish(engine, noter())
    publish(engine, teller())
    before = keys_left(engine)
    engine.create("noter", "x")
    engine.create("teller", "t")
    engine.fire("teller", "t", "tell", {"id": "x", "n": 1})
    engine.delete("noter", "x")
    engine.delete("teller", "t")
    left = {key for key in keys_left(engine) - before if not key.endswith(":pulse")}
    seen = "{noter:0}:seen:" + engine.keys.partition("teller").root
    assert left == {"{noter:0}:flow", "{noter:0}:floors", seen} | {
        f"{{{name}:0}}:{end}"
        for name, end in [("noter", "log"), ("teller", "log"), ("teller", "flow"), ("teller", "out")]
    }


# Machines that come and go


def wipe(engine, name, *, machines=True):
    for key in engine.client.scan_iter(match=f"{engine.keys.partition(name).root}*", count=1000):
        engine.client.delete(key)
    if machines:
        engine.client.hdel(engine.keys.machines, name)


@pytest.mark.parametrize("listed", [True, False])
def test_a_machine_that_was_wiped_is_nobody(pair, listed):
    pair.fire("teller", "t", "tell", {"id": "x", "n": 1})
    wipe(pair, "noter", machines=not listed)
    pair.fire("teller", "t", "tell", {"id": "x", "n": 2})
    assert len(lost(pair)) == 1
    assert "no machine 'noter' is published" in lost(pair)[0]
    assert waiting(pair) == 0
    assert [key for key in keys_left(pair) if key.startswith("{noter:0}")] == [], "nothing is written there"


def test_a_machine_that_was_wiped_and_made_anew_gets_what_is_sent_from_then_on(pair):
    for n in range(3):
        pair.fire("teller", "t", "tell", {"id": "x", "n": n})
    wipe(pair, "noter")
    publish(pair, noter(), "x")
    pair.fire("teller", "t", "tell", {"id": "x", "n": 9})
    assert told(pair) == [9]


def test_a_sender_that_was_wiped_and_made_anew_is_heard(pair):
    for n in range(3):
        pair.fire("teller", "t", "tell", {"id": "x", "n": n})
    wipe(pair, "teller")
    publish(pair, teller(), "t")
    pair.fire("teller", "t", "tell", {"id": "x", "n": 9})
    assert told(pair) == [0, 1, 2, 9]


# Partitions


@pytest.fixture
def spread(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=3)
    yield engine
    engine.client.close()


def test_each_partition_of_sender_and_receiver_has_a_post_of_its_own(spread):
    ids = [f"i{n}" for n in range(12)]
    assert {partition_of(id, 3) for id in ids} == {0, 1, 2}
    publish(spread, noter(), *ids)
    publish(spread, teller(), *ids)
    for n, sender in enumerate(ids):
        for receiver in ids:
            spread.fire("teller", sender, "tell", {"id": receiver, "n": n})
    for id in ids:
        assert told(spread, id) == list(range(12))
    assert spread.tick() == 0
    assert spread.live("teller").mail == 0


def test_a_partition_that_cannot_be_written_holds_up_no_other(spread):
    ids = {partition_of(id, 3): id for id in map(str, range(30))}
    publish(spread, noter(), *ids.values())
    publish(spread, teller(), "t")
    broken = spread.keys.partition("noter", 1)
    spread.client.set(broken.floors, "foreign")
    for id in ids.values():
        spread.fire("teller", "t", "tell", {"id": id, "n": 1})
    assert [told(spread, ids[n]) for n in range(3)] == [[1], [], [1]]
    driven = spread.drive(["teller"], retry=True)
    assert ["WRONGTYPE" in str(fault) for fault in driven.faults] == [True]
    spread.client.delete(broken.floors)
    assert spread.tick() == 1
    assert told(spread, ids[1]) == [1]
