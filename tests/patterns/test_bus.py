"""Topics: who listens hears, and who was cut off is told so. Streams: what fits, what is refused, what is full."""

import json
from contextlib import suppress
from functools import partial

import pytest

from machines.engine import BadInput, Engine, EngineFault, EngineUnavailable
from machines.engine.pattern_keys import PatternKeys
from machines.patterns import Bus, Full, Gap, Gone, Message, Stream
from machines.patterns.bus import AttachedStream
from tests.engine.dumps import unchanged
from tests.installation.processes import eventually


@pytest.fixture
def bus(engine, prefix):
    return Bus(engine.client, prefix)


@pytest.fixture
def orders(engine, prefix):
    return Stream(engine.client, "orders", prefix=prefix, most=20)


def bodies(messages):
    return [message.body for message in messages]


# Topics


def test_who_listens_hears_and_nobody_else(bus, engine, prefix):
    assert bus.publish("prices", {"tea": 3}) == 0
    with bus.subscribe("prices", "news") as one, Bus(engine.client, prefix).subscribe("prices") as other:
        assert bus.publish("prices", {"tea": 4}) == 2
        assert bus.publish("news", ["\u202e\n\0 {x}:😀"]) == 1
        assert one.get(60) == Message("prices", {"tea": 4})
        assert one.get(60) == Message("news", ["\u202e\n\0 {x}:😀"])
        assert (other.get(60), other.get(0)) == (Message("prices", {"tea": 4}), None)
        engine.client.execute_command("SPUBLISH", PatternKeys(prefix).topic("news").channel, b"\xff no JSON {")
        bus.publish("news", None)
        assert one.get(60) == Message("news", None)
    # The server learns of a closed connection a moment later.
    eventually(lambda: bus.publish("prices", 1) == 0, "nobody listens any more")


def test_who_was_cut_off_gets_a_gap_in_place_of_what_it_missed(bus, engine, prefix):
    with bus.subscribe("prices") as prices:
        bus.publish("prices", 1)
        for held in engine.client.client_list():
            if held.get("ssub", "0") != "0" and bus.publish("prices", 2):
                engine.client.client_kill_filter(_id=held["id"])
        assert bus.publish("prices", "lost") == 0
        heard = []
        for one in prices:
            heard.append(one)
            if isinstance(one, Gap):
                break
        bus.publish("prices", 3)
        assert (heard[-1].topics, heard[-1].seconds >= 0, bool(heard[-1].why)) == (("prices",), True, True)
        assert {message.body for message in heard[:-1]} <= {1, 2}
        assert prices.get(60) == Message("prices", 3)


def test_a_server_that_went_and_came_back_is_a_gap_and_one_that_hangs_too(own_server, monkeypatch):
    from machines.engine.connection import subscription

    monkeypatch.setattr(subscription, "PROBE", 0.1)
    monkeypatch.setattr(subscription, "DEADLINE", 0.3)
    engine = Engine.from_url(own_server.url)
    bus = Bus(engine.client)
    with bus.subscribe("prices") as prices:
        engine.client.execute_command("CLIENT", "PAUSE", "1500", "ALL")  # it takes what it is sent and says nothing
        gap = _first(prices)
        assert "sign of life" in gap.why
        own_server.stop()
        assert prices.get(0.2) is None
        own_server.start()
        assert isinstance(_first(prices), Gap)
        assert bus.publish("prices", 1) == 1
    own_server.stop()
    with pytest.raises(EngineUnavailable), bus.subscribe("prices"):
        pass
    with pytest.raises(EngineUnavailable):
        bus.publish("prices", 1)
    engine.client.close()


def _first(subscription):
    for _ in range(60):
        if (heard := subscription.get(0.5)) is not None:
            return heard
    pytest.fail("it never came back")


# Streams


