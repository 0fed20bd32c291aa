"""Messages that cannot be delivered: what waits for them, what does not, and for how long."""

import pytest
import redis

from machines.engine import Refused
from tests.engine.builders import machine, publish
from tests.engine.dumps import unchanged

from .mailing import (
    corrupt,
    deaf,
    deliver,
    fill_outbox,
    in_minutes,
    lost,
    mend,
    noter,
    oldest,
    post,
    teller,
    told,
    waiting,
)


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
    assert pair.fire("teller", "t", "tell", {"id": "y", "n": 8}).revision
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
    args = oldest(engine, 13)
    assert len(deliver(engine, *args[4:], floor=args[0])) < 2 + 2 * 12, "it answers for as many as it came to"
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
    outbox = fill_outbox(pair, "teller")
    pair.fire("teller", "t", "tell", {"id": "x", "n": 1})
    assert lost(pair) == ["100000 messages wait to be delivered: no more are taken"]
    publish(pair, deaf(), "d")
    pair.client.rename(outbox, pair.keys.partition("deaf").outbox)
    with unchanged(pair), pytest.raises(Refused, match="100000 messages wait to be delivered"):
        pair.fire("deaf", "d", "tell", {"id": "x", "n": 1})
    pair.client.xtrim(pair.keys.partition("deaf").outbox, maxlen=0, approximate=False)
    pair.fire("deaf", "d", "tell", {"id": "x", "n": 1})
    assert told(pair) == [1]