def test_each_message_goes_to_one_reader_of_each_group(orders):
    assert [orders.group("billing"), orders.group("billing"), orders.group("late", start="$")] == [True, False, True]
    ids = [orders.append({"n": n}) for n in range(6)]
    first, second = orders.read("billing", "a", count=2), orders.read("billing", "b", count=2)
    assert bodies(first + second) == [{"n": n} for n in range(4)]
    assert [(message.id, message.deliveries) for message in first] == [(ids[0], 1), (ids[1], 1)]
    assert orders.ack("billing", *ids[:3]) == 3
    assert orders.ack("billing", *ids[:3]) == 0
    assert orders.give_back("billing", "a", ids[3]) == 0  # it is b's
    assert orders.give_back("billing", "b", ids[3]) == 1
    again = orders.read("billing", "a", count=10)
    assert [(message.id, message.deliveries) for message in again] == [(ids[3], 2), (ids[4], 1), (ids[5], 1)]
    billing, late = orders.lag()
    assert (billing.unread, billing.pending, billing.oldest, billing.readers) == (0, 3, ids[3], 2)
    assert (late.unread, late.pending, late.oldest, late.readers) == (6, 0, ids[0], 0)
    orders.group("new", start="0")
    assert bodies(orders.read("new", "x")) == [{"n": n} for n in range(6)]
    assert orders.forget_group("new") is True
    assert orders.forget_group("new") is False
    with pytest.raises(Gone, match="new"):
        orders.read("new", "x")


def test_without_a_group_the_oldest_go_and_with_one_nothing_that_it_needs(orders, engine):
    for n in range(25):
        orders.append(n)
    assert len(orders) == 20
    orders.group("slow")
    orders.group("quick")
    with pytest.raises(Full, match="20 messages of 20"):
        orders.append("x")
    quick = orders.read("quick", "q")
    orders.ack("quick", *[message.id for message in quick])
    with pytest.raises(Full, match="'slow' is not done with the oldest"):
        orders.append("x")
    held = orders.read("slow", "s", count=3)
    orders.ack("slow", held[1].id, held[2].id)  # the oldest is still at work
    with pytest.raises(Full):
        orders.append("x")
    orders.ack("slow", held[0].id)
    assert [orders.append("x") for _ in range(3)]
    with pytest.raises(Full):
        orders.append("x")
    assert bodies(orders.read("slow", "s")) == [*range(8, 25), "x", "x", "x"]
    orders.forget_group("slow")
    orders.append("y")
    assert len(orders) <= 20
    assert bodies(orders.read("quick", "q")) == ["x", "x", "x", "y"]
    assert [lag.lost for lag in orders.lag()] == [0]


def test_a_message_that_nobody_can_do_goes_to_the_dead_and_holds_up_no_other(engine, prefix):
    poison = Stream(engine.client, "poison", prefix=prefix, most=5, tries=2)
    poison.group("g")
    first = poison.append("bad")
    poison.append("good")
    given = []
    for _ in range(3):
        (message,) = poison.read("g", "r", count=1)
        given.append((message.body, message.deliveries))
        poison.give_back("g", "r", message.id)
    assert given == [("bad", 1), ("bad", 2), ("good", 1)]
    (dead,) = poison.dead()
    assert (dead.group, dead.message, dead.body, dead.deliveries) == ("g", first, "bad", 2)
    assert poison.lag()[0].pending == 1
    assert poison.ack("g", first) == 0


def test_an_attached_stream_is_read_and_never_written(engine, prefix):
    root = f"{prefix}{{their:0}}"
    theirs = AttachedStream(engine.client, root, prefix=prefix, most=3)
    ids = [engine.client.xadd(f"{root}:log", {"kind": "k", "n": n}) for n in range(6)]
    assert theirs.begin("g", ids[0], 1)
    taken = theirs.take("g", "r", count=2, idle=60)
    assert (taken.entries, taken.lost) == (
        [(id, {"kind": "k", "n": n}) for id, n in zip(ids[1:3], "12", strict=True)],
        0,
    )
    engine.client.execute_command("XCLAIM", f"{root}:log", "g", "r", 0, ids[1], ids[2], "IDLE", 10**8, "JUSTID")
    engine.client.xtrim(f"{root}:log", maxlen=1, approximate=False)
    taken = theirs.take("g", "other", count=9, idle=60)
    assert ([id for id, _ in taken.entries], taken.lost) == ([ids[5]], 4)  # two never given, two given and gone
    assert theirs.take("g", "other", count=9, idle=60).lost == 0
    assert not theirs.begin("g", "$")
    assert theirs.begin("g", "0", anew=True)
    assert [id for id, _ in theirs.take("g", "r", count=9, idle=60).entries] == [ids[5]]
    with pytest.raises(BadInput, match="owner alone"):
        theirs.append(1)


def test_a_reader_that_waits_is_woken_by_the_message(orders, engine):
    from tests.engine.instances.racing import in_threads

    orders.group("g")

    def late():
        blocked = 0
        while not blocked:
            blocked = int(engine.client.info("clients")["blocked_clients"])
        return orders.append("late")

    id, read = in_threads([late, lambda: orders.read("g", "r", block=30)])
    assert [message.id for message in read] == [id]
    assert orders.read("g", "r", block=0.01) == []


# What does not fit


RAW = {
    "sb_bus_append": [["0", "1"], ["1.5", "1"], ["nan", "1"], ["1e9", "1"], ["5", ""], ["5", "x" * 65_537]],
    "sb_bus_group": [["new", "g", "0"], ["make", "", "0"], ["make", "g", "x"], ["make", "g", f"{2**64}-0"],
                     ["anew", "g", "1-1", "1.5"], ["make", "g", ""], ["forget", "x" * 513]],
    "sb_bus_read": [["", "r", "1", "1", "", "0"], ["g", "", "1", "1", "", "0"], ["g", "r", "501", "1", "", "0"],
                    ["g", "r", "1", "0", "", "0"], ["g", "r", "1", "inf", "", "0"], ["g", "r", "1", "1", "x", "0"],
                    ["g", "r", "1", "1", "", "-1"]],
    "sb_bus_ack": [["nack", "g", "", "", "1-1"], ["ack", "", "", "", "1-1"], ["back", "g", "", "", "1-1"],
                   ["ack", "g", "", "0", "1-1"], ["ack", "g", "", "", "1"], ["ack", "g", ""],
                   ["ack", "g", "", "", *["1-1"] * 5000]],
    "sb_bus_look": [["all"], ["dead", "0"], ["dead", "nan"]],
}  # fmt: skip


def test_the_functions_themselves_refuse_the_same_and_write_nothing(orders, engine):
    orders.group("g")
    orders.append(1)
    orders.read("g", "r")
    with unchanged(engine):
        for name, calls in RAW.items():
            for words in calls:
                assert engine.client.fcall(name, 1, orders.keys.root, *words)[0] == "BADARG", (name, words)
        for name, words in (("ack", "1-1"), ("read", "r")):
            with pytest.raises(Gone):
                getattr(orders, name)("none", words)


def test_a_foreign_key_in_the_way_is_an_error_and_stays_as_it_is(orders, engine, prefix):
    engine.client.set(orders.keys.log, "x")
    calls = [lambda: orders.append(1), lambda: orders.group("g"), lambda: orders.read("g", "r"), orders.lag]
    with unchanged(engine):
        for call in [*calls, lambda: orders.ack("g", "1-1"), lambda: orders.forget_group("g")]:
            with pytest.raises(EngineFault, match="WRONGTYPE"):
                call()
    engine.client.delete(orders.keys.log)
    engine.client.set(orders.keys.dead, "x")
    orders.group("g")
    orders.append(1)
    with unchanged(engine), pytest.raises(EngineFault):
        orders.read("g", "r")
    engine.client.delete(orders.keys.dead)
    engine.client.xadd(orders.keys.log, {"other": "field"})
    engine.client.xadd(orders.keys.log, {"body": "{no JSON"})
    assert bodies(orders.read("g", "r")) == [1, None, None]


def test_as_many_groups_as_may_be(orders, engine):
    for n in range(64):
        orders.group(f"g{n}: {{}}\n\0😀")
    with pytest.raises(Full, match="64 groups"):
        orders.group("more")
    assert orders.group("g0: {}\n\0😀") is False
    assert len(json.dumps([lag.group for lag in orders.lag()])) > 64
    with suppress(Full):
        orders.append(1)
    assert bodies(orders.read("g63: {}\n\0😀", "r\0")) == [1]


def test_none_and_too_many_of_one_call_are_refused_before_anything_is_sent():
    client = Engine.from_url("unix:///nonexistent/none.sock").client
    subscribe, ack = Bus(client).subscribe, partial(Stream(client, "orders").ack, "g")
    for call in (subscribe, partial(subscribe, *"t" * 65), ack, partial(ack, *["1-1"] * 501)):
        with pytest.raises(BadInput) as caught:
            call()
        assert caught.value.code == "SB402"
